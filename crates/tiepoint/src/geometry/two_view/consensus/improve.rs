//! A model moved towards the matches that agree with it: Gauss–Newton steps on Sampson's distance or the distance in B,
//! each match weighted by Tukey's biweight (1 − r²/T²)² of its residual, T at first twice the threshold.
//!
//! - **Fundamental matrix**: a step keeps det F = 0 to first order, then the nearest matrix of rank 2 is taken.
//! - **Essential matrix**: E becomes R E R' with two small rotations by Cayley's formula, which keeps it essential.
//! - **Homography**: all nine elements move, the scale is held.
//!
//! Sums over the matches are [`LANES`] sums, of every [`LANES`]-th match each, in their order, and then added in pairs:
//! lane l and lane l + 32, then l and l + 16, and so on. f64, nothing fused.

#![expect(clippy::needless_range_loop, reason = "indices of rows and columns are the notation here")]

use super::{Found, Kind, Prepared, Rays};
use crate::device::{Level, dispatch};
use crate::geometry::ModelKind;
use crate::geometry::estimate::points::{BLOCK, Points};
use crate::geometry::estimate::residual::Normal;
use crate::geometry::matrix::flat;
use crate::geometry::matrix::{Mat3, cayley, is_finite, product, skew};
use crate::geometry::real::{Real, WIDTH, each, splat};
use fearless_simd::{Simd, f64x8, prelude::*};

/// Sums side by side.
pub(super) const LANES: usize = BLOCK;

/// T² of each step, in units of the threshold's square.
const LIMITS: [f64; 6] = [4.0, 2.25, 1.0, 1.0, 1.0, 1.0];

/// The model of most inliers among the start and those of [`LIMITS`]' steps; of as many the last.
pub(super) fn improve(prepared: &Prepared, start: Found, level: Level) -> Found {
    let limit = prepared.limit();
    let mut best = start;
    let mut at = start;
    for wide in LIMITS {
        let Some(next) = step(prepared, &at, wide * limit, level) else { break };
        at = Found { inliers: prepared.count(&next, level), ..next };
        if at.inliers >= best.inliers {
            best = at;
        }
    }
    best
}

/// Steps of the last model, and the share of inliers, one in so many, that it may lose by them: where they lead has
/// been fitted to all inliers, and where they start perhaps to a few.
const LAST_STEPS: usize = 4;
const LOSS: u32 = 32;

/// Where the steps lead from the best model, unless too many of its inliers are lost.
pub(super) fn settle(prepared: &Prepared, best: Found, level: Level) -> Found {
    let mut at = best;
    for _ in 0..LAST_STEPS {
        let Some(next) = step(prepared, &at, prepared.limit(), level) else { return best };
        at = next;
    }
    let settled = Found { inliers: prepared.count(&at, level), ..at };
    if settled.inliers >= best.inliers - best.inliers / LOSS { settled } else { best }
}

fn step(prepared: &Prepared, at: &Found, limit: f64, level: Level) -> Option<Found> {
    let normal = normal(at.kind, &at.model, &prepared.points, limit, level);
    let next = match (at.kind, &prepared.rays) {
        (Kind::Homography, _) => Found { model: normal.step(ModelKind::Homography, &at.model, 0.0)?, ..*at },
        (Kind::Fundamental, _) => {
            Found { model: normal.step(ModelKind::Fundamental, &at.model, 0.0)?, ..*at }
        }
        (Kind::Essential, Some(rays)) => {
            let essential = step_essential(&normal, &at.essential, rays)?;
            Found { model: rays.fundamental(&essential), essential, ..*at }
        }
        (Kind::Essential, None) => return None,
    };
    is_finite(&next.model).then_some(next)
}

/// Share of the diagonal that keeps the step of an essential matrix determined: it has five degrees of freedom and six
/// parameters.
const DAMPING: f64 = 1e-6;

fn step_essential(normal: &Normal, e: &Mat3, rays: &Rays) -> Option<Mat3> {
    let axis = |i: usize| skew(std::array::from_fn(|j| f64::from(u8::from(i == j))));
    let basis: [[f64; 9]; 6] = std::array::from_fn(|i| {
        let turned = if i < 3 { product(&axis(i), e) } else { product(e, &axis(i - 3)) };
        flat(&rays.fundamental(&turned))
    });
    let [a, b, c, d, f, g] = normal.along(&basis, DAMPING)?;
    Some(product(&product(&cayley([a, b, c]), e), &cayley([d, f, g])))
}

