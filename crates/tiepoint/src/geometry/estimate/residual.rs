//! The residual of a match under a model: Sampson's distance (Hartley, Zisserman 2004, sections 4.2.6 and 11.4.3), and
//! whether a match agrees with a model. This one rule decides which matches are inliers, for every model, in `match`
//! and in collections, on the CPU and on a GPU (`residual.h`).
//!
//! - **Maps**: with m(a) = (r₀, r₁) / w, ε = (r₀ − u w, r₁ − v w) at b = (u, v) and J the derivative of ε by all four
//!   coordinates, d² = εᵀ (J Jᵀ)⁻¹ ε, where w > 0.
//! - **Epipolar geometry**: d² = (bᵀFa)² / (|Fa|² + |Fᵀb|²), norms over the first two components.
//!
//! d is, to first order, how far the four coordinates have to move to agree exactly. The residual in pixels is r = √2 d,
//! and a match is an inlier if r ≤ T, the threshold. For maps r² is the harmonic mean of the squared transfer errors in
//! A and in B, which is the plain squared distance if the map keeps lengths; for epipolar geometry it is the harmonic
//! mean of the squared distances to the epipolar lines.
//!
//! Agreement is judged without a division, as d² ≤ T²/2, which is cheap and exact. f64, in the order written, without
//! fusing: the same bits for one match, for eight side by side, and on a GPU.

#![allow(clippy::needless_range_loop, reason = "indices of rows, columns and lanes are the notation here")]

use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, flat};
use crate::geometry::real::{Real, each};

/// r² of a match, (x, y) in A and (u, v) in B; infinite behind the horizon. It may be NaN for the NaN with which arrays of
/// points are padded.
#[inline(always)]
pub(super) fn squared(kind: ModelKind, m: &[f64; 9], places: [f64; 4]) -> f64 {
    let sampson = if kind.is_epipolar() {
        let e = Epipolar::new(m, places);
        // 0/0 for a match in both epipoles, which any fundamental matrix allows.
        if e.norm <= 0.0 { 0.0 } else { e.product * e.product / e.norm }
    } else {
        let t = Transfer::new(m, places);
        let sampson = t.sampson();
        // Written so that NaN becomes infinite.
        if t.w > 0.0 && 0.0 <= sampson { sampson } else { f64::INFINITY }
    };
    sampson * 2.0
}

#[inline(always)]
pub(super) fn agrees<R: Real>(kind: ModelKind, m: &[R; 9], places: [R; 4], limit: R) -> R::Mask {
    if kind.is_epipolar() {
        let e = Epipolar::new(m, places);
        return (e.product * e.product).at_most(limit * e.norm);
    }
    let [x, y, u, v] = places;
    let row = |i: usize| m[3 * i] * x + m[3 * i + 1] * y + m[3 * i + 2];
    let w = row(2);
    let (p, q) = (row(0) - u * w, row(1) - v * w);
    let (a, b) = (m[0] - u * m[6], m[1] - u * m[7]);
    let (c, d) = (m[3] - v * m[6], m[4] - v * m[7]);
    let square = w * w;
    let (xx, yy, xy) = (a * a + b * b + square, c * c + d * d + square, a * c + b * d);
    let error = p * p * yy - p * q * xy * 2.0 + q * q * xx;
    w.above(w.constant(0.0)) & error.at_most(limit * (xx * yy - xy * xy))
}

struct Transfer<R> {
    /// Denominator, its inverse, and point in B.
    w: R,
    inverse: R,
    place: [R; 2],
    e: [R; 2],
    /// The symmetric (I + D Dᵀ)⁻¹ with D the derivative of the map at the match: xx, xy, yy.
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
        let (d00, d01, d10, d11) = (d(0, xb, 0), d(0, xb, 1), d(1, yb, 0), d(1, yb, 1));
        let (cxx, cyy) = (d00 * d00 + d01 * d01 + 1.0, d10 * d10 + d11 * d11 + 1.0);
        let cxy = d00 * d10 + d01 * d11;
        let over = w.constant(1.0) / (cxx * cyy - cxy * cxy);
        let metric = [cyy * over, -cxy * over, cxx * over];
        Self { w, inverse, place: [u, v], e: [xb - u, yb - v], metric }
    }

    #[inline(always)]
    fn sampson(&self) -> R {
        let ([ex, ey], [xx, xy, yy]) = (self.e, self.metric);
        ex * (xx * ex + xy * ey) + ey * (xy * ex + yy * ey)
    }
}

/// The areas around a point of A and around its image in B in which a match has a residual below 1, in units of π.
pub(super) fn reach(m: &Mat3, [x, y]: [f64; 2]) -> [f64; 2] {
    let [r0, r1, w] = m.map(|row| row[0] * x + row[1] * y + row[2]);
    let t = Transfer::new(&flat(m), [x, y, r0 / w, r1 / w]);
    let [xx, xy, yy] = t.metric;
    // 2 eᵀ (I + D Dᵀ)⁻¹ e ≤ 1 is an ellipse; D⁻¹ takes it to A.
    let in_b = 0.5 / (xx * yy - xy * xy).sqrt();
    let [w0, w1] = [m[2][0], m[2][1]];
    let d = |i: usize, at: f64| [(m[i][0] - at * w0) / t.w, (m[i][1] - at * w1) / t.w];
    let ([d00, d01], [d10, d11]) = (d(0, t.place[0]), d(1, t.place[1]));
    [in_b / (d00 * d11 - d01 * d10).abs(), in_b]
}

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
}

/// How a match within the limit is weighted in a step, as a function of s = d² / limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weights {
    /// Tukey's biweight (1 − s)², for models that are not yet close.
    Biweight,
    /// Equal weights: least squares over the inliers.
    Equal,
}

