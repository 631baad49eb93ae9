//! A band of rows, walked column by column with each row a little behind the one above.

use super::{
    Directions,
    edge::{Edge, PIECE, Piece, Progress},
    ring::Ring,
    step::{Places, Sum, Value, step},
    sweep::Problem,
};
use crate::stereo::{
    cost::Line,
    select::{self, RightRow},
};
use fearless_simd::Simd;
use fearless_simd_macros::simd;

/// Rows of a band, and where their results go.
pub(super) struct Rows<'a, A> {
    /// The first row in the order of the sweep, counted in that order.
    pub(super) first: usize,
    /// Which band of the sweep this is.
    pub(super) number: usize,
    /// How many rows.
    pub(super) count: usize,
    /// Sums of the forward sweep: written by it, read by the backward sweep; [`sums_len`] values.
    pub(super) sums: Option<&'a mut [A]>,
    /// In the backward sweep, what is made of the sums; in the order of the image.
    pub(super) results: Vec<select::Row<'a>>,
}

/// What a thread reuses from band to band.
#[derive(Default)]
pub(super) struct Scratch<T, A> {
    ring: Ring<T>,
    costs: Vec<T>,
    gathered: Vec<A>,
    totals: Vec<u16>,
    /// P2 of every pixel for every direction, row by row.
    penalties: Vec<T>,
    lines: Vec<Line>,
    right: Vec<RightRow>,
    above: Piece<T>,
    below: Piece<T>,
    spare: Vec<Piece<T>>,
}

/// A sweep: what all its bands have in common.
pub(super) struct Sweep<'a, T> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) backward: bool,
    /// P2 by difference of grey.
    pub(super) p2: [T; 256],
    pub(super) edge: &'a Edge<T>,
    pub(super) progress: &'a Progress,
    /// Disparities in memory, a multiple of the vector.
    pub(super) padded: usize,
}

/// Columns that a band of rows takes to pass: the last row is behind the first.
fn columns(width: usize, rows: usize, skew: usize) -> usize {
    width + skew * (rows - 1)
}

/// Sums of a band: in the order in which its pixels are walked, so that one stream of memory is written, and read
/// backward by the other sweep. Places for pixels beyond the ends of a row stay unused.
pub(super) fn sums_len(width: usize, rows: usize, skew: usize, padded: usize) -> usize {
    columns(width, rows, skew) * rows * padded
}

impl<T: Value> Sweep<'_, T> {
    /// The row of the image that is row `v` of the sweep.
    fn row(&self, v: usize) -> usize {
        if self.backward { self.problem.size.height - 1 - v } else { v }
    }

    /// P2 for all pixels of row `v` of the sweep and one direction; unset where p − r is outside the image.
    fn penalties(&self, v: usize, (dx, dy): (isize, usize), out: &mut [T]) {
        let width = out.len();
        let (grey, Some(above)) = (self.problem.grey.row(self.row(v)), v.checked_sub(dy)) else { return };
        let before = self.problem.grey.row(self.row(above));
        let dx = if self.backward { -dx } else { dx };
        let shift = dx.unsigned_abs().min(width);
        // Pairs of pixels that lie dx apart, in the order of the image.
        let (here, there) = if dx >= 0 {
            (&grey[shift..], &before[..width - shift])
        } else {
            (&grey[..width - shift], &before[shift..])
        };
        let out = if dx >= 0 { &mut out[shift..] } else { &mut out[..width - shift] };
        for ((out, a), b) in out.iter_mut().zip(here).zip(there) {
            *out = self.p2[usize::from(a.abs_diff(*b))];
        }
    }
}

impl<T: Value, A: Value> Scratch<T, A> {
    fn prepare<D: Directions<N>, const N: usize>(&mut self, sweep: &Sweep<'_, T>, rows: &Rows<'_, A>) {
        let (width, padded) = (sweep.problem.size.width, sweep.padded);
        self.ring.prepare::<D, N>(rows.count, padded);
        self.costs.clear();
        self.costs.resize(padded, T::MAX);
        self.gathered.resize(padded, A::MAX);
        self.totals.resize(padded, u16::MAX);
        self.lines.resize_with(rows.count, Line::default);
        self.right.resize_with(rows.count, RightRow::default);
        self.penalties.resize(rows.count * N * width, T::default());
        for (r, penalties) in self.penalties.chunks_mut(N * width).take(rows.count).enumerate() {
            let v = rows.first + r;
            sweep.problem.cost.line(sweep.row(v), padded, &mut self.lines[r]);
            for (step, out) in D::STEPS.iter().zip(penalties.chunks_mut(width)) {
                sweep.penalties(v, *step, out);
            }
            if sweep.backward {
                self.right[r].clear(width + padded);
            }
        }
    }

    /// The paths of the rows above at column `u`, from the band before.
    fn take<D: Directions<N>, const N: usize>(&mut self, sweep: &Sweep<'_, T>, band: usize, u: usize) {
        if u.is_multiple_of(PIECE) {
            sweep.progress.wait(band, u / PIECE);
            self.spare.push(std::mem::take(&mut self.above));
            self.above = sweep.edge.take(u / PIECE).unwrap_or_default();
        }
        for back in 1..=D::DEPTH {
            let slot = self.ring.slot(-(back as isize), u);
            let first = ((u % PIECE) * D::DEPTH + back - 1) * (N - 1);
            for k in 1..N {
                let from = (first + k - 1) * sweep.padded;
                let to = self.ring.at(slot + k);
                let values = &self.above.values[from..from + sweep.padded];
                self.ring.paths[to..to + sweep.padded].copy_from_slice(values);
                self.ring.least[slot + k] = self.above.least[first + k - 1];
            }
        }
    }

