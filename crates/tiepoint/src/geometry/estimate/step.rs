//! A Gauss–Newton step: from a model and the sums over its matches (`residual`) to the next model. `step.h` does the
//! same on a GPU for the models that it searches for.
//!
//! - **Homography**: all nine elements move, the scale is held by a term along H itself.
//! - **Affine map, similarity, translation**: inside the span of their parameters.
//! - **Rigid motion**: the angle and the shift move, then the rotation is scaled to length 1.
//! - **Fundamental matrix**: the scale is held, det F = 0 is kept to first order by a Lagrange multiplier, then the nearest
//!   matrix of rank 2 is taken.
//! - **Essential matrix**: E becomes R E R' with two small rotations by Cayley's formula, which keeps it essential.

use super::Fit;
use super::rays::Rays;
use super::residual::{EPIPOLAR, TRANSFER};
use crate::geometry::ModelKind;
use crate::geometry::linear::solve;
use crate::geometry::matrix::{Mat3, adjugate, cayley, determinant, flat, is_finite, product, skew, unit};
use crate::geometry::model::rank_two;

/// `JᵀWJ` and `JᵀWe` over the nine elements of a matrix.
pub(super) struct Normal {
    pub(super) matrix: [[f64; 9]; 9],
    pub(super) right: [f64; 9],
}

/// The index of element (r, c) of a symmetric 3×3 block among its six stored ones.
const PACKED: [[usize; 3]; 3] = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];

/// A share of the diagonal that is added so that the step of an essential matrix is determined: it has five degrees of
/// freedom but six parameters.
const DAMPING: f64 = 1e-6;

impl Normal {
    pub(super) fn of_map(sums: &[f64; TRANSFER]) -> Self {
        let mut normal = Self { matrix: [[0.0; 9]; 9], right: [0.0; 9] };
        for r in 0..3 {
            for c in 0..3 {
                let at = |block: usize| sums[1 + 6 * block + PACKED[r][c]];
                let m = &mut normal.matrix;
                (m[r][c], m[3 + r][3 + c], m[6 + r][6 + c]) = (at(0), at(2), at(5));
                (m[r][3 + c], m[3 + c][r]) = (at(1), at(1));
                (m[r][6 + c], m[6 + c][r]) = (-at(3), -at(3));
                (m[3 + r][6 + c], m[6 + c][3 + r]) = (-at(4), -at(4));
            }
        }
        normal.right.copy_from_slice(&sums[37..]);
        normal
    }

    pub(super) fn of_epipolar(sums: &[f64; EPIPOLAR]) -> Self {
        let mut normal = Self { matrix: [[0.0; 9]; 9], right: [0.0; 9] };
        let mut at = 1;
        for r in 0..9 {
            for c in r..9 {
                (normal.matrix[r][c], normal.matrix[c][r]) = (sums[at], sums[at]);
                at += 1;
            }
            normal.right[r] = sums[46 + r];
        }
        normal
    }

    /// The fit after one damped step: `damping` is added as a share of the diagonal.
    pub(super) fn step(&self, kind: ModelKind, at: &Fit, rays: Option<&Rays>, damping: f64) -> Option<Fit> {
        let m = &at.model;
        let model = match kind {
            ModelKind::Homography => self.homography(m, damping)?,
            ModelKind::Affine => {
                self.inside(m, &std::array::from_fn::<_, 6, _>(|i| one_at(&[(i, 1.0)])), damping)?
            }
            ModelKind::Similarity => {
                let turned = [one_at(&[(0, 1.0), (4, 1.0)]), one_at(&[(1, -1.0), (3, 1.0)])];
                self.inside(m, &[turned[0], turned[1], one_at(&[(2, 1.0)]), one_at(&[(5, 1.0)])], damping)?
            }
            ModelKind::Rigid => {
                let (c, s) = (m[0][0], m[1][0]);
                let turned = one_at(&[(0, -s), (1, -c), (3, c), (4, -s)]);
                let m = self.inside(m, &[turned, one_at(&[(2, 1.0)]), one_at(&[(5, 1.0)])], damping)?;
                let (c, s) = (m[0][0], m[1][0]);
                let length = (c * c + s * s).sqrt();
                let (c, s) = (c / length, s / length);
                [[c, -s, m[0][2]], [s, c, m[1][2]], m[2]]
            }
            ModelKind::Translation => self.inside(m, &[one_at(&[(2, 1.0)]), one_at(&[(5, 1.0)])], damping)?,
            ModelKind::Fundamental => self.fundamental(m, damping)?,
            ModelKind::Essential => {
                let rays = rays?;
                let essential = self.essential(&at.essential, rays, damping)?;
                let next = Fit { model: rays.fundamental(&essential), essential, ..*at };
                return is_finite(&next.model).then_some(next);
            }
        };
        is_finite(&model).then_some(Fit { model, ..*at })
    }

    fn trace(&self) -> f64 {
        (0..9).map(|i| self.matrix[i][i]).sum()
    }

    /// A step inside the span of `basis`. The vectors are scaled so that all change the residuals equally, because the
    /// units of the two images may differ by any factor.
    fn inside<const N: usize>(&self, m: &Mat3, basis: &[[f64; 9]; N], damping: f64) -> Option<Mat3> {
        let length = |v: &[f64; 9]| {
            (0..81).map(|k| v[k / 9] * self.matrix[k / 9][k % 9] * v[k % 9]).sum::<f64>().sqrt()
        };
        let basis = basis.map(|v| v.map(|x| x / length(&v)));
        let x = self.along(&basis, damping)?;
        Some(moved(m, |e| (0..N).map(|i| basis[i][e] * x[i]).sum()))
    }

    /// The coefficients of a damped step inside the span of `basis`.
    pub(super) fn along<const N: usize>(&self, basis: &[[f64; 9]; N], damping: f64) -> Option<[f64; N]> {
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

    fn homography(&self, m: &Mat3, damping: f64) -> Option<Mat3> {
        let (mut a, mut b) = (self.matrix, self.right);
        self.hold_scale(m, &mut a, damping);
        let x = solve(&mut a, &mut b)?;
        Some(moved(m, |e| x[e]))
    }

    fn fundamental(&self, m: &Mat3, damping: f64) -> Option<Mat3> {
        let mut inner = self.matrix;
        self.hold_scale(m, &mut inner, damping);
        let scale = self.trace();
        // The gradient of the determinant is the matrix of cofactors.
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
        unit(&rank_two(&moved(m, |e| x[e])))
    }

    fn essential(&self, e: &Mat3, rays: &Rays, damping: f64) -> Option<Mat3> {
        let axis = |i: usize| skew(std::array::from_fn(|j| f64::from(u8::from(i == j))));
        let basis: [[f64; 9]; 6] = std::array::from_fn(|i| {
            let turned = if i < 3 { product(&axis(i), e) } else { product(e, &axis(i - 3)) };
            flat(&rays.fundamental(&turned))
        });
        let [a, b, c, d, f, g] = self.along(&basis, DAMPING + damping)?;
        Some(product(&product(&cayley([a, b, c]), e), &cayley([d, f, g])))
    }

    fn hold_scale(&self, m: &Mat3, a: &mut [[f64; 9]; 9], damping: f64) {
        let h = flat(m);
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
