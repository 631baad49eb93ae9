//! The accuracy of matches, homographies, positions and angles.

use crate::geometry::Homography;
use crate::image::Size;
use crate::numeric::length;
use std::f64::consts::{PI, TAU};

/// The thresholds of [`matching_accuracy`], in pixels.
pub const THRESHOLDS: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

/// The distance in image B between `b` and the point to which the map takes `a`; infinite if that is not finite.
fn distance(b_from_a: &Homography, a: [f64; 2], b: [f64; 2]) -> f64 {
    let d = b_from_a.apply(a).map_or(f64::INFINITY, |[x, y]| length([x - b[0], y - b[1]]));
    if d.is_finite() { d } else { f64::INFINITY }
}

/// For each of [`THRESHOLDS`], the share of matches whose end in B lies within it of the place that the truth
/// `b_from_a` gives: the matching accuracy of Mikolajczyk and Schmid ("A performance evaluation of local descriptors",
/// 2005), with the thresholds that are usual since Dusmanu et al. ("D2-Net", 2019). All are zero if there are no
/// matches.
pub fn matching_accuracy(matches: &[([f64; 2], [f64; 2])], b_from_a: &Homography) -> [f64; 10] {
    let off: Vec<f64> = matches.iter().map(|&(a, b)| distance(b_from_a, a, b)).collect();
    let n = off.len().max(1) as f64;
    THRESHOLDS.map(|t| off.iter().filter(|&&d| d <= t).count() as f64 / n)
}

/// The mean distance, in pixels of B, between the corners of A mapped by `found` and by `truth`, both from A
/// to B: the corner error of `DeTone` et al. ("Deep image homography estimation", 2016). Corners are pixel
/// centres: (0, 0) to (width − 1, height − 1), with the size of A. Infinite if either maps a corner to infinity.
pub fn corner_error(found: &Homography, truth: &Homography, size: Size) -> f64 {
    let (w, h) = (size.width.saturating_sub(1) as f64, size.height.saturating_sub(1) as f64);
    let corners = [[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]];
    let off = |c| truth.apply(c).map_or(f64::INFINITY, |at| distance(found, c, at));
    let sum: f64 = corners.into_iter().map(off).sum();
    if sum.is_finite() { sum / 4.0 } else { f64::INFINITY }
}

/// The accuracy of positions: statistics of found minus true, in pixels of B.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PositionError {
    /// The number of matches within the distance asked for.
    pub count: usize,
    /// The mean difference in x and y: the systematic error of a detector's positions.
    pub bias: [f64; 2],
    /// Root of the mean squared distance.
    pub rms: f64,
    /// Median distance.
    pub median: f64,
}

/// The position error of the matches within `within` pixels of the truth `b_from_a`; others are wrong matches, which
/// say nothing about the accuracy of positions. All NaN if there are none.
pub fn position_error(matches: &[([f64; 2], [f64; 2])], b_from_a: &Homography, within: f64) -> PositionError {
    let right = matches.iter().filter(|&&(a, b)| distance(b_from_a, a, b) <= within);
    let difference = |&(a, b): &([f64; 2], [f64; 2])| b_from_a.apply(a).map(|[x, y]| [b[0] - x, b[1] - y]);
    let differences: Vec<[f64; 2]> = right.filter_map(difference).collect();
    if differences.is_empty() {
        return PositionError { count: 0, bias: [f64::NAN; 2], rms: f64::NAN, median: f64::NAN };
    }
    let n = differences.len() as f64;
    let mean = |f: &dyn Fn(&[f64; 2]) -> f64| differences.iter().map(f).sum::<f64>() / n;
    let bias = [mean(&|d| d[0]), mean(&|d| d[1])];
    let rms = mean(&|d| d[0] * d[0] + d[1] * d[1]).sqrt();
    let median = median(differences.iter().copied().map(length).collect());
    PositionError { count: differences.len(), bias, rms, median }
}

/// The accuracy of directions, in radians.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AngleError {
    /// Pairs counted.
    pub count: usize,
    /// Mean signed difference in [−π, π).
    pub bias: f64,
    /// Median of the absolute difference.
    pub median: f64,
}

/// The angle error over pairs of (point in A, angle in A, angle in B). The angle of a keypoint is that of a gradient,
/// so it is transformed to B as gradients are: by the inverse transpose of the derivative of the truth `b_from_a` at
/// the point. Bias and median are NaN if there are no pairs.
pub fn angle_error(pairs: &[([f64; 2], f64, f64)], b_from_a: &Homography) -> AngleError {
    let differences = pairs.iter().map(|&(p, a, b)| {
        let j = b_from_a.derivative(p);
        let (s, c) = libm::sincos(a);
        // The inverse transpose of the derivative times |determinant|: `side` is −1 for a mirrored image.
        let side = (j[0] * j[3] - j[1] * j[2]).signum();
        let carried = libm::atan2(side * (j[0] * s - j[1] * c), side * (j[3] * c - j[2] * s));
        (b - carried + PI).rem_euclid(TAU) - PI
    });
    let differences: Vec<f64> = differences.filter(|d| d.is_finite()).collect();
    if differences.is_empty() {
        return AngleError { count: 0, bias: f64::NAN, median: f64::NAN };
    }
    let bias = differences.iter().sum::<f64>() / differences.len() as f64;
    let median = median(differences.iter().map(|d| d.abs()).collect());
    AngleError { count: differences.len(), bias, median }
}

