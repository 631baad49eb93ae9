//! Maps fitted to places of unequal precision: robust least squares weighted by the information (the inverse covariance)
//! of every place. The estimator of matches ([`super::estimate`]) gives all points the same precision.
//!
//! ```text
//! minimise Σ ρ(rᵀ I r),   r = b − m(a),   ρ(q) = q / (1 + q / 4s²),   s² = median of q / (2 ln 2)
//! ```
//!
//! by reweighted Gauss–Newton steps, each weight (1 + q / 4s²)⁻² (Geman and McClure 1987); s² follows the fit, so that
//! information counts only relative to that of the other places. Sums go over the places in their order, in f64; roots
//! and divisions are IEEE's.

use super::linear::solve;
use super::{Homography, ModelKind};
use crate::numeric::median;

/// A place of A, the place in B, and its precision: the rows (xx, xy) and (xy, yy) of the information.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) a: [f64; 2],
    pub(crate) b: [f64; 2],
    pub(crate) information: [f64; 3],
}

/// The map from A to B, and the variance of its residuals.
#[derive(Clone, Debug)]
pub(crate) struct WeightedFit {
    pub(crate) b_from_a: Homography,
    /// The variance of a place of information 1.
    pub(crate) variance: f64,
}

const STEPS: usize = 10;
/// The fit has converged when a step changes no parameter by more than this; places are within ±1.
const SETTLED: f64 = 1e-6;

/// The median of a χ² of two degrees of freedom.
const MEDIAN: f64 = 2.0 * std::f64::consts::LN_2;

/// The kinds of map more general than a similarity, up to `kind`.
pub(crate) fn beyond_similarity(kind: ModelKind) -> &'static [ModelKind] {
    match kind {
        ModelKind::Homography => &[ModelKind::Affine, ModelKind::Homography],
        ModelKind::Affine => &[ModelKind::Affine],
        _ => &[],
    }
}

/// The map of `kind` (similarity, affine or homography) through the places; `None` where they do not determine it.
pub(crate) fn fit(kind: ModelKind, places: &[Measured]) -> Option<WeightedFit> {
    match kind {
        ModelKind::Homography => fit_of::<8>(places),
        ModelKind::Affine => fit_of::<6>(places),
        _ => fit_of::<4>(places),
    }
}

/// Σ ρ(q) over the places, in units of the variance.
pub(crate) fn cost(b_from_a: &Homography, places: &[Measured], variance: f64) -> f64 {
    let one = |place: &Measured| {
        let Some(m) = b_from_a.apply(place.a) else { return 4.0 };
        let q = misfit([place.b[0] - m[0], place.b[1] - m[1]], place.information) / variance;
        q / (1.0 + q / 4.0)
    };
    places.iter().map(one).sum()
}

/// rᵀ I r.
fn misfit([x, y]: [f64; 2], [xx, xy, yy]: [f64; 3]) -> f64 {
    xx * x * x + 2.0 * xy * x * y + yy * y * y
}

/// The place to which the parameters map (x, y), and its derivatives by them.
fn mapped<const N: usize>(p: &[f64; N], [x, y]: [f64; 2]) -> ([f64; 2], [[f64; N]; 2]) {
    let mut rows = [[0.0; N]; 2];
    if N == 4 {
        rows[0][..4].copy_from_slice(&[x, -y, 1.0, 0.0]);
        rows[1][..4].copy_from_slice(&[y, x, 0.0, 1.0]);
        return ([p[0] * x - p[1] * y + p[2], p[1] * x + p[0] * y + p[3]], rows);
    }
    let z = if N == 8 { 1.0 + p[6] * x + p[7] * y } else { 1.0 };
    let place = [0, 3].map(|i| (p[i] * x + p[i + 1] * y + p[i + 2]) / z);
    for (c, row) in rows.iter_mut().enumerate() {
        row[3 * c..3 * c + 3].copy_from_slice(&[x / z, y / z, 1.0 / z]);
        if N == 8 {
            row[6..8].copy_from_slice(&[-place[c] * x / z, -place[c] * y / z]);
        }
    }
    (place, rows)
}

fn matrix_of<const N: usize>(p: &[f64; N]) -> [[f64; 3]; 3] {
    match N {
        4 => [[p[0], -p[1], p[2]], [p[1], p[0], p[3]], [0.0, 0.0, 1.0]],
        6 => [[p[0], p[1], p[2]], [p[3], p[4], p[5]], [0.0, 0.0, 1.0]],
        _ => [[p[0], p[1], p[2]], [p[3], p[4], p[5]], [p[6], p[7], 1.0]],
    }
}

