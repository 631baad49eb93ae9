//! A band of rows, walked column by column with each row a little behind the one above.

use super::Directions;
use super::boundary::{Boundary, SEGMENT, Segment, Wavefront};
use super::memory::fetch;
use super::p2_penalty::{P2Penalty, p2_of_row};
use super::pass::AggregationInput;
use super::path_ring::{PathRing, Step, Steps, aligned};
use super::recurrence::{Sum, Value, update_paths, write_least};
use crate::device::Level;
use crate::stereo::View;
use crate::stereo::cost::{Column, CostRow};
use crate::stereo::winner_takes_all::{self, OutputRow, RightRow, select_column};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;
use std::ops::Range;

/// Rows that are aggregated together, in the order of the pass.
pub(super) struct Band<'a, A> {
    pub(super) first: usize,
    /// Which band of the pass this is.
    pub(super) number: usize,
    pub(super) count: usize,
    /// Sums of the forward pass, which writes them for the backward pass to read; [`sums_len`] values.
    pub(super) sums: Option<&'a mut [A]>,
    /// In the backward pass, the rows that disparities are written to.
    pub(super) output: Vec<OutputRow<'a>>,
}

/// Memory that a thread reuses from band to band.
#[derive(Default)]
pub(super) struct BandScratch<T, A> {
    ring: PathRing<T>,
    /// C(p, ·) of the pixels of a wavefront column.
    costs: Vec<T>,
    /// This pass's sums of the pixels of a wavefront column.
    pass_sums: Vec<A>,
    /// S(p, ·) of a pixel.
    totals: Vec<u16>,
    /// Each disparity's place in its block, for the keys of `winner_takes_all`.
    places: Vec<u16>,
    /// P2 of every pixel for every direction, row by row.
    p2: Vec<T>,
    /// P2 of one row, direction by direction: scratch memory.
    planes: Vec<T>,
    rows: Vec<CostRow>,
    right: Vec<RightRow>,
    handover: Handover<T>,
}

/// The state that all bands of a pass share.
pub(super) struct Pass<'a, T> {
    pub(super) input: &'a AggregationInput<'a>,
    pub(super) level: Level,
    pub(super) backward: bool,
    pub(super) p2_penalty: P2Penalty<T>,
    pub(super) boundary: &'a Boundary<T>,
    pub(super) wavefront: Wavefront,
    /// The number of disparities in memory: whole vectors, at most 4096; as a `u16` it shows that no offset overflows.
    pub(super) padded: u16,
}

/// The number of sums of a band: those of every row at every step of the wavefront, as one stream in the order of the
/// visits. The sums beyond the ends of a row stay unused.
pub(super) fn sums_len(width: usize, rows: usize, skew: usize, padded: usize) -> usize {
    (width + skew * (rows - 1)).saturating_mul(rows).saturating_mul(padded)
}

/// The walk over a band: at step t row r is at column t − skew · r.
#[derive(Clone, Copy)]
struct Walk {
    width: usize,
    rows: usize,
    skew: usize,
    backward: bool,
    padded: usize,
}

impl Walk {
    /// The number of steps of the wavefront: the last row reaches the end of the image later than the first.
    fn steps(self) -> usize {
        self.width + self.skew * (self.rows - 1)
    }

    /// The rows that have a pixel at step t.
    fn active(self, t: usize) -> Range<usize> {
        let first = (t + 1).saturating_sub(self.width).div_ceil(self.skew);
        first..(t / self.skew + 1).min(self.rows)
    }

    /// The column of row r at step t, in the image.
    #[inline(always)]
    fn x(self, t: usize, r: usize) -> usize {
        let u = t - self.skew * r;
        if self.backward { self.width - 1 - u } else { u }
    }

    fn column(self, t: usize, active: &Range<usize>) -> Column {
        let skew = self.skew as isize;
        Column { first: self.x(t, active.start), slope: if self.backward { skew } else { -skew } }
    }

    /// The sums of the pixels of `active` rows at step t, among those of the band. The backward pass visits the pixels
    /// in the opposite order, but reads each step from low to high addresses, so that the selection need not wait.
    #[inline(always)]
    fn sums(self, t: usize, active: &Range<usize>) -> Range<usize> {
        let first = if self.backward {
            t * self.rows + active.start
        } else {
            (self.steps() - 1 - t) * self.rows + self.rows - active.end
        };
        first * self.padded..(first + active.len()) * self.padded
    }
}

