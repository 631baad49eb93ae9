//! One description of every option: an option struct that [`options!`] declares has the name, type, default, range,
//! unit and meaning of its fields. The command's flags with their help, and the classes and docstrings of the Python
//! package are generated from this table, so an option is added in one place.
//!
//! The first paragraph of a field's comment is its help everywhere; further paragraphs appear only in Rust's
//! documentation.

use super::{Named, bytes, count};
use crate::{Error, Result};
use std::fmt::Display;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive};
use std::path::PathBuf;
use std::str::FromStr;

/// The value of an option, as front ends pass and show it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value: not given, not wanted, or following from other options.
    None,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number. A 32-bit float is represented by its shortest decimal form.
    Number(f64),
    /// A name or a path; or any other value as text, which [`OptionTable::set`] parses.
    Text(String),
}

impl Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => f.write_str(value),
        }
    }
}

/// The kind of value that an option takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Bool`].
    Bool,
    /// [`Value::Integer`].
    Integer,
    /// [`Value::Number`].
    Number,
    /// [`Value::Text`]: one of these names, each with its meaning.
    Name(Vec<(&'static str, &'static str)>),
    /// [`Value::Text`]: the path of a file or folder.
    Path,
}

/// A type that an option may have.
pub trait ValueType: Sized {
    /// The type to which a range applies: this type, or the type in it if it is an `Option`.
    type Inner;

    /// The kind of value.
    fn kind() -> Kind;

    /// Converts a front end's value; `None` if it is of another kind, or not a value of this type.
    fn take(value: &Value) -> Option<Self>;

    /// Converts to a front end's value.
    fn show(&self) -> Value;

    /// The value that must lie in the range, if there is one.
    fn inner(&self) -> Option<&Self::Inner>;

    /// Whether this is neither infinite nor NaN.
    fn is_finite(&self) -> bool {
        !matches!(self.show(), Value::Number(number) if !number.is_finite())
    }

    /// Whether [`Value::None`] is a value.
    const OPTIONAL: bool = false;
}

macro_rules! value_type {
    ($($type:ty: $kind:ident, $value:ident => $take:expr, $this:ident => $show:expr;)*) => {$(
        impl ValueType for $type {
            type Inner = Self;

            fn kind() -> Kind {
                Kind::$kind
            }

            fn take($value: &Value) -> Option<Self> {
                $take
            }

            fn show(&self) -> Value {
                let $this = self;
                $show
            }

            fn inner(&self) -> Option<&Self> {
                Some(self)
            }
        }
    )*};
}

fn number<T: FromStr>(value: &Value, from: impl Fn(f64) -> T) -> Option<T> {
    match value {
        Value::Number(value) => Some(from(*value)),
        Value::Integer(value) => Some(from(*value as f64)),
        Value::Text(text) => text.parse().ok(),
        Value::None | Value::Bool(_) => None,
    }
}

fn integer<T: TryFrom<i128> + FromStr>(value: &Value) -> Option<T> {
    match value {
        Value::Integer(value) => T::try_from(*value).ok(),
        Value::Text(text) => text.parse().ok(),
        Value::None | Value::Bool(_) | Value::Number(_) => None,
    }
}

value_type! {
    bool: Bool, value => if let Value::Bool(value) = value { Some(*value) } else { None }, this => Value::Bool(*this);
    u8: Integer, value => integer(value), this => Value::Integer((*this).into());
    i8: Integer, value => integer(value), this => Value::Integer((*this).into());
    u16: Integer, value => integer(value), this => Value::Integer((*this).into());
    i32: Integer, value => integer(value), this => Value::Integer((*this).into());
    u32: Integer, value => integer(value), this => Value::Integer((*this).into());
    u64: Integer, value => integer(value), this => Value::Integer((*this).into());
    usize: Integer, value => integer(value), this => Value::Integer(*this as i128);
    f64: Number, value => number(value, |value| value), this => Value::Number(*this);
    f32: Number, value => number(value, |value| value as Self),
        this => Value::Number(this.to_string().parse().unwrap_or_else(|_| f64::from(*this)));
    PathBuf: Path, value => if let Value::Text(text) = value { Some(text.into()) } else { None },
        this => Value::Text(this.to_string_lossy().into_owned());
}

impl<T: Named> ValueType for T {
    type Inner = Self;

    fn kind() -> Kind {
        Kind::Name(T::ALL.iter().map(|choice| (choice.name, choice.help)).collect())
    }

