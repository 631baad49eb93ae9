//! A band of rows, walked column by column with each row a little behind the one above.

use super::{
    Directions,
    boundary::{Boundary, SEGMENT, Segment, Wavefront},
    pass::AggregationInput,
    path_ring::{PathRing, Steps, aligned},
    recurrence::{Sum, Value, update_paths, write_least},
};
use crate::{
    device::Level,
    stereo::{
        View,
        cost::{Column, CostRow},
        winner_takes_all::{OutputRow, RightRow, select_column},
    },
};
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::ops::Range;

/// Rows that are aggregated together, in the order of the pass.
pub(super) struct Band<'a, A> {
    /// The first row.
    pub(super) first: usize,
    /// Which band of the pass this is.
    pub(super) number: usize,
    /// How many rows.
    pub(super) count: usize,
    /// Sums of the forward pass: written by it, read by the backward pass; [`sums_len`] values.
    pub(super) sums: Option<&'a mut [A]>,
    /// In the backward pass, where the disparities of each row go.
    pub(super) output: Vec<OutputRow<'a>>,
}

/// Memory that a thread reuses from band to band.
#[derive(Default)]
pub(super) struct BandScratch<T, A> {
    ring: PathRing<T>,
    /// C(p, ·) of the pixels of a column.
    costs: Vec<T>,
    /// The sums of this pass of the pixels of a column.
    pass_sums: Vec<A>,
    /// S(p, ·) of a pixel.
    totals: Vec<u16>,
    /// P2 of every pixel for every direction, row by row.
    p2: Vec<T>,
    rows: Vec<CostRow>,
    right: Vec<RightRow>,
    handover: Handover<T>,
}

/// What all bands of a pass have in common.
pub(super) struct Pass<'a, T> {
    pub(super) input: &'a AggregationInput<'a>,
    pub(super) level: Level,
    pub(super) backward: bool,
    /// P2 by difference of grey.
    pub(super) p2: [T; 256],
    pub(super) boundary: &'a Boundary<T>,
    pub(super) wavefront: Wavefront,
    /// Disparities in memory, a multiple of the vector.
    pub(super) padded: usize,
}

/// Columns of the wavefront of a band: the last row reaches the end of the image after the first.
fn columns(width: usize, rows: usize, skew: usize) -> usize {
    width + skew * (rows - 1)
}

/// How many sums a band keeps: those of every row at every column of the wavefront, in the order in which the pixels are
/// visited, so that memory is written as one stream and read as one by the backward pass. Those beyond the ends of a row
/// stay unused.
pub(super) fn sums_len(width: usize, rows: usize, skew: usize, padded: usize) -> usize {
    columns(width, rows, skew).saturating_mul(rows).saturating_mul(padded)
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
    fn steps(self) -> usize {
        columns(self.width, self.rows, self.skew)
    }

    /// The rows that have a pixel at step t.
    fn active(self, t: usize) -> Range<usize> {
        let first = (t + 1).saturating_sub(self.width).div_ceil(self.skew);
        first..(t / self.skew + 1).min(self.rows)
    }

    /// The column of row r at step t, in the order of the pass.
    #[inline(always)]
    fn u(self, t: usize, r: usize) -> usize {
        t - self.skew * r
    }

    /// The column of row r at step t, in the image.
    #[inline(always)]
    fn x(self, t: usize, r: usize) -> usize {
        if self.backward { self.width - 1 - self.u(t, r) } else { self.u(t, r) }
    }

    /// The pixels of `active` rows at step t.
    fn column(self, t: usize, active: &Range<usize>) -> Column {
        let skew = self.skew as isize;
        Column { first: self.x(t, active.start), slope: if self.backward { skew } else { -skew } }
    }

    /// Where the sums of row r at step t begin. The backward pass visits the pixels in the opposite order and reads
    /// upwards.
    #[inline(always)]
    fn sum_offset(self, t: usize, r: usize) -> usize {
        let pixel = t * self.rows + r;
        let last = self.steps() * self.rows - 1;
        self.padded * if self.backward { pixel } else { last - pixel }
    }
}

