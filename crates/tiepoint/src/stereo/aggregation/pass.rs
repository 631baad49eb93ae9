//! Sweeps over the image: bands given to threads, groups of rows where memory is limited.

use super::{
    Cross, Directions, Knight, Row, Star,
    band::{Pass, Rows, Scratch, band, sums_len},
    boundary::{Boundary, Wavefront},
    memory::{Stored, Workspace},
    recurrence::{Sum, Value},
};
use crate::{
    Error, Result,
    device::{Cpu, dispatch},
    image::{Image, Size},
    stereo::{
        Paths, Penalties,
        cost::Costs,
        winner_takes_all::{self, Choice},
    },
};
use fearless_simd::{Simd, prelude::*};
use std::sync::{Mutex, PoisonError};

/// Rows that one thread walks together.
const BAND: usize = 8;

/// Bytes a pixel of what lies beside the sums: grey, and the maps of both views while they are refined.
const BESIDE: u64 = 20;

/// What is to be aggregated, and how a disparity is chosen from the sums.
pub(in crate::stereo) struct AggregationInput<'a> {
    pub(in crate::stereo) size: Size,
    pub(in crate::stereo) cost: Costs<'a>,
    /// Grey of the left image, whose differences P2 follows.
    pub(in crate::stereo) grey: &'a Image<u8>,
    pub(in crate::stereo) penalties: Penalties,
    pub(in crate::stereo) paths: Paths,
    pub(in crate::stereo) choice: Choice,
    /// Bytes that may be taken; `None`: what it takes.
    pub(in crate::stereo) memory: Option<u64>,
}

impl AggregationInput<'_> {
    pub(in crate::stereo) const fn disparities(&self) -> usize {
        self.cost.disparities
    }

    /// No sum exceeds it.
    #[inline(always)]
    pub(in crate::stereo) fn greatest_sum(&self) -> u32 {
        self.paths.count() as u32 * (u32::from(self.cost.greatest) + u32::from(self.penalties.p2))
    }
}

/// The images that results go to, those that are wanted.
#[derive(Default)]
pub(in crate::stereo) struct AggregationOutput<'a> {
    pub(in crate::stereo) disparity: Option<&'a mut Image<f32>>,
    pub(in crate::stereo) right: Option<&'a mut Image<f32>>,
    pub(in crate::stereo) confidence: Option<&'a mut Image<f32>>,
    pub(in crate::stereo) sums: Option<&'a mut [u16]>,
}

/// Aggregates all directions and chooses a disparity for every pixel.
///
/// # Errors
/// [`Error::Memory`] when even the smallest groups of rows exceed the limit, [`Error::Refused`] when the system has
/// no more.
pub(in crate::stereo) fn aggregate(
    input: &AggregationInput<'_>,
    results: AggregationOutput<'_>,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()> {
    let most = u32::from(input.cost.greatest) + u32::from(input.penalties.p2);
    let fits = |paths: u32| most * paths <= 255;
    // Not all pairs of path and sum: every one is compiled for every SIMD level.
    match input.paths {
        Paths::Four if fits(2) => image::<u8, u8, Cross, Cross, 2, 2>(input, results, workspace, cpu),
        Paths::Four => image::<u16, u16, Cross, Cross, 2, 2>(input, results, workspace, cpu),
        Paths::Five if fits(4) => image::<u8, u8, Star, Row, 4, 1>(input, results, workspace, cpu),
        Paths::Five if fits(1) => image::<u8, u16, Star, Row, 4, 1>(input, results, workspace, cpu),
        Paths::Five => image::<u16, u16, Star, Row, 4, 1>(input, results, workspace, cpu),
        Paths::Eight if fits(4) => image::<u8, u8, Star, Star, 4, 4>(input, results, workspace, cpu),
        Paths::Eight if fits(1) => image::<u8, u16, Star, Star, 4, 4>(input, results, workspace, cpu),
        Paths::Eight => image::<u16, u16, Star, Star, 4, 4>(input, results, workspace, cpu),
        Paths::Sixteen if fits(1) => image::<u8, u16, Knight, Knight, 8, 8>(input, results, workspace, cpu),
        Paths::Sixteen => image::<u16, u16, Knight, Knight, 8, 8>(input, results, workspace, cpu),
    }
}