    fn take(value: &Value) -> Option<Self> {
        Self::from_name(&value.to_string()).ok()
    }

    fn show(&self) -> Value {
        Value::Text(self.name().to_owned())
    }

    fn inner(&self) -> Option<&Self> {
        Some(self)
    }
}

impl<T: ValueType> ValueType for Option<T> {
    type Inner = T::Inner;

    const OPTIONAL: bool = true;

    fn kind() -> Kind {
        T::kind()
    }

    fn take(value: &Value) -> Option<Self> {
        match value {
            Value::None => Some(None),
            Value::Text(text) if text == "none" => {
                T::take(value).map_or(Some(None), |named| Some(Some(named)))
            }
            other => T::take(other).map(Some),
        }
    }

    fn show(&self) -> Value {
        self.as_ref().map_or(Value::None, T::show)
    }

    fn inner(&self) -> Option<&T::Inner> {
        self.as_ref().and_then(T::inner)
    }
}

/// Which values of type `T` an option may have.
pub trait Allowed<T> {
    /// Whether this value is allowed.
    fn allows(&self, value: &T) -> bool;

    /// The allowed values in words; empty if all are allowed.
    fn words(&self) -> String;

    /// Whether infinity may be allowed.
    fn has_infinity(&self) -> bool {
        false
    }

    /// The allowed values one by one, if they are few.
    fn each(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Values above this.
#[derive(Clone, Copy, Debug)]
pub struct Above<T>(pub T);

/// Values above the first and up to the second.
#[derive(Clone, Copy, Debug)]
pub struct AboveTo<T>(pub T, pub T);

/// A range that may contain infinity.
#[derive(Clone, Copy, Debug)]
pub struct OrInfinite<R>(pub R);

impl<T, R: Allowed<T>> Allowed<T> for OrInfinite<R> {
    fn allows(&self, value: &T) -> bool {
        self.0.allows(value)
    }

    fn words(&self) -> String {
        self.0.words()
    }

    fn has_infinity(&self) -> bool {
        true
    }
}

impl<T> Allowed<T> for RangeFull {
    fn allows(&self, _: &T) -> bool {
        true
    }

    fn words(&self) -> String {
        String::new()
    }
}

macro_rules! allowed {
    ($($range:ty: $this:ident, $value:ident => $allows:expr, $words:expr;)*) => {$(
        impl<T: PartialOrd + Display> Allowed<T> for $range {
            fn allows(&self, $value: &T) -> bool {
                let $this = self;
                $allows
            }

            fn words(&self) -> String {
                let $this = self;
                $words
            }
        }
    )*};
}

allowed! {
    RangeInclusive<T>: this, value => this.contains(value), format!("{} to {}", this.start(), this.end());
    Range<T>: this, value => this.contains(value), format!("{} to below {}", this.start, this.end);
    RangeFrom<T>: this, value => this.contains(value), format!("at least {}", this.start);
    Above<T>: this, value => *value > this.0, format!("above {}", this.0);
    AboveTo<T>: this, value => *value > this.0 && *value <= this.1, format!("above {}, at most {}", this.0, this.1);
}

/// Only the values in the array.
impl<T: PartialEq + Display, const N: usize> Allowed<T> for [T; N] {
    fn allows(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn words(&self) -> String {
        let all = self.each();
        match all.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => all.concat(),
        }
    }

    fn each(&self) -> Vec<String> {
        self.iter().map(T::to_string).collect()
    }
}

/// One option.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Its name in the library.
    pub field: &'static str,
    /// Its name in Python.
    pub name: &'static str,
    /// Its flag without dashes. A flag that begins with `!` switches the option off; `-` means that there is no flag.
    pub flag: String,
    /// The kind of its values.
    pub kind: Kind,
    /// Whether it may be [`Value::None`].
    pub optional: bool,
    /// The unit of its values, as the command's help shows it: `PX`, `BYTES`, `N`.
    pub unit: &'static str,
    /// The allowed values in words.
    pub allowed: String,
    /// The allowed values one by one, if they are few.
    pub values: Vec<String>,
    /// What it does.
    pub help: String,
    /// The help of the flag that switches it off.
    pub without: &'static str,
    /// Its default.
    pub default: Value,
}

impl Field {
    /// The flag as the command takes it, without dashes, and whether it switches the option off, as it does where the
    /// option is on by default.
    pub fn switch(&self) -> (String, bool) {
        match self.flag.strip_prefix('!') {
            Some(no) => (no.to_owned(), true),
            None if self.default == Value::Bool(true) => (format!("no-{}", self.flag), true),
            None => (self.flag.clone(), false),
        }
    }
}

/// The names, flag and unit of an option; made by [`options!`].
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Names {
    pub field: &'static str,
    pub name: &'static str,
    pub flag: &'static str,
    pub unit: &'static str,
    pub without: &'static str,
}

impl Names {
    #[doc(hidden)]
    pub const fn of(field: &'static str) -> Self {
        Self { field, name: field, flag: "", unit: "", without: "" }
    }

