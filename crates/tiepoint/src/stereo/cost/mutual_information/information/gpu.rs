//! Joint histograms on a device, and the tables and information computed from them.

use super::super::{LIMIT, VALUES};
use super::{CLASSES, EPSILON, FREE, LEAST, PARTS, REACH, SCALE, STEPS, TAPS};
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::INVALID;
use crate::stereo::gpu::lanes::{launch, optional};
use crate::{Result, numeric};
use tiepoint_gpu::{KernelSource, Program};

tiepoint_gpu::kernel! {
    unsafe kernel joint(groups) = Joint {
        write tally: u32 [TALLY as i128],
        read left (left_plane: Plane): u8 [left_plane.numbers(1)],
        read right (right_plane: Plane): u8 [right_plane.numbers(1)],
        /// Rows of length 0 mean that the right view has data everywhere.
        read mask (mask_plane: Plane): u8 [mask_plane.numbers(1)],
        read disparity (disparity_plane: Plane): f32 [disparity_plane.numbers(1)],
    } {
        /// 1 for a map of the pair's size, 2 for a map of half the size, and so on.
        step: i32,
    }

    /// The contributions h(i) and h(k) of the margins of joint histograms.
    unsafe kernel margins(groups) = Margins {
        write out: f64 [2 * VALUES as i128 * groups[1]],
        read tally: u32 [TALLY as i128 * groups[1]],
    } {
        /// 1: empty histograms are skipped, because their contributions are not read.
        skips_empty: i32,
    }

    unsafe kernel logarithms(groups) = Logarithms {
        write out: f64 [PAIRS as i128 * groups[1]],
        read tally: u32 [TALLY as i128 * groups[1]],
    } {
        /// As in [`Margins`].
        skips_empty: i32,
    }

    /// The sums of n v over the rows of joint histograms.
    unsafe kernel information(groups) = Information {
        write out: f64 [VALUES as i128 * groups[1]],
        read tally: u32 [TALLY as i128 * groups[1]],
        read logarithms: f64 [PAIRS as i128 * groups[1]],
        read margins: f64 [2 * VALUES as i128 * groups[1]],
    } {}

    /// v(i, k), which is great if two values seldom occur together; also counts the classes of v.
    unsafe kernel unlikeness(groups) = Unlikeness {
        write out: f64 [PAIRS as i128],
        write tally: u32 [TALLY as i128],
        read logarithms: f64 [PAIRS as i128],
        read margins: f64 [2 * VALUES as i128],
    } {}

    /// Counts the parts of the class of v that contains the offset o.
    unsafe kernel within(groups) = Within {
        write tally: u32 [TALLY as i128],
        read values: f64 [PAIRS as i128],
    } {}

    unsafe kernel table(groups) = Table {
        write out: u8 [PAIRS as i128],
        read values: f64 [PAIRS as i128],
        read tally: u32 [TALLY as i128],
    } {}

    unsafe kernel exchange(groups) = Exchange {
        write out: u8 [PAIRS as i128],
        read table: u8 [PAIRS as i128],
    } {}
}

/// The number of pairs of values, which is the size of a table and of a joint histogram.
const PAIRS: usize = VALUES * VALUES;
/// Left values whose counters a group has in local memory.
const TILE: usize = 16;
/// The number of counters: of pairs of values, classes of v, runs of [`VALUES`] classes, parts of a class, and of all
/// counted pixels, which comes last.
pub(in super::super) const TALLY: usize = PAIRS + CLASSES + CLASSES / VALUES + PARTS + 1;
/// The number of groups among which the rows of an image are divided.
const SLICES: usize = 128;