/// The weighted system of a step.
pub(super) fn normal(kind: Kind, m: &Mat3, points: &Points, limit: f64, level: Level) -> Normal {
    let m = flat(m);
    match kind {
        Kind::Homography => homography(&dispatch!(level, simd => transfer_sums(simd, &m, points, limit))),
        Kind::Fundamental | Kind::Essential => {
            epipolar(&dispatch!(level, simd => epipolar_sums(simd, &m, points, limit)))
        }
    }
}

/// Sums for epipolar geometry: the upper triangle of the system, row by row, and its right side.
pub(super) const EPIPOLAR: usize = 54;
/// Sums for a homography.
pub(super) const TRANSFER: usize = 33;

#[inline(always)]
fn epipolar_sums<S: Simd>(simd: S, m: &[f64; 9], points: &Points, limit: f64) -> [f64; EPIPOLAR] {
    let model = splat(simd, m);
    let limit = f64x8::splat(simd, limit);
    sums(
        simd,
        points,
        #[inline(always)]
        |i| epipolar_term(&model, points.vector(simd, i), limit),
    )
}

#[inline(always)]
fn transfer_sums<S: Simd>(simd: S, m: &[f64; 9], points: &Points, limit: f64) -> [f64; TRANSFER] {
    let model = splat(simd, m);
    let limit = f64x8::splat(simd, limit);
    sums(
        simd,
        points,
        #[inline(always)]
        |i| transfer_term(&model, points.vector(simd, i), limit),
    )
}

/// `K` sums over vectors of terms in the order of the contract.
#[inline(always)]
fn sums<S: Simd, const K: usize>(
    simd: S,
    points: &Points,
    term: impl Fn(usize) -> [f64x8<S>; K],
) -> [f64; K] {
    let mut lanes = [[0.0; LANES]; K];
    let vectors = points.vectors();
    for part in 0..LANES / WIDTH {
        let mut sums = [f64x8::splat(simd, 0.0); K];
        for i in (part..vectors).step_by(LANES / WIDTH) {
            let term = term(i);
            for k in 0..K {
                sums[k] += term[k];
            }
        }
        for k in 0..K {
            sums[k].store_slice(&mut lanes[k][part * WIDTH..][..WIDTH]);
        }
    }
    lanes.map(in_pairs)
}

fn in_pairs(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        (0..half).for_each(|l| lanes[l] += lanes[l + half]);
        half /= 2;
    }
    lanes[0]
}

/// Tukey's biweight of r² / T².
#[inline(always)]
fn biweight<R: Real>(share: R) -> R {
    let q = share.constant(1.0) - share;
    q * q
}

/// What a match adds: nothing beyond the limit, and nothing where there is none.
#[inline(always)]
fn epipolar_term<R: Real>(f: &[R; 9], [x, y, u, v]: [R; 4], limit: R) -> [R; EPIPOLAR] {
    let row = |i: usize| f[3 * i] * x + f[3 * i + 1] * y + f[3 * i + 2];
    let column = |j: usize| f[j] * u + f[3 + j] * v + f[6 + j];
    let (l0, l1, m0, m1) = (row(0), row(1), column(0), column(1));
    let norm = l0 * l0 + l1 * l1 + (m0 * m0 + m1 * m1);
    let error = u * l0 + v * l1 + row(2);
    let (zero, one) = (norm.constant(0.0), norm.constant(1.0));
    let share = error * error / (limit * norm);
    let counts = one.above(share);
    let kept = |value: R| R::choose(counts, value, zero);
    let weight = kept(biweight(share) / norm);
    let (slope, error) = (kept(error / norm), kept(error));
    let [x, y, u, v] = each([x, y, u, v], kept);
    let [l0, l1, m0, m1] = each([l0, l1, m0, m1], kept);
    // The derivative by F of the error over its gradient's length, times that length.
    let j = [
        u * x - slope * (l0 * x + m0 * u),
        u * y - slope * (l0 * y + m1 * u),
        u - slope * l0,
        v * x - slope * (l1 * x + m0 * v),
        v * y - slope * (l1 * y + m1 * v),
        v - slope * l1,
        x - slope * m0,
        y - slope * m1,
        one,
    ];
    let mut term = [zero; EPIPOLAR];
    let mut at = 0;
    for r in 0..9 {
        let weighted = weight * j[r];
        for c in r..9 {
            term[at] = weighted * j[c];
            at += 1;
        }
        term[45 + r] = weighted * -error;
    }
    term
}

fn epipolar(sums: &[f64; EPIPOLAR]) -> Normal {
    let mut normal = Normal { matrix: [[0.0; 9]; 9], right: [0.0; 9] };
    let mut at = 0;
    for r in 0..9 {
        for c in r..9 {
            (normal.matrix[r][c], normal.matrix[c][r]) = (sums[at], sums[at]);
            at += 1;
        }
        normal.right[r] = sums[45 + r];
    }
    normal
}

