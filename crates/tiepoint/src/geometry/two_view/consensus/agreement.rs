//! Whether a match agrees with a model: without a division, so that it costs little and is exact to state.
//!
//! With F a = (l₀, l₁, ·), Fᵀ b = (m₀, m₁, ·) a match agrees with epipolar geometry when (bᵀFa)² ≤ T² (l₀² + l₁² +
//! (m₀² + m₁²)): Sampson's distance (Hartley, Zisserman 2004, equation 11.9). With H a = (u, v, w) it agrees with a
//! homography when w > 0 and (u − x w)² + (v − y w)² ≤ T² w²: the distance in B. Sums from left to right; f64, nothing
//! fused.

use super::Kind;
use crate::geometry::estimate::points::Points;
use crate::geometry::real::{Real, WIDTH, splat};
use fearless_simd::{Simd, f64x8, prelude::*};

/// A match: its places (x, y) in A and (u, v) in B.
type Places<R> = [R; 4];

#[inline(always)]
fn epipolar<R: Real>(f: &[R; 9], [x, y, u, v]: Places<R>, limit: R) -> R::Mask {
    let row = |i: usize| f[3 * i] * x + f[3 * i + 1] * y + f[3 * i + 2];
    let column = |j: usize| f[j] * u + f[3 + j] * v + f[6 + j];
    let (l0, l1, m0, m1) = (row(0), row(1), column(0), column(1));
    let product = u * l0 + v * l1 + row(2);
    (product * product).at_most(limit * (l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1)))
}

#[inline(always)]
fn transfer<R: Real>(h: &[R; 9], [x, y, u, v]: Places<R>, limit: R) -> R::Mask {
    let row = |i: usize| h[3 * i] * x + h[3 * i + 1] * y + h[3 * i + 2];
    let w = row(2);
    let (p, q) = (row(0) - u * w, row(1) - v * w);
    R::both(w.above(w.constant(0.0)), (p * p + q * q).at_most(limit * (w * w)))
}

#[inline(always)]
fn agrees<R: Real>(kind: Kind, m: &[R; 9], places: Places<R>, limit: R) -> R::Mask {
    match kind {
        Kind::Homography => transfer(m, places, limit),
        Kind::Fundamental | Kind::Essential => epipolar(m, places, limit),
    }
}

/// Positions of the matches that agree, ascending. `limit` is T².
pub(super) fn inliers(kind: Kind, m: &[f64; 9], points: &Points, limit: f64) -> Vec<usize> {
    (0..points.len()).filter(|&i| agrees(kind, m, points.places(i), limit)).collect()
}

/// Vectors after which a count that cannot exceed `least` any more ends.
const LOOK: usize = 8;

/// How many matches agree, or any number up to `least` if they are no more than that.
#[inline(always)]
pub(super) fn count<S: Simd>(
    simd: S,
    kind: Kind,
    m: &[f64; 9],
    points: &Points,
    limit: f64,
    least: u32,
) -> u32 {
    let model = splat(simd, m);
    let (one, zero) = (f64x8::splat(simd, 1.0), f64x8::splat(simd, 0.0));
    let limit = f64x8::splat(simd, limit);
    let mut sum = zero;
    let vectors = points.vectors();
    for first in (0..vectors).step_by(LOOK) {
        for i in first..vectors.min(first + LOOK) {
            let agrees = agrees(kind, &model, points.vector(simd, i), limit);
            sum += agrees.select(one, zero);
        }
        let left = points.len().saturating_sub((first + LOOK) * WIDTH);
        let found = total(sum);
        if left > 0 && found + left as u32 <= least {
            return found;
        }
    }
    total(sum)
}

#[inline(always)]
fn total<S: Simd>(sum: f64x8<S>) -> u32 {
    let pair = |i: usize| sum[i] + sum[i + 4];
    ((pair(0) + pair(2)) + (pair(1) + pair(3))) as u32
}