impl<T: Value> Pass<'_, T> {
    /// The row of the image that is row `v` of the pass.
    fn row(&self, v: usize) -> usize {
        if self.backward { self.input.size().height - 1 - v } else { v }
    }

    /// P2 for all pixels of row `v` of the pass, all directions of a pixel side by side; unset where p − r is outside
    /// the image.
    fn p2_of_row<D: Directions<N>, const N: usize>(&self, v: usize, out: &mut [[T; N]]) {
        let width = out.len();
        let grey = self.input.costs.pair.bytes(View::Left).row(self.row(v));
        for (k, &(dx, dy)) in D::STEPS.iter().enumerate() {
            let Some(above) = v.checked_sub(dy) else { continue };
            let before = self.input.costs.pair.bytes(View::Left).row(self.row(above));
            let dx = if self.backward { -dx } else { dx };
            let shift = dx.unsigned_abs().min(width);
            // Pairs of pixels that lie dx apart, in the order of the image.
            let (out, here, there) = if dx >= 0 {
                (&mut out[shift..], &grey[shift..], &before[..width - shift])
            } else {
                (&mut out[..width - shift], &grey[..width - shift], &before[shift..])
            };
            for ((out, a), b) in out.iter_mut().zip(here).zip(there) {
                out[k] = self.p2[usize::from(a.abs_diff(*b))];
            }
        }
    }
}

impl<T: Value, A: Value> BandScratch<T, A> {
    fn prepare<D: Directions<N>, const N: usize>(&mut self, pass: &Pass<'_, T>, band: &Band<'_, A>) {
        let (width, padded) = (pass.input.size().width, pass.padded);
        self.totals.resize(padded, u16::MAX);
        self.rows.resize_with(band.count, CostRow::default);
        self.right.resize_with(band.count, RightRow::default);
        self.p2.resize(band.count * N * width, T::default());
        let pixels = self.p2.as_chunks_mut().0;
        for (r, p2) in pixels.chunks_mut(width).take(band.count).enumerate() {
            let v = band.first + r;
            pass.input.costs.prepare(pass.row(v), padded, &mut self.rows[r]);
            pass.p2_of_row::<D, N>(v, p2);
            if pass.backward {
                self.right[r].clear(pass.input, padded);
            }
        }
    }
}

/// Copies the costs of a path, a multiple of 16: a few instructions in place of a call.
#[inline(always)]
fn copy<T: Value>(from: &[T], to: &mut [T]) {
    for (to, from) in to.as_chunks_mut::<16>().0.iter_mut().zip(from.as_chunks::<16>().0) {
        *to = *from;
    }
}

/// The paths on their way over the boundaries: from the band before, and to the next.
#[derive(Debug, Default)]
struct Handover<T> {
    above: Segment<T>,
    below: Segment<T>,
    spare: Vec<Segment<T>>,
}

impl<T: Value> Handover<T> {
    /// The paths of the rows above at column `u`, from the band before; the last of them is at step `t`. Zero beyond the
    /// last column.
    #[inline(always)]
    fn take<D: Directions<N>, const N: usize>(
        &mut self,
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
        let first = (u % SEGMENT) * D::DEPTH * (N - 1);
        let mut paths = self.above.values.chunks_exact(pass.padded).zip(&self.above.least).skip(first);
        for (t, r) in rows {
            for (k, (values, &least)) in (1..N).zip(&mut paths) {
                let (path, to) = steps.path(t, r, k);
                copy(values, path);
                *to = least;
            }
        }
    }

    /// Hands the paths of the last rows at column `u` to the next band; the last of them is at step `t`.
    #[inline(always)]
    fn put<D: Directions<N>, const N: usize>(
        &mut self,
        pass: &Pass<'_, T>,
        steps: &mut Steps<'_, T, N>,
        (band, rows): (usize, usize),
        (t, u): (usize, usize),
    ) {
        let paths = D::DEPTH * (N - 1);
        if u.is_multiple_of(SEGMENT) {
            let len = paths * SEGMENT.min(pass.input.size().width - u);
            self.below = self.spare.pop().unwrap_or_default();
            self.below.values.resize(len * pass.padded, T::default());
            self.below.least.resize(len, T::default());
        }
        let mut at = (u % SEGMENT) * paths;
        for back in 1..=D::DEPTH {
            for k in 1..N {
                let (path, least) = steps.path(t - D::SKEW * (back - 1), D::DEPTH + rows - back, k);
                copy(path, &mut self.below.values[at * pass.padded..][..pass.padded]);
                self.below.least[at] = *least;
                at += 1;
            }
        }
        if u % SEGMENT == SEGMENT - 1 || u + 1 == pass.input.size().width {
            pass.boundary.put(u / SEGMENT, std::mem::take(&mut self.below));
            pass.wavefront.publish(band, u / SEGMENT + 1);
        }
    }
}

