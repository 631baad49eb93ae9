//! The descriptor: sums of Haar wavelets in 4×4 cells of a square turned with the keypoint.
//!
//! Bay et al. 2008, section 4.2. On a grid of s (20×20; OpenSURF 24×24) wavelets of side 2s are taken along
//! the image's axes and turned into the keypoint's frame: along = fma(cos, dx, sin·dy), aside = fma(cos, dy,
//! −(sin·dx)). Of every cell the weighted sums of both and of their magnitudes make four values; for 128
//! values they are split by the sign of the other. The whole is brought to unit length.
//!
//! Order of operations, f32. The sample (u, v) lies at x = fma(s·cos, u, fma(−(s·sin), v, x₀)), y =
//! fma(s·sin, u, fma(s·cos, v, y₀)), rounded to the nearest corner of four pixels. A cell's sums take its
//! samples row by row, each as sum = fma(weight, value, sum). The squared length is summed in a cell by fma in
//! the order of its values, then over the cells in a tree: c and c + 8, c and c + 4, c and c + 2, c and c + 1.

use super::{
    Convention, SurfOptions,
    integral::{Integral, Total},
    orient::Direction,
};
use crate::{feature::Keypoint, numeric};

/// Cells of a descriptor.
const CELLS: usize = 16;

/// The most samples that any convention has.
const SAMPLES: usize = 24 * 24;

/// Where samples lie, which cells they belong to, and in what order the values stand.
#[derive(Debug)]
pub(super) struct Square {
    /// Samples in a row of the grid.
    side: usize,
    /// Position of the first sample, in units of s, in u and v.
    first: f32,
    /// Samples in a row of a cell; cells begin five apart.
    span: usize,
    /// Weight of sample k of cell c at `k * 16 + c`.
    weights: Vec<f32>,
    /// Sample k of cell c at `k * 16 + c`.
    members: Vec<u16>,
    /// Added before rounding to a corner: one half finds the nearest one.
    to_corner: f32,
    columns_outer: bool,
    /// Order of Σ, Σ|·| along and Σ, Σ|·| aside in a cell of 64 values.
    order: [usize; 4],
    extended: bool,
}

impl Square {
    pub(super) fn new(options: &SurfOptions) -> Self {
        let opensurf = options.convention == Convention::OpenSurf;
        let (side, first, span) = if opensurf { (24, -12.0, 9) } else { (20, -9.5, 5) };
        let gauss = |r2: f64, sigma: f64| numeric::exp_f64(-r2 / (2.0 * sigma * sigma));
        let (mut weights, mut members) = (vec![], vec![]);
        for k in 0..span * span {
            for cell in 0..CELLS {
                let (cell_u, cell_v) = (cell % 4, cell / 4);
                let (u, v) = (5 * cell_u + k % span, 5 * cell_v + k / span);
                members.push((v * side + u) as u16);
                let weight = if opensurf {
                    let in_cell = |i: usize| (i as f64 - (span - 1) as f64 / 2.0).powi(2);
                    let over = |i: usize| (i as f64 - 1.5).powi(2);
                    gauss(in_cell(k % span) + in_cell(k / span), 2.5)
                        * gauss(over(cell_u) + over(cell_v), 1.5)
                } else {
                    let centred = |i: usize| (i as f64 - 9.5).powi(2);
                    gauss(centred(u) + centred(v), 3.3)
                };
                weights.push(weight as f32);
            }
        }
        Self {
            side,
            first,
            span,
            weights,
            members,
            to_corner: if opensurf { 0.0 } else { 0.5 },
            columns_outer: opensurf,
            order: if options.convention == Convention::OpenCv { [0, 2, 1, 3] } else { [0, 1, 2, 3] },
            extended: options.extended,
        }
    }

    /// Half the diagonal of what a keypoint of scale `s` needs of the image, in pixels.
    pub(super) fn reach(&self, s: f32) -> f32 {
        -self.first * std::f32::consts::SQRT_2 * s + s + 3.0
    }

