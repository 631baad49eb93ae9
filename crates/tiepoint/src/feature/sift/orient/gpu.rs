//! The directions of keypoints on a GPU: as [`super`], bit for bit.

use super::BINS;
use crate::Result;
use crate::device::gpu::Commands;
use crate::feature::WORDS;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::sift::gpu::plan::{GpuLevels, Plan, groups};
use crate::feature::sift::window::{self, GROUP};
use crate::feature::sift::{SiftOptions, SiftPreset};
use std::f32::consts::TAU;
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// Appends every point with every of its directions to the features of its image: the second dimension.
    unsafe kernel orient(groups) = Orient {
        write features: u32 as Keypoint [groups[1] * feature_capacity * WORDS as i128],
        write feature_counts: u32 [groups[1]],
        read points: u32 as Keypoint [groups[1] * point_capacity * WORDS as i128],
        read point_counts: u32 [groups[1]],
        read levels: f32 [groups[1] * image_stride],
        read octaves: u32 as Octave [octave_count * Plan::OCTAVE_WORDS as i128],
    } {
        image_stride: u64,
        feature_capacity: u32,
        point_capacity: u32,
        octave_count: i32,
    }
}

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
        .kernel::<Orient<'_>>([GROUP, 1])
        .text(include_str!("orient.cl"))
}

/// Appends every point with every of its directions to `features`, whose counts must be 0.
pub(crate) fn record(
    commands: &mut Commands,
    options: &SiftOptions,
    features: &GpuKeypoints,
    points: &GpuKeypoints,
    levels: &GpuLevels,
) -> Result<()> {
    let kernel = levels.values.gpu().program(&source(options))?.kernel::<Orient<'_>>()?;
    let arguments = Orient {
        features: &features.keypoints,
        feature_counts: &features.counts,
        points: &points.keypoints,
        point_counts: &points.counts,
        levels: &levels.values,
        octaves: &levels.octaves,
        image_stride: levels.plan.image_stride as u64,
        feature_capacity: features.capacity as u32,
        point_capacity: points.capacity as u32,
        octave_count: levels.plan.octaves.len() as i32,
    };
    Ok(commands.launch(&kernel, groups(points, levels.plan.images), arguments)?)
}
