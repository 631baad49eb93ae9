//! A model moved towards the matches that agree with it: Gauss–Newton steps on Sampson's distance or the distance in B,
//! each match weighted by Tukey's biweight (1 − r²/T²)² of its residual, T at first twice the threshold.
//!
//! - **Fundamental matrix**: a step keeps det F = 0 to first order, then the nearest matrix of rank 2 is taken.
//! - **Essential matrix**: E becomes R E R' with two small rotations by Cayley's formula, which keeps it essential.
//! - **Homography**: all nine elements move, the scale is held.
//!
//! Sums over the matches are [`LANES`] sums, of every [`LANES`]-th match each, in their order, and then added in pairs:
//! lane l and lane l + 32, then l and l + 16, and so on. f64, nothing fused.

use super::{Found, Kind, Prepared, Rays, agreement};
use crate::geometry::ModelKind;
use crate::geometry::estimate::residual::Normal;
use crate::geometry::matrix::{Mat3, cayley, is_finite, product, skew};

/// Sums side by side.
pub(super) const LANES: usize = super::BATCH;

/// T² of each step, in units of the threshold's square.
const LIMITS: [f64; 6] = [4.0, 2.25, 1.0, 1.0, 1.0, 1.0];

/// The model of most inliers among the start and those of [`LIMITS`]' steps; of as many the last.
pub(super) fn improve(prepared: &Prepared, start: Found) -> Found {
    let limit = prepared.threshold * prepared.threshold;
    let count = |model: &Mat3| agreement::count(start.kind, model, &prepared.points, limit);
    let mut best = start;
    let mut at = start;
    for wide in LIMITS {
        let Some(next) = step(prepared, &at, wide * limit) else { break };
        at = Found { inliers: count(&next.model), ..next };
        if at.inliers >= best.inliers {
            best = at;
        }
    }
    best
}

fn step(prepared: &Prepared, at: &Found, limit: f64) -> Option<Found> {
    let normal = match at.kind {
        Kind::Homography => transfer(prepared, &at.model, limit),
        Kind::Fundamental | Kind::Essential => epipolar(prepared, &at.model, limit),
    };
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
        let f = rays.fundamental(&turned);
        std::array::from_fn(|k| f[k / 3][k % 3])
    });
    let [a, b, c, d, f, g] = normal.along(&basis, DAMPING)?;
    Some(product(&product(&cayley([a, b, c]), e), &cayley([d, f, g])))
}

/// `K` sums over `n` terms in the order of the contract; a term that is `None` adds nothing.
fn sums<const K: usize>(n: usize, term: impl Fn(usize) -> Option<[f64; K]>) -> [f64; K] {
    let mut lanes = [[0.0; K]; LANES];
    for i in 0..n {
        if let Some(term) = term(i) {
            lanes[i % LANES].iter_mut().zip(term).for_each(|(sum, t)| *sum += t);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(l, h)| (0..K).for_each(|k| l[k] += h[k]));
        half /= 2;
    }
    lanes[0]
}

/// Tukey's biweight of r² / T²; `None` beyond.
fn biweight(share: f64) -> Option<f64> {
    let q = 1.0 - share;
    (q > 0.0).then_some(q * q)
}

fn epipolar(prepared: &Prepared, f: &Mat3, limit: f64) -> Normal {
    let p = &prepared.points;
    let sums: [f64; 54] = sums(prepared.len(), |i| {
        let ([x, y], [u, v]) = ([p.xa[i], p.ya[i]], [p.xb[i], p.yb[i]]);
        let row = |r: usize| f[r][0] * x + f[r][1] * y + f[r][2];
        let column = |c: usize| f[0][c] * u + f[1][c] * v + f[2][c];
        let (l, m) = ([row(0), row(1)], [column(0), column(1)]);
        let norm = l[0] * l[0] + l[1] * l[1] + (m[0] * m[0] + m[1] * m[1]);
        let error = u * l[0] + v * l[1] + row(2);
        let weight = biweight(error * error / (limit * norm))? / norm;
        let slope = error / norm;
        let (a, b) = ([x, y, 1.0], [u, v, 1.0]);
        let j: [f64; 9] = std::array::from_fn(|k| {
            let (r, c) = (k / 3, k % 3);
            let line_b = if r < 2 { l[r] * a[c] } else { 0.0 };
            let line_a = if c < 2 { m[c] * b[r] } else { 0.0 };
            b[r] * a[c] - slope * (line_b + line_a)
        });
        let mut term = [0.0; 54];
        let mut at = 0;
        for r in 0..9 {
            let weighted = weight * j[r];
            for c in r..9 {
                term[at] = weighted * j[c];
                at += 1;
            }
            term[45 + r] = weighted * -error;
        }
        Some(term)
    });
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
/// over w², (u, v) the place in B.
fn transfer(prepared: &Prepared, h: &Mat3, limit: f64) -> Normal {
    let p = &prepared.points;
    let sums: [f64; 33] = sums(prepared.len(), |i| {
        let ([x, y], b) = ([p.xa[i], p.ya[i]], [p.xb[i], p.yb[i]]);
        let row = |r: usize| h[r][0] * x + h[r][1] * y + h[r][2];
        let w = row(2);
        if w.is_nan() || w <= 0.0 {
            return None;
        }
        let (u, v) = (row(0) / w, row(1) / w);
        let e = [b[0] - u, b[1] - v];
        let weight = biweight((e[0] * e[0] + e[1] * e[1]) / limit)? / w;
        let s = weight / w;
        let outer = [s * x * x, s * x * y, s * x, s * y * y, s * y, s];
        let far = u * u + v * v;
        let a = [x, y, 1.0];
        let along = u * e[0] + v * e[1];
        Some(std::array::from_fn(|k| match k {
            0..6 => outer[k],
            6..12 => u * outer[k - 6],
            12..18 => v * outer[k - 12],
            18..24 => far * outer[k - 18],
            24..27 => weight * e[0] * a[k - 24],
            27..30 => weight * e[1] * a[k - 27],
            _ => -(weight * along * a[k - 30]),
        }))
    });
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
