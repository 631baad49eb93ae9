//! Learning mutual information: disparities teach a table of costs, which gives better disparities.

use super::{
    Learning, StereoOptions,
    aggregate::{Results, Workspace, aggregate},
    check::{View, check},
    cost::Table,
    median::median,
    pair::Pair,
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
    let at = |level: usize| {
        let first = options.min_disparity >> level;
        let last = (options.min_disparity + options.disparities as i32 - 1) >> level;
        StereoOptions { min_disparity: first, disparities: (last - first + 1) as usize, ..*options }
    };
    let coarsest = pairs.last().unwrap_or(pair);
    let mut table = iterate(coarsest, &at(pairs.len()), FIRST, workspace, cpu)?;
    for level in (0..pairs.len()).rev() {
        // What this level's table gives teaches the next finer one.
        let disparity = disparities(&pairs[level], &at(level + 1), &table, workspace, cpu)?;
        let finer = if level == 0 { pair } else { &pairs[level - 1] };
        table = taught(finer, (&disparity, 2), cpu);
    }
    Ok(table)
}