/// How the rows are cut so that the memory suffices.
struct Groups {
    rows: usize,
    height: usize,
}

impl Groups {
    /// Bytes of a row of sums and of the paths kept between groups.
    fn plan(input: &AggregationInput<'_>, row: u64, paths: u64, overhead: u64) -> Result<Self> {
        let height = input.size.height;
        let Some(limit) = input.memory else { return Ok(Self { rows: height, height }) };
        // Grey and the maps on their way take their part, but not more than half.
        let beside = ((input.size.width * height) as u64).saturating_mul(BESIDE);
        let room = limit.saturating_sub(beside).max(limit / 2);
        let needed = |rows: usize| {
            let groups = height.div_ceil(rows) as u64;
            let kept = if groups > 1 { (groups + 1) * paths } else { 2 * paths };
            overhead + rows as u64 * row + kept
        };
        if needed(height) <= room {
            return Ok(Self { rows: height, height });
        }
        // As many rows as fit: fewer groups keep less and wait less.
        let cuts = || (BAND..height.next_multiple_of(BAND)).step_by(BAND);
        if let Some(rows) = cuts().rev().find(|&rows| needed(rows) <= room) {
            return Ok(Self { rows, height });
        }
        let least = cuts().map(needed).min().unwrap_or_else(|| needed(height));
        let needed = least.saturating_add(beside).min(least.saturating_mul(2));
        Err(Error::Memory { what: "semi-global matching of this width and disparity count", needed, limit })
    }

    fn count(&self) -> usize {
        self.height.div_ceil(self.rows)
    }

    fn range(&self, group: usize) -> std::ops::Range<usize> {
        group * self.rows..((group + 1) * self.rows).min(self.height)
    }
}

