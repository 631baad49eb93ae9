//! The order of keypoints: by the rank of a selection, and then by [`Keypoint::order`], by which no two different
//! keypoints are equal. Results therefore depend neither on threads nor on the device.

pub(crate) mod gpu;

use super::Keypoint;
use std::cmp::Ordering;

/// A rank: a number that is computed from a keypoint; the greatest come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    pub(crate) value: fn(&Keypoint) -> f32,
    /// For kernels: an expression of `k` that gives 32 bits which sort in the same order.
    pub(crate) key: &'static str,
}

impl Rank {
    /// The strongest first: the order of every output, unless a limit keeps the largest.
    pub(crate) const RESPONSE: Self = Self { value: |k| k.response, key: "sortable((k).response)" };

    pub(crate) const SCALE: Self = Self { value: |k| k.scale, key: "sortable((k).scale)" };

    pub(crate) const LEVEL: Self =
        Self { value: |k| f32::from(k.octave) * 256.0 + f32::from(k.layer), key: "(k).octave_layer" };

    pub(crate) fn compare(self, a: &Keypoint, b: &Keypoint) -> Ordering {
        (self.value)(b).total_cmp(&(self.value)(a)).then_with(|| a.order(b))
    }
}
