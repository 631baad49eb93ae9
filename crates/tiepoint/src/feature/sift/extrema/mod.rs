//! Extrema of the differences of Gaussians among their 26 neighbours in position and scale (Lowe §3.1).
//!
//! A pixel of layer i is a maximum when its D is at least the threshold, greater than that of every neighbour
//! before it (in layer, then row, then column) and not less than that of any neighbour after it; a minimum
//! when the same holds for −D. So exactly one of two equal neighbours is found.

pub(crate) mod gpu;

use crate::device::{Cpu, dispatch};
use crate::feature::sift::SiftOptions;
use crate::feature::sift::scale_space::Octave;
use fearless_simd::{Simd, prelude::*};
use fearless_simd_macros::simd;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// DoG layer, 1 to S.
    pub(super) layer: usize,
    pub(super) x: usize,
    pub(super) y: usize,
}

/// The most images of an octave, and how many levels are searched at a time.
const MOST_LEVELS: usize = 32 + 3;
const AT_ONCE: usize = 8;

/// All extrema in the given rows of an octave, by row.
pub(super) fn find(octave: &Octave, rows: Range<usize>, options: &SiftOptions, cpu: &Cpu) -> Vec<Candidate> {
    let border = options.border();
    let rows = rows.start.max(border)..rows.end.min(octave.size.height.saturating_sub(border));
    if rows.is_empty() || octave.size.width <= 2 * border {
        return Vec::new();
    }
    let columns = border..octave.size.width - border;
    let threshold = options.least_candidate();
    dispatch!(cpu.level(), simd => find_in_rows(simd, octave, rows, columns, threshold))
}

#[simd]
fn find_in_rows<S: Simd>(
    simd: S,
    octave: &Octave,
    rows: Range<usize>,
    columns: Range<usize>,
    threshold: f32,
) -> Vec<Candidate> {
    let lanes = S::f32s::LEN;
    let width = octave.size.width;
    let mut found = Vec::new();
    let mut rows_of_levels: [[&[f32]; 3]; MOST_LEVELS] = [[&[]; 3]; MOST_LEVELS];
    for y in rows {
        for (rows, level) in rows_of_levels.iter_mut().zip(&octave.levels) {
            *rows = std::array::from_fn(|r| &level.row(y + r - 1)[..width]);
        }
        let under = &rows_of_levels[..octave.levels.len()];
        // All vectors but the first and the last are aligned to cache lines, so that few loads touch two.
        // Those two may overlap their neighbours; the columns in the overlap are searched once.
        let mut from = columns.start;
        while from < columns.end && width > lanes + 1 {
            let x = from.min(width - lanes - 1);
            let next = if x < from { columns.end } else { columns.end.min((x / lanes + 1) * lanes) };
            for first in (0..under.len() - 3).step_by(AT_ONCE) {
                let under = &under[first..under.len().min(first + AT_ONCE + 3)];
                find_in_vector(simd, (first, under), x, from..next, threshold, y, &mut found);
            }
            from = next;
        }
        find_one_by_one(under, from..columns.end, threshold, y, &mut found);
    }
    found
}