fn image<T, A, F, B, const N: usize, const M: usize>(
    input: &AggregationInput<'_>,
    mut results: AggregationOutput<'_>,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()>
where
    T: Value,
    A: Sum<T> + Stored,
    F: Directions<N> + Default,
    B: Directions<M> + Default,
{
    let Size { width, height } = input.size;
    if width == 0 || height == 0 {
        return Ok(());
    }
    let lanes = dispatch!(cpu.level(), simd => vector(simd));
    let padded = input.disparities().next_multiple_of(lanes);
    let pixel = (padded * size_of::<T>()) as u64;
    let paths = (width * F::DEPTH * (N - 1)) as u64 * pixel;
    let band_sums = |rows| sums_len(width, rows, F::SKEW, padded);
    let row = (band_sums(BAND) * size_of::<A>()).div_ceil(BAND) as u64;
    let ring = ((BAND + 2) * 8 * N) as u64 * (pixel + 64);
    let groups = Groups::plan(input, row, paths, cpu.threads() as u64 * ring)?;
    let needed = groups.rows.min(height).div_ceil(BAND) * band_sums(BAND);
    let sums = A::stored(workspace, needed)?;
    let last = groups.count() - 1;
    // Rows above the last group are swept forward twice.
    let cpu = &cpu.begin_task("aggregate", 2 * height + groups.range(last).start);
    let mut checkpoints = Vec::new();
    let mut edge = Boundary::new(width);
    for group in 0..=last {
        if group > 0 {
            checkpoints.push(edge.checkpoint());
        }
        let rows = groups.range(group);
        let stored = (group == last).then_some(&mut sums[..]);
        forward::<T, A, F, N>(input, rows, stored, &edge, padded, cpu);
    }
    let below = Boundary::new(width);
    for group in (0..=last).rev() {
        let rows = groups.range(group);
        if group < last {
            edge = if group == 0 { Boundary::new(width) } else { checkpoints.swap_remove(group - 1) };
            forward::<T, A, F, N>(input, rows.clone(), Some(&mut sums[..]), &edge, padded, cpu);
        }
        backward::<T, A, B, M>(input, rows, sums, &mut results, &below, padded, cpu);
    }
    Ok(())
}

/// Bytes in a vector.
#[inline(always)]
fn vector<S: Simd>(_: S) -> usize {
    S::u8s::LEN
}

fn penalties<T: Value>(input: &AggregationInput<'_>) -> [T; 256] {
    input.penalties.table().map(T::of)
}

fn forward<T: Value, A: Sum<T>, D: Directions<N> + Default, const N: usize>(
    input: &AggregationInput<'_>,
    range: std::ops::Range<usize>,
    sums: Option<&mut [A]>,
    edge: &Boundary<T>,
    padded: usize,
    cpu: &Cpu,
) {
    let _stage = cpu.stage("forward");
    let bands = range.len().div_ceil(BAND);
    let mut pieces = sums.map(|s| s.chunks_mut(sums_len(input.size.width, BAND, D::SKEW, padded)));
    let bands = (0..bands).map(|number| {
        let first = range.start + number * BAND;
        let sums = pieces.as_mut().and_then(Iterator::next);
        Rows { first, number, count: BAND.min(range.end - first), sums, results: Vec::new() }
    });
    let progress = Wavefront::new(range.len().div_ceil(BAND));
    let pass = Pass { input, backward: false, p2: penalties(input), edge, progress: &progress, padded };
    run::<T, A, D, N>(&pass, bands.collect(), cpu);
}

fn backward<T: Value, A: Sum<T>, D: Directions<N> + Default, const N: usize>(
    input: &AggregationInput<'_>,
    range: std::ops::Range<usize>,
    sums: &mut [A],
    results: &mut AggregationOutput<'_>,
    edge: &Boundary<T>,
    padded: usize,
    cpu: &Cpu,
) {
    let _stage = cpu.stage("backward and select");
    let Size { width, height } = input.size;
    // The bands of the forward pass, from the last.
    let bands = range.len().div_ceil(BAND);
    let pieces = sums.chunks_mut(sums_len(width, BAND, D::SKEW, padded)).take(bands);
    let mut rows = winner_takes_all::rows(results, input, range.clone()).into_iter();
    let mut bands: Vec<_> = pieces
        .zip((range.start..).step_by(BAND))
        .map(|(sums, start)| {
            let results: Vec<winner_takes_all::Row<'_>> = rows.by_ref().take(BAND).collect();
            let count = results.len();
            Rows { first: height - start - count, number: 0, count, sums: Some(sums), results }
        })
        .collect();
    bands.reverse();
    bands.iter_mut().enumerate().for_each(|(number, band)| band.number = number);
    let progress = Wavefront::new(range.len().div_ceil(BAND));
    let pass = Pass { input, backward: true, p2: penalties(input), edge, progress: &progress, padded };
    run::<T, A, D, N>(&pass, bands, cpu);
}

/// Threads take bands in their order, so that the band that one waits for is always at work.
fn run<T: Value, A: Sum<T>, D: Directions<N> + Default, const N: usize>(
    pass: &Pass<'_, T>,
    bands: Vec<Rows<'_, A>>,
    cpu: &Cpu,
) {
    let workers = cpu.threads().min(bands.len());
    let queue = Mutex::new(bands.into_iter());
    cpu.map(workers, |_| {
        let _guard = pass.progress.guard();
        let mut scratch = Scratch::default();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(rows) = next else { break };
            let count = rows.count;
            dispatch!(cpu.level(), simd => band(simd, pass, rows, &mut scratch, D::default()));
            cpu.advance(count);
        }
    });
}