impl Weights {
    #[inline(always)]
    fn of<R: Real>(self, left: R) -> R {
        match self {
            Self::Biweight => left * left,
            Self::Equal => left.constant(1.0),
        }
    }
}

/// Sums for epipolar geometry: the loss Σ min(s, 1), then the upper triangle of the system of a step, row by row, and its right
/// side.
pub(super) const EPIPOLAR: usize = 55;
/// Sums for maps: the loss Σ min(s, 1), then the six elements of each of the blocks xx, xy, yy, x·, y·, ·· of the system, and its
/// right side.
pub(super) const TRANSFER: usize = 46;

/// The loss of a match: 1 from the limit on, 0 for padding.
#[inline(always)]
fn loss<R: Real>(counts: R::Mask, share: R, place: R) -> R {
    let one = share.constant(1.0);
    R::choose(counts, share, R::choose(place.at_most(place), one, share.constant(0.0)))
}

/// The weighted terms that one match adds to the `K` sums of a step.
pub(super) trait Terms<const K: usize>: Copy + Sync {
    fn terms<R: Real>(self, model: &[R; 9], places: [R; 4], limit: R) -> [R; K];
}

impl Terms<TRANSFER> for Weights {
    /// From the limit on only the loss.
    #[inline(always)]
    fn terms<R: Real>(self, m: &[R; 9], places: [R; 4], limit: R) -> [R; TRANSFER] {
        let t = Transfer::new(m, places);
        let (zero, one) = (limit.constant(0.0), limit.constant(1.0));
        let share = t.sampson() / limit;
        let counts = t.w.above(zero) & one.above(share);
        let kept = |value: R| R::choose(counts, value, zero);
        let weight = kept(self.of(one - share));
        let inverse = kept(t.inverse);
        let ([ex, ey], [xx, xy, yy]) = (each(t.e, kept), each(t.metric, kept));
        let (xx, xy, yy) = (xx * weight, xy * weight, yy * weight);
        let ([u, v], [x, y]) = (each(t.place, kept), each([places[0], places[1]], kept));
        // The derivative of m(a) by the nine elements has the rows (p, 0, −u p) and (0, p, −v p).
        let p = [x * inverse, y * inverse, inverse];
        let (gx, gy) = (xx * ex + xy * ey, xy * ex + yy * ey);
        let (along_x, along_y) = (xx * u + xy * v, xy * u + yy * v);
        let far = along_x * u + along_y * v;
        let outer = [p[0] * p[0], p[0] * p[1], p[0] * p[2], p[1] * p[1], p[1] * p[2], p[2] * p[2]];
        let mut term = [loss(counts, share, places[0]); TRANSFER];
        for k in 0..6 {
            (term[1 + k], term[7 + k], term[13 + k]) = (xx * outer[k], xy * outer[k], yy * outer[k]);
            (term[19 + k], term[25 + k]) = (along_x * outer[k], along_y * outer[k]);
            term[31 + k] = far * outer[k];
        }
        let along = gx * u + gy * v;
        for k in 0..3 {
            (term[37 + k], term[40 + k], term[43 + k]) = (gx * p[k], gy * p[k], -(along * p[k]));
        }
        term
    }
}

impl Terms<EPIPOLAR> for Weights {
    #[inline(always)]
    fn terms<R: Real>(self, f: &[R; 9], places: [R; 4], limit: R) -> [R; EPIPOLAR] {
        let e = Epipolar::new(f, places);
        let (zero, one) = (limit.constant(0.0), limit.constant(1.0));
        let share = e.product * e.product / (limit * e.norm);
        let counts = one.above(share);
        let kept = |value: R| R::choose(counts, value, zero);
        let weight = kept(self.of(one - share) / e.norm);
        let (slope, error) = (kept(e.product / e.norm), kept(e.product));
        let [x, y, u, v] = each(places, kept);
        let ([l0, l1], [m0, m1]) = (each(e.line_b, kept), each(e.line_a, kept));
        // The derivative by F of the constraint over its gradient's length, times that length.
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
        let mut term = [loss(counts, share, places[0]); EPIPOLAR];
        let mut at = 1;
        for r in 0..9 {
            let weighted = weight * j[r];
            for c in r..9 {
                term[at] = weighted * j[c];
                at += 1;
            }
            term[46 + r] = weighted * -error;
        }
        term
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    /// `agrees` compares the residual with the threshold without the residual's division.
    #[test]
    fn agreement_is_a_residual_within_the_threshold() {
        let mut random = Random::new(8);
        for kind in [ModelKind::Homography, ModelKind::Fundamental] {
            let mut yes = 0;
            for _ in 0..2000 {
                let m: [f64; 9] =
                    std::array::from_fn(|i| random.range(-0.3, 0.3) + f64::from(u8::from(i % 4 == 0)));
                let [x, y, u, v]: [f64; 4] = std::array::from_fn(|_| random.range(-1.0, 1.0));
                let r = squared(kind, &m, [x, y, u, v]);
                let limit = random.range(0.0, 0.3);
                if (r - 2.0 * limit).abs() > 1e-9 {
                    assert_eq!(agrees(kind, &m, [x, y, u, v], limit), r <= 2.0 * limit, "{kind}");
                    yes += i32::from(r <= 2.0 * limit);
                }
                if kind.is_epipolar() {
                    let transposed = [m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]];
                    let back = squared(kind, &transposed, [u, v, x, y]);
                    assert!((back - r).abs() <= 1e-12 * r, "{kind}: {back} and {r}");
                }
            }
            assert!((200..1800).contains(&yes), "{kind}: both answers come up, yes {yes} times");
        }
    }
}
