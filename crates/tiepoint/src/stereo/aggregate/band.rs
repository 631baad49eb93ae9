//! A band of rows, walked column by column with each row a little behind the one above.

use super::{
    Directions,
    edge::{Edge, PIECE, Piece, Progress},
    step::{Places, Sum, Value, step},
    sweep::Problem,
};
use crate::stereo::{
    cost::Line,
    select::{self, RightRow},
};
use fearless_simd::Simd;
use fearless_simd_macros::simd;

/// Places before the first disparity of a slot: a cache line of bytes, so that slots are aligned.
const PAD: usize = 64;

/// Rows of a band that come one after another in the order of the sweep, and where their results go.
pub(super) struct Rows<'a, A> {
    /// The first row in the order of the sweep, counted in that order.
    pub(super) first: usize,
    /// Its number in the sweep's order of bands.
    pub(super) number: usize,
    /// How many.
    pub(super) count: usize,
    /// Sums of the forward sweep: written by it, read by the backward sweep. Row by row of the image.
    pub(super) sums: Option<&'a mut [A]>,
    /// In the backward sweep, what is made of the sums; row by row of the image.
    pub(super) results: Vec<select::Row<'a>>,
}

/// What a thread reuses from band to band.
#[derive(Default)]
pub(super) struct Scratch<T, A> {
    ring: Vec<T>,
    least: Vec<T>,
    costs: Vec<T>,
    gathered: Vec<A>,
    lines: Vec<Line>,
    spare: Vec<Piece<T>>,
    right: Vec<RightRow>,
    totals: Vec<u16>,
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

/// Where the paths of rows in work lie: a few columns of each row, N directions each.
struct Ring {
    columns: usize,
    directions: usize,
    depth: usize,
    stride: usize,
    origin: usize,
}

impl Ring {
    /// The place of (column, row) for the first direction; rows above the band are negative.
    #[inline(always)]
    fn slot(&self, row: isize, column: usize) -> usize {
        let row = (row + self.depth as isize) as usize;
        (row * self.columns + (column & (self.columns - 1))) * self.directions
    }

