//! The forward and the backward pass over the image: bands are given to threads, in groups of rows if memory is
//! limited.

use super::band::{Band, BandScratch, Pass, aggregate_band, sums_len};
use super::boundary::{Boundary, Wavefront};
use super::memory::Workspace;
use super::p2_penalty::P2Penalty;
use super::recurrence::{Sum, Value};
use super::{Cross, Directions, Horizontal, Knight, Star};
use crate::device::{Cpu, Level, SimdLevel, dispatch};
use crate::error::Shortage;
use crate::image::Size;
use crate::stereo::cost::{CostRow, CostSource, RowLayout};
use crate::stereo::pair::Pair;
use crate::stereo::winner_takes_all::{self, OutputRow};
use crate::stereo::{Paths, Penalties, StereoOptions, StereoResult};
use crate::{Error, Result};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use tiepoint_gpu::lock;

/// Rows of a band: their paths fit into the first-level cache.
const BAND: usize = 8;

/// Bytes of each pixel for everything else: grey, and the maps of both views while they are refined.
const BESIDE: u64 = 20;

/// A new workspace takes at most this many bytes of sums and paths, if they suffice: obtaining more pages from the
/// system takes longer than an additional pass (`docs/notebook/stereo.md`).
const FRESH: u64 = 128 << 20;

/// The costs to aggregate, and how a disparity is chosen from the sums.
pub(in crate::stereo) struct AggregationInput<'a> {
    pub(in crate::stereo) source: &'a dyn CostSource,
    pub(in crate::stereo) pair: &'a Pair,
    pub(in crate::stereo) options: StereoOptions,
    /// The penalties in force by `options`.
    pub(in crate::stereo) penalties: Penalties,
}

impl<'a> AggregationInput<'a> {
    pub(in crate::stereo) fn new(
        source: &'a dyn CostSource,
        pair: &'a Pair,
        options: &StereoOptions,
    ) -> Self {
        Self { source, pair, options: *options, penalties: options.penalties() }
    }

    pub(in crate::stereo) fn size(&self) -> Size {
        self.pair.size()
    }

    /// Prepares the costs of row `y` for `padded` disparities.
    pub(in crate::stereo) fn prepare(&self, level: Level, y: usize, padded: usize, row: &mut CostRow) {
        let layout = RowLayout::new(self.size().width, self.options.min_disparity, padded);
        self.source.prepare(level, self.pair, y, layout, row);
    }

    /// A bound of all sums.
    pub(in crate::stereo) fn greatest_sum(&self) -> u32 {
        self.options.paths.count() as u32 * self.greatest_path_cost()
    }

    /// A bound of all path costs.
    fn greatest_path_cost(&self) -> u32 {
        u32::from(self.source.greatest()) + u32::from(self.penalties.p2)
    }
}

/// The maps to write (without reasons), and room for the sums S if a caller asks for them.
pub(in crate::stereo) type AggregationOutput<'a> = (&'a mut StereoResult, Option<&'a mut [u16]>);

/// Aggregates all directions and chooses a disparity for every pixel.
pub(in crate::stereo) fn aggregate(
    input: &AggregationInput<'_>,
    output: AggregationOutput<'_>,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()> {
    let most = input.greatest_path_cost();
    let fits = |paths: u32| most * paths <= 255;
    // Only some combinations of path and sum types, because each is compiled for every SIMD level.
    match input.options.paths {
        Paths::Four if fits(2) => image::<u8, u8, Cross, Cross, 2, 2>(input, output, workspace, cpu),
        Paths::Four => image::<u16, u16, Cross, Cross, 2, 2>(input, output, workspace, cpu),
        Paths::Five if fits(4) => image::<u8, u8, Star, Horizontal, 4, 1>(input, output, workspace, cpu),
        Paths::Five if fits(1) => image::<u8, u16, Star, Horizontal, 4, 1>(input, output, workspace, cpu),
        Paths::Five => image::<u16, u16, Star, Horizontal, 4, 1>(input, output, workspace, cpu),
        Paths::Eight if fits(4) => image::<u8, u8, Star, Star, 4, 4>(input, output, workspace, cpu),
        Paths::Eight if fits(1) => image::<u8, u16, Star, Star, 4, 4>(input, output, workspace, cpu),
        Paths::Eight => image::<u16, u16, Star, Star, 4, 4>(input, output, workspace, cpu),
        Paths::Sixteen if fits(1) => image::<u8, u16, Knight, Knight, 8, 8>(input, output, workspace, cpu),
        Paths::Sixteen => image::<u16, u16, Knight, Knight, 8, 8>(input, output, workspace, cpu),
    }
}

/// Groups of rows, small enough for the memory.
struct Groups {
    rows: usize,
    height: usize,
}

