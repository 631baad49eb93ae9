//! The residual of a match under a model, and a Gauss–Newton step that reduces it.
//!
//! **Point models**, with transfer error e = b − m(a) and D the derivative of m at a: r² = 2 eᵀ (I + D Dᵀ)⁻¹
//! e, to first order the harmonic mean of the squared transfer errors in A and in B, the same seen from
//! either side; |e|² for a map that keeps lengths. **Fundamental matrix**: r² = 2 (bᵀFa)² / (|Fa|² + |Fᵀb|²),
//! norms over the first two components: the harmonic mean of the squared distances to the epipolar lines.
//! Both are twice Sampson's approximation (Hartley, Zisserman 2004, sections 4.2.6 and 11.4.3).
//!
//! All in f64, in the order written, without fusing: the same bits for one match and for eight side by side.

#![allow(clippy::needless_range_loop, reason = "indices of rows, columns and lanes are the notation here")]

use crate::geometry::ModelKind;
use crate::geometry::linear::solve;
use crate::geometry::matrix::{Mat3, adjugate, determinant, flat};
use crate::geometry::model::rank_two;
use crate::geometry::real::{Real, each};

/// r² of a match (x, y in A, u, v in B); infinite behind the horizon, and perhaps not a number where the match is none.
#[inline(always)]
pub(super) fn squared<R: Real>(kind: ModelKind, m: &[R; 9], places: [R; 4]) -> R {
    match kind {
        ModelKind::Fundamental => Epipolar::new(m, places).squared(),
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
            Transfer::new(m, places).squared()
        }
    }
}

/// A transfer error and its metric. Divisions take longest: there are two.
struct Transfer<R> {
    /// Denominator, its inverse, and point in B.
    w: R,
    inverse: R,
    place: [R; 2],
    e: [R; 2],
    /// The symmetric (I + D Dᵀ)⁻¹: xx, xy, yy.
    metric: [R; 3],
}

impl<R: Real> Transfer<R> {
    #[inline(always)]
    fn new(m: &[R; 9], [x, y, xb, yb]: [R; 4]) -> Self {
        let row = |i: usize| m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2];
        let w = row(2);
        let inverse = w.constant(1.0) / w;
        let (u, v) = (row(0) * inverse, row(1) * inverse);
        let d = |i: usize, at: R, j: usize| (m[3 * i + j] - at * m[6 + j]) * inverse;
        let (d00, d01, d10, d11) = (d(0, u, 0), d(0, u, 1), d(1, v, 0), d(1, v, 1));
        let (cxx, cyy) = (d00 * d00 + d01 * d01 + 1.0, d10 * d10 + d11 * d11 + 1.0);
        let cxy = d00 * d10 + d01 * d11;
        let over = w.constant(1.0) / (cxx * cyy - cxy * cxy);
        let metric = [cyy * over, -cxy * over, cxx * over];
        Self { w, inverse, place: [u, v], e: [xb - u, yb - v], metric }
    }

    #[inline(always)]
    fn squared(&self) -> R {
        let ([ex, ey], [xx, xy, yy]) = (self.e, self.metric);
        let r = (ex * (xx * ex + xy * ey) + ey * (xy * ex + yy * ey)) * 2.0;
        let zero = r.constant(0.0);
        // Written so that NaN becomes infinite.
        let is_in_front = R::both(self.w.above(zero), zero.at_most(r));
        R::choose(is_in_front, r, r.constant(f64::INFINITY))
    }
}

/// The areas in A and in B of the matches within a residual of 1 of the point `a` or its partner, in units of π.
pub(super) fn reach(m: &Mat3, a: [f64; 2]) -> [f64; 2] {
    let t = Transfer::new(&flat(m), [a[0], a[1], 0.0, 0.0]);
    let [xx, xy, yy] = t.metric;
    // r² = 2 eᵀ (I + D Dᵀ)⁻¹ e ≤ 1 is an ellipse; D⁻¹ takes it to A.
    let in_b = 0.5 / (xx * yy - xy * xy).sqrt();
    let [w0, w1] = [m[2][0], m[2][1]];
    let d = |i: usize, at: f64| [(m[i][0] - at * w0) / t.w, (m[i][1] - at * w1) / t.w];
    let ([d00, d01], [d10, d11]) = (d(0, t.place[0]), d(1, t.place[1]));
    [in_b / (d00 * d11 - d01 * d10).abs(), in_b]
}

/// The epipolar constraint and its gradient.
struct Epipolar<R> {
    product: R,
    norm: R,
    /// F a and Fᵀ b, first two components.
    line_b: [R; 2],
    line_a: [R; 2],
}

impl<R: Real> Epipolar<R> {
    #[inline(always)]
    fn new(f: &[R; 9], [x, y, u, v]: [R; 4]) -> Self {
        let row = |i: usize| f[3 * i] * x + f[3 * i + 1] * y + f[3 * i + 2];
        let column = |j: usize| f[j] * u + f[3 + j] * v + f[6 + j];
        let (line_b, line_a) = ([row(0), row(1)], [column(0), column(1)]);
        let norm =
            line_b[0] * line_b[0] + line_b[1] * line_b[1] + (line_a[0] * line_a[0] + line_a[1] * line_a[1]);
        Self { product: u * line_b[0] + v * line_b[1] + row(2), norm, line_b, line_a }
    }

