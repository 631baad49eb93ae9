//! Declarations of option structs and of small sets of named values.
//!
//! Every option struct is declared by one [`table`]: it is `#[non_exhaustive]`, has a [`Default`], a `with_…` setter for
//! each field, and a `check()` that names the first option out of its range. A set of
//! named values implements [`Named`], which gives their names, help and parsing to the command and to other front ends.

mod table;

pub(crate) use table::options;
pub use table::{Above, AboveTo, Allowed, Field, Kind, Names, OptionTable, OrInfinite, Value, ValueType};

use crate::{Error, Result};

/// The texts that [`bytes`] takes, for errors.
pub const BYTES: &str = "bytes above 0 such as 300M, 2GiB or 1000000";
/// The texts that [`count`] takes, for errors.
pub const COUNT: &str = "a number above 0 such as 20M or 20000000";

/// Parses a number of bytes: plain, or with K, M, G or T for powers of 1024, optionally followed by B or iB.
pub fn bytes(text: &str) -> Option<u64> {
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    scaled(bare, 1024.0)
}

/// Parses a count: plain, or with K, M, G or T for powers of 1000.
pub fn count(text: &str) -> Option<u64> {
    scaled(&text.trim().to_ascii_uppercase(), 1000.0)
}

fn scaled(text: &str, step: f64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let steps = match &text[digits.len()..] {
        "" => 0,
        unit => 1 + ["K", "M", "G", "T"].iter().position(|known| *known == unit)?,
    };
    let number = digits.trim().parse::<f64>().ok()?;
    let all = (0..steps).fold(number, |all, _| all * step);
    (1.0..1e18).contains(&all).then_some(all as u64)
}

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

/// Declares an enum whose variants have a name and a help, which is also the first sentence of their documentation, with
/// [`Named`], `Display`, `FromStr` and serde's traits (by name).
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

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1000000", 1_000_000),
            ("300M", 300 << 20),
            ("2g", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("64KB", 65536),
            (" 8 G ", 8 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for (text, expected) in
            [("20M", 20_000_000), ("20000000", 20_000_000), ("1.5k", 1500), ("4G", 4_000_000_000)]
        {
            assert_eq!(count(text), Some(expected), "{text}");
        }
        for text in ["", "M", "-1G", "0", "2X", "nan", "inf", "1e99", "2GG", "0.5"] {
            assert_eq!((bytes(text), count(text)), (None, None), "{text}");
        }
        assert_eq!(count("20MB"), None, "pixels are no bytes");
    }
}