pub(in super::super) fn source() -> KernelSource {
    const LANES: [u32; 2] = [VALUES as u32, 1];
    numeric::for_kernels(KernelSource::new("mutual information"))
        .define("VALUES", VALUES)
        .define("TAPS", format!("{{ {} }}", TAPS.map(|tap| format!("{tap:?}")).join(", ")))
        .define("REACH", REACH)
        .define("TILE", TILE)
        .define("LIMIT", LIMIT)
        .define("EPSILON", format!("{EPSILON:e}"))
        .define("SCALE", format!("{SCALE:?}"))
        .define("FREE", format!("{FREE:?}"))
        .define("LEAST", format!("({LEAST:?})"))
        .define("STEPS", format!("{STEPS:?}"))
        .define("PARTS", PARTS)
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<Joint<'_>>(LANES)
        .kernel::<Margins<'_>>(LANES)
        .kernel::<Logarithms<'_>>(LANES)
        .kernel::<Information<'_>>(LANES)
        .kernel::<Unlikeness<'_>>(LANES)
        .kernel::<Within<'_>>(LANES)
        .kernel::<Table<'_>>(LANES)
        .kernel::<Exchange<'_>>(LANES)
        .text(include_str!("information.cl"))
}

/// As [`CostTable::learn`](super::CostTable::learn).
pub(in super::super) fn table(
    commands: &mut Commands,
    [left, right]: [&GpuStack<u8>; 2],
    (disparity, step): (&GpuStack<f32>, usize),
    mask: Option<&GpuStack<u8>>,
) -> Result<Buffer<u8>> {
    let gpu = left.gpu();
    let program = &gpu.program(&source())?;
    let tally = &gpu.buffer::<u32>(TALLY)?;
    let values = &gpu.buffer::<f64>(PAIRS)?;
    let out = gpu.buffer::<u8>(PAIRS)?;
    let mask = &optional(gpu, mask)?;
    commands.stage("mutual information");
    commands.zero(tally)?;
    launch(
        commands,
        program,
        [SLICES.min(left.size().height), VALUES / TILE, 1],
        Joint {
            tally,
            left: left.laid(),
            right: right.laid(),
            mask: mask.into(),
            disparity: disparity.laid(),
            step: step as i32,
        },
    )?;
    let rows = [VALUES, 1, 1];
    let [margins, logarithms] = &terms(commands, program, (tally, 1), false)?;
    launch(commands, program, rows, Unlikeness { out: values, tally, logarithms, margins })?;
    launch(commands, program, rows, Within { tally, values })?;
    launch(commands, program, rows, Table { out: &out, values, tally })?;
    Ok(out)
}

/// Records the computation of the terms of v from the margins and the joint shares of `n` histograms.
fn terms(
    commands: &mut Commands,
    program: &Program,
    (tally, n): (&Buffer<u32>, usize),
    skips_empty: bool,
) -> Result<[Buffer<f64>; 2]> {
    let (gpu, skips_empty) = (tally.gpu(), skips_empty.into());
    let margins = gpu.buffer::<f64>(2 * VALUES * n)?;
    let logarithms = gpu.buffer::<f64>(PAIRS * n)?;
    launch(commands, program, [2, n, 1], Margins { out: &margins, tally, skips_empty })?;
    let arguments = Logarithms { out: &logarithms, tally, skips_empty };
    launch(commands, program, [VALUES, n, 1], arguments)?;
    Ok([margins, logarithms])
}

/// The sums of n v over the rows of several histograms.
pub(in super::super) fn information(
    commands: &mut Commands,
    tally: &Buffer<u32>,
    n: usize,
) -> Result<Buffer<f64>> {
    let program = &tally.gpu().program(&source())?;
    let [margins, logarithms] = &terms(commands, program, (tally, n), true)?;
    let out = tally.gpu().buffer(VALUES * n)?;
    launch(commands, program, [VALUES, n, 1], Information { out: &out, tally, logarithms, margins })?;
    Ok(out)
}

pub(in super::super) fn exchanged(commands: &mut Commands, table: &Buffer<u8>) -> Result<Buffer<u8>> {
    let (program, out) = (table.gpu().program(&source())?, table.gpu().buffer(table.len())?);
    launch(commands, &program, [VALUES, 1, 1], Exchange { out: &out, table })?;
    Ok(out)
}