    #[inline(always)]
    fn squared(&self) -> R {
        let r = self.product * self.product * 2.0 / self.norm;
        let zero = r.constant(0.0);
        // 0/0 for a match in both epipoles, which any fundamental matrix allows.
        R::choose(self.norm.at_most(zero), zero, r)
    }
}

/// Sums of a system: its upper triangle row by row, and its right side.
pub(super) const SUMS: usize = 54;

/// r² of a match, and what it adds to the system: its weight by r² times `JᵀJ` and `Jᵀe` over the nine elements of the
/// model. Nothing where the weight is not above 0. `weigh` gives score and weight.
#[inline(always)]
pub(super) fn term<R: Real>(
    kind: ModelKind,
    m: &[R; 9],
    places: [R; 4],
    weigh: impl Fn(R) -> [R; 2],
) -> (R, [R; SUMS]) {
    match kind {
        ModelKind::Fundamental => epipolar_term(m, places, weigh),
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => transfer_term(m, places, weigh),
    }
}

/// Where the element (r, c) of the upper triangle stands among the sums.
const fn place(r: usize, c: usize) -> usize {
    9 * r + c - r * (r + 1) / 2
}

#[inline(always)]
fn transfer_term<R: Real>(m: &[R; 9], places: [R; 4], weigh: impl Fn(R) -> [R; 2]) -> (R, [R; SUMS]) {
    let t = Transfer::new(m, places);
    let [score, weight] = weigh(t.squared());
    let zero = weight.constant(0.0);
    let counts = weight.above(zero);
    let kept = |value: R| R::choose(counts, value, zero);
    let inverse = kept(t.inverse);
    let ([ex, ey], [xx, xy, yy]) = (
        each(t.e, kept),
        each(
            t.metric,
            #[inline(always)]
            |v| kept(v) * weight,
        ),
    );
    let ([u, v], [x, y]) = (each(t.place, kept), each([places[0], places[1]], kept));
    // J has rows (p, 0, −u p) and (0, p, −v p).
    let p = [x * inverse, y * inverse, inverse];
    let (gx, gy) = (xx * ex + xy * ey, xy * ex + yy * ey);
    let (along_x, along_y) = (xx * u + xy * v, xy * u + yy * v);
    let far = along_x * u + along_y * v;
    let mut sums = [zero; SUMS];
    for r in 0..3 {
        for c in 0..3 {
            let square = p[r] * p[c];
            if r <= c {
                sums[place(r, c)] = xx * square;
                sums[place(3 + r, 3 + c)] = yy * square;
                sums[place(6 + r, 6 + c)] = far * square;
            }
            sums[place(r, 3 + c)] = xy * square;
            sums[place(r, 6 + c)] = -(along_x * square);
            sums[place(3 + r, 6 + c)] = -(along_y * square);
        }
        sums[45 + r] = gx * p[r];
        sums[48 + r] = gy * p[r];
        sums[51 + r] = -((gx * u + gy * v) * p[r]);
    }
    (score, sums)
}

#[inline(always)]
fn epipolar_term<R: Real>(f: &[R; 9], places: [R; 4], weigh: impl Fn(R) -> [R; 2]) -> (R, [R; SUMS]) {
    let e = Epipolar::new(f, places);
    let [score, weight] = weigh(e.squared());
    let (zero, one) = (weight.constant(0.0), weight.constant(1.0));
    let counts = R::both(weight.above(zero), e.norm.above(zero));
    let kept = |value: R| R::choose(counts, value, zero);
    let norm = R::choose(counts, e.norm, one);
    let weight = kept(weight) / norm;
    let (error, slope) = (kept(e.product), kept(e.product) / norm);
    let [x, y, u, v] = each(places, kept);
    let (line_b, line_a) = (each(e.line_b, kept), each(e.line_a, kept));
    let (a, b) = ([x, y, one], [u, v, one]);
    let mut j = [zero; 9];
    for (k, j) in j.iter_mut().enumerate() {
        let (r, c) = (k / 3, k % 3);
        let line_b = if r < 2 { line_b[r] * a[c] } else { zero };
        let line_a = if c < 2 { line_a[c] * b[r] } else { zero };
        *j = b[r] * a[c] - slope * (line_b + line_a);
    }
    let mut sums = [zero; SUMS];
    for r in 0..9 {
        let weighted = weight * j[r];
        for c in r..9 {
            sums[place(r, c)] = weighted * j[c];
        }
        sums[45 + r] = -(weighted * error);
    }
    (score, sums)
}

/// `JᵀWJ` and `JᵀWe` over the nine elements of a matrix.
pub(in crate::geometry) struct Normal {
    pub(in crate::geometry) matrix: [[f64; 9]; 9],
    pub(in crate::geometry) right: [f64; 9],
}

impl Normal {
    /// Of the sums of [`term`].
    pub(super) fn new(sums: &[f64; SUMS]) -> Self {
        let matrix = std::array::from_fn(|r| std::array::from_fn(|c| sums[place(r.min(c), r.max(c))]));
        Self { matrix, right: std::array::from_fn(|r| sums[45 + r]) }
    }

    /// The same system for a step so many times as long.
    pub(super) fn stretched(&self, factor: f64) -> Self {
        Self { right: self.right.map(|r| r * factor), ..*self }
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