/// The blocks of the system of a homography are Σ s aaᵀ, Σ s u aaᵀ, Σ s v aaᵀ and Σ s (u² + v²) aaᵀ with s the weight
/// over w², (u, v) the place in B that H gives.
#[inline(always)]
fn transfer_term<R: Real>(h: &[R; 9], [x, y, xb, yb]: [R; 4], limit: R) -> [R; TRANSFER] {
    let row = |i: usize| h[3 * i] * x + h[3 * i + 1] * y + h[3 * i + 2];
    let w = row(2);
    let (zero, one) = (w.constant(0.0), w.constant(1.0));
    let (u, v) = (row(0) / w, row(1) / w);
    let (p, q) = (xb - u, yb - v);
    let share = (p * p + q * q) / limit;
    let counts = R::both(w.above(zero), one.above(share));
    let kept = |value: R| R::choose(counts, value, zero);
    let weight = kept(biweight(share) / w);
    let s = kept(weight / w);
    let [x, y, u, v, p, q] = each([x, y, u, v, p, q], kept);
    let outer = [s * x * x, s * x * y, s * x, s * y * y, s * y, s];
    let (far, along) = (u * u + v * v, u * p + v * q);
    let (wp, wq, wa) = (weight * p, weight * q, -(weight * along));
    let mut term = [zero; TRANSFER];
    for k in 0..6 {
        (term[k], term[6 + k]) = (outer[k], u * outer[k]);
        (term[12 + k], term[18 + k]) = (v * outer[k], far * outer[k]);
    }
    for (k, by) in [x, y, one].into_iter().enumerate() {
        (term[24 + k], term[27 + k], term[30 + k]) = (wp * by, wq * by, wa * by);
    }
    term
}

fn homography(sums: &[f64; TRANSFER]) -> Normal {
    let mut normal = Normal { matrix: [[0.0; 9]; 9], right: [0.0; 9] };
    let packed = [[0, 1, 2], [1, 3, 4], [2, 4, 5]];
    for r in 0..3 {
        for c in 0..3 {
            let at = packed[r][c];
            normal.matrix[r][c] = sums[at];
            normal.matrix[3 + r][3 + c] = sums[at];
            (normal.matrix[r][6 + c], normal.matrix[6 + c][r]) = (-sums[6 + at], -sums[6 + at]);
            (normal.matrix[3 + r][6 + c], normal.matrix[6 + c][3 + r]) = (-sums[12 + at], -sums[12 + at]);
            normal.matrix[6 + r][6 + c] = sums[18 + at];
        }
    }
    normal.right.copy_from_slice(&sums[24..]);
    normal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::geometry::Correspondence;
    use crate::numeric::Random;

    /// The sums match by match, as the contract says.
    fn plain<const K: usize>(points: &Points, term: impl Fn([f64; 4]) -> [f64; K]) -> [f64; K] {
        let mut lanes = [[0.0; LANES]; K];
        for i in 0..points.len() {
            let term = term(points.places(i));
            (0..K).for_each(|k| lanes[k][i % LANES] += term[k]);
        }
        lanes.map(in_pairs)
    }

    #[test]
    fn every_level_sums_as_the_contract_says() {
        let mut random = Random::new(2);
        for n in [1, 7, 8, 63, 64, 65, 300] {
            let mut place = || [random.range(0.0, 640.0), random.range(0.0, 480.0)];
            let pair = |_| Correspondence { a: place(), b: place(), quality: 0.0 };
            let (pairs, all): (Vec<_>, Vec<_>) = ((0..n).map(pair).collect(), (0..n).collect());
            let points = Points::new(&pairs, &all, &Cpu::sequential());
            let m: [f64; 9] =
                std::array::from_fn(|i| random.range(-0.3, 0.3) + f64::from(u8::from(i % 4 == 0)));
            for limit in [0.02, 4.0] {
                let epipolar = plain(&points, |p| epipolar_term(&m, p, limit));
                let transfer = plain(&points, |p| transfer_term(&m, p, limit));
                assert!(limit < 1.0 || n < 8 || epipolar[0] > 0.0 && transfer[0] > 0.0, "something to sum");
                for level in Cpu::levels() {
                    let level = Cpu::sequential().at_level(level).unwrap().level();
                    let found = dispatch!(level, simd => epipolar_sums(simd, &m, &points, limit));
                    assert_eq!(found.map(f64::to_bits), epipolar.map(f64::to_bits), "{n} {limit} {level:?}");
                    let found = dispatch!(level, simd => transfer_sums(simd, &m, &points, limit));
                    assert_eq!(found.map(f64::to_bits), transfer.map(f64::to_bits), "{n} {limit} {level:?}");
                }
            }
        }
    }
}
