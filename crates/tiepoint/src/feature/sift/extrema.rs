//! Extrema of the differences of Gaussians among their 26 neighbours in place and scale (Lowe §3.1).
//!
//! A pixel of layer i is a maximum when its D is at least the threshold and beats all neighbours, a minimum when −D
//! is and does. Neighbours before it (in layer, then row, then column) must be beaten strictly, those after it at
//! least equalled: of two equal neighbours exactly one is found.

use super::SiftOptions;
use super::scale_space::Octave;
use crate::device::Cpu;
use fearless_simd::{Simd, dispatch, prelude::*};
use fearless_simd_macros::simd;
use std::ops::Range;

/// Rows that one thread searches at a time.
const ROWS_PER_TASK: usize = 8;

/// An extremum before refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// DoG layer, 1 to S.
    pub(super) layer: usize,
    /// Column in the octave.
    pub(super) x: usize,
    /// Row in the octave.
    pub(super) y: usize,
}

/// All extrema in the given rows of an octave, by row, then layer, then column.
pub(super) fn find(octave: &Octave, rows: Range<usize>, options: &SiftOptions, cpu: &Cpu) -> Vec<Candidate> {
    let border = options.border();
    let rows = rows.start.max(border)..rows.end.min(octave.size.height.saturating_sub(border));
    if rows.is_empty() || octave.size.width <= 2 * border {
        return Vec::new();
    }
    let threshold = options.least_candidate();
    let found = cpu.map(rows.len().div_ceil(ROWS_PER_TASK), |task| {
        let first = rows.start + task * ROWS_PER_TASK;
        let rows = first..rows.end.min(first + ROWS_PER_TASK);
        dispatch!(cpu.level(), simd => find_in_rows(simd, octave, rows, border, threshold))
    });
    found.concat()
}

#[simd]
fn find_in_rows<S: Simd>(
    simd: S,
    octave: &Octave,
    rows: Range<usize>,
    border: usize,
    threshold: f32,
) -> Vec<Candidate> {
    let mut found = Vec::new();
    for y in rows {
        for layer in 1..octave.levels.len() - 2 {
            // Three rows of each of the four levels whose differences are the three layers.
            let under: [[&[f32]; 3]; 4] =
                std::array::from_fn(|l| std::array::from_fn(|r| octave.levels[layer - 1 + l].row(y + r - 1)));
            find_in_row(simd, &under, border, threshold, |x| found.push(Candidate { layer, x, y }));
        }
    }
    found
}

#[simd]
fn find_in_row<S: Simd>(
    simd: S,
    under: &[[&[f32]; 3]; 4],
    border: usize,
    threshold: f32,
    mut found: impl FnMut(usize),
) {
    let lanes = S::f32s::LEN;
    let width = under[0][0].len();
    let end = width - border;
    let limit = S::f32s::splat(simd, threshold);
    let under: [[&[f32]; 3]; 4] = under.map(|level| level.map(|row| &row[..width]));
    // Vectors whose neighbours lie in the row. The last may reach beyond `end`, which cuts what it finds.
    let vectors = (end - border).div_ceil(lanes).min((width - border).saturating_sub(1) / lanes);
    for x in (0..vectors).map(|i| border + i * lanes) {
        let p = Pixels::new(simd, &under, x);
        // Blurred images are smooth: few vectors hold a pixel that beats even its four nearest.
        let mut best = p.size.simd_ge(limit) & p.before((1, 1, 0)) & p.after((1, 1, 2));
        if !best.any_true() {
            continue;
        }
        best = best & p.before((1, 0, 1)) & p.after((1, 2, 1));
        if !best.any_true() {
            continue;
        }
        best = best & p.before((1, 0, 0)) & p.before((1, 0, 2)) & p.after((1, 2, 0)) & p.after((1, 2, 2));
        for r in 0..3 {
            for c in 0..3 {
                best = best & p.before((0, r, c)) & p.after((2, r, c));
            }
        }
        let mut bits = best.to_bitmask();
        while bits != 0 {
            let at = x + bits.trailing_zeros() as usize;
            if at < end {
                found(at);
            }
            bits &= bits - 1;
        }
    }
    for x in border + vectors * lanes..end {
        if is_extremum(|(layer, r, c)| under[layer + 1][r][x + c - 1] - under[layer][r][x + c - 1], threshold)
        {
            found(x);
        }
    }
}

/// A vector of pixels from column `x` on, compared with their neighbours. With the sign of D multiplied in, minima
/// are maxima.
struct Pixels<'a, S: Simd> {
    simd: S,
    under: &'a [[&'a [f32]; 3]; 4],
    x: usize,
    size: S::f32s,
    sign: S::f32s,
}

impl<'a, S: Simd> Pixels<'a, S> {
    #[inline(always)]
    fn new(simd: S, under: &'a [[&'a [f32]; 3]; 4], x: usize) -> Self {
        let (size, sign) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 1.0));
        let pixels = Self { simd, under, x, size, sign };
        let value = pixels.dog(CENTRE);
        Self { size: value.abs(), sign: sign.copysign(value), ..pixels }
    }

    #[inline(always)]
    fn dog(&self, (layer, r, c): Neighbour) -> S::f32s {
        let columns = self.x + c - 1..self.x + c - 1 + S::f32s::LEN;
        S::f32s::from_slice(self.simd, &self.under[layer + 1][r][columns.clone()])
            - S::f32s::from_slice(self.simd, &self.under[layer][r][columns])
    }

    /// Where a neighbour that comes before is beaten.
    #[inline(always)]
    fn before(&self, at: Neighbour) -> <S::f32s as SimdBase<S>>::Mask {
        self.size.simd_gt(self.dog(at) * self.sign)
    }

    /// Where a neighbour that comes after is at least equalled.
    #[inline(always)]
    fn after(&self, at: Neighbour) -> <S::f32s as SimdBase<S>>::Mask {
        self.size.simd_ge(self.dog(at) * self.sign)
    }
}

/// A pixel near the one in question, as (layer, row, column) in 0..3.
type Neighbour = (usize, usize, usize);

const CENTRE: Neighbour = (1, 1, 1);

/// The contract, one pixel at a time.
#[inline(always)]
pub(super) fn is_extremum(dog: impl Fn(Neighbour) -> f32, threshold: f32) -> bool {
    let value = dog(CENTRE);
    let sign = 1_f32.copysign(value);
    let beats = |at: Neighbour| {
        let other = dog(at) * sign;
        at == CENTRE || if at < CENTRE { value.abs() > other } else { value.abs() >= other }
    };
    value.abs() >= threshold && (0..27).all(|i| beats((i / 9, i / 3 % 3, i % 3)))
}
