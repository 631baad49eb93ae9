//! The residual of a match under a model, and a Gauss–Newton step that reduces it.
//!
//! **Point models**, with transfer error e = b − m(a) and D the derivative of m at a: r² = 2 eᵀ (I + D Dᵀ)⁻¹
//! e, to first order the harmonic mean of the squared transfer errors in A and in B, the same seen from
//! either side; |e|² for a map that keeps lengths. **Fundamental matrix**: r² = 2 (bᵀFa)² / (|Fa|² + |Fᵀb|²),
//! norms over the first two components: the harmonic mean of the squared distances to the epipolar lines.
//! Both are twice Sampson's approximation (Hartley, Zisserman 2004, sections 4.2.6 and 11.4.3).
//!
//! All in f64, in the order written, without fusing: the same bits at any SIMD level.

use super::points::Points;
use crate::device::{Level, dispatch};
use crate::geometry::ModelKind;
use crate::geometry::linear::solve;
use crate::geometry::matrix::{Mat3, adjugate, determinant};
use crate::geometry::model::rank_two;
use fearless_simd::Simd;

/// Writes r² of every match; infinite behind the horizon.
pub(super) fn residuals(kind: ModelKind, level: Level, m: &Mat3, p: &Points, out: &mut [f64]) {
    match kind {
        ModelKind::Fundamental => dispatch!(level, simd => epipolar(simd, m, p, out)),
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
            dispatch!(level, simd => transfer(simd, m, p, out));
        }
    }
}

#[inline(always)]
fn transfer<S: Simd>(_simd: S, m: &Mat3, p: &Points, out: &mut [f64]) {
    let n = out.len();
    let (xa, ya, xb, yb) = (&p.xa[..n], &p.ya[..n], &p.xb[..n], &p.yb[..n]);
    for i in 0..n {
        out[i] = transfer_error(m, [xa[i], ya[i]], [xb[i], yb[i]]).squared();
    }
}

#[inline(always)]
fn epipolar<S: Simd>(_simd: S, f: &Mat3, p: &Points, out: &mut [f64]) {
    let n = out.len();
    let (xa, ya, xb, yb) = (&p.xa[..n], &p.ya[..n], &p.xb[..n], &p.yb[..n]);
    for i in 0..n {
        out[i] = epipolar_error(f, [xa[i], ya[i]], [xb[i], yb[i]]).squared();
    }
}

/// r² of one match, in the coordinates of its model.
pub(super) fn squared(kind: ModelKind, m: &Mat3, a: [f64; 2], b: [f64; 2]) -> f64 {
    match kind {
        ModelKind::Fundamental => epipolar_error(m, a, b).squared(),
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
            transfer_error(m, a, b).squared()
        }
    }
}

/// A transfer error and its metric.
struct Transfer {
    /// Denominator, and point in B.
    w: f64,
    place: [f64; 2],
    e: [f64; 2],
    /// The symmetric (I + D Dᵀ)⁻¹: xx, xy, yy.
    metric: [f64; 3],
}

#[inline(always)]
fn transfer_error(m: &Mat3, [x, y]: [f64; 2], b: [f64; 2]) -> Transfer {
    let row = |i: usize| m[i][0] * x + m[i][1] * y + m[i][2];
    let w = row(2);
    let (u, v) = (row(0) / w, row(1) / w);
    let d = |i: usize, at: f64, j: usize| (m[i][j] - at * m[2][j]) / w;
    let (d00, d01, d10, d11) = (d(0, u, 0), d(0, u, 1), d(1, v, 0), d(1, v, 1));
    let (cxx, cyy) = (1.0 + (d00 * d00 + d01 * d01), 1.0 + (d10 * d10 + d11 * d11));
    let cxy = d00 * d10 + d01 * d11;
    let det = cxx * cyy - cxy * cxy;
    Transfer { w, place: [u, v], e: [b[0] - u, b[1] - v], metric: [cyy / det, -cxy / det, cxx / det] }
}

/// The areas in A and in B of the matches within a residual of 1 of the point `a` or its partner, in units of π.
pub(super) fn reach(m: &Mat3, a: [f64; 2]) -> [f64; 2] {
    let t = transfer_error(m, a, [0.0; 2]);
    let [xx, xy, yy] = t.metric;
    // r² = 2 eᵀ (I + D Dᵀ)⁻¹ e ≤ 1 is an ellipse; D⁻¹ takes it to A.
    let in_b = 0.5 / (xx * yy - xy * xy).sqrt();
    let [w0, w1] = [m[2][0], m[2][1]];
    let d = |i: usize, at: f64| [(m[i][0] - at * w0) / t.w, (m[i][1] - at * w1) / t.w];
    let ([d00, d01], [d10, d11]) = (d(0, t.place[0]), d(1, t.place[1]));
    [in_b / (d00 * d11 - d01 * d10).abs(), in_b]
}

