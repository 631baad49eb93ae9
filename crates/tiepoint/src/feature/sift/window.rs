//! The gradients of the pixels around a keypoint, by differences of neighbours.
//!
//! The rows of a window are seldom a whole number of vectors long, so they are copied one behind the other
//! without gaps before anything is computed from them.

use super::gpu::plan;
use super::scale_space::Level;
use super::{SiftOptions, SiftPreset};
use crate::feature;
use crate::numeric::{self, ROUNDER};
use fearless_simd::Simd;
use std::ops::Range;
use tiepoint_gpu::KernelSource;

/// Fixed-point units of a gradient of 1. A gradient is at most √2, so a contribution stays below 2²².
pub(super) const UNIT: f32 = 2_097_152.0;

/// The nearest integer, ties to even, of |v| < 2²².
#[inline(always)]
pub(super) fn to_integer(v: f32) -> i32 {
    (v + ROUNDER).to_bits() as i32 - ROUNDER.to_bits() as i32
}

pub(super) const LANES: usize = 16;

/// Samples that are collected before they are processed.
const FULL: usize = 16 * LANES;

/// Pixels at a distance of at most `radius` from `centre`, without the first and the last, which have no
/// gradient.
pub(super) fn around(centre: f32, radius: usize, n: usize) -> Range<usize> {
    let centre = centre.round_ties_even() as isize;
    let low = (centre - radius as isize).max(1) as usize;
    let high = (centre + radius as isize + 1).clamp(0, n as isize - 1) as usize;
    low..high.max(low)
}

/// A computation over the gradients of a window.
pub(super) trait Window<S: Simd> {
    /// The columns of interest at a distance of `dy` rows from the keypoint: 1 ≤ start, end < width.
    fn columns(&self, dy: f32) -> Range<usize>;

    /// Adds the next samples. Those beyond the window's last have a gradient of 0.
    fn add(&mut self, simd: S, samples: &Samples);
}

/// A vector of pixels: gradients, and positions relative to the keypoint. Aligned, so that none of its
/// vectors crosses a cache line.
#[repr(align(64))]
pub(super) struct Samples {
    pub(super) gx: [f32; LANES],
    pub(super) gy: [f32; LANES],
    pub(super) dx: [f32; LANES],
    pub(super) dy: [f32; LANES],
}

/// Passes the pixels of `rows` to `window`; (x, y) is the keypoint.
#[inline(always)]
pub(super) fn visit<S: Simd>(
    simd: S,
    level: &Level,
    (x, y): (f32, f32),
    rows: Range<usize>,
    window: &mut impl Window<S>,
) {
    let mut gathered = Gathered::new();
    for row in rows {
        let dy = row as f32 - y;
        let columns = window.columns(dy);
        let rows = [level.row(row - 1), level.row(row), level.row(row + 1)];
        for start in columns.clone().step_by(LANES) {
            gathered.append(rows, start..columns.end.min(start + LANES), x, dy);
            if gathered.len >= FULL {
                gathered.hand_over(simd, FULL, window);
                gathered.keep_from(FULL);
            }
        }
    }
    gathered.close();
    gathered.hand_over(simd, gathered.len, window);
}

type Values = [f32; FULL + LANES];

#[repr(align(64))]
struct Gathered {
    len: usize,
    gx: Values,
    gy: Values,
    dx: Values,
    dy: Values,
}

impl Gathered {
    #[inline(always)]
    fn new() -> Self {
        let none = [0.0; FULL + LANES];
        Self { len: 0, gx: none, gy: none, dx: none, dy: none }
    }

    /// Appends at most [`LANES`] pixels of the middle of three rows.
    #[inline(always)]
    fn append(&mut self, rows: [&[f32]; 3], columns: Range<usize>, x: f32, dy: f32) {
        // With a constant count the loop is a few vector instructions; only at the right edge are there too
        // few pixels for it. Values beyond the columns are overwritten by the next ones.
        if columns.start + LANES < rows[1].len() {
            self.difference(rows, columns.start, LANES);
        } else {
            self.difference(rows, columns.start, columns.len());
        }
        let at = self.len..self.len + LANES;
        let (dxs, dys) = (&mut self.dx[at.clone()], &mut self.dy[at]);
        for i in 0..LANES {
            dxs[i] = (columns.start as i32 + i as i32) as f32 - x;
            dys[i] = dy;
        }
        self.len += columns.len();
    }

    #[inline(always)]
    fn difference(&mut self, rows: [&[f32]; 3], x: usize, n: usize) {
        let part = |row: usize, x: usize| &rows[row][x..x + n];
        let (above, left, right, below) = (part(0, x), part(1, x - 1), part(1, x + 1), part(2, x));
        let at = self.len..self.len + n;
        let (gx, gy) = (&mut self.gx[at.clone()], &mut self.gy[at]);
        for i in 0..n {
            gx[i] = right[i] - left[i];
            gy[i] = below[i] - above[i];
        }
    }

    #[inline(always)]
    fn close(&mut self) {
        self.gx[self.len..self.len + LANES].fill(0.0);
        self.gy[self.len..self.len + LANES].fill(0.0);
    }

    #[inline(always)]
    fn hand_over<S: Simd>(&self, simd: S, n: usize, window: &mut impl Window<S>) {
        for at in (0..n).step_by(LANES) {
            let vector = |values: &Values| std::array::from_fn(|i| values[at + i]);
            let (gx, gy) = (vector(&self.gx), vector(&self.gy));
            let (dx, dy) = (vector(&self.dx), vector(&self.dy));
            window.add(simd, &Samples { gx, gy, dx, dy });
        }
    }

    #[inline(always)]
    fn keep_from(&mut self, from: usize) {
        for values in [&mut self.gx, &mut self.gy, &mut self.dx, &mut self.dy] {
            values.copy_within(from.., 0);
        }
        self.len -= from;
    }
}

/// Lanes of a group that works on one keypoint: a warp, so that a barrier costs little; a power of two.
pub(super) const GROUP: u32 = 32;

/// For kernels: keypoints, and the pixels around them.
pub(super) fn for_kernels(source: KernelSource, options: &SiftOptions) -> KernelSource {
    feature::for_kernels(numeric::for_kernels(source))
        .define("LANES", GROUP)
        .define("EXACT", u8::from(options.preset != SiftPreset::OpenCv))
        .define_f32("UNIT", UNIT)
        .text(plan::OCTAVE)
        .text(include_str!("window.h"))
}