impl<T: Value> Pass<'_, T> {
    #[inline(always)]
    fn padded(&self) -> usize {
        self.padded.into()
    }

    /// The row of the image that is row `v` of the pass.
    fn row(&self, v: usize) -> usize {
        if self.backward { self.input.size().height - 1 - v } else { v }
    }

    fn grey(&self, v: usize) -> &[u8] {
        self.input.pair.bytes(View::Left).row(self.row(v))
    }
}

impl<T: Value, A: Value> BandScratch<T, A> {
    #[inline(always)]
    fn prepare<S: Simd, D: Directions<N>, const N: usize>(
        &mut self,
        simd: S,
        pass: &Pass<'_, T>,
        band: &Band<'_, A>,
        directions: D,
    ) {
        let (width, padded) = (pass.input.size().width, pass.padded());
        self.totals.resize(padded, u16::MAX);
        winner_takes_all::places(pass.input, padded, &mut self.places);
        self.rows.resize_with(band.count, CostRow::default);
        self.right.resize_with(band.count, RightRow::default);
        self.p2.resize(band.count * N * width, T::default());
        let pixels = self.p2.as_chunks_mut().0;
        for (r, p2) in pixels.chunks_mut(width).take(band.count).enumerate() {
            let v = band.first + r;
            pass.input.prepare(pass.level, pass.row(v), padded, &mut self.rows[r]);
            let above = |n| v.checked_sub(n).map(|v| pass.grey(v));
            let above = (above, pass.backward);
            p2_of_row(simd, &pass.p2_penalty, pass.grey(v), above, &mut self.planes, p2, directions);
            if pass.backward {
                self.right[r].clear(pass.input, padded);
            }
        }
    }
}

/// Copies the path costs of a pixel, a multiple of the vector's length.
#[inline(always)]
fn copy<S: Simd, T: Value>(simd: S, from: &[T], to: &mut [T]) {
    let n = T::Native::<S>::LEN;
    for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
        T::Native::<S>::from_slice(simd, from).store_slice(to);
    }
}

/// The paths that cross the boundaries: from the previous band, and to the next.
#[derive(Debug, Default)]
struct Handover<T> {
    above: Segment<T>,
    below: Segment<T>,
    spare: Vec<Segment<T>>,
}

impl<T: Value> Handover<T> {
    /// Takes the rows above at column `u` from the previous band, the lowest at step `t`; 0 beyond the last column.
    #[inline(always)]
    fn take<S: Simd, D: Directions<N>, const N: usize>(
        &mut self,
        simd: S,
        pass: &Pass<'_, T>,
        steps: &mut Steps<'_, T, N>,
        band: usize,
        (t, u): (usize, usize),
    ) {
        if u.is_multiple_of(SEGMENT) && u < pass.input.size().width {
            pass.wavefront.wait(band, u / SEGMENT);
            self.spare.push(std::mem::take(&mut self.above));
            self.above = pass.boundary.take(u / SEGMENT).unwrap_or_default();
        }
        let rows = (1..=D::DEPTH).map(|back| (t - D::SKEW * (back - 1), D::DEPTH - back));
        if u >= pass.input.size().width {
            rows.for_each(|(t, r)| steps.clear(t, r));
            return;
        }
        let count = D::DEPTH * (N - 1);
        let mut paths = self.above.paths((u % SEGMENT) * count, count, pass.padded());
        for (t, r) in rows {
            for (k, (values, least)) in (1..N).zip(&mut paths) {
                let (path, to) = steps.path(t, r, k);
                copy(simd, values, path);
                *to = *least;
            }
        }
    }

    /// Hands the paths of the band's last rows at column `u` to the next band; the last row is at step `t`.
    #[inline(always)]
    fn put<S: Simd, D: Directions<N>, const N: usize>(
        &mut self,
        simd: S,
        pass: &Pass<'_, T>,
        steps: &mut Steps<'_, T, N>,
        (band, rows): (usize, usize),
        (t, u): (usize, usize),
    ) {
        let count = D::DEPTH * (N - 1);
        if u.is_multiple_of(SEGMENT) {
            self.below = self.spare.pop().unwrap_or_default();
            self.below.resize(count * SEGMENT.min(pass.input.size().width - u), pass.padded());
        }
        let mut paths = self.below.paths((u % SEGMENT) * count, count, pass.padded());
        for back in 1..=D::DEPTH {
            for (k, (values, least)) in (1..N).zip(&mut paths) {
                let (path, from) = steps.path(t - D::SKEW * (back - 1), D::DEPTH + rows - back, k);
                copy(simd, path, values);
                *least = *from;
            }
        }
        drop(paths);
        if u % SEGMENT == SEGMENT - 1 || u + 1 == pass.input.size().width {
            pass.boundary.put(u / SEGMENT, std::mem::take(&mut self.below));
            pass.wavefront.publish(band, u / SEGMENT + 1);
        }
    }
}

