//! Learning mutual information: disparities teach a table of costs, which gives better disparities.

use super::{
    Learning, StereoOptions,
    aggregate::{Results, Workspace, aggregate},
    check::{View, check},
    cost::Table,
    median::median,
    pair::Pair,
    projection::{Colour, Projection},
};
use crate::{
    Result,
    device::Cpu,
    image::{Image, Size},
};

/// Halvings at most.
const LEVELS: usize = 4;
/// The least side of an image that still teaches something.
const LEAST_SIDE: usize = 24;
/// Iterations at the coarsest level.
const FIRST: usize = 3;

/// The table for the pair at its full size.
pub(super) fn table(
    pair: &Pair,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Table> {
    match options.learning {
        Learning::Iterations(n) => iterate(pair, options, usize::from(n), workspace, cpu),
        Learning::CoarseToFine => coarse_to_fine(pair, options, workspace, cpu),
    }
}

/// Rounds of choosing a projection by disparities that the one before gave, at most.
const ROUNDS: usize = 3;

/// Chooses the grey of the colour image that belongs to the grey one.
pub(super) fn project(
    pair: &mut Pair,
    colour: &Colour,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()> {
    if pair.size().width.min(pair.size().height) < 2 * LEAST_SIDE {
        return Ok(());
    }
    let luma = pair.values()[colour.side].clone();
    let options = halved(options, 1);
    let mut last = Projection::LUMA;
    for _ in 0..ROUNDS {
        let half = pair.half(cpu)?;
        let table = coarse_to_fine(&half, &options, workspace, cpu)?;
        let disparity = disparities(&half, &options, &table, workspace, cpu)?;
        let _stage = cpu.stage("projection");
        let projection = colour.projection(pair, &disparity, cpu);
        if projection == last {
            break;
        }
        last = projection;
        let values = if last == Projection::LUMA { luma.clone() } else { colour.values(last, cpu) };
        pair.set_values(colour.side, values);
    }
    Ok(())
}

/// The options for a pair halved so many times.
fn halved(options: &StereoOptions, times: usize) -> StereoOptions {
    let first = options.min_disparity >> times;
    let last = (options.min_disparity + options.disparities as i32 - 1) >> times;
    StereoOptions { min_disparity: first, disparities: (last - first + 1) as usize, ..*options }
}

/// The disparity in range that is nearest to zero, everywhere.
fn zero(size: Size, options: &StereoOptions) -> Image<f32> {
    let last = options.min_disparity + options.disparities as i32 - 1;
    Image::filled(size, 1, 0.clamp(options.min_disparity, last) as f32)
}

/// Learns from a disparity of zero, then `runs − 1` times from what the table gives.
fn iterate(
    pair: &Pair,
    options: &StereoOptions,
    runs: usize,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Table> {
    let mut table = taught(pair, (&zero(pair.size(), options), 1), cpu);
    for _ in 1..runs {
        table = taught(pair, (&disparities(pair, options, &table, workspace, cpu)?, 1), cpu);
    }
    Ok(table)
}

/// What disparities teach, those of the pair (step 1) or of the pair at half the size (step 2).
fn taught(pair: &Pair, disparity: (&Image<f32>, usize), cpu: &Cpu) -> Table {
    Table::learn(pair.values(), disparity, pair.right_mask(), cpu)
}

/// Disparities by a table, those that pass the left-right check.
fn disparities(
    pair: &Pair,
    options: &StereoOptions,
    table: &Table,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Image<f32>> {
    let problem = pair.problem(options, None, Some(table));
    let (mut left, mut right) = (Image::new(pair.size()), Image::new(pair.size()));
    let results = Results { disparity: Some(&mut left), right: Some(&mut right), ..Results::default() };
    aggregate(&problem, results, workspace, cpu)?;
    let (mut left, right) = (median(&left, 3, cpu)?, median(&right, 3, cpu)?);
    check(&mut left, &right, View::Left, 1.0, cpu)?;
    Ok(left)
}

fn coarse_to_fine(
    pair: &Pair,
    options: &StereoOptions,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<Table> {
    // pairs[k] is at 1 / 2ᵏ⁺¹ of the size.
    let mut pairs: Vec<Pair> = Vec::new();
    loop {
        let last = pairs.last().unwrap_or(pair);
        let Size { width, height } = last.size();
        if pairs.len() == LEVELS || width.min(height) < 2 * LEAST_SIDE {
            break;
        }
        pairs.push(last.half(cpu)?);
    }
    let coarsest = pairs.last().unwrap_or(pair);
    let mut table = iterate(coarsest, &halved(options, pairs.len()), FIRST, workspace, cpu)?;
    for level in (0..pairs.len()).rev() {
        // What this level's table gives teaches the next finer one.
        let disparity = disparities(&pairs[level], &halved(options, level + 1), &table, workspace, cpu)?;
        let finer = if level == 0 { pair } else { &pairs[level - 1] };
        table = taught(finer, (&disparity, 2), cpu);
    }
    Ok(table)
}