#[inline(always)]
fn find_in_vector<S: Simd>(
    simd: S,
    (first, under): (usize, &[[&[f32]; 3]]),
    x: usize,
    columns: Range<usize>,
    threshold: f32,
    y: usize,
    found: &mut Vec<Candidate>,
) {
    let limit = S::f32s::splat(simd, threshold);
    // The pixels that are extrema, a bit each. They are added to `found` after the loop: a call within it would spill
    // vectors to the stack in every round, where half of all starts of the process make them cross cache lines.
    let (mut extrema, mut any) = ([0; AT_ONCE + 3], 0);
    let (mut below, mut own) = (dog(simd, under, x, (0, 1, 1)), dog(simd, under, x, (1, 1, 1)));
    for layer in 1..under.len() - 2 {
        let above = dog(simd, under, x, (layer + 1, 1, 1));
        let p = Pixels::new(simd, &under[layer - 1..layer + 3], x, own);
        let large = p.size.simd_ge(limit);
        let mut best = large & p.size.simd_gt(below * p.sign) & p.size.simd_ge(above * p.sign);
        (below, own) = (own, above);
        if !large.any_true() {
            continue;
        }
        // Blurred images are smooth: in few vectors does a pixel pass even its six nearest neighbours. A test
        // after each of them would cost more in mispredicted branches.
        best = best & p.before((1, 0, 1)) & p.after((1, 2, 1)) & p.before((1, 1, 0)) & p.after((1, 1, 2));
        if !best.any_true() {
            continue;
        }
        best = best & p.before((1, 0, 0)) & p.before((1, 0, 2)) & p.after((1, 2, 0)) & p.after((1, 2, 2));
        for r in 0..3 {
            for c in 0..3 {
                best = best & p.before((0, r, c)) & p.after((2, r, c));
            }
        }
        extrema[layer] = best.to_bitmask();
        any |= extrema[layer];
    }
    if any == 0 {
        return;
    }
    for (layer, mut bits) in extrema.into_iter().enumerate() {
        while bits != 0 {
            let at = x + bits.trailing_zeros() as usize;
            if columns.contains(&at) {
                found.push(Candidate { layer: first + layer, x: at, y });
            }
            bits &= bits - 1;
        }
    }
}

/// The search where the image is narrower than a vector with its neighbours.
fn find_one_by_one(
    under: &[[&[f32]; 3]],
    columns: Range<usize>,
    threshold: f32,
    y: usize,
    found: &mut Vec<Candidate>,
) {
    for x in columns {
        for layer in 1..under.len() - 2 {
            let dog =
                |(l, r, c): Neighbour| under[layer + l][r][x + c - 1] - under[layer + l - 1][r][x + c - 1];
            if is_extremum(dog, threshold) {
                found.push(Candidate { layer, x, y });
            }
        }
    }
}

/// A vector of differences of Gaussians from column `x` + c − 1 on, for the neighbour (l, r, c).
#[inline(always)]
fn dog<S: Simd>(simd: S, under: &[[&[f32]; 3]], x: usize, (l, r, c): Neighbour) -> S::f32s {
    let columns = x + c - 1..x + c - 1 + S::f32s::LEN;
    S::f32s::from_slice(simd, &under[l + 1][r][columns.clone()])
        - S::f32s::from_slice(simd, &under[l][r][columns])
}

/// A vector of pixels from column `x` on, to be compared with their neighbours. All values are multiplied
/// with the sign of D, which turns minima into maxima.
struct Pixels<'a, S: Simd> {
    simd: S,
    under: &'a [[&'a [f32]; 3]],
    x: usize,
    size: S::f32s,
    sign: S::f32s,
}

impl<'a, S: Simd> Pixels<'a, S> {
    #[inline(always)]
    fn new(simd: S, under: &'a [[&'a [f32]; 3]], x: usize, value: S::f32s) -> Self {
        Self { simd, under, x, size: value.abs(), sign: S::f32s::splat(simd, 1.0).copysign(value) }
    }

    /// Where the pixel is greater than a neighbour that comes before it.
    #[inline(always)]
    fn before(&self, at: Neighbour) -> <S::f32s as SimdBase<S>>::Mask {
        self.size.simd_gt(dog(self.simd, self.under, self.x, at) * self.sign)
    }

    /// Where the pixel is not less than a neighbour that comes after it.
    #[inline(always)]
    fn after(&self, at: Neighbour) -> <S::f32s as SimdBase<S>>::Mask {
        self.size.simd_ge(dog(self.simd, self.under, self.x, at) * self.sign)
    }
}

/// A pixel of the 3×3×3 neighbourhood, as (layer, row, column) in 0..3.
type Neighbour = (usize, usize, usize);

const CENTRE: Neighbour = (1, 1, 1);

/// Whether a pixel is an extremum, written as in the contract.
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
