//! Learning the table of costs: a table gives disparities, and these give a better table. On devices: [`gpu`].

pub(crate) mod gpu;

use super::CostTable;
use super::projection::{ColourImage, Projection};
use crate::Result;
use crate::device::Cpu;
use crate::image::{Image, Size};
use crate::stereo::aggregation::{AggregationInput, Workspace, aggregate};
use crate::stereo::consistency_check::check;
use crate::stereo::median::median;
use crate::stereo::pair::Pair;
use crate::stereo::{Paths, StereoOptions, StereoResult, View};

/// The most halvings.
const LEVELS: usize = 4;
/// Reduced images from which a table is learnt have at least this many pixels along each side.
const LEAST_SIDE: usize = 24;
/// Iterations at the coarsest level.
const FIRST: usize = 3;
/// Enough pixels to learn a table from: if a reduced image has this many, larger ones are not searched. From fewer
/// pixels tables are worse (`docs/notebook/stereo.md`).
const ENOUGH: usize = 120_000;

/// The table for the pair at its full size.
pub(super) fn table(
    pair: &Pair,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<CostTable> {
    match options.iterations {
        Some(n) => iterate(pair, options, usize::from(n), workspace, cpu),
        None => coarse_to_fine(pair, options, workspace, cpu),
    }
}

/// About the steps of [`table`], where an aggregation of the pair takes `whole`: each halving divides them by eight.
pub(super) fn table_steps(options: &StereoOptions, whole: usize) -> usize {
    match options.iterations {
        Some(n) => usize::from(n).saturating_sub(1) * whole,
        None => {
            let finest = (1..=LEVELS).rev().find(|k| whole >> (2 * k) >= ENOUGH).unwrap_or(1);
            (whole / 6) >> (3 * (finest - 1))
        }
    }
}

/// The most rounds in which a projection is chosen by the disparities of the previous projection.
const ROUNDS: usize = 3;

/// About the steps of [`project`]: in each round an aggregation at half the size and the learning of its table.
pub(super) fn project_steps(options: &StereoOptions, whole: usize) -> usize {
    ROUNDS * (whole / 8 + table_steps(options, whole / 8))
}

/// Chooses the grey of the colour image that corresponds to the grey image.
pub(super) fn project(
    pair: &mut Pair,
    colour: &ColourImage,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()> {
    let (mut last, options) = (Projection::LUMA, halved(options, 1));
    pair.compare_in(colour.view, colour.values(last, cpu));
    let whole = pair.size().area() / 8;
    let learning = table_steps(&options, whole);
    let cpu = &cpu.begin_task("project", ROUNDS * (whole + learning));
    for _ in 0..rounds(pair.size()) {
        let half = pair.half(cpu)?;
        let table = coarse_to_fine(&half, &options, workspace, &cpu.part(learning))?;
        let disparity = disparities(&half, &options, &table, workspace, &cpu.part(whole))?;
        let _stage = cpu.stage("projection");
        let projection = colour.projection(pair, &disparity, cpu);
        if projection == last {
            // Another round would find the same.
            break;
        }
        last = projection;
        pair.compare_in(colour.view, colour.values(last, cpu));
    }
    Ok(())
}

/// The most times that a projection is chosen; 0 if the pair is too small.
fn rounds(size: Size) -> usize {
    if size.width.min(size.height) < 2 * LEAST_SIDE { 0 } else { ROUNDS }
}

/// How often a pair is halved to learn from.
fn levels(size: Size) -> usize {
    let (mut levels, Size { mut width, mut height }) = (0, size);
    while levels < LEVELS && width.min(height) >= 2 * LEAST_SIDE {
        (width, height) = (width.div_ceil(2), height.div_ceil(2));
        levels += 1;
    }
    levels
}

/// How often the pair is halved for the last disparities: as often as [`ENOUGH`] pixels remain, but at least once.
fn finest(size: Size) -> usize {
    let area = |k: usize| size.width.div_ceil(1 << k) * size.height.div_ceil(1 << k);
    let most = levels(size);
    (1..=most).rev().find(|&k| area(k) >= ENOUGH).unwrap_or(most.min(1))
}

/// The options while learning from coarse to fine: four directions if a quarter of the size has [`ENOUGH`] pixels.
fn searching(options: &StereoOptions, size: Size) -> StereoOptions {
    let paths = if finest(size) > 1 { Paths::Four } else { options.paths };
    StereoOptions { paths, ..*options }
}

/// The options for a pair halved `times` times.
fn halved(options: &StereoOptions, times: usize) -> StereoOptions {
    let first = options.min_disparity >> times;
    let last = (options.min_disparity + options.disparities as i32 - 1) >> times;
    StereoOptions { min_disparity: first, disparities: (last - first + 1) as usize, ..*options }
}

/// The disparity in range that is nearest to zero, everywhere.
fn nearest_to_zero(size: Size, options: &StereoOptions) -> Image<f32> {
    let last = options.min_disparity + options.disparities as i32 - 1;
    Image::filled(size, 1, 0.clamp(options.min_disparity, last) as f32)
}

/// Learns a table from a disparity of zero, then `runs − 1` times from the disparities that the last table gives.
fn iterate(
    pair: &Pair,
    options: &StereoOptions,
    runs: usize,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<CostTable> {
    let step = pair.size().area();
    let cpu = &cpu.begin_task("iterate", runs.saturating_sub(1) * step);
    let mut table = from_disparities(pair, (&nearest_to_zero(pair.size(), options), 1), cpu);
    for _ in 1..runs {
        let disparity = disparities(pair, options, &table, workspace, &cpu.part(step))?;
        table = from_disparities(pair, (&disparity, 1), cpu);
    }
    Ok(table)
}

/// The table learnt from disparities of the pair (step 1), of the pair at half the size (step 2), and so on.
pub(super) fn from_disparities(pair: &Pair, disparity: (&Image<f32>, usize), cpu: &Cpu) -> CostTable {
    let compared = [View::Left, View::Right].map(|view| pair.compared(view));
    CostTable::learn(compared, disparity, pair.mask(View::Right), cpu)
}

/// Disparities computed with a table; those that fail the left-right check are invalid.
fn disparities(
    pair: &Pair,
    options: &StereoOptions,
    table: &CostTable,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Image<f32>> {
    let input = AggregationInput::new(table, pair, options);
    let mut found = StereoResult::new(pair.size(), true, false);
    aggregate(&input, (&mut found, None), workspace, cpu)?;
    let mut left = median(found.disparity.view(), 3, cpu)?;
    if let Some(right) = &found.right {
        check(left.view_mut(), median(right.view(), 3, cpu)?.view(), View::Left, 1.0, cpu)?;
    }
    Ok(left)
}

fn coarse_to_fine(
    pair: &Pair,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<CostTable> {
    let options = &searching(options, pair.size());
    // pairs[k] is at 1 / 2ᵏ⁺¹ of the size.
    let mut pairs: Vec<Pair> = Vec::new();
    for _ in 0..levels(pair.size()) {
        pairs.push(pairs.last().unwrap_or(pair).half(cpu)?);
    }
    let coarsest = pairs.last().unwrap_or(pair);
    let steps =
        |level: usize| pairs[level].size().area().saturating_mul(halved(options, level + 1).disparities);
    let first =
        ((FIRST - 1) * halved(options, pairs.len()).disparities).saturating_mul(coarsest.size().area());
    let finest = finest(pair.size()).saturating_sub(1);
    let cpu = &cpu.begin_task("learn", first + (finest..pairs.len()).map(steps).sum::<usize>());
    let mut table = iterate(coarsest, &halved(options, pairs.len()), FIRST, workspace, &cpu.part(first))?;
    for level in (finest..pairs.len()).rev() {
        // From the disparities with this level's table, the table of the next finer level, or of the pair, is learnt.
        let (options, cpu) = (halved(options, level + 1), cpu.part(steps(level)));
        let disparity = disparities(&pairs[level], &options, &table, workspace, &cpu)?;
        table = match level > finest {
            true => from_disparities(&pairs[level - 1], (&disparity, 2), &cpu),
            false => from_disparities(pair, (&disparity, 2 << level), &cpu),
        };
    }
    Ok(table)
}