    /// Writes the descriptor of a keypoint to `out`.
    #[inline(always)]
    pub(super) fn describe<A: Total>(
        &self,
        integral: &Integral<A>,
        k: &Keypoint,
        direction: Direction,
        out: &mut [f32],
    ) {
        let mut along = [0.0; SAMPLES];
        let mut aside = [0.0; SAMPLES];
        let n = self.side * self.side;
        self.wavelets(integral, k, direction, &mut along[..n], &mut aside[..n]);
        let values = if self.extended {
            let split =
                |a: f32, by: f32| if by >= 0.0 { [a, a.abs(), 0.0, 0.0] } else { [0.0, 0.0, a, a.abs()] };
            self.sums(&along, &aside, |a, b| {
                let ([p, q, r, s], [t, u, v, w]) = (split(a, b), split(b, a));
                [p, q, r, s, t, u, v, w]
            })
        } else {
            self.sums(&along, &aside, |a, b| {
                let v = [a, a.abs(), b, b.abs()];
                let [p, q, r, s] = self.order.map(|i| v[i]);
                [p, q, r, s, 0.0, 0.0, 0.0, 0.0]
            })
        };
        self.write_unit(&values, out);
    }

    /// The wavelets of the grid in the keypoint's frame.
    #[inline(always)]
    fn wavelets<A: Total>(
        &self,
        integral: &Integral<A>,
        k: &Keypoint,
        Direction { cos, sin, .. }: Direction,
        along: &mut [f32],
        aside: &mut [f32],
    ) {
        let half = (k.scale.round_ties_even() as i32).max(1);
        let (step_cos, step_sin) = (k.scale * cos, k.scale * sin);
        let (x0, y0) = (k.x + self.to_corner, k.y + self.to_corner);
        let rows = along.chunks_exact_mut(self.side).zip(aside.chunks_exact_mut(self.side));
        for (j, (along, aside)) in rows.enumerate() {
            let v = self.first + j as f32;
            let (x, y) = ((-step_sin).mul_add(v, x0), step_cos.mul_add(v, y0));
            for (i, (along, aside)) in along.iter_mut().zip(aside).enumerate() {
                let u = self.first + i as f32;
                let cx = step_cos.mul_add(u, x).round_ties_even() as i32;
                let cy = step_sin.mul_add(u, y).round_ties_even() as i32;
                let [dx, dy] = integral.haar(cx, cy, half);
                let (dx, dy) = (dx.signed_f32(), dy.signed_f32());
                *along = cos.mul_add(dx, sin * dy);
                *aside = cos.mul_add(dy, -(sin * dx));
            }
        }
    }

    /// The sums over each cell of the values that `parts` makes of a sample: `[value][cell]`.
    #[inline(always)]
    fn sums(
        &self,
        along: &[f32; SAMPLES],
        aside: &[f32; SAMPLES],
        parts: impl Fn(f32, f32) -> [f32; 8],
    ) -> [[f32; CELLS]; 8] {
        let mut sums = [[0.0_f32; CELLS]; 8];
        let per_sample = self.weights.chunks_exact(CELLS).zip(self.members.chunks_exact(CELLS));
        for (weights, members) in per_sample.take(self.span * self.span) {
            for cell in 0..CELLS {
                let member = usize::from(members[cell]).min(SAMPLES - 1);
                let values = parts(along[member], aside[member]);
                for (sum, value) in sums.iter_mut().zip(values) {
                    sum[cell] = weights[cell].mul_add(value, sum[cell]);
                }
            }
        }
        sums
    }

    /// The values at unit length, cell by cell.
    #[inline(always)]
    fn write_unit(&self, values: &[[f32; CELLS]; 8], out: &mut [f32]) {
        let per_cell = if self.extended { 8 } else { 4 };
        let mut squares = [0.0_f32; CELLS];
        for value in &values[..per_cell] {
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
        for (cell, out) in out.chunks_exact_mut(per_cell).enumerate() {
            let from = if self.columns_outer { cell % 4 * 4 + cell / 4 } else { cell };
            for (out, value) in out.iter_mut().zip(values) {
                *out = value[from] * inverse;
            }
        }
    }
}