/// Computes the paths of the pixel of row `r` and their sums, which are the first `padded` of `costs` and of `sums`.
#[inline(always)]
fn update_pixel<S: Simd, T: Value, A: Sum<T>, const N: usize>(
    simd: S,
    step: &mut Step<'_, T, N>,
    (r, padded): (usize, usize),
    costs: &[T],
    penalties: (T, &[T; N]),
    sums: &mut [A],
) {
    let two = 2 * S::u8s::LEN;
    // For two vectors (128 disparities with vectors of 64 bytes) the compiler unrolls the loop, without comparisons.
    let least = if padded == two {
        update_paths(simd, &costs[..two], step.row(r, two), penalties, &mut sums[..two])
    } else {
        update_paths(simd, &costs[..padded], step.row(r, padded), penalties, &mut sums[..padded])
    };
    write_least::<S, T, N>(least, step.least(r));
}

/// Aggregates the rows of a band, and in the backward pass chooses their disparities.
#[simd]
pub(super) fn aggregate_band<S: Simd, T: Value, A: Sum<T>, D: Directions<N>, const N: usize>(
    simd: S,
    pass: &Pass<'_, T>,
    mut band: Band<'_, A>,
    scratch: &mut BandScratch<T, A>,
    directions: D,
) {
    let input = pass.input;
    let (width, padded) = (input.size().width, pass.padded());
    scratch.prepare(simd, pass, &band, directions);
    let BandScratch { ring, costs, pass_sums, totals, places, p2, rows, right, handover, .. } = scratch;
    let steps = &mut ring.prepare::<D, N>(band.count, padded, A::NONE);
    let costs = aligned(costs, band.count * padded);
    let pass_sums = aligned(pass_sums, band.count * padded);
    let p2: &[[T; N]] = p2.as_chunks().0;
    let p1 = T::of(input.penalties.p1);
    let walk = Walk { width, rows: band.count, skew: D::SKEW, backward: pass.backward, padded };
    // The row above the band is visited first. Paths along rows do not cross to other rows.
    let (first, last) = (D::SKEW * D::DEPTH, D::SKEW * (D::DEPTH + band.count - 1));
    let (takes, puts) = (band.first > 0 && N > 1, N > 1);
    for t in 0..first + walk.steps() {
        if let Some(u) = (t + D::SKEW).checked_sub(first).filter(|&u| takes && u < width + D::SKEW) {
            handover.take::<S, D, N>(simd, pass, steps, band.number, (t, u));
        }
        let Some(at) = t.checked_sub(first) else { continue };
        let active = walk.active(at);
        (0..active.start).for_each(|r| steps.clear(t, D::DEPTH + r));
        if !active.is_empty() {
            let column = walk.column(at, &active);
            let costs = &mut costs[..active.len() * padded];
            T::column(input.source, pass.level, column, &rows[active.clone()], costs);
            if input.options.disparities < padded {
                costs.chunks_exact_mut(padded).for_each(|c| c[input.options.disparities..].fill(A::NONE));
            }
            // Processors prefetch a stream only within a page of 4 KB, which is a few steps.
            if let Some(sums) = &band.sums
                && at + 1 < walk.steps()
            {
                fetch(&sums[walk.sums(at + 1, &walk.active(at + 1))]);
            }
            // The forward pass stores the rows of a column from the last to the first.
            let (sums, last) = match &mut band.sums {
                Some(sums) if !pass.backward => (&mut sums[walk.sums(at, &active)], active.len() - 1),
                _ => (&mut pass_sums[..active.len() * padded], 0),
            };
            let mut step = steps.step::<D>(t, band.count);
            for (i, r) in active.clone().enumerate() {
                let p2 = &p2[r * width + walk.x(at, r)];
                let (costs, sums) = (&costs[i * padded..], &mut sums[last.abs_diff(i) * padded..]);
                update_pixel(simd, &mut step, (r, padded), costs, (p1, p2), sums);
            }
            if let (true, Some(forward_sums)) = (pass.backward, &band.sums) {
                let parts = [&forward_sums[walk.sums(at, &active)], &pass_sums[..active.len() * padded]];
                let output = (&mut band.output[active.clone()], &mut right[active.clone()]);
                select_column(simd, input, (column, &rows[active]), parts, (places, totals), output);
            }
        }
        if puts && t >= last {
            handover.put::<S, D, N>(simd, pass, steps, (band.number, band.count), (t, t - last));
        }
    }
    for (r, (output, right)) in band.output.iter_mut().zip(right).enumerate() {
        right.finish(input, pass.row(band.first + r), output);
    }
}
