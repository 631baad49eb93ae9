//! A band of rows, walked column by column with each row a little behind the one above.

use super::{
    Directions,
    boundary::{Boundary, SEGMENT, Segment, Wavefront},
    pass::AggregationInput,
    path_ring::{PathRing, PathSlots},
    recurrence::{Sum, Value, step},
};
use crate::stereo::{
    cost::CostRow,
    winner_takes_all::{self, RightRow},
};
use fearless_simd::Simd;
use fearless_simd_macros::simd;

/// Rows of a band, and where their results go.
pub(super) struct Rows<'a, A> {
    /// The first row in the order of the pass, counted in that order.
    pub(super) first: usize,
    /// Which band of the pass this is.
    pub(super) number: usize,
    /// How many rows.
    pub(super) count: usize,
    /// Sums of the forward pass: written by it, read by the backward pass; [`sums_len`] values.
    pub(super) sums: Option<&'a mut [A]>,
    /// In the backward pass, what is made of the sums; in the order of the image.
    pub(super) results: Vec<winner_takes_all::Row<'a>>,
}

/// What a thread reuses from band to band.
#[derive(Default)]
pub(super) struct Scratch<T, A> {
    ring: PathRing<T>,
    costs: Vec<T>,
    gathered: Vec<A>,
    totals: Vec<u16>,
    /// P2 of every pixel for every direction, row by row.
    penalties: Vec<T>,
    lines: Vec<CostRow>,
    right: Vec<RightRow>,
    pieces: Handover<T>,
}

/// A pass: what all its bands have in common.
pub(super) struct Pass<'a, T> {
    pub(super) input: &'a AggregationInput<'a>,
    pub(super) backward: bool,
    /// P2 by difference of grey.
    pub(super) p2: [T; 256],
    pub(super) edge: &'a Boundary<T>,
    pub(super) progress: &'a Wavefront,
    /// Disparities in memory, a multiple of the vector.
    pub(super) padded: usize,
}

/// Columns that a band of rows takes to pass: the last row is behind the first.
fn columns(width: usize, rows: usize, skew: usize) -> usize {
    width + skew * (rows - 1)
}

/// Sums of a band: in the order in which its pixels are walked, so that one stream of memory is written, and read
/// backward by the other pass. Places for pixels beyond the ends of a row stay unused.
pub(super) fn sums_len(width: usize, rows: usize, skew: usize, padded: usize) -> usize {
    columns(width, rows, skew) * rows * padded
}

