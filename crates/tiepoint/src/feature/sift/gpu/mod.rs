//! SIFT on a GPU: the stages of the CPU with their names and their bits.

mod describe;
mod orient;
pub(crate) mod plan;
pub(crate) mod scale_space;
#[cfg(test)]
mod tests;

use super::window::UNIT;
use super::{SiftOptions, SiftPreset};
use crate::feature::gpu;
use crate::numeric;
use plan::GpuPoints;
use tiepoint_gpu::Source;

/// Lanes of a group that looks around one keypoint: of a warp, so that a barrier costs little; a power of two.
const LANES: u32 = 32;

/// Groups that share the keypoints of all images of a launch.
const GROUPS: usize = 4096;

/// The groups that look around some points, each around one at a time; images in the second dimension.
fn groups(points: &GpuPoints) -> [usize; 3] {
    let images = points.counts.len();
    [points.capacity.min((GROUPS / images).max(64)), images, 1]
}

/// For kernels: keypoints, and the pixels around them.
fn window_for_kernels(source: Source, options: &SiftOptions) -> Source {
    plan::for_kernels(gpu::for_kernels(numeric::for_kernels(source)), options)
        .define("LANES", LANES)
        .define("EXACT", u8::from(options.preset != SiftPreset::OpenCv))
        .define_f32("UNIT", UNIT)
        .text(include_str!("../window.cl"))
}