    /// Hands the paths of the last rows at column `u` to the next band.
    fn put<D: Directions<N>, const N: usize>(&mut self, sweep: &Sweep<'_, T>, rows: &Rows<'_, A>, u: usize) {
        if u.is_multiple_of(PIECE) {
            self.below = self.spare.pop().unwrap_or_default();
            self.below.values.clear();
            self.below.least.clear();
        }
        for back in 1..=D::DEPTH {
            let slot = self.ring.slot(rows.count as isize - back as isize, u);
            for k in 1..N {
                let from = self.ring.at(slot + k);
                self.below.values.extend_from_slice(&self.ring.paths[from..from + sweep.padded]);
                self.below.least.push(self.ring.least[slot + k]);
            }
        }
        if u % PIECE == PIECE - 1 || u + 1 == sweep.problem.size.width {
            sweep.edge.put(u / PIECE, std::mem::take(&mut self.below));
            sweep.progress.publish(rows.number, u / PIECE + 1);
        }
    }

    /// Where the paths of the pixel `u` of row `r` come from and go to.
    #[inline(always)]
    fn places<D: Directions<N>, const N: usize>(
        &self,
        first: usize,
        r: usize,
        u: usize,
        x: usize,
        width: usize,
    ) -> Places<T, N> {
        let to = self.ring.slot(r as isize, u);
        let mut places = Places {
            from: [0; N],
            slot: to,
            to: self.ring.at(to),
            stride: self.ring.stride,
            least: [T::default(); N],
            cap: [T::default(); N],
        };
        let reach = D::SKEW;
        let inside = u >= reach && u + reach < width && first + r >= D::DEPTH;
        for k in 0..N {
            let (dx, dy) = D::STEPS[k];
            let before = u.wrapping_add_signed(-dx);
            let known = inside || (before < width && first + r >= dy);
            let slot = if known {
                self.ring.slot(r as isize - dy as isize, before) + k
            } else {
                self.ring.zero()
            };
            places.from[k] = self.ring.at(slot);
            places.least[k] = self.ring.least[slot];
            places.cap[k] = places.least[k].plus(self.penalties[(r * N + k) * width + x]);
        }
        places
    }
}

/// Sweeps over the rows of a band.
#[simd]
pub(super) fn band<S: Simd, T: Value, A: Sum<T>, D: Directions<N>, const N: usize>(
    simd: S,
    sweep: &Sweep<'_, T>,
    mut rows: Rows<'_, A>,
    scratch: &mut Scratch<T, A>,
    _directions: D,
) {
    let problem = sweep.problem;
    let (width, padded) = (problem.size.width, sweep.padded);
    scratch.prepare::<D, N>(sweep, &rows);
    let p1 = T::of(problem.penalties.p1);
    let ahead = D::SKEW * D::DEPTH;
    let behind = D::SKEW * (rows.count - 1);
    if rows.first > 0 && N > 1 {
        (0..ahead.min(width)).for_each(|u| scratch.take::<D, N>(sweep, rows.number, u));
    }
    for t in 0..columns(width, rows.count, D::SKEW) {
        if t + ahead < width && rows.first > 0 && N > 1 {
            scratch.take::<D, N>(sweep, rows.number, t + ahead);
        }
        for r in 0..rows.count {
            let u = t.wrapping_sub(D::SKEW * r);
            if u >= width {
                continue;
            }
            // Place and row in the order of the image.
            let (x, row) = if sweep.backward { (width - 1 - u, rows.count - 1 - r) } else { (u, r) };
            let places = scratch.places::<D, N>(rows.first, r, u, x, width);
            let Scratch { ring, costs, gathered, totals, lines, right, .. } = &mut *scratch;
            problem.cost.at(simd, &mut lines[r], x, sweep.row(rows.first + r), costs);
            if problem.disparities() < padded {
                costs[problem.disparities()..].fill(T::MAX);
            }
            let at = ((x + D::SKEW * row) * rows.count + row) * padded;
            let mut sums = rows.sums.as_mut().map(|sums| &mut sums[at..at + padded]);
            let out = match &mut sums {
                Some(sums) if !sweep.backward => &mut **sums,
                _ => &mut gathered[..],
            };
            step(simd, costs, ring, &places, p1, out);
            if let (true, Some(before)) = (sweep.backward, sums) {
                A::total(simd, before, gathered, totals);
                select::pixel(simd, problem, &lines[r], x, totals, &mut rows.results[row], &mut right[r]);
            }
        }
        if t >= behind && N > 1 {
            scratch.put::<D, N>(sweep, &rows, t - behind);
        }
    }
    for (r, right) in scratch.right.iter().enumerate().take(rows.count) {
        if let Some(result) = rows.results.get_mut(rows.count - 1 - r) {
            right.finish(problem, width, result);
        }
    }
}