/// The middle value, or the mean of the two in the middle. `values` must not be empty.
fn median(mut values: Vec<f64>) -> f64 {
    let (middle, is_even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().filter(|_| is_even).reduce(f64::max);
    0.5 * (lower.unwrap_or(*upper) + *upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        for (values, expected) in [
            (vec![3.0], 3.0),
            (vec![3.0, 1.0], 2.0),
            (vec![9.0, 1.0, 2.0], 2.0),
            (vec![9.0, 1.0, 4.0, 2.0], 3.0),
        ] {
            assert_eq!(median(values), expected);
        }
    }

    fn homography(rows: [[f64; 3]; 3]) -> Homography {
        Homography::new(rows).unwrap()
    }

    fn shift() -> Homography {
        homography([[1.0, 0.0, 10.0], [0.0, 1.0, -4.0], [0.0, 0.0, 1.0]])
    }

    #[test]
    fn shares_of_right_matches() {
        let matches: Vec<_> = [0.0, 0.9, 2.5, 9.9, 50.0].map(|d| ([5.0, 5.0], [15.0 + d, 1.0])).to_vec();
        let found = matching_accuracy(&matches, &shift());
        let expected = [0.4, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8];
        assert_eq!(found, expected, "two within 1 px, three within 3");
        assert_eq!(matching_accuracy(&[], &shift()), [0.0; 10], "no matches");
    }

    #[test]
    fn corners() {
        let size = Size::new(101, 51);
        assert_eq!(corner_error(&shift(), &shift(), size), 0.0, "the truth itself");
        let off = corner_error(&Homography::default(), &shift(), size);
        assert!((off - 116_f64.sqrt()).abs() < 1e-12, "a shift of (10, -4): {off}");
        let double = homography([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]);
        let expected = (0.0 + 100.0 + 100_f64.hypot(50.0) + 50.0) / 4.0;
        let off = corner_error(&double, &Homography::default(), size);
        assert!((off - expected).abs() < 1e-12, "twice the size: {off}");
        let scaled = homography(shift().matrix().map(|row| row.map(|v| -3.0 * v)));
        assert!(corner_error(&scaled, &shift(), size) < 1e-12, "the scale of the matrix does not count");
        let lost = homography([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.01, 0.0, 1.0]]);
        assert_eq!(corner_error(&lost, &shift(), size), f64::INFINITY, "corners on the horizon");
    }

    #[test]
    fn positions() {
        let matches = [[0.1, 0.0], [0.3, 0.0], [0.2, 0.3], [40.0, 0.0]].map(|d: [f64; 2]| {
            let a = [20.0, 30.0];
            (a, [a[0] + 10.0 + d[0], a[1] - 4.0 + d[1]])
        });
        let error = position_error(&matches, &shift(), 3.0);
        assert_eq!(error.count, 3, "the wrong match is not counted");
        assert!((error.bias[0] - 0.2).abs() < 1e-9 && (error.bias[1] - 0.1).abs() < 1e-9, "{error:?}");
        assert!((error.rms - (0.23_f64 / 3.0).sqrt()).abs() < 1e-9, "{error:?}");
        assert!((error.median - 0.3).abs() < 1e-9, "{error:?}");
        let none = position_error(&[], &shift(), 3.0);
        assert!(none.count == 0 && none.rms.is_nan() && none.bias[0].is_nan() && none.median.is_nan());
    }

    #[test]
    fn angles() {
        let quarter = homography([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
        let pairs = [([3.0, 4.0], 0.1, PI / 2.0 + 0.11), ([3.0, 4.0], 6.0, 6.0 + PI / 2.0 - TAU - 0.03)];
        let error = angle_error(&pairs, &quarter);
        assert!((error.bias + 0.01).abs() < 1e-9, "{error:?}");
        assert!((error.median - 0.02).abs() < 1e-9, "{error:?}");
        assert_eq!(error.count, 2, "both");
        // Stretched to twice the width, edges along (1, 1) run along (2, 1): their gradient (−1, 1) becomes (−1, 2).
        let wide = homography([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        let pair = [([3.0, 4.0], 1.0_f64.atan2(-1.0), 2.0_f64.atan2(-1.0))];
        assert!(angle_error(&pair, &wide).median < 1e-9, "gradients were mapped as directions");
    }
}
