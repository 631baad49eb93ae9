//! Samples whose response exceeds, in magnitude, the threshold and all 26 neighbours.
//!
//! Neighbours are one sample away in x and y and one interval away in scale, all at the step of the octave.
//! The comparison is strict: a sample with an equal neighbour is not kept. Neighbours in the sample's own layer are
//! compared first, 16 samples at once; the few samples that remain are tested one by one.

pub(super) mod gpu;

use crate::device::dispatch;
use fearless_simd::{Simd, f32x16, prelude::*};
use fearless_simd_macros::simd;
use std::ops::Range;

/// Three rows, one above the other, of each of three neighbouring layers: `rows[layer][row]`.
pub(super) type Rows<'a> = [[&'a [f32]; 3]; 3];

/// The magnitudes about column `x`: `[layer][row][column]`.
#[inline(always)]
pub(super) fn cube(rows: &Rows<'_>, x: usize) -> [[[f32; 3]; 3]; 3] {
    rows.map(|layer| layer.map(|row| [row[x - 1].abs(), row[x].abs(), row[x + 1].abs()]))
}

/// Calls `found` with every column of `columns` that is an extremum. Every column has a neighbour on both
/// sides.
pub(super) fn search(
    rows: &Rows<'_>,
    columns: Range<usize>,
    threshold: f32,
    level: crate::device::Level,
    found: &mut impl FnMut(usize),
) {
    dispatch!(level, simd => search_at(simd, rows, columns, threshold, found));
}

#[simd]
fn search_at<S: Simd>(
    simd: S,
    rows: &Rows<'_>,
    columns: Range<usize>,
    threshold: f32,
    found: &mut impl FnMut(usize),
) {
    let own = rows[1];
    let mut x = columns.start;
    while x + 16 <= columns.end {
        let at = |row: usize, x: usize| f32x16::from_slice(simd, &own[row][x..x + 16]).abs();
        let v = at(1, x);
        let mut keep = v.simd_gt(threshold);
        if keep.any_true() {
            keep &= v.simd_gt(at(1, x - 1)) & v.simd_gt(at(1, x + 1));
            for row in [0, 2] {
                keep &= v.simd_gt(at(row, x - 1)) & v.simd_gt(at(row, x)) & v.simd_gt(at(row, x + 1));
            }
            let mut bits = keep.to_bitmask();
            while bits != 0 {
                let x = x + bits.trailing_zeros() as usize;
                if is_extremum(rows, x) {
                    found(x);
                }
                bits &= bits - 1;
            }
        }
        x += 16;
    }
    let strong = |x: &usize| own[1][*x].abs() > threshold && is_extremum(rows, *x);
    (x..columns.end).filter(strong).for_each(found);
}

#[inline(always)]
fn is_extremum(rows: &Rows<'_>, x: usize) -> bool {
    let cube = cube(rows, x);
    let v = cube[1][1][1];
    let weaker = cube.as_flattened().as_flattened().iter().filter(|&&n| v > n).count();
    weaker == 26
}
