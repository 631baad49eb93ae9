//! The order of keypoints: by what a selection ranks them by, and then by [`Keypoint::order`], which leaves
//! no two different keypoints equal. So results depend neither on threads nor on the device.

pub(crate) mod gpu;

pub(crate) use gpu::GpuOrder;

use super::Keypoint;
use std::cmp::Ordering;

/// What keypoints are ranked by: a number that follows from one, the greatest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    pub(crate) value: fn(&Keypoint) -> f32,
    /// For kernels: 32 bits that sort as it does, of `k`.
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
