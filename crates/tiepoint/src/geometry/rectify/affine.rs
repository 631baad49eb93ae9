//! Affine epipolar geometry: two views along parallel rays, which telephoto, aerial and satellite cameras nearly have.
//!
//! A tie point (x, y) ↔ (x', y') satisfies a x' + b y' + c x + d y + e = 0 (Hartley, Zisserman 2004, equation 14.1): it
//! lies on a hyperplane of its four coordinates. The Gold Standard algorithm (their algorithm 14.1) takes the plane
//! through the centroid across the direction in which the points spread least: for noise that is equal in all
//! coordinates the maximum-likelihood estimate. Here it is repeated with the weights 1/(1 + r²)² of Geman and McClure,
//! r in pixels, as in `relative`.
//!
//! Epipolar lines are parallel in each picture, so that a rotation in the plane of each, a scale and a shift rectify
//! the pair. They are expressed as cameras far away, so that the rest of rectification needs no special case.

use crate::geometry::Correspondence;
use crate::geometry::calibration::{Camera, Distortion};
use crate::geometry::linear::eigen;
use crate::geometry::matrix::Mat3;
use crate::image::Size;
use crate::numeric::median;

/// Weighted fits at most.
const FITS: usize = 20;

/// The least variance of the tie points in every direction except the one across the hyperplane, in pixels². With less
/// relief the scene is a plane, whose tie points do not determine the epipolar geometry.
const LEAST_SPREAD: f64 = 0.25;

const LARGEST_RATIO: f64 = 8.0;

/// Distance of the cameras that stand for parallel rays, in units of the larger side.
const FAR: f64 = 1000.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct AffineEpipolar {
    /// (a, b, c, d), of length 1.
    normal: [f64; 4],
    offset: f64,
}

impl AffineEpipolar {
    /// The geometry of tie points; `None` where they do not determine one.
    pub(super) fn fit(pairs: &[Correspondence]) -> Option<Self> {
        let mut found: Option<Self> = None;
        for _ in 0..FITS {
            let weights: Vec<f64> = pairs.iter().map(|p| found.map_or(1.0, |f| f.weight(p))).collect();
            let next = Self::weighted(pairs, &weights)?;
            let is_settled = |last: Self| (0..4).all(|i| (last.normal[i] - next.normal[i]).abs() < 1e-12);
            if found.replace(next).is_some_and(is_settled) {
                break;
            }
        }
        found.filter(Self::is_sound)
    }

    fn weighted(pairs: &[Correspondence], weights: &[f64]) -> Option<Self> {
        let total: f64 = weights.iter().sum();
        let mut mean = [0.0; 4];
        for (p, w) in pairs.iter().zip(weights) {
            (0..4).for_each(|i| mean[i] += w / total * coordinates(p)[i]);
        }
        let mut spread = [[0.0; 4]; 4];
        for (p, w) in pairs.iter().zip(weights) {
            let off: [f64; 4] = std::array::from_fn(|i| coordinates(p)[i] - mean[i]);
            (0..4).for_each(|i| (0..4).for_each(|j| spread[i][j] += w / total * off[i] * off[j]));
        }
        let (variances, directions) = eigen(spread);
        let normal = directions[0];
        let offset = -(0..4).map(|i| normal[i] * mean[i]).sum::<f64>();
        // NaN, from too few points or from huge coordinates, is refused, too.
        let determined = pairs.len() > 4 && variances[1] > LEAST_SPREAD.max(4.0 * variances[0]);
        determined.then_some(Self { normal, offset })
    }

    /// Whether the scales of both pictures are similar, and not all rows of one fall on one row of the other.
    fn is_sound(&self) -> bool {
        let [in_a, in_b] = self.lengths();
        in_a < LARGEST_RATIO * in_b && in_b < LARGEST_RATIO * in_a
    }

    fn lengths(&self) -> [f64; 2] {
        let [a, b, c, d] = self.normal;
        [(c * c + d * d).sqrt(), (a * a + b * b).sqrt()]
    }

    /// The distance of a tie point from the hyperplane: the least change of its four coordinates that makes it agree,
    /// pixels.
    fn distance(&self, pair: &Correspondence) -> f64 {
        let at = coordinates(pair);
        (0..4).map(|i| self.normal[i] * at[i]).sum::<f64>() + self.offset
    }

    fn weight(&self, pair: &Correspondence) -> f64 {
        let r = self.distance(pair);
        1.0 / ((1.0 + r * r) * (1.0 + r * r))
    }

