//! The directions of keypoints on a GPU, with the bits of [the CPU's](super).

use super::{Direction, Disc, SAMPLES};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::WORDS;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::gpu::layers::groups;
use crate::feature::surf::integral::{self, Sums, SumsPlane};
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::filter::integral::GpuSum;
use crate::{Result, feature, numeric};
use std::f32::consts::TAU;
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The keypoints of every image (the second dimension) in their order with their angles, and the cosines and sines
    /// of these.
    unsafe kernel orient(groups) = Orient<A: GpuSum> {
        write oriented: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        write directions: f32 [groups[1] * capacity * 2],
        read keypoints: u32 as Keypoint [groups[1] * capacity * WORDS as i128],
        read order: u64 [groups[1] * capacity],
        read counts: u32 [groups[1]],
        read sums: A [plane.numbers(groups[1])],
        /// Columns, rows and weights of the disc's samples.
        read disc: f32 [3 * SAMPLES as i128],
    } {
        plane: SumsPlane,
        capacity: u32,
        limit: u32,
    }
}

#[derive(Debug)]
pub(crate) struct GpuOrient<A: GpuSum> {
    kernel: Kernel<Orient<'static, A>>,
    disc: Buffer<f32>,
    limit: u32,
}

impl<A: GpuSum> GpuOrient<A> {
    pub(crate) fn source(options: &SurfOptions) -> KernelSource {
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
            .kernel::<Orient<'_, A>>([SAMPLES as u32, 1])
            .text(include_str!("orient.cl"))
    }

    pub(crate) fn new(gpu: &Gpu, options: &SurfOptions) -> Result<Self> {
        let kernel = gpu.program(&Self::source(options))?.kernel::<Orient<'_, A>>()?;
        let disc = Disc::new(options.preset);
        let weights = disc.weights.iter().map(|&w| w as f32);
        let disc: Vec<f32> = disc.x.into_iter().chain(disc.y).chain(weights).collect();
        Ok(Self { kernel, disc: gpu.upload(&disc)?, limit: options.selection.device_limit() })
    }

    /// Writes the keypoints in their `order` with their angles, and the cosines and sines of these.
    pub(crate) fn record(
        &self,
        commands: &mut Commands,
        sums: Sums<'_, A>,
        (found, order): (&GpuKeypoints, &Buffer<u64>),
        (oriented, directions): (&GpuKeypoints, &Buffer<f32>),
    ) -> Result<()> {
        commands.stage("orient");
        let arguments = Orient {
            oriented: &oriented.keypoints,
            directions,
            keypoints: &found.keypoints,
            order,
            counts: &found.counts,
            sums: sums.buffer(),
            disc: &self.disc,
            plane: sums.plane(),
            capacity: found.capacity as u32,
            limit: self.limit,
        };
        Ok(commands.launch(&self.kernel, groups(found), arguments)?)
    }
}
