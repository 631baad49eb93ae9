//! Where the pictures of a pair hold data, in the host's memory or on a device.

use crate::image::{AnyView, PixelKind, Pixels};
use crate::stereo::Masks;
use crate::{Error, Result};

/// Which pixels hold data, as in [`Masks`]: one channel of 8 bits of the images' size, in the host's memory or a
/// device's. Pixels hold none where a mask is 0; pixels that are not finite never hold data.
#[derive(Clone, Debug, Default)]
pub struct GpuMasks<'a> {
    /// Of the left image.
    pub left: Option<Pixels<'a>>,
    /// Of the right image.
    pub right: Option<Pixels<'a>>,
}

impl<'a> GpuMasks<'a> {
    /// The masks of both images; either may be missing.
    pub fn new(left: Option<impl Into<Pixels<'a>>>, right: Option<impl Into<Pixels<'a>>>) -> Self {
        Self { left: left.map(Into::into), right: right.map(Into::into) }
    }

    /// The left one and the right one; fails for a mask that is not one channel of 8 bits.
    pub(super) fn both(self) -> Result<[Option<Pixels<'a>>; 2]> {
        let masks = [self.left, self.right];
        match masks.iter().flatten().find(|m| (m.pixel(), m.channels()) != (PixelKind::U8, 1)) {
            Some(other) => Err(Error::Mismatch(format!(
                "a mask of {} channels of {:?}: expected one channel of 8 bits",
                other.channels(),
                other.pixel()
            ))),
            None => Ok(masks),
        }
    }
}

impl<'a> From<Masks<'a>> for GpuMasks<'a> {
    fn from(Masks { left, right }: Masks<'a>) -> Self {
        let [left, right] = [left, right].map(|mask| mask.map(|mask| Pixels::Host(AnyView::U8(mask))));
        Self { left, right }
    }
}