impl Groups {
    /// `row` is the bytes of a row of sums, `paths` those of the paths kept between two groups, `overhead` those of the
    /// threads; `kept` is whether an earlier call has used the workspace.
    fn plan(input: &AggregationInput<'_>, kept: bool, row: u64, paths: u64, overhead: u64) -> Result<Self> {
        let height = input.size().height;
        // Grey and the maps are subtracted from the limit, but at most half of it.
        let beside = (input.size().area() as u64).saturating_mul(BESIDE);
        let room = input.options.memory.map_or(u64::MAX, |limit| limit.saturating_sub(beside).max(limit / 2));
        let needed = |rows: usize| {
            let groups = height.div_ceil(rows) as u64;
            let kept = paths.saturating_mul(if groups > 1 { groups + 1 } else { 2 });
            (rows as u64).saturating_mul(row).saturating_add(overhead).saturating_add(kept)
        };
        // The most rows that fit: with fewer groups fewer paths are kept, and threads wait less.
        let cuts = || (BAND..height.next_multiple_of(BAND)).step_by(BAND);
        let within = |room| std::iter::once(height).chain(cuts().rev()).find(|&rows| needed(rows) <= room);
        let little = if kept { None } else { within(room.min(FRESH)) };
        if let Some(rows) = little.or_else(|| within(room)) {
            return Ok(Self { rows, height });
        }
        let least = cuts().map(needed).min().unwrap_or_else(|| needed(height));
        let needed = least.saturating_add(beside).min(least.saturating_mul(2));
        let what = "semi-global matching of this width and disparity count";
        let shortage = input.options.memory.map_or(Shortage::Host, Shortage::Limit);
        Err(Error::Memory { what, needed, shortage })
    }

    fn count(&self) -> usize {
        self.height.div_ceil(self.rows)
    }

    /// The rows of a group. The rows above the last group go through the forward pass twice, so the first group, not
    /// the last, is the one with fewer rows.
    fn range(&self, group: usize) -> Range<usize> {
        let first = (self.height - (self.count() - 1) * self.rows).next_multiple_of(BAND);
        let start = |group: usize| if group == 0 { 0 } else { first + (group - 1) * self.rows };
        start(group)..start(group + 1).min(self.height)
    }
}

fn image<T, A, F, B, const N: usize, const M: usize>(
    input: &AggregationInput<'_>,
    mut output: AggregationOutput<'_>,
    workspace: &mut Workspace,
    cpu: &Cpu,
) -> Result<()>
where
    T: Value,
    A: Sum<T>,
    F: Directions<N> + Default,
    B: Directions<M> + Default,
{
    let Size { width, height } = input.size();
    if width == 0 || height == 0 {
        return Ok(());
    }
    // If the disparities fit a shorter vector than the longest one, shorter vectors compute and store less padding.
    let bytes = |cpu: &Cpu| dispatch!(cpu.level(), simd => vector(simd));
    let shorter = cpu.clone().at_level(SimdLevel::Avx2).ok();
    let shorter =
        shorter.as_ref().filter(|it| input.options.disparities <= bytes(it) && bytes(it) < bytes(cpu));
    let cpu = shorter.unwrap_or(cpu);
    let lanes = bytes(cpu);
    let padded = input.options.disparities.next_multiple_of(lanes);
    let pixel = (padded * size_of::<T>()) as u64;
    let paths = (width as u64).saturating_mul((F::DEPTH * (N - 1)) as u64 * pixel);
    let band_sums = |rows| sums_len(width, rows, F::SKEW, padded);
    let row = (band_sums(BAND).saturating_mul(size_of::<A>())).div_ceil(BAND) as u64;
    let ring = ((BAND + 2) * 8 * N) as u64 * (pixel + 64);
    let groups = Groups::plan(input, workspace.is_kept, row, paths, cpu.threads() as u64 * ring)?;
    let needed = groups.rows.min(height).div_ceil(BAND).saturating_mul(band_sums(BAND));
    let sums = workspace.sums::<A>(needed)?;
    let last = groups.count() - 1;
    // Rows above the last group go through the forward pass twice.
    let cpu = &cpu.begin_task("aggregate", 2 * height + groups.range(last).start);
    let mut checkpoints = Vec::new();
    let mut boundary = Boundary::new(width);
    for group in 0..=last {
        if group > 0 {
            checkpoints.push(boundary.checkpoint());
        }
        let stored = (group == last).then_some(&mut sums[..]);
        let bands = forward(groups.range(group), stored, band_sums(BAND));
        run::<T, A, F, N>(input, false, bands, (&boundary, padded), cpu)?;
    }
    let below = Boundary::new(width);
    for group in (0..=last).rev() {
        let rows = groups.range(group);
        if group < last {
            boundary = if group == 0 { Boundary::new(width) } else { checkpoints.swap_remove(group - 1) };
            let bands = forward(rows.clone(), Some(&mut sums[..]), band_sums(BAND));
            run::<T, A, F, N>(input, false, bands, (&boundary, padded), cpu)?;
        }
        let len = sums_len(width, BAND, B::SKEW, padded);
        let bands = backward(input, rows, (sums, len), &mut output);
        run::<T, A, B, M>(input, true, bands, (&below, padded), cpu)?;
    }
    Ok(())
}

