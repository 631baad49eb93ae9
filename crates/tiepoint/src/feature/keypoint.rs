//! Keypoints, in the host's memory and as words in a device's.

use crate::image::{ImageView, Size};
use std::cmp::Ordering;
use tiepoint_gpu::KernelSource;

/// A point of an image with a scale and a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keypoint {
    /// Column in pixels of the input image; 0 is the centre of the first.
    pub x: f32,
    /// Row in pixels of the input image; 0 is the centre of the first.
    pub y: f32,
    /// Standard deviation σ of the Gaussian of this scale, in pixels of the input image.
    pub scale: f32,
    /// Direction in radians, \[0, 2π), from +x towards +y.
    pub angle: f32,
    /// Strength of the response, never negative. SIFT: |DoG| at the refined position, for an image from 0 to
    /// 1, per level step; SURF: determinant of the Hessian.
    pub response: f32,
    /// +1 for bright on dark, −1 for dark on bright, 0 if it is not known.
    pub sign: i8,
    /// Octave in which it was found; −1 is the image at twice its size.
    pub octave: i8,
    /// Layer inside the octave.
    pub layer: u8,
}

impl Keypoint {
    /// Fails for numbers that are not finite, which a detector does not give, and names the first feature with one.
    #[doc(hidden)]
    pub fn check(all: &[Self]) -> Result<(), String> {
        let is_finite = |k: &Self| [k.x, k.y, k.scale, k.angle, k.response].iter().all(|v| v.is_finite());
        match all.iter().position(|k| !is_finite(k)) {
            Some(i) => Err(format!("feature {i} holds a number that is infinite or not a number")),
            None => Ok(()),
        }
    }

    /// The [cell](Size::cell) of a picture in which it lies.
    pub(crate) fn place(&self, size: Size, across: usize) -> usize {
        size.cell([self.x, self.y].map(f64::from), across)
    }

    /// Compares by response descending, then y, x, scale, angle, octave and layer ascending: the order of every output.
    /// Where the [largest](super::select::Keep) are kept, outputs are sorted by scale descending before that; where
    /// whole levels are kept, by octave and layer descending.
    pub fn order(&self, other: &Self) -> Ordering {
        other
            .response
            .total_cmp(&self.response)
            .then(self.y.total_cmp(&other.y))
            .then(self.x.total_cmp(&other.x))
            .then(self.scale.total_cmp(&other.scale))
            .then(self.angle.total_cmp(&other.angle))
            .then(self.octave.cmp(&other.octave))
            .then(self.layer.cmp(&other.layer))
    }

    /// Whether the sign of every keypoint is known.
    pub(crate) fn have_signs(keypoints: &[Self]) -> bool {
        keypoints.iter().all(|k| k.sign != 0)
    }

    /// Whether the two differ only in their directions.
    pub(super) fn is_same_position(&self, other: &Self) -> bool {
        Self { angle: other.angle, ..*self }.order(other).is_eq()
    }

    /// Whether the mask is set at the nearest pixel; true without a mask.
    pub(super) fn is_shown(&self, mask: Option<ImageView<'_, u8>>) -> bool {
        let at = |v: f32, n: usize| (v.round_ties_even().max(0.0) as usize).min(n - 1);
        mask.is_none_or(|mask| mask.row(at(self.y, mask.size().height))[at(self.x, mask.size().width)] != 0)
    }
}

/// Words of a keypoint in a device's memory, as `keypoint.h` names them.
pub(crate) const WORDS: usize = 8;

pub(crate) fn to_words(k: &Keypoint) -> [u32; WORDS] {
    let octave_layer = (i32::from(k.octave) + 128).unsigned_abs() << 8 | u32::from(k.layer);
    let [x, y, scale, angle, response] = [k.x, k.y, k.scale, k.angle, k.response].map(f32::to_bits);
    [x, y, scale, angle, response, octave_layer, i32::from(k.sign) as u32, 0]
}

pub(crate) fn from_words(words: &[u32]) -> Keypoint {
    let float = |i: usize| f32::from_bits(words[i]);
    Keypoint {
        x: float(0),
        y: float(1),
        scale: float(2),
        angle: float(3),
        response: float(4),
        sign: words[6] as i32 as i8,
        octave: ((words[5] >> 8 & 255) as i32 - 128) as i8,
        layer: words[5] as u8,
    }
}

/// For kernels: the type `Keypoint`, and its order.
pub(crate) fn for_kernels(source: KernelSource) -> KernelSource {
    source.text(include_str!("keypoint.h"))
}
