//! The directions of keypoints on a GPU, with the bits of [the CPU's](super).

use super::{Direction, Disc, SAMPLES};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::gpu::layers::groups;
use crate::feature::surf::integral::{self, Sums};
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::filter::integral::GpuSum;
use crate::image::Size;
use crate::{Result, feature, numeric};
use std::f32::consts::TAU;
use tiepoint_gpu::{Kernel, KernelSource, arguments};

/// Finds the directions of keypoints.
#[derive(Debug)]
pub(in crate::feature::surf) struct GpuOrient {
    kernel: Kernel,
    disc: Buffer<f32>,
    /// Keypoints of an image that are wanted.
    limit: u32,
}

impl GpuOrient {
    pub(in crate::feature::surf) fn source<A: GpuSum>(options: &SurfOptions) -> KernelSource {
        let disc = Disc::new(options.preset);
        let upright = Direction::upright(options.preset);
        let source = feature::for_kernels(KernelSource::new("SURF, orientation"));
        numeric::for_kernels(integral::for_kernels::<A>(source))
            .define("OPENSURF", u8::from(options.preset == SurfPreset::OpenSurf))
            .define("ORIENT_GROUP", SAMPLES)
            .define("SAMPLES_OF_DISC", disc.weights.iter().filter(|&&w| w > 0).count())
            .define("BINS", disc.bins)
            .define_f32("BINS_PER_RADIAN", disc.bins as f32 / TAU)
            .define("UPRIGHT", u8::from(options.upright))
            .define_f32("UPRIGHT_ANGLE", upright.angle)
            .define_f32("UPRIGHT_COS", upright.cos)
            .define_f32("UPRIGHT_SIN", upright.sin)
            .text(include_str!("orient.cl"))
    }

    pub(in crate::feature::surf) fn new<A: GpuSum>(gpu: &Gpu, options: &SurfOptions) -> Result<Self> {
        let kernel =
            gpu.program(&Self::source::<A>(options))?.untyped_kernel("orient", [SAMPLES as u32, 1])?;
        let disc = Disc::new(options.preset);
        let weights = disc.weights.iter().map(|&w| w as f32);
        let disc: Vec<f32> = disc.x.into_iter().chain(disc.y).chain(weights).collect();
        Ok(Self { kernel, disc: gpu.upload(&disc)?, limit: options.selection.device_limit() })
    }

    /// Writes the keypoints in their `order` with their angles, and the cosines and sines of these.
    pub(in crate::feature::surf) fn record<A: GpuSum>(
        &self,
        commands: &mut Commands,
        sums: Sums<'_, A>,
        (found, order): (&GpuKeypoints, &Buffer<u64>),
        (oriented, directions): (&GpuKeypoints, &Buffer<f32>),
    ) -> Result<()> {
        commands.stage("orient");
        let Size { width, height } = sums.size();
        let arguments = arguments![
            &oriented.keypoints,
            directions,
            &found.keypoints,
            order,
            &found.counts,
            sums.buffer(),
            &self.disc,
            found.capacity as u32,
            self.limit,
            sums.pitch(),
            width as i32,
            height as i32,
            sums.origin(),
            sums.stride()
        ];
        Ok(commands.launch_untyped(&self.kernel, groups(found), arguments)?)
    }
}