/// Bytes in a vector.
#[inline(always)]
fn vector<S: Simd>(_: S) -> usize {
    S::u8s::LEN
}

/// The bands of a forward pass, which stores `len` sums for each band if `sums` are given.
fn forward<A>(range: Range<usize>, sums: Option<&mut [A]>, len: usize) -> Vec<Band<'_, A>> {
    let mut sums = sums.map(|s| s.chunks_mut(len));
    let bands = range.clone().step_by(BAND).enumerate().map(|(number, first)| {
        let sums = sums.as_mut().and_then(Iterator::next);
        Band { first, number, count: BAND.min(range.end - first), sums, output: Vec::new() }
    });
    bands.collect()
}

/// The bands of the forward pass in reverse order, each with its rows in reverse order.
fn backward<'a, A>(
    input: &AggregationInput<'_>,
    range: Range<usize>,
    (sums, len): (&'a mut [A], usize),
    output: &'a mut AggregationOutput<'_>,
) -> Vec<Band<'a, A>> {
    let height = input.size().height;
    let sums = sums.chunks_mut(len).take(range.len().div_ceil(BAND));
    let mut rows = winner_takes_all::rows(output, input, range.clone()).into_iter();
    let mut bands: Vec<_> = sums
        .zip((range.start..).step_by(BAND))
        .map(|(sums, start)| {
            let mut output: Vec<OutputRow<'_>> = rows.by_ref().take(BAND).collect();
            output.reverse();
            let count = output.len();
            Band { first: height - start - count, number: 0, count, sums: Some(sums), output }
        })
        .collect();
    bands.reverse();
    bands.iter_mut().enumerate().for_each(|(number, band)| band.number = number);
    bands
}

/// Runs a pass. Threads take bands in order, so a band for which a thread waits is always being computed. A cancelled
/// thread ends between two bands, when no other waits for it.
fn run<T: Value, A: Sum<T>, D: Directions<N> + Default, const N: usize>(
    input: &AggregationInput<'_>,
    backward: bool,
    bands: Vec<Band<'_, A>>,
    (boundary, padded): (&Boundary<T>, usize),
    cpu: &Cpu,
) -> Result<()> {
    let _stage = cpu.stage(if backward { "backward, winner takes all" } else { "forward" });
    let pass = &Pass {
        input,
        level: cpu.level(),
        backward,
        p2_penalty: P2Penalty::new(&input.penalties),
        boundary,
        wavefront: Wavefront::new(bands.len()),
        padded: padded as u16,
    };
    let workers = cpu.threads().min(bands.len());
    let queue = Mutex::new(bands.into_iter());
    let ended = cpu.try_map(workers, |_| {
        let _guard = pass.wavefront.guard();
        let mut scratch = BandScratch::default();
        loop {
            cpu.check()?;
            let next = lock(&queue).next();
            let Some(band) = next else { return Ok(()) };
            let count = band.count;
            dispatch!(cpu.level(), simd => aggregate_band(simd, pass, band, &mut scratch, D::default()));
            cpu.advance(count);
        }
    });
    ended.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::stereo::cost::CostVolume;
    use crate::stereo::testing::pair_of;

    #[test]
    fn a_first_call_takes_little_memory() {
        let image = Image::new(Size::new(1920, 1080));
        let pair = pair_of([&image, &image]);
        let costs = Image::new(Size::default());
        let cost = CostVolume::of_integers(&costs, 1);
        let plan = |memory, kept| {
            let options = StereoOptions::default().with_memory(memory);
            let input = AggregationInput::new(&cost, &pair, &options);
            Groups::plan(&input, kept, 1920 * 128, 3 * 1920 * 128, 1 << 20)
        };
        let rows = |memory, kept| {
            let groups = plan(memory, kept).unwrap();
            let ranges: Vec<_> = (0..groups.count()).map(|group| groups.range(group)).collect();
            let joined = ranges.windows(2).all(|pair| pair[0].end == pair[1].start);
            assert!(joined, "one after the other: {ranges:?}");
            let fit = ranges.iter().all(|r| (1..=groups.rows).contains(&r.len()));
            assert!(fit, "as many as fit: {ranges:?}");
            let last = &ranges[ranges.len() - 1];
            let whole = last.end == 1080 && last.len() + BAND > groups.rows.min(1080);
            assert!(whole, "a whole last group: {ranges:?}");
            groups.rows
        };
        let fresh = rows(None, false);
        let all = |rows: usize| (rows * 1920 * 128) as u64;
        assert!(all(fresh) < FRESH && all(fresh) > FRESH / 2, "{fresh} rows in the memory of a first call");
        assert_eq!(rows(None, true), 1080, "all of them once the memory is kept");
        assert_eq!(rows(Some(1 << 30), true), 1080, "within a limit");
        assert!(rows(Some(100 << 20), false) < fresh && rows(Some(100 << 20), true) < fresh, "a low limit");
        assert!(plan(Some(1 << 20), false).is_err(), "too low a limit");
    }
}
