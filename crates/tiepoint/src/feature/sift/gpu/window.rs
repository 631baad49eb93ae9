//! What the kernels that look around keypoints share.

use super::super::window::UNIT;
use super::super::{SiftOptions, SiftPreset};
use super::LANES;
use crate::device::gpu::Buffer;
use crate::feature::gpu;
use tiepoint_gpu::Source;

/// Where the levels of the scale space lie.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) pixels: Buffer<f32>,
    /// Numbers from one image's scale space to the next one's.
    pub(super) image_stride: u64,
    /// Every octave's layout, `Octave` in window.cl.
    pub(super) octaves: Buffer<u64>,
}

/// The words of an octave: width and height, pitch, first number of level 0, numbers a level.
pub(super) fn octave_words(width: usize, height: usize, pitch: usize, offset: usize) -> [u64; 4] {
    [(height as u64) << 32 | width as u64, pitch as u64, offset as u64, (pitch * height) as u64]
}

/// For kernels: keypoints, and the pixels around them.
pub(super) fn for_kernels(source: Source, options: &SiftOptions) -> Source {
    gpu::for_kernels(source)
        .define("LANES", LANES)
        .define("FIRST_OCTAVE", format_args!("({})", options.first_octave))
        .define("EXACT", u8::from(options.preset != SiftPreset::OpenCv))
        .define_f32("UNIT", UNIT)
        .text(include_str!("../window.cl"))
}
