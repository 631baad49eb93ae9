//! The directions of keypoints on a GPU: as [`super`], bit for bit.

use super::BINS;
use crate::Result;
use crate::device::gpu::{Commands, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::sift::gpu::plan::{GpuLevels, groups};
use crate::feature::sift::window::{self, GROUP};
use crate::feature::sift::{SiftOptions, SiftPreset};
use std::f32::consts::TAU;
use tiepoint_gpu::{Kernel, KernelSource, arguments};

/// Finds the directions of points.
#[derive(Clone, Debug)]
pub(crate) struct GpuOrient(Kernel);

impl GpuOrient {
    pub(crate) fn source(options: &SiftOptions) -> KernelSource {
        let vlfeat = options.preset == SiftPreset::VlFeat;
        let exact = options.preset != SiftPreset::OpenCv;
        window::for_kernels(KernelSource::new("orient"), options)
            .define("BINS", BINS)
            .define_f32("BINS_PER_RADIAN", BINS as f32 / TAU)
            .define_f32("RADIANS_PER_BIN", TAU / BINS as f32)
            // A bin's centre.
            .define_f32("CENTRE", if exact { 0.5 } else { 0.0 })
            .define("SMOOTHED_SIX_TIMES", u8::from(vlfeat))
            .define("MOST_ANGLES", if vlfeat { 4 } else { BINS })
            .text(include_str!("orient.cl"))
    }

    pub(crate) fn new(gpu: &Gpu, options: &SiftOptions) -> Result<Self> {
        Ok(Self(gpu.program(&Self::source(options))?.untyped_kernel("orient", [GROUP, 1])?))
    }

    /// Appends every point with every of its directions to `features`, whose counts must be 0.
    pub(crate) fn record(
        &self,
        commands: &mut Commands,
        features: &GpuKeypoints,
        points: &GpuKeypoints,
        levels: &GpuLevels,
    ) -> Result<()> {
        let arguments = arguments![
            &features.keypoints,
            &features.counts,
            features.capacity as u32,
            &points.keypoints,
            &points.counts,
            points.capacity as u32,
            &levels.values,
            levels.plan.image_stride as u64,
            &levels.octaves,
        ];
        Ok(commands.launch_untyped(&self.0, groups(points, levels.plan.images), arguments)?)
    }
}
