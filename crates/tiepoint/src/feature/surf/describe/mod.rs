//! The descriptor: sums of Haar wavelets in 4×4 cells of a square turned with the keypoint.
//!
//! Bay et al. 2008, section 4.2. On a grid of s (20×20; OpenSURF 24×24) wavelets of side 2s are taken along
//! the image's axes and turned into the keypoint's frame: along = fma(cos, dx, sin·dy), aside = fma(cos, dy,
//! −(sin·dx)). The weighted sums of both in a cell, and of their magnitudes, make four values; for 128 values
//! they are split by the sign of the other. The whole is brought to unit length.
//!
//! Order of operations, f32. The sample (u, v) lies at x = fma(s·cos, u, fma(−(s·sin), v, x₀)), y =
//! fma(s·sin, u, fma(s·cos, v, y₀)), rounded to the nearest corner of four pixels. A cell's sums take its
//! samples row by row, each as sum = fma(weight, value, sum). The squared length is summed in a cell by fma in
//! the order of its values, then over the cells in a tree: c and c + 8, c and c + 4, c and c + 2, c and c + 1.

pub(super) mod gpu;

use crate::feature::surf::integral::{Integral, Total};
use crate::feature::surf::orient::Direction;
use crate::feature::surf::{SurfOptions, SurfPreset};
use crate::{feature::Keypoint, numeric};

pub(super) const CELLS: usize = 16;

/// The most samples that any convention has.
const SAMPLES: usize = 24 * 24;

/// The samples of a descriptor: their positions, weights and cells, and the order of the values.
#[derive(Debug)]
pub(super) struct Square {
    /// Positions of the samples in the keypoint's frame, in units of s.
    pub u: Vec<f32>,
    pub v: Vec<f32>,
    /// Weight of sample k of cell c at `k * 16 + c`.
    pub weights: Vec<f32>,
    /// Number of sample k of cell c at `k * 16 + c`; empty when each sample's number is its index.
    pub members: Vec<u16>,
    /// Half the side of the square, in units of s.
    half: f32,
    /// Added before rounding to a corner: one half finds the nearest one.
    pub to_corner: f32,
    pub columns_outer: bool,
    /// Order of Σ, Σ|·| along and Σ, Σ|·| aside in a cell, for descriptors of 64 values.
    pub order: [usize; 4],
    extended: bool,
}

impl Square {
    pub(super) fn new(options: &SurfOptions) -> Self {
        let mut square = Self {
            u: vec![],
            v: vec![],
            weights: vec![],
            members: vec![],
            half: 9.5,
            to_corner: 0.5,
            columns_outer: false,
            order: if options.preset == SurfPreset::OpenCv { [0, 2, 1, 3] } else { [0, 1, 2, 3] },
            extended: options.extended,
        };
        match options.preset {
            SurfPreset::Paper | SurfPreset::OpenCv => square.set_separate_cells(),
            SurfPreset::OpenSurf => square.set_overlapping_cells(),
        }
        square
    }

    /// Cells of 5×5 samples side by side, weighted by one Gaussian of 3.3.
    fn set_separate_cells(&mut self) {
        for k in 0..25 {
            for cell in 0..CELLS {
                let at = |cell: usize, k: usize| (5 * cell + k) as f64 - 9.5;
                let (u, v) = (at(cell % 4, k % 5), at(cell / 4, k / 5));
                self.u.push(u as f32);
                self.v.push(v as f32);
                self.weights.push(gauss(u * u + v * v, 3.3) as f32);
            }
        }
    }

    /// Cells of 9×9 samples, five apart, weighted by a Gaussian of 2.5 in each and one of 1.5 cells over all.
    fn set_overlapping_cells(&mut self) {
        (self.half, self.to_corner, self.columns_outer) = (12.0, 0.0, true);
        for sample in 0..SAMPLES {
            self.u.push((sample % 24) as f32 - 12.0);
            self.v.push((sample / 24) as f32 - 12.0);
        }
        let square = |v: f64| v * v;
        for k in 0..81 {
            for cell in 0..CELLS {
                let (column, row) = (5 * (cell % 4) + k % 9, 5 * (cell / 4) + k / 9);
                self.members.push((row * 24 + column) as u16);
                let inside = square((k % 9) as f64 - 4.0) + square((k / 9) as f64 - 4.0);
                let over = square((cell % 4) as f64 - 1.5) + square((cell / 4) as f64 - 1.5);
                self.weights.push((gauss(inside, 2.5) * gauss(over, 1.5)) as f32);
            }
        }
    }

    /// Half the diagonal of the part of the image that a keypoint of scale `s` needs, in pixels.
    pub(super) fn reach(&self, s: f32) -> f32 {
        self.half * std::f32::consts::SQRT_2 * s + s + 3.0
    }

