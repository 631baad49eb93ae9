//! Declarations of option structs and of small sets of named values.
//!
//! Every option struct is declared by one [`table`]: it is `#[non_exhaustive]`, has a [`Default`], a `with_…` setter for
//! each field, and a `check()` that names the first option out of its range. A set of
//! named values implements [`Named`], which gives their names, help and parsing to the command and to other front ends.

mod size;
mod table;

pub use size::{BYTES, COUNT, bytes, count};
pub(crate) use table::options;
pub use table::{Above, AboveTo, Allowed, Field, Kind, Names, OptionTable, OrInfinite, Value, ValueType};

use crate::{Error, Result};

/// One value of a [`Named`] set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T> {
    /// The value.
    pub value: T,
    /// Its name, as the command and files spell it.
    pub name: &'static str,
    /// What it means, in one line.
    pub help: &'static str,
}

/// A small set of values, each with a name.
pub trait Named: Copy + 'static {
    /// The name of the option, for errors.
    const OPTION: &'static str;
    /// The names separated by commas, for errors.
    const EXPECTED: &'static str;
    /// All values, with the default first or in its place in the natural order.
    const ALL: &'static [Choice<Self>];

    /// The name of this value.
    fn name(self) -> &'static str;

    /// The value with this name.
    ///
    /// # Errors
    /// [`Error::Option`] with the known names.
    fn from_name(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|choice| choice.name == name);
        found.map(|choice| choice.value).ok_or_else(|| Error::option(Self::OPTION, name, Self::EXPECTED))
    }
}

/// Declares an enum whose variants each have a name and a help text, which is also the first sentence of their
/// documentation; and implements [`Named`], `Display`, `FromStr` and serde's traits (by name) for it.
macro_rules! named {
    ($(#[$attribute:meta])* $vis:vis enum $type:ident as $option:literal {
        $($(#[$variant_attribute:meta])* $name:literal: $variant:ident, $help:literal;)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis enum $type {
            $(
                #[doc = concat!($help, ".")]
                $(#[$variant_attribute])*
                $variant,
            )*
        }

        impl $crate::options::Named for $type {
            const OPTION: &'static str = $option;
            const EXPECTED: &'static str = $crate::options::named!(@list $($name)*);
            const ALL: &'static [$crate::options::Choice<Self>] =
                &[$($crate::options::Choice { value: Self::$variant, name: $name, help: $help }),*];

            fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::options::Named::name(*self))
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
                to.serialize_str($crate::options::Named::name(*self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(from)?;
                $crate::options::Named::from_name(&name).map_err(serde::de::Error::custom)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(name: &str) -> $crate::Result<Self> {
                $crate::options::Named::from_name(name)
            }
        }
    };
    (@list $first:literal $($name:literal)*) => { concat!($first $(, ", ", $name)*) };
}
pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::RobustOptions;
    use crate::image::Border;

    #[test]
    fn names_lead_back_to_their_values() {
        for choice in Border::ALL {
            assert_eq!(choice.name.parse::<Border>().unwrap(), choice.value, "{}", choice.name);
            assert_eq!(choice.value.to_string(), choice.name, "shown as it is spelt");
        }
        let error = "nearest".parse::<Border>().unwrap_err().to_string();
        assert_eq!(error, "option border is nearest: expected clamp, reflect, zero, skip");
    }

    #[test]
    fn setters_change_their_field() {
        let (start, changed) = (RobustOptions::default(), RobustOptions::default().with_seed(3));
        assert_eq!(changed, RobustOptions { seed: 3, ..start }, "the field alone");
    }
}