#[expect(clippy::needless_range_loop, reason = "indices of rows and columns are the notation here")]
fn fit_of<const N: usize>(places: &[Measured]) -> Option<WeightedFit> {
    if 2 * places.len() < N {
        return None;
    }
    // The places of A about their centre, within ±1, and those of B in the same unit.
    let n = places.len() as f64;
    let centre = [0, 1].map(|c| places.iter().map(|p| p.a[c]).sum::<f64>() / n);
    let reach = places.iter().flat_map(|p| [0, 1].map(|c| (p.a[c] - centre[c]).abs())).fold(0.0, f64::max);
    if !(reach > 0.0 && reach.is_finite()) {
        return None;
    }
    let normalised = |p: [f64; 2]| [0, 1].map(|c| (p[c] - centre[c]) / reach);
    let ends: Vec<[[f64; 2]; 2]> = places.iter().map(|p| [normalised(p.a), normalised(p.b)]).collect();
    let mut p = [0.0; N];
    p[0] = 1.0;
    if N > 4 {
        p[4] = 1.0;
    }
    let mut variance = f64::INFINITY;
    let mut is_settled = false;
    for step in 0..=STEPS {
        let misfits: Vec<f64> = (ends.iter().zip(places))
            .map(|([a, b], place)| {
                let (m, _) = mapped(&p, *a);
                misfit([b[0] - m[0], b[1] - m[1]], place.information)
            })
            .collect();
        let median = median(misfits.iter().copied())?;
        // The first fit has no estimate of the variance yet: all places have nearly equal weight.
        variance = (median / MEDIAN * if step == 0 { 16.0 } else { 1.0 }).max(f64::MIN_POSITIVE);
        if step == STEPS || is_settled {
            break;
        }
        let (mut normal, mut right) = ([[0.0; N]; N], [0.0; N]);
        for (([a, b], place), misfit) in ends.iter().zip(places).zip(&misfits) {
            let root = 1.0 / (1.0 + misfit / (4.0 * variance));
            let weight = root * root;
            let (m, rows) = mapped(&p, *a);
            let r = [b[0] - m[0], b[1] - m[1]];
            let [xx, xy, yy] = place.information.map(|v| v * weight);
            for i in 0..N {
                let pull = [rows[0][i] * xx + rows[1][i] * xy, rows[0][i] * xy + rows[1][i] * yy];
                right[i] += pull[0] * r[0] + pull[1] * r[1];
                for k in 0..=i {
                    normal[i][k] += pull[0] * rows[0][k] + pull[1] * rows[1][k];
                }
            }
        }
        for i in 0..N {
            for k in i + 1..N {
                normal[i][k] = normal[k][i];
            }
        }
        let step = solve(&mut normal, &mut right)?;
        is_settled = step.iter().all(|v| v.abs() <= SETTLED);
        p.iter_mut().zip(step).for_each(|(p, step)| *p += step);
    }
    let into = Homography::new([
        [1.0 / reach, 0.0, -centre[0] / reach],
        [0.0, 1.0 / reach, -centre[1] / reach],
        [0.0, 0.0, 1.0],
    ]);
    let into = into.ok()?;
    let b_from_a = into.inverse()?.compose(&Homography::new(matrix_of(&p)).ok()?.compose(&into));
    Some(WeightedFit { b_from_a, variance: variance * reach * reach })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    #[test]
    fn maps_are_found_from_places_known_along_one_direction_with_outliers() {
        let exact = [
            (ModelKind::Similarity, [[0.9, -0.3, 40.0], [0.3, 0.9, -7.0], [0.0, 0.0, 1.0]]),
            (ModelKind::Affine, [[0.9, -0.2, 40.0], [0.4, 1.2, -7.0], [0.0, 0.0, 1.0]]),
            (ModelKind::Homography, [[0.9, -0.2, 40.0], [0.4, 1.2, -7.0], [1e-4, -2e-4, 1.0]]),
        ];
        for (kind, matrix) in exact {
            let truth = Homography::new(matrix).unwrap();
            let mut random = Random::new(4);
            let place = |i: usize| {
                let a = [0, 1].map(|_| 400.0 * random.unit());
                let [x, y] = truth.apply(a).unwrap();
                // On an edge the place is precise across the edge, and may be wrong by any amount along it.
                let along = 50.0 * random.unit();
                let (b, information) = match i % 4 {
                    0 => ([x + along, y], [1e-12, 0.0, 1.0]),
                    1 => ([x, y + along], [1.0, 0.0, 1e-12]),
                    2 if i % 12 == 2 => ([x + 30.0, y - along], [1.0, 0.0, 1.0]),
                    _ => ([x, y], [1.0, 0.2, 1.0]),
                };
                Measured { a, b, information }
            };
            let places: Vec<Measured> = (0..120).map(place).collect();
            let found = fit(kind, &places).unwrap();
            for corner in [[0.0, 0.0], [400.0, 0.0], [0.0, 400.0], [400.0, 400.0]] {
                let ([x, y], [u, v]) = (truth.apply(corner).unwrap(), found.b_from_a.apply(corner).unwrap());
                let off = (x - u).abs() + (y - v).abs();
                assert!(off < 1e-3, "{kind:?} at {corner:?}: ({u}, {v}), not ({x}, {y})");
            }
            assert!(fit(kind, &places[..1]).is_none() && fit(kind, &[places[3]; 9]).is_none(), "{kind:?}");
        }
    }
}