    #[inline(always)]
    pub(super) fn describe<A: Total>(
        &self,
        integral: &Integral<A>,
        k: &Keypoint,
        direction: Direction,
        out: &mut [f32],
    ) {
        let (mut along, mut aside) = ([0.0; SAMPLES], [0.0; SAMPLES]);
        self.wavelets(integral, k, direction, &mut along, &mut aside);
        if self.extended {
            let values = self.sums(&along, &aside, |a, b| {
                let ([p, q, r, s], [t, u, v, w]) = (split(a, b), split(b, a));
                [p, q, r, s, t, u, v, w]
            });
            self.write_unit(&values, out);
        } else {
            let values = self.sums(&along, &aside, |a, b| [a, a.abs(), b, b.abs()]);
            self.write_unit(&self.order.map(|i| values[i]), out);
        }
    }

    #[inline(always)]
    fn wavelets<A: Total>(
        &self,
        integral: &Integral<A>,
        k: &Keypoint,
        Direction { cos, sin, .. }: Direction,
        along: &mut [f32; SAMPLES],
        aside: &mut [f32; SAMPLES],
    ) {
        let half = (k.scale.round_ties_even() as i32).max(1);
        let (step_cos, step_sin) = (k.scale * cos, k.scale * sin);
        let (x0, y0) = (k.x + self.to_corner, k.y + self.to_corner);
        let (mut x, mut y) = ([0; SAMPLES], [0; SAMPLES]);
        for ((u, v), (x, y)) in self.u.iter().zip(&self.v).zip(x.iter_mut().zip(&mut y)) {
            let across = (-step_sin).mul_add(*v, x0);
            let down = step_cos.mul_add(*v, y0);
            *x = step_cos.mul_add(*u, across).round_ties_even() as i32;
            *y = step_sin.mul_add(*u, down).round_ties_even() as i32;
        }
        let (mut dx, mut dy) = ([A::default(); SAMPLES], [A::default(); SAMPLES]);
        let n = self.u.len().min(SAMPLES);
        integral.haar(&x[..n], &y[..n], half, &mut dx[..n], &mut dy[..n]);
        for ((dx, dy), (along, aside)) in dx.iter().zip(&dy).zip(along.iter_mut().zip(aside)) {
            let (dx, dy) = (dx.signed_f32(), dy.signed_f32());
            *along = cos.mul_add(dx, sin * dy);
            *aside = cos.mul_add(dy, -(sin * dx));
        }
    }

    /// The sums over each cell of the `N` values that `parts` computes from a sample: `[value][cell]`.
    #[inline(always)]
    fn sums<const N: usize>(
        &self,
        along: &[f32; SAMPLES],
        aside: &[f32; SAMPLES],
        parts: impl Fn(f32, f32) -> [f32; N],
    ) -> [[f32; CELLS]; N] {
        let mut sums = [[0.0_f32; CELLS]; N];
        for (k, weights) in self.weights.as_chunks::<CELLS>().0.iter().enumerate() {
            let (mut a, mut b) = ([0.0; CELLS], [0.0; CELLS]);
            if self.members.is_empty() {
                a.copy_from_slice(&along[k * CELLS..][..CELLS]);
                b.copy_from_slice(&aside[k * CELLS..][..CELLS]);
            } else {
                for (cell, member) in self.members[k * CELLS..][..CELLS].iter().enumerate() {
                    let member = usize::from(*member) % SAMPLES;
                    (a[cell], b[cell]) = (along[member], aside[member]);
                }
            }
            for cell in 0..CELLS {
                let values = parts(a[cell], b[cell]);
                for (sum, value) in sums.iter_mut().zip(values) {
                    sum[cell] = weights[cell].mul_add(value, sum[cell]);
                }
            }
        }
        sums
    }

    /// The values at unit length, cell by cell.
    #[inline(always)]
    fn write_unit<const N: usize>(&self, values: &[[f32; CELLS]; N], out: &mut [f32]) {
        let mut squares = [0.0_f32; CELLS];
        for value in values {
            for (square, v) in squares.iter_mut().zip(value) {
                *square = v.mul_add(*v, *square);
            }
        }
        for half in [8, 4, 2, 1] {
            for c in 0..half {
                squares[c] += squares[c + half];
            }
        }
        let length = squares[0].sqrt();
        let inverse = if length > 0.0 { 1.0 / length } else { 0.0 };
        for (cell, out) in out.chunks_exact_mut(N).enumerate() {
            let from = if self.columns_outer { cell % 4 * 4 + cell / 4 } else { cell };
            for (out, value) in out.iter_mut().zip(values) {
                *out = value[from] * inverse;
            }
        }
    }
}

/// A value and its magnitude, in the first half where `by` is not negative, else in the second.
#[inline(always)]
fn split(value: f32, by: f32) -> [f32; 4] {
    let (first, second) = if by >= 0.0 { (value, 0.0) } else { (0.0, value) };
    [first, first.abs(), second, second.abs()]
}

fn gauss(distance2: f64, sigma: f64) -> f64 {
    numeric::exp_f64(-distance2 / (2.0 * sigma * sigma))
}