impl<T: Value> Pass<'_, T> {
    /// The row of the image that is row `v` of the pass.
    fn row(&self, v: usize) -> usize {
        if self.backward { self.input.size.height - 1 - v } else { v }
    }

    /// P2 for all pixels of row `v` of the pass, all directions of a pixel side by side; unset where p − r is outside
    /// the image.
    fn penalties<D: Directions<N>, const N: usize>(&self, v: usize, out: &mut [[T; N]]) {
        let width = out.len();
        let grey = self.input.grey.row(self.row(v));
        for (k, &(dx, dy)) in D::STEPS.iter().enumerate() {
            let Some(above) = v.checked_sub(dy) else { continue };
            let before = self.input.grey.row(self.row(above));
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

impl<T: Value, A: Value> Scratch<T, A> {
    fn prepare<D: Directions<N>, const N: usize>(&mut self, pass: &Pass<'_, T>, rows: &Rows<'_, A>) {
        let (width, padded) = (pass.input.size.width, pass.padded);
        self.ring.prepare::<D, N>(rows.count, padded);
        self.costs.clear();
        self.costs.resize(padded, T::MAX);
        self.gathered.resize(padded, A::MAX);
        self.totals.resize(padded, u16::MAX);
        self.lines.resize_with(rows.count, CostRow::default);
        self.right.resize_with(rows.count, RightRow::default);
        self.penalties.resize(rows.count * N * width, T::default());
        let pixels = self.penalties.as_chunks_mut().0;
        for (r, penalties) in pixels.chunks_mut(width).take(rows.count).enumerate() {
            let v = rows.first + r;
            pass.input.cost.line(pass.row(v), padded, &mut self.lines[r]);
            pass.penalties::<D, N>(v, penalties);
            if pass.backward {
                self.right[r].clear(pass.input, padded);
            }
        }
    }
}

/// The paths that come from the band before and go to the next.
#[derive(Debug, Default)]
struct Handover<T> {
    above: Segment<T>,
    below: Segment<T>,
    spare: Vec<Segment<T>>,
}

impl<T: Value> Handover<T> {
    /// The paths of the rows above at column `u`, from the band before.
    fn take<D: Directions<N>, const N: usize>(
        &mut self,
        pass: &Pass<'_, T>,
        work: &mut PathSlots<'_, T>,
        band: usize,
        u: usize,
    ) {
        if u.is_multiple_of(SEGMENT) {
            pass.progress.wait(band, u / SEGMENT);
            self.spare.push(std::mem::take(&mut self.above));
            self.above = pass.edge.take(u / SEGMENT).unwrap_or_default();
        }
        let first = (u % SEGMENT) * D::DEPTH * (N - 1);
        let paths = self.above.values.chunks_exact(pass.padded).zip(&self.above.least).skip(first);
        let to = (1..=D::DEPTH).flat_map(|back| (1..N).map(move |k| (-(back as isize), k)));
        for ((row, k), (values, &least)) in to.zip(paths) {
            let (path, to) = work.path(row, u, k);
            path.copy_from_slice(values);
            *to = least;
        }
    }

    /// Hands the paths of the last rows at column `u` to the next band.
    fn put<D: Directions<N>, const N: usize>(
        &mut self,
        pass: &Pass<'_, T>,
        work: &mut PathSlots<'_, T>,
        (band, rows): (usize, usize),
        u: usize,
    ) {
        if u.is_multiple_of(SEGMENT) {
            self.below = self.spare.pop().unwrap_or_default();
            self.below.values.clear();
            self.below.least.clear();
        }
        for back in 1..=D::DEPTH {
            for k in 1..N {
                let (path, least) = work.path(rows as isize - back as isize, u, k);
                self.below.values.extend_from_slice(path);
                self.below.least.push(*least);
            }
        }
        if u % SEGMENT == SEGMENT - 1 || u + 1 == pass.input.size.width {
            pass.edge.put(u / SEGMENT, std::mem::take(&mut self.below));
            pass.progress.publish(band, u / SEGMENT + 1);
        }
    }
}

/// Sweeps over the rows of a band.
#[simd]
pub(super) fn band<S: Simd, T: Value, A: Sum<T>, D: Directions<N>, const N: usize>(
    simd: S,
    pass: &Pass<'_, T>,
    mut rows: Rows<'_, A>,
    scratch: &mut Scratch<T, A>,
    _directions: D,
) {
    let input = pass.input;
    let (width, padded) = (input.size.width, pass.padded);
    scratch.prepare::<D, N>(pass, &rows);
    let Scratch { ring, costs, gathered, totals, penalties, lines, right, pieces } = scratch;
    let work = &mut ring.work();
    let penalties: &[[T; N]] = penalties.as_chunks().0;
    let p1 = T::of(input.penalties.p1);
    let (first, count) = (rows.first, rows.count);
    let ahead = D::SKEW * D::DEPTH;
    let behind = D::SKEW * (count - 1);
    let steps = columns(width, count, D::SKEW);
    if first > 0 && N > 1 {
        (0..ahead.min(width)).for_each(|u| pieces.take::<D, N>(pass, work, rows.number, u));
    }
    for t in 0..steps {
        if t + ahead < width && first > 0 && N > 1 {
            pieces.take::<D, N>(pass, work, rows.number, t + ahead);
        }
        for r in 0..count {
            let u = t.wrapping_sub(D::SKEW * r);
            if u >= width {
                continue;
            }
            // Place and row in the order of the image.
            let (x, row) = if pass.backward { (width - 1 - u, count - 1 - r) } else { (u, r) };
            input.cost.at(simd, &mut lines[r], x, pass.row(first + r), costs);
            if input.disparities() < padded {
                costs[input.disparities()..].fill(T::MAX);
            }
            let inside = u >= D::SKEW && u + D::SKEW < width && first + r >= D::DEPTH;
            let known = |dx: isize, dy| u.wrapping_add_signed(-dx) < width && first + r >= dy;
            let places = work.places::<D, N>(r, u, inside, known);
            let mut cap = penalties[r * width + x];
            for (cap, &least) in cap.iter_mut().zip(&places.least) {
                *cap = cap.plus(least);
            }
            // The backward pass meets the pixels in the opposite order, and reads upwards.
            let at = (steps - 1 - (x + D::SKEW * row)) * count + count - 1 - row;
            let mut sums = rows.sums.as_mut().map(|sums| &mut sums[at * padded..(at + 1) * padded]);
            let out = match &mut sums {
                Some(sums) if !pass.backward => &mut **sums,
                _ => &mut gathered[..],
            };
            step(simd, costs, places, cap, p1, out);
            if let (true, Some(before)) = (pass.backward, sums) {
                let parts = [&*before, &*gathered];
                let out = (&mut rows.results[row], &mut right[r]);
                winner_takes_all::pixel(simd, input, &lines[r], x, parts, totals, out);
            }
        }
        if t >= behind && N > 1 {
            pieces.put::<D, N>(pass, work, (rows.number, count), t - behind);
        }
    }
    for (r, right) in right.iter().enumerate().take(count) {
        if let Some(result) = rows.results.get_mut(count - 1 - r) {
            right.finish(input, pass.row(first + r), result);
        }
    }
}
