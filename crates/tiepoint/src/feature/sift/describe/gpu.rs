//! Descriptors on a GPU: as [`super`], bit for bit.

use super::{CELL, CELLS, DIRECTIONS, reach};
use crate::device::gpu::{Buffer, Commands};
use crate::feature::gpu::{GpuDescriptors, GpuKeypoints};
use crate::feature::sift::gpu::plan::{GpuLevels, Plan, groups};
use crate::feature::sift::window::{self, GROUP};
use crate::feature::sift::{DIMENSION, SiftOptions};
use crate::feature::{ByValue, DescriptorKind, WORDS, by_value};
use crate::{Error, Result};
use std::f32::consts::{SQRT_2, TAU};
use std::ops::Range;
use tiepoint_gpu::{Element, KernelSource};

/// Columns of the histogram, one or more lanes each.
const COLUMNS: u32 = 8;

tiepoint_gpu::kernel! {
    /// The first features of some images (the second dimension, from `first_image` on) in their order, with their
    /// descriptors.
    pub(crate) unsafe kernel describe(groups) = Describe<V: Element> {
        write keypoints: u32 [(first_image + groups[1]) * capacity * WORDS as i128],
        write descriptors: V as VALUE [(first_image + groups[1]) * capacity * dimension],
        write counts: u32 [first_image + groups[1]],
        read order: u64 [(first_image + groups[1]) * capacity],
        read features: u32 as Keypoint [(first_image + groups[1]) * capacity * WORDS as i128],
        read feature_counts: u32 [first_image + groups[1]],
        read point_counts: u32 [first_image + groups[1]],
        read levels: f32 [(first_image + groups[1]) * image_stride],
        read octaves: u32 as Octave [octave_count * Plan::OCTAVE_WORDS as i128],
    } {
        image_stride: u64,
        first_image: i32,
        limit: u32,
        /// The most keypoints of an image in every list.
        capacity: u32,
        /// Values of a descriptor, for which the program is compiled; 0 without descriptors.
        dimension: u32,
        octave_count: i32,
    }
}

pub(crate) fn source(options: &SiftOptions) -> KernelSource {
    let bytes = options.descriptors != DescriptorKind::F32;
    window::for_kernels(KernelSource::new("describe"), options)
        .define("CELLS", CELLS)
        .define("DIRECTIONS", DIRECTIONS)
        .define("DIMENSION", DIMENSION)
        .define("WORDS", WORDS)
        .define("COLUMNS", COLUMNS)
        .define_f32("CELL", CELL)
        // Half of the window's side in cells.
        .define_f32("HALF", (CELLS + 1) as f32 * 0.5)
        .define_f32("DIRECTIONS_PER_RADIAN", DIRECTIONS as f32 / TAU)
        .define_f32("ROOT_2", SQRT_2)
        // Most rows of a window.
        .define("ROWS", 2 * reach(options) + 1)
        .define("ROOT", u8::from(options.root))
        .define("IN_BYTES", u8::from(bytes))
        .define("VALUE", if bytes { "u32" } else { "f32" })
        .define("VALUES", options.dimension() / if bytes { 4 } else { 1 })
        .kernel::<Describe<'_, u8>>([GROUP, 1])
        .text(include_str!("describe.cl"))
}

/// Writes the first features of some images in their order, their descriptors, and the number of features. The
/// number exceeds the capacity, which is the same for all lists, if there was too little room for the features or
/// for the points that they come from.
pub(crate) fn record(
    commands: &mut Commands,
    options: &SiftOptions,
    (described, descriptors): (&GpuKeypoints, &GpuDescriptors),
    (points, features, order): (&GpuKeypoints, &GpuKeypoints, &Buffer<u64>),
    images: Range<usize>,
    levels: &GpuLevels,
) -> Result<()> {
    if (options.descriptors == DescriptorKind::F32) != matches!(descriptors, ByValue::F32(_)) {
        return Err(Error::Mismatch("descriptors of one kind, and memory for the other".into()));
    }
    let program = levels.values.gpu().program(&source(options))?;
    let groups = groups(features, images.len());
    by_value!(descriptors, descriptors => {
        let arguments = Describe {
            keypoints: &described.keypoints,
            descriptors,
            counts: &described.counts,
            order,
            features: &features.keypoints,
            feature_counts: &features.counts,
            point_counts: &points.counts,
            levels: &levels.values,
            octaves: &levels.octaves,
            image_stride: levels.plan.image_stride as u64,
            first_image: images.start as i32,
            limit: options.selection.device_limit(),
            capacity: features.capacity as u32,
            dimension: options.dimension() as u32,
            octave_count: levels.plan.octaves.len() as i32,
        };
        Ok(commands.launch(&program.kernel::<Describe<'_, _>>()?, groups, arguments)?)
    })
}