    #[doc(hidden)]
    pub fn field<T: ValueType>(self, default: &T, allowed: &dyn Allowed<T::Inner>, docs: &str) -> Field {
        let first = docs.split("\n\n").next().unwrap_or_default();
        let words: Vec<&str> = first.split_whitespace().collect();
        let mut kind = T::kind();
        if let Kind::Name(names) = &mut kind {
            let is_allowed = |name: &str| {
                let value = T::take(&Value::Text(name.to_owned()));
                value.is_some_and(|value| value.inner().is_none_or(|inner| allowed.allows(inner)))
            };
            names.retain(|(name, _)| is_allowed(name));
        }
        Field {
            field: self.field,
            name: self.name,
            flag: if self.flag.is_empty() { self.name.replace('_', "-") } else { self.flag.to_owned() },
            kind,
            optional: T::OPTIONAL,
            unit: self.unit,
            allowed: allowed.words(),
            values: allowed.each(),
            help: words.join(" "),
            without: self.without,
            default: default.show(),
        }
    }

    #[doc(hidden)]
    pub fn check<T: ValueType>(self, value: &T, allowed: &dyn Allowed<T::Inner>) -> Result<()>
    where
        T::Inner: ValueType,
    {
        match value.inner() {
            Some(inner) if !allowed.allows(inner) || !(inner.is_finite() || allowed.has_infinity()) => {
                // Of these only infinity is in the range.
                let finite = if allowed.allows(inner) { "finite and " } else { "" };
                Err(Error::option(
                    self.field,
                    inner.show(),
                    format!("{finite}{}{}", allowed.words(), in_words(self.unit)),
                ))
            }
            _ => Ok(()),
        }
    }

    #[doc(hidden)]
    pub fn take<T: ValueType>(self, value: &Value, allowed: &dyn Allowed<T::Inner>) -> Result<T> {
        let size = |size: Option<u64>| T::take(&Value::Integer(size?.into()));
        let taken = match (value, self.unit) {
            (Value::Text(text), _) if T::OPTIONAL && text == "unlimited" => T::take(&Value::None),
            (Value::Text(text), "BYTES") if text != "none" => size(bytes(text)),
            (Value::Text(text), "PIXELS") if text != "none" => size(count(text)),
            _ => T::take(value),
        };
        taken.ok_or_else(|| {
            let kind = match T::kind() {
                Kind::Bool => "true or false".to_owned(),
                Kind::Integer => "a whole number".to_owned(),
                Kind::Number => "a number".to_owned(),
                Kind::Name(names) => names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
                Kind::Path => "a path".to_owned(),
            };
            let words = match (allowed.words(), T::kind(), value) {
                // No range is declared: the number does not fit the type.
                (words, Kind::Integer, Value::Integer(value)) if words.is_empty() => match value {
                    -0x8000_0000..0 => "0 or more".to_owned(),
                    _ => "nearer to 0".to_owned(),
                },
                (words, ..) => words,
            };
            let more = if words.is_empty() { words } else { format!(": {words}") };
            Error::option(self.field, value, kind + &more + in_words(self.unit))
        })
    }
}

/// A unit in words, for errors.
fn in_words(unit: &str) -> &'static str {
    match unit {
        "PX" => " pixels",
        "M" => " metres",
        "PERCENT" => " percent",
        "BYTES" => ": bytes such as 300M, 2G or 1000000",
        "PIXELS" => ": pixels such as 20M or 20000000",
        _ => "",
    }
}

/// An option struct whose fields [`options!`] describes.
pub trait OptionTable: Sized + Clone {
    /// The first sentence of the struct's documentation.
    const ABOUT: &'static str;

    /// Its fields, and those of the option structs in it, in order.
    fn fields(&self) -> Vec<Field>;

    /// The value of an option.
    fn get(&self, name: &str) -> Option<Value>;

