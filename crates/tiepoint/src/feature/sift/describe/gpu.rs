//! Descriptors on a GPU: as [`super`], bit for bit.

use super::{CELL, CELLS, DIRECTIONS, reach};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::DescriptorKind;
use crate::feature::WORDS;
use crate::feature::gpu::{GpuDescriptors, GpuKeypoints};
use crate::feature::sift::gpu::plan::{GpuLevels, groups};
use crate::feature::sift::window::{self, GROUP};
use crate::feature::sift::{DIMENSION, SiftOptions};
use std::f32::consts::{SQRT_2, TAU};
use std::ops::Range;
use tiepoint_gpu::{Kernel, KernelSource, Positional, arguments};

/// Columns of the histogram, one or more lanes each.
const COLUMNS: u32 = 8;

/// Describes features in their order.
#[derive(Clone, Debug)]
pub(crate) struct GpuDescribe {
    kernel: Kernel,
    has_descriptors: bool,
}

impl GpuDescribe {
    pub(crate) fn source(options: &SiftOptions) -> KernelSource {
        let bytes = options.descriptors != DescriptorKind::F32;
        window::for_kernels(KernelSource::new("describe"), options)
            .define("CELLS", CELLS)
            .define("DIRECTIONS", DIRECTIONS)
            .define("DIMENSION", DIMENSION)
            .define("WORDS", WORDS)
            .define("COLUMNS", COLUMNS)
            .define_f32("CELL", CELL)
            // Half the window's side in cells.
            .define_f32("HALF", (CELLS + 1) as f32 * 0.5)
            .define_f32("DIRECTIONS_PER_RADIAN", DIRECTIONS as f32 / TAU)
            .define_f32("ROOT_2", SQRT_2)
            // Most rows of a window.
            .define("ROWS", 2 * reach(options) + 1)
            .define("ROOT", u8::from(options.root))
            .define("IN_BYTES", u8::from(bytes))
            .define("VALUE", if bytes { "u32" } else { "f32" })
            .define("VALUES", if bytes { DIMENSION / 4 } else { DIMENSION })
            .text(include_str!("describe.cl"))
    }

    pub(crate) fn new(gpu: &Gpu, options: &SiftOptions) -> Result<Self> {
        let has_descriptors = options.descriptors != DescriptorKind::None;
        let name = if has_descriptors { "describe" } else { "arrange" };
        let kernel = gpu.program(&Self::source(options))?.untyped_kernel(name, [GROUP, 1])?;
        Ok(Self { kernel, has_descriptors })
    }

    /// Writes the first `limit` of the `features` of some images in their `order` and their descriptors, and
    /// how many features there were: more than the capacity, which is the same for all lists, when there was too
    /// little room for them or for the points that they come from.
    pub(crate) fn record(
        &self,
        commands: &mut Commands,
        (described, descriptors): (&GpuKeypoints, &GpuDescriptors),
        (points, features, order): (&GpuKeypoints, &GpuKeypoints, &Buffer<u64>),
        (images, limit): (Range<usize>, u32),
        levels: &GpuLevels,
    ) -> Result<()> {
        let mut arguments = arguments![&described.keypoints];
        if self.has_descriptors {
            arguments.push(match descriptors {
                GpuDescriptors::U8(buffer) => Positional::from(buffer),
                GpuDescriptors::F32(buffer) => Positional::from(buffer),
            });
        }
        arguments.extend(arguments![
            &described.counts,
            images.start as i32,
            limit,
            order,
            &features.keypoints,
            &features.counts,
            &points.counts,
            features.capacity as u32,
        ]);
        if self.has_descriptors {
            arguments.extend(arguments![&levels.values, levels.plan.image_stride as u64, &levels.octaves]);
        }
        Ok(commands.launch_untyped(&self.kernel, groups(features, images.len()), arguments)?)
    }
}