impl Transfer {
    #[inline(always)]
    fn squared(&self) -> f64 {
        let ([ex, ey], [xx, xy, yy]) = (self.e, self.metric);
        let r = 2.0 * (ex * (xx * ex + xy * ey) + ey * (xy * ex + yy * ey));
        // Written so that NaN becomes infinite.
        if self.w > 0.0 && r >= 0.0 { r } else { f64::INFINITY }
    }
}

/// The epipolar constraint and its gradient.
struct Epipolar {
    product: f64,
    norm: f64,
    /// F a and Fᵀ b, first two components.
    line_b: [f64; 2],
    line_a: [f64; 2],
}

impl Epipolar {
    #[inline(always)]
    fn squared(&self) -> f64 {
        let r = 2.0 * (self.product * self.product) / self.norm;
        // 0/0 for a match in both epipoles, which any fundamental matrix allows.
        if self.norm > 0.0 { r } else { 0.0 }
    }
}

#[inline(always)]
fn epipolar_error(f: &Mat3, [x, y]: [f64; 2], [u, v]: [f64; 2]) -> Epipolar {
    let row = |i: usize| f[i][0] * x + f[i][1] * y + f[i][2];
    let column = |j: usize| f[0][j] * u + f[1][j] * v + f[2][j];
    let (line_b, line_a) = ([row(0), row(1)], [column(0), column(1)]);
    let norm =
        line_b[0] * line_b[0] + line_b[1] * line_b[1] + (line_a[0] * line_a[0] + line_a[1] * line_a[1]);
    Epipolar { product: u * line_b[0] + v * line_b[1] + row(2), norm, line_b, line_a }
}

/// `JᵀWJ` and `JᵀWr` over the nine elements of a matrix.
pub(in crate::geometry) struct Normal {
    pub(in crate::geometry) matrix: [[f64; 9]; 9],
    pub(in crate::geometry) right: [f64; 9],
}