    /// Changes an option. Returns false if there is no option of this name.
    ///
    /// # Errors
    /// [`Error::Option`] for a value of another kind. Ranges are checked by the struct's own `check`.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool>;
}

/// Declares an option struct: for each field its meaning, setter, type, default, and optionally its range, flag, unit
/// and name in front ends. `tables` are nested option structs, whose options count as its own. `besides` are fields
/// that front ends do not set through the table. `check` is a rule in addition to the ranges.
macro_rules! options {
    (
        #[doc = $about:literal]
        $(#[$meta:meta])*
        pub struct $options:ident {
            $(
                $(#[doc = $doc:literal])*
                $field:ident / $setter:ident: $type:ty = $default:expr $(=> $allowed:expr)? $(, $key:ident $value:literal)*;
            )*
        }
        $(tables { $($(#[doc = $table_doc:literal])* $table:ident / $table_setter:ident: $table_type:ty = $table_default:expr;)* })?
        $(besides { $($(#[$beside_meta:meta])* $beside:ident / $beside_setter:ident: $beside_type:ty = $beside_default:expr;)* })?
        $(check $this:ident $rule:block)?
    ) => {
        #[doc = $about]
        $(#[$meta])*
        #[non_exhaustive]
        pub struct $options {
            $(
                $(#[doc = $doc])*
                #[doc = ""]
                #[doc = concat!("Default `", stringify!($default), "`" $(, "; allowed: `", stringify!($allowed), "`")?, ".")]
                pub $field: $type,
            )*
            $($($(#[doc = $table_doc])* pub $table: $table_type,)*)?
            $($($(#[$beside_meta])* pub $beside: $beside_type,)*)?
        }

        impl $options {
            $crate::options::options! { @setters
                $($setter: $field = $type,)*
                $($($table_setter: $table = $table_type,)*)?
                $($($beside_setter: $beside = $beside_type,)*)?
            }

            /// Checks every option.
            ///
            /// # Errors
            /// [`Error::Option`](crate::Error::Option) names the first that is out of range, or contradicts another.
            pub fn check(&self) -> $crate::Result<()> {
                $($crate::options::options!(@names $field $($key $value)*)
                    .check(&self.$field, &$crate::options::options!(@allowed $($allowed)?))?;)*
                $($(self.$table.check()?;)*)?
                $(
                    let $this = self;
                    $rule?;
                )?
                Ok(())
            }
        }

        impl Default for $options {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($table: $table_default,)*)?
                    $($($beside: $beside_default,)*)?
                }
            }
        }

        #[allow(unused_variables, reason = "some tables have only nested tables")]
        impl $crate::options::OptionTable for $options {
            const ABOUT: &'static str = $about;

            fn fields(&self) -> Vec<$crate::options::Field> {
                #[allow(unused_mut, reason = "not every table has nested tables")]
                let mut fields = vec![$($crate::options::options!(@names $field $($key $value)*).field(
                    &self.$field,
                    &$crate::options::options!(@allowed $($allowed)?),
                    concat!($($doc, "\n"),*),
                )),*];
                $($(fields.extend(self.$table.fields());)*)?
                fields
            }

            fn get(&self, name: &str) -> Option<$crate::options::Value> {
                $(if name == $crate::options::options!(@names $field $($key $value)*).name {
                    return Some($crate::options::ValueType::show(&self.$field));
                })*
                $($(if let Some(value) = self.$table.get(name) {
                    return Some(value);
                })*)?
                None
            }

            fn set(&mut self, name: &str, value: &$crate::options::Value) -> $crate::Result<bool> {
                $({
                    let names = $crate::options::options!(@names $field $($key $value)*);
                    if name == names.name {
                        self.$field = names.take(value, &$crate::options::options!(@allowed $($allowed)?))?;
                        return Ok(true);
                    }
                })*
                $($(if self.$table.set(name, value)? {
                    return Ok(true);
                })*)?
                Ok(false)
            }
        }
    };
    (@setters $($setter:ident: $field:ident = $type:ty,)*) => {
        $(
            #[doc = concat!("These options with another [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
            #[must_use]
            pub fn $setter(mut self, $field: $type) -> Self {
                self.$field = $field;
                self
            }
        )*
    };
    (@names $field:ident $($key:ident $value:literal)*) => {
        $crate::options::Names { $($key: $value,)* ..$crate::options::Names::of(stringify!($field)) }
    };
    (@allowed) => { .. };
    (@allowed $allowed:expr) => { $allowed };
}
pub(crate) use options;
