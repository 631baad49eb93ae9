//! Why pixels of the left view have no disparity.
//!
//! Each step that makes pixels invalid is one reason. A pixel keeps the first reason, even if filling gives it a
//! disparity afterwards, as it does unless there is no data:
//!
//! | reason | step |
//! |---|---|
//! | [`NoData`](Reason::NoData) | the left image has no data there |
//! | [`Ambiguous`](Reason::Ambiguous) | winner takes all: another disparity is nearly as good ([`StereoOptions::uniqueness`]) |
//! | [`Occluded`](Reason::Occluded) | the views disagree, and no surface of the right view covers the pixel: it is hidden from the right camera, or lies outside its image |
//! | [`Inconsistent`](Reason::Inconsistent) | the views disagree although a surface of the right view covers the pixel: a mismatch |
//! | [`Speckle`](Reason::Speckle) | its region is too small to be a surface |
//!
//! [`consistency_check::occluded`] distinguishes occlusions from mismatches (Hirschmüller, PAMI 2008, section 2.5.3).
//! The median filters do not make pixels invalid.
//!
//! [`StereoOptions::uniqueness`]: super::StereoOptions::uniqueness
//! [`consistency_check::occluded`]: super::consistency_check::occluded

use super::View;
use super::pair::Pair;
use crate::image::{Image, ImageView};

/// Why a pixel was made invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Reason {
    /// The pixel was not made invalid: it has a disparity.
    #[default]
    None,
    /// The left image has no data there.
    NoData,
    /// Another disparity is nearly as good.
    Ambiguous,
    /// Hidden from the right camera, or outside its image.
    Occluded,
    /// The right view contradicts it.
    Inconsistent,
    /// Its region is too small to be a surface.
    Speckle,
}

impl Reason {
    /// Every reason, at the index of its number.
    pub const ALL: [Self; 6] =
        [Self::None, Self::NoData, Self::Ambiguous, Self::Occluded, Self::Inconsistent, Self::Speckle];
}

/// Sets `reason` for the pixels of `disparity` that are invalid and have no reason yet.
pub(super) fn note(
    reasons: &mut Image<Reason>,
    disparity: ImageView<'_, f32>,
    reason: impl Fn(usize, usize) -> Reason,
) {
    for y in 0..disparity.size().height {
        for (x, (r, d)) in reasons.row_mut(y).iter_mut().zip(disparity.row(y)).enumerate() {
            if *r == Reason::None && !d.is_finite() {
                *r = reason(x, y);
            }
        }
    }
}

/// The reasons after winner takes all.
pub(super) fn first(disparity: &Image<f32>, pair: &Pair) -> Image<Reason> {
    let mask = pair.mask(View::Left);
    let mut reasons = Image::new(disparity.size());
    note(&mut reasons, disparity.view(), |x, y| match mask.is_some_and(|m| m.row(y)[x] == 0) {
        true => Reason::NoData,
        false => Reason::Ambiguous,
    });
    reasons
}
