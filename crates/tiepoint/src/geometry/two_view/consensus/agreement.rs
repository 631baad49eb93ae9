//! Whether a match agrees with a model: without a division, so that it costs little and is exact to state.
//!
//! With F a = (l₀, l₁, ·), Fᵀ b = (m₀, m₁, ·) a match agrees with epipolar geometry when (bᵀFa)² ≤ T² (l₀² + l₁² + m₀² +
//! m₁²): Sampson's distance (Hartley, Zisserman 2004, equation 11.9). With H a = (u, v, w) it agrees with a homography
//! when w > 0 and (u − x w)² + (v − y w)² ≤ T² w²: the distance in B. Sums from left to right; f64, nothing fused.

use super::Kind;
use crate::geometry::estimate::points::Points;
use crate::geometry::matrix::Mat3;

#[inline(always)]
fn epipolar(f: &Mat3, [x, y]: [f64; 2], [u, v]: [f64; 2], limit: f64) -> bool {
    let row = |i: usize| f[i][0] * x + f[i][1] * y + f[i][2];
    let column = |j: usize| f[0][j] * u + f[1][j] * v + f[2][j];
    let (l0, l1, m0, m1) = (row(0), row(1), column(0), column(1));
    let product = u * l0 + v * l1 + row(2);
    product * product <= limit * (l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1))
}

#[inline(always)]
fn transfer(h: &Mat3, [x, y]: [f64; 2], [u, v]: [f64; 2], limit: f64) -> bool {
    let row = |i: usize| h[i][0] * x + h[i][1] * y + h[i][2];
    let w = row(2);
    let (p, q) = (row(0) - u * w, row(1) - v * w);
    w > 0.0 && p * p + q * q <= limit * (w * w)
}

/// Positions of the matches that agree, ascending. `limit` is T².
pub(super) fn inliers(kind: Kind, m: &Mat3, p: &Points, limit: f64) -> Vec<usize> {
    let place = |i: usize| ([p.xa[i], p.ya[i]], [p.xb[i], p.yb[i]]);
    let agrees = |&i: &usize| {
        let (a, b) = place(i);
        match kind {
            Kind::Homography => transfer(m, a, b, limit),
            Kind::Fundamental | Kind::Essential => epipolar(m, a, b, limit),
        }
    };
    (0..p.len()).filter(agrees).collect()
}

/// How many matches agree.
pub(super) fn count(kind: Kind, m: &Mat3, p: &Points, limit: f64) -> u32 {
    inliers(kind, m, p, limit).len() as u32
}
