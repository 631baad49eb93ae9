//! P1 and P2, the penalties of a path (Hirschmüller, PAMI 2008, eq. 13).

use crate::{Error, Result};

/// What a change of disparity from a pixel to the next costs along a path.
///
/// P2 may fall where the image has an edge: with Δ the difference of the 8-bit grey values of the two pixels, it
/// is `max(p2_least, p2 · gradient / max(gradient, Δ))`, rounded down (Hirschmüller 2008, eq. 13, the quotient
/// held at 1 for small differences).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalties {
    /// For a change by one. In units of the cost; not above `p2_least`.
    pub p1: u16,
    /// For a larger change, where the image is smooth.
    pub p2: u16,
    /// What P2 never falls below. Equal to `p2`: it does not fall.
    pub p2_least: u16,
    /// The difference of grey from which P2 begins to fall, 1 to 255.
    pub gradient: u8,
}

impl Penalties {
    /// P2 for every difference of 8-bit grey.
    pub fn table(&self) -> [u16; 256] {
        let (p2, gradient) = (u32::from(self.p2), u32::from(self.gradient.max(1)));
        std::array::from_fn(|delta| {
            let falling = p2 * gradient / gradient.max(delta as u32);
            falling.max(u32::from(self.p2_least)) as u16
        })
    }

    pub(super) fn check(&self) -> Result<()> {
        let Self { p1, p2, p2_least, .. } = *self;
        if !(p1 <= p2_least && p2_least <= p2) {
            let found = format!("{p1}, {p2_least}, {p2}");
            return Err(Error::option("p1, p2_least, p2", found, "each not above the next"));
        }
        Ok(())
    }
}