    /// The tie points that agree: those within 2.5 standard deviations, which follow from the median of all
    /// distances.
    pub(super) fn agreeing(&self, pairs: &[Correspondence]) -> Vec<Correspondence> {
        let median = median(pairs.iter().map(|p| self.distance(p).abs())).unwrap_or(0.0);
        let most = (2.5 * 1.4826 * median).max(1e-6);
        pairs.iter().filter(|p| self.distance(p).abs() <= most).copied().collect()
    }

    /// Root mean square of the distances, pixels.
    pub(super) fn rms(&self, pairs: &[Correspondence]) -> f64 {
        let sum: f64 = pairs.iter().map(|p| self.distance(p)).map(|d| d * d).sum();
        (sum / pairs.len().max(1) as f64).sqrt()
    }

    /// Cameras, and their rotations to the rectified axes.
    pub(super) fn cameras(&self, sizes: [Size; 2]) -> ([Camera; 2], [Mat3; 2]) {
        let [a, b, c, d] = self.normal;
        let [in_a, in_b] = self.lengths();
        let larger = sizes.iter().map(|s| s.width.max(s.height)).max().unwrap_or(1) as f64;
        // The direction in which rows grow: the candidate that turns the pictures less.
        let mut down = [[-c / in_a, -d / in_a], [a / in_b, b / in_b]];
        if down[0][1] + down[1][1] < 0.0 {
            down = down.map(|v| v.map(|x| -x));
        }
        // Rows are −(c x + d y) = a x' + b y' + e, in a unit that keeps the mean scale.
        let scales = [(in_a / in_b).sqrt(), (in_b / in_a).sqrt()];
        let middles = sizes.map(|s| Camera::centred(1.0, s).principal);
        let row = -(c * middles[0][0] + d * middles[0][1]);
        let shift = (row - (a * middles[1][0] + b * middles[1][1] + self.offset)) / in_b;
        // Along the gradient of the row, whatever the sign of `down`.
        let moved = [middles[1][0] + shift * a / in_b, middles[1][1] + shift * b / in_b];
        let camera = |scale: f64, principal| Camera {
            focal: [FAR * larger / scale; 2],
            principal,
            distortion: Distortion::default(),
        };
        let cameras = [camera(scales[0], middles[0]), camera(scales[1], moved)];
        let rotations = down.map(|[x, y]| [[y, -x, 0.0], [x, y, 0.0], [0.0, 0.0, 1.0]]);
        (cameras, rotations)
    }
}

fn coordinates(pair: &Correspondence) -> [f64; 4] {
    [pair.b[0], pair.b[1], pair.a[0], pair.a[1]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    #[test]
    fn the_plane_is_found_among_a_few_outliers() {
        let mut random = Random::new(4);
        let mut unit = || random.below(1_000_001) as f64 * 1e-6;
        let normal = [0.3, 0.6, -0.2, -0.7];
        let normal = crate::geometry::direction(normal);
        let mut pairs: Vec<Correspondence> = (0..300)
            .map(|_| {
                let (a, x) = ([800.0 * unit(), 600.0 * unit()], 700.0 * unit());
                let y = -(normal[0] * x + normal[2] * a[0] + normal[3] * a[1] + 25.0) / normal[1];
                let noise = [unit() - 0.5, unit() - 0.5];
                Correspondence { a, b: [x + noise[0], y + noise[1]], quality: 0.0 }
            })
            .collect();
        for pair in pairs.iter_mut().step_by(20) {
            pair.b[1] += 30.0 * (unit() - 0.5);
        }
        let found = AffineEpipolar::fit(&pairs).unwrap();
        let sign = found.normal[1].signum();
        for (found, expected) in found.normal.into_iter().zip(normal) {
            assert!((sign * found - expected).abs() < 1e-3, "{found} for {expected}");
        }
        assert!((sign * found.offset - 25.0).abs() < 0.3, "{found:?}");
        let agreeing = found.agreeing(&pairs);
        assert!((270..=290).contains(&agreeing.len()) && found.rms(&agreeing) < 0.3, "{}", agreeing.len());
        // Points that obey an affine map do not determine the epipolar lines.
        let flat: Vec<_> = pairs.iter().map(|p| Correspondence { b: [p.a[0] + 3.0, p.a[1]], ..*p }).collect();
        assert!(AffineEpipolar::fit(&flat).is_none(), "a plane");
        assert!(AffineEpipolar::fit(&pairs[..4]).is_none(), "too few");
    }
}