    #[inline(always)]
    fn at(&self, slot: usize) -> usize {
        self.origin + slot * self.stride
    }
}

impl<T: Value, A: Value> Scratch<T, A> {
    fn prepare(&mut self, rows: usize, width: usize, padded: usize, ring: &mut Ring) {
        // One slot more than the ring has: paths that begin at the border come from a pixel of zeros.
        let slots = (rows + ring.depth) * ring.columns * ring.directions + 1;
        let len = PAD * 3 + slots * ring.stride;
        if self.ring.len() != len {
            self.ring = vec![T::MAX; len];
        }
        self.least.clear();
        self.least.resize(slots, T::default());
        let start = self.ring.as_ptr().align_offset(64);
        ring.origin = PAD + if start < PAD { start } else { 0 };
        let zeros = ring.at(slots - 1);
        self.ring[..ring.origin].fill(T::MAX);
        for slot in 0..slots {
            let end = ring.at(slot) + padded;
            self.ring[end..end + PAD].fill(T::MAX);
        }
        self.ring[zeros..zeros + padded].fill(T::default());
        self.costs.clear();
        self.costs.resize(padded, T::MAX);
        self.gathered.resize(padded, A::MAX);
        self.totals.resize(padded, u16::MAX);
        self.lines.resize_with(rows, Line::default);
        self.right.resize_with(rows, RightRow::default);
        self.right.iter_mut().for_each(|r| r.clear(width + padded));
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
    let (width, height, padded) = (problem.size.width, problem.size.height, sweep.padded);
    let mut ring =
        Ring { columns: 4 * D::SKEW, directions: N, depth: D::DEPTH, stride: padded + PAD, origin: 0 };
    scratch.prepare(rows.count, width, padded, &mut ring);
    let zeros = (rows.count + ring.depth) * ring.columns * N;
    let image_row = |r: usize| {
        let v = rows.first + r;
        if sweep.backward { height - 1 - v } else { v }
    };
    // Rows of results and sums lie in the order of the image.
    let stored = |r: usize| if sweep.backward { rows.count - 1 - r } else { r };
    for r in 0..rows.count {
        problem.cost.line(image_row(r), padded, &mut scratch.lines[r]);
    }
    let p1 = T::of(problem.penalties.p1);
    let adaptive = problem.penalties.p2_least < problem.penalties.p2;
    let mut taken = Piece::default();
    let mut filling = Piece::default();
    let vertical = N - 1;
    let (lead, lag) = ((D::SKEW * D::DEPTH) as isize, (D::SKEW * (rows.count - 1)) as isize);
    for t in -lead..width as isize + lag {
        // The rows above the band, from the band before.
        let ahead = t + lead;
        if ahead < width as isize && vertical > 0 && rows.first > 0 {
            let u = ahead as usize;
            if u % PIECE == 0 {
                sweep.progress.wait(rows.number, u / PIECE);
                scratch.spare.push(std::mem::take(&mut taken));
                taken = sweep.edge.take(u / PIECE).unwrap_or_default();
            }
            for back in 1..=D::DEPTH {
                let slot = ring.slot(-(back as isize), u);
                let first = ((u % PIECE) * D::DEPTH + back - 1) * vertical;
                for k in 1..N {
                    let from = (first + k - 1) * padded;
                    let to = ring.at(slot + k);
                    scratch.ring[to..to + padded].copy_from_slice(&taken.values[from..from + padded]);
                    scratch.least[slot + k] = taken.least[first + k - 1];
                }
            }
        }
        for r in 0..rows.count {
            let u = t - (D::SKEW * r) as isize;
            if u < 0 || u >= width as isize {
                continue;
            }
            let u = u as usize;
            let x = if sweep.backward { width - 1 - u } else { u };
            let v = rows.first + r;
            let to = ring.slot(r as isize, u);
            let mut places = Places {
                from: [ring.at(zeros); N],
                to: ring.at(to),
                stride: ring.stride,
                least: [T::default(); N],
                cap: [T::default(); N],
            };
            let grey = problem.grey.row(image_row(r));
            for k in 0..N {
                let (dx, dy) = D::STEPS[k];
                let before = u as isize - dx;
                if before < 0 || before >= width as isize || v < dy {
                    continue;
                }
                let before = before as usize;
                let slot = ring.slot(r as isize - dy as isize, before) + k;
                places.from[k] = ring.at(slot);
                let least = scratch.least[slot];
                let delta = if adaptive {
                    let (bx, by) = if sweep.backward {
                        (width - 1 - before, image_row(r) + dy)
                    } else {
                        (before, image_row(r) - dy)
                    };
                    usize::from(grey[x].abs_diff(problem.grey.row(by)[bx]))
                } else {
                    0
                };
                places.least[k] = least;
                places.cap[k] = T::of(least.wide() + sweep.p2[delta].wide());
            }
            problem.cost.at(simd, &mut scratch.lines[r], x, image_row(r), &mut scratch.costs);
            scratch.costs[problem.disparities()..].fill(T::MAX);
            let at = (stored(r) * width + x) * padded;
            let Scratch { costs, ring: paths, gathered, totals, lines, right, .. } = &mut *scratch;
            let least = match &mut rows.sums {
                Some(sums) if !sweep.backward => {
                    step(simd, costs, paths, &places, p1, &mut sums[at..at + padded])
                }
                Some(sums) => {
                    let least = step(simd, costs, paths, &places, p1, gathered);
                    A::total(simd, &sums[at..at + padded], gathered, totals);
                    let result = &mut rows.results[stored(r)];
                    select::pixel(simd, problem, &lines[r], x, totals, result, &mut right[r]);
                    least
                }
                None => step(simd, costs, paths, &places, p1, gathered),
            };
            for k in 0..N {
                scratch.least[to + k] = least[k];
            }
        }
        let u = t - lag;
        if u >= 0 && vertical > 0 {
            // The last rows of the band, for the next.
            let u = u as usize;
            if u % PIECE == 0 {
                filling = scratch.spare.pop().unwrap_or_default();
                filling.values.clear();
                filling.least.clear();
            }
            for back in 1..=D::DEPTH {
                let slot = ring.slot(rows.count as isize - back as isize, u);
                for k in 1..N {
                    let from = ring.at(slot + k);
                    filling.values.extend_from_slice(&scratch.ring[from..from + padded]);
                    filling.least.push(scratch.least[slot + k]);
                }
            }
            if u % PIECE == PIECE - 1 || u + 1 == width {
                sweep.edge.put(u / PIECE, std::mem::take(&mut filling));
                sweep.progress.publish(rows.number, u / PIECE + 1);
            }
        }
    }
    for r in 0..rows.count {
        if let Some(result) = rows.results.get_mut(stored(r)) {
            scratch.right[r].finish(problem, width, result);
        }
    }
}
