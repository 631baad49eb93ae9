//! The directions of keypoints on a GPU, with the bits of [the CPU's](super).

use super::{Direction, Disc, SAMPLES};
use crate::device::gpu::{Buffer, Commands};
use crate::feature::WORDS;
use crate::feature::gpu::GpuKeypoints;
use crate::feature::surf::gpu::layers::groups;
use crate::feature::surf::integral::{self, SumsPlane};
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::filter::integral::{GpuIntegral, GpuSum};
use crate::{Result, feature, numeric};
use std::f32::consts::TAU;
use tiepoint_gpu::KernelSource;

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

pub(crate) fn source<A: GpuSum>(options: &SurfOptions) -> KernelSource {
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

/// Writes the keypoints in their `order` with their angles, and the cosines and sines of these.
pub(crate) fn record<A: GpuSum>(
    commands: &mut Commands,
    options: &SurfOptions,
    sums: &GpuIntegral<A>,
    (found, order): (&GpuKeypoints, &Buffer<u64>),
    (oriented, directions): (&GpuKeypoints, &Buffer<f32>),
) -> Result<()> {
    let gpu = directions.gpu();
    let kernel = gpu.program(&source::<A>(options))?.kernel::<Orient<'_, A>>()?;
    let disc = Disc::new(options.preset);
    let weights = disc.weights.iter().map(|&w| w as f32);
    let disc: Vec<f32> = disc.x.into_iter().chain(disc.y).chain(weights).collect();
    commands.stage("orient");
    let arguments = Orient {
        oriented: &oriented.keypoints,
        directions,
        keypoints: &found.keypoints,
        order,
        counts: &found.counts,
        sums: sums.buffer(),
        disc: &gpu.upload(&disc)?,
        plane: SumsPlane::of(sums),
        capacity: found.capacity as u32,
        limit: options.selection.device_limit(),
    };
    Ok(commands.launch(&kernel, groups(found), arguments)?)
}