/// Aggregates the rows of a band, and in the backward pass chooses their disparities.
#[simd]
pub(super) fn aggregate_band<S: Simd, T: Value, A: Sum<T>, D: Directions<N>, const N: usize>(
    simd: S,
    pass: &Pass<'_, T>,
    mut band: Band<'_, A>,
    scratch: &mut BandScratch<T, A>,
    _directions: D,
) {
    let input = pass.input;
    let (width, padded) = (input.size().width, pass.padded);
    scratch.prepare::<D, N>(pass, &band);
    let BandScratch { ring, costs, pass_sums, totals, p2, rows, right, handover } = scratch;
    let steps = &mut ring.prepare::<D, N>(band.count, padded, A::NONE);
    let costs = aligned(costs, band.count * padded);
    let pass_sums = aligned(pass_sums, band.count * padded);
    let p2: &[[T; N]] = p2.as_chunks().0;
    let p1 = T::of(input.penalties.p1);
    let walk = Walk { width, rows: band.count, skew: D::SKEW, backward: pass.backward, padded };
    // The row above the band is visited first. Of paths along rows nothing crosses to other rows.
    let (first, last) = (D::SKEW * D::DEPTH, D::SKEW * (D::DEPTH + band.count - 1));
    let (takes, puts) = (band.first > 0 && N > 1, N > 1);
    for t in 0..first + walk.steps() {
        if let Some(u) = (t + D::SKEW).checked_sub(first).filter(|&u| takes && u < width + D::SKEW) {
            handover.take::<D, N>(pass, steps, band.number, (t, u));
        }
        let Some(at) = t.checked_sub(first) else { continue };
        let active = walk.active(at);
        (0..active.start).for_each(|r| steps.clear(t, D::DEPTH + r));
        if !active.is_empty() {
            let column = walk.column(at, &active);
            let costs = &mut costs[..active.len() * padded];
            input.costs.column(pass.level, column, &mut rows[active.clone()], costs);
            if input.disparities() < padded {
                costs.chunks_exact_mut(padded).for_each(|c| c[input.disparities()..].fill(A::NONE));
            }
            let mut step = steps.step::<D>(t);
            for (i, r) in active.clone().enumerate() {
                let p2 = &p2[r * width + walk.x(at, r)];
                let out = match &mut band.sums {
                    Some(sums) if !pass.backward => &mut sums[walk.sum_offset(at, r)..][..padded],
                    _ => &mut pass_sums[i * padded..][..padded],
                };
                let costs = &costs[i * padded..][..padded];
                let least = update_paths(simd, costs, step.row(r, padded), (p1, p2), out);
                // 2026-11-23: one pixel later, so as not to wait for the vectors, they are spilt and nothing is gained.
                write_least::<S, T, N>(least, step.least(r));
            }
            if let (true, Some(forward_sums)) = (pass.backward, &band.sums) {
                let len = active.len() * padded;
                let forward_sums = &forward_sums[walk.sum_offset(at, active.start)..][..len];
                let parts = [forward_sums, &pass_sums[..len]];
                let output = (&mut band.output[active.clone()], &mut right[active.clone()]);
                select_column(simd, input, (column, &rows[active]), parts, totals, output);
            }
        }
        if puts && t >= last {
            handover.put::<D, N>(pass, steps, (band.number, band.count), (t, t - last));
        }
    }
    for (r, (output, right)) in band.output.iter_mut().zip(right).enumerate() {
        right.finish(input, pass.row(band.first + r), output);
    }
}
