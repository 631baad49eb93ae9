//! A part of the work, for one of several processes or machines that share a work folder.

use crate::{Error, Result};

/// Part `index` of `count`: the units of work whose number has the remainder `index` when divided by `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

const EXPECTED: &str = "I/N with I from 0 to N - 1, such as 0/8";

impl Shard {
    /// All of the work.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`.
    ///
    /// # Errors
    /// [`Error::Option`] unless `index` is below `count`.
    pub fn new(index: u32, count: u32) -> Result<Self> {
        match index < count {
            true => Ok(Self { index, count }),
            false => Err(Error::option("shard", format!("{index}/{count}"), EXPECTED)),
        }
    }

    /// Whether the unit of work with this number belongs to this part.
    pub(super) fn has(self, number: usize) -> bool {
        number % self.count as usize == self.index as usize
    }

    /// The approximate share of the work.
    pub(super) fn share(self) -> f64 {
        1.0 / f64::from(self.count)
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::ALL
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl std::str::FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let (index, count) = parts.ok_or_else(|| Error::option("shard", text, EXPECTED))?;
        Self::new(index, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_belongs_to_one_part() {
        let parts: Vec<Shard> = (0..3).map(|i| format!("{i}/3").parse().unwrap()).collect();
        for unit in 0..20 {
            assert_eq!(parts.iter().filter(|part| part.has(unit)).count(), 1, "{unit}");
        }
        assert!(Shard::ALL.has(7), "all is all");
        for text in ["3/3", "0/0", "1", "-1/3", "a/b", "1/2/3", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