impl Normal {
    /// The system of matches with weights above 0.
    pub(super) fn new(kind: ModelKind, m: &Mat3, p: &Points, weights: &[f64]) -> Self {
        let mut normal = Self { matrix: [[0.0; 9]; 9], right: [0.0; 9] };
        for (i, &weight) in weights.iter().enumerate().filter(|(_, w)| **w > 0.0) {
            let (a, b) = ([p.xa[i], p.ya[i]], [p.xb[i], p.yb[i]]);
            match kind {
                ModelKind::Fundamental => normal.add_epipolar(m, a, b, weight),
                ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
                    normal.add_transfer(m, a, b, weight);
                }
            }
        }
        for i in 0..9 {
            (0..i).for_each(|j| normal.matrix[i][j] = normal.matrix[j][i]);
        }
        normal
    }

    fn add(&mut self, j: &[f64; 9], k: &[f64; 9], weight: f64, error: f64) {
        for (r, j) in j.iter().enumerate() {
            let f = weight * j;
            (r..9).for_each(|c| self.matrix[r][c] += f * k[c]);
            self.right[r] += f * error;
        }
    }

    fn add_transfer(&mut self, m: &Mat3, a: [f64; 2], b: [f64; 2], weight: f64) {
        let t = transfer_error(m, a, b);
        let [xx, xy, yy] = t.metric;
        let point = [a[0] / t.w, a[1] / t.w, 1.0 / t.w];
        let mut jx = [0.0; 9];
        let mut jy = [0.0; 9];
        for c in 0..3 {
            (jx[c], jy[3 + c]) = (point[c], point[c]);
            (jx[6 + c], jy[6 + c]) = (-t.place[0] * point[c], -t.place[1] * point[c]);
        }
        // The metric's Cholesky factor makes the two errors independent: M = Lᵀ L.
        let l0 = xx.sqrt();
        let l1 = xy / l0;
        let l2 = (yy - l1 * l1).max(0.0).sqrt();
        let first = std::array::from_fn(|c| l0 * jx[c] + l1 * jy[c]);
        let second = std::array::from_fn(|c| l2 * jy[c]);
        self.add(&first, &first, weight, l0 * t.e[0] + l1 * t.e[1]);
        self.add(&second, &second, weight, l2 * t.e[1]);
    }

    fn add_epipolar(&mut self, f: &Mat3, [x, y]: [f64; 2], [u, v]: [f64; 2], weight: f64) {
        let e = epipolar_error(f, [x, y], [u, v]);
        if e.norm <= 0.0 || e.norm.is_nan() {
            return;
        }
        let (a, b) = ([x, y, 1.0], [u, v, 1.0]);
        let j: [f64; 9] = std::array::from_fn(|k| {
            let (r, c) = (k / 3, k % 3);
            let line_b = if r < 2 { e.line_b[r] * a[c] } else { 0.0 };
            let line_a = if c < 2 { e.line_a[c] * b[r] } else { 0.0 };
            (b[r] * a[c] - e.product / e.norm * (line_b + line_a)) / e.norm.sqrt()
        });
        self.add(&j, &j, weight, -e.product / e.norm.sqrt());
    }

    /// The model one damped step on: λ is added as a share of the diagonal.
    pub(in crate::geometry) fn step(&self, kind: ModelKind, m: &Mat3, damping: f64) -> Option<Mat3> {
        match kind {
            ModelKind::Homography => self.step_homography(m, damping),
            ModelKind::Affine => {
                let basis: [[f64; 9]; 6] = std::array::from_fn(|i| one_at(&[(i, 1.0)]));
                self.step_in(m, &basis, damping)
            }
            ModelKind::Similarity => {
                let basis = [
                    one_at(&[(0, 1.0), (4, 1.0)]),
                    one_at(&[(1, -1.0), (3, 1.0)]),
                    one_at(&[(2, 1.0)]),
                    one_at(&[(5, 1.0)]),
                ];
                self.step_in(m, &basis, damping)
            }
            ModelKind::Fundamental => self.step_fundamental(m, damping),
        }
    }

    fn trace(&self) -> f64 {
        (0..9).map(|i| self.matrix[i][i]).sum()
    }

    /// A step inside the span of `basis`.
    fn step_in<const N: usize>(&self, m: &Mat3, basis: &[[f64; 9]; N], damping: f64) -> Option<Mat3> {
        let x = self.along(basis, damping)?;
        Some(moved(m, |e| (0..N).map(|i| basis[i][e] * x[i]).sum()))
    }

    /// The coefficients of a damped step inside the span of `basis`.
    pub(in crate::geometry) fn along<const N: usize>(
        &self,
        basis: &[[f64; 9]; N],
        damping: f64,
    ) -> Option<[f64; N]> {
        let mut a = [[0.0; N]; N];
        let mut b = [0.0; N];
        for i in 0..N {
            let row: [f64; 9] =
                std::array::from_fn(|c| (0..9).map(|r| basis[i][r] * self.matrix[r][c]).sum());
            (0..N).for_each(|j| a[i][j] = (0..9).map(|c| row[c] * basis[j][c]).sum());
            b[i] = (0..9).map(|r| basis[i][r] * self.right[r]).sum();
            a[i][i] *= 1.0 + damping;
        }
        solve(&mut a, &mut b)
    }

    /// The scale of H is free: a term along H itself keeps the system regular.
    fn step_homography(&self, m: &Mat3, damping: f64) -> Option<Mat3> {
        let (mut a, mut b) = (self.matrix, self.right);
        self.hold_scale(m, &mut a, damping);
        let x = solve(&mut a, &mut b)?;
        Some(moved(m, |e| x[e]))
    }

    /// The scale is kept in the same way, and det F = 0 to first order by a Lagrange multiplier, then
    /// exactly.
    fn step_fundamental(&self, m: &Mat3, damping: f64) -> Option<Mat3> {
        let mut inner = self.matrix;
        self.hold_scale(m, &mut inner, damping);
        let scale = self.trace();
        // The gradient of the determinant are the cofactors.
        let adjugate = adjugate(m);
        let mut a = [[0.0; 10]; 10];
        let mut b = [0.0; 10];
        for r in 0..9 {
            a[r][..9].copy_from_slice(&inner[r]);
            a[r][9] = adjugate[r % 3][r / 3] * scale;
            a[9][r] = a[r][9];
            b[r] = self.right[r];
        }
        b[9] = -determinant(m) * scale;
        let x = solve(&mut a, &mut b)?;
        crate::geometry::matrix::unit(&rank_two(&moved(m, |e| x[e])))
    }

    fn hold_scale(&self, m: &Mat3, a: &mut [[f64; 9]; 9], damping: f64) {
        let h: [f64; 9] = std::array::from_fn(|e| m[e / 3][e % 3]);
        let hold = self.trace() / h.iter().map(|v| v * v).sum::<f64>().max(f64::MIN_POSITIVE);
        for r in 0..9 {
            a[r][r] *= 1.0 + damping;
            (0..9).for_each(|c| a[r][c] += hold * h[r] * h[c]);
        }
    }
}

fn one_at(elements: &[(usize, f64)]) -> [f64; 9] {
    let mut v = [0.0; 9];
    elements.iter().for_each(|&(i, x)| v[i] = x);
    v
}

fn moved(m: &Mat3, by: impl Fn(usize) -> f64) -> Mat3 {
    std::array::from_fn(|i| std::array::from_fn(|j| m[i][j] + by(3 * i + j)))
}
