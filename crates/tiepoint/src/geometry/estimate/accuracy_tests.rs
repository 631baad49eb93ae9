//! The accuracy of estimates: the error of the image's corners, compared with that of a least-squares fit to the true
//! inliers.

use super::*;
use crate::evaluate;
use crate::image::Size;
use crate::numeric::Random;

const SIZE: [f64; 2] = [800.0, 600.0];

/// A homography, matches in random order of which a share satisfies it up to noise in B, and whether each does.
fn scene(seed: u64, n: usize, share: f64, noise: f64) -> (Homography, Vec<Correspondence>, Vec<bool>) {
    let mut random = Random::new(seed);
    let mut about = |middle: f64, far: f64| middle + random.range(-far, far);
    let [a, b, c, d] = [1.0, 0.0, 0.0, 1.0].map(|own| about(own, 0.15));
    let rows =
        [[a, b, about(0.0, 40.0)], [c, d, about(0.0, 40.0)], [about(0.0, 1e-4), about(0.0, 1e-4), 1.0]];
    let truth = Homography::new(rows).unwrap();
    let right = (share * n as f64).round() as usize;
    let (mut pairs, mut obeys) = (Vec::new(), Vec::new());
    let mut left = [right, n - right];
    for _ in 0..n {
        let a = SIZE.map(|far| random.range(0.0, far));
        let is_right = random.below(left[0] + left[1]) < left[0];
        left[usize::from(!is_right)] -= 1;
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let b = match is_right {
            true => truth.apply(a).unwrap().map(|v| v + noise * normal()),
            false => SIZE.map(|far| random.range(0.0, far)),
        };
        pairs.push(Correspondence { a, b, quality: 0.0 });
        obeys.push(is_right);
    }
    (truth, pairs, obeys)
}

/// The mean distance of the corners under both, pixels.
fn corner_error(found: &Model, truth: &Homography) -> f64 {
    let [w, h] = SIZE.map(|side| side as usize + 1);
    evaluate::corner_error(&found.homography().unwrap(), truth, Size::new(w, h))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    0.5 * (values[values.len() / 2] + values[(values.len() - 1) / 2])
}

/// The median corner error over 100 seeds of the estimate, and of a fit to the true inliers.
fn errors(n: usize, share: f64, noise: f64, threshold: f64) -> [f64; 2] {
    let cpu = Cpu::sequential();
    let options = RobustOptions::default().with_threshold_px(threshold);
    let of_seed = |seed| {
        let (truth, pairs, obeys) = scene(seed, n, share, noise);
        let estimated = estimate(ModelKind::Homography, &pairs, &options, &cpu).unwrap();
        let right: Vec<_> = pairs.iter().zip(&obeys).filter(|(_, o)| **o).map(|(p, _)| *p).collect();
        let fitted = fit(ModelKind::Homography, &right, &options, &cpu).unwrap();
        (corner_error(&estimated.b_from_a, &truth), corner_error(&fitted.b_from_a, &truth))
    };
    let (found, best) = (0..100).map(of_seed).unzip();
    [median(found), median(best)]
}

/// (matches, share of inliers, noise in pixels, threshold in pixels)
const CASES: [(usize, f64, f64, f64); 5] = [
    (200, 0.6, 1.0, 3.0),
    (100, 0.9, 1.0, 3.0),
    (1000, 0.5, 1.0, 3.0),
    (200, 0.6, 1.0 / 3.0, 1.0),
    (200, 0.6, 0.3, 3.0),
];

#[test]
fn an_estimate_is_as_good_as_the_fit_to_the_true_inliers() {
    let rows =
        CASES.map(|(n, share, noise, threshold)| (n, share, noise, errors(n, share, noise, threshold)));
    let short = rows.iter().filter(|(.., [found, best])| *found > 1.05 * best).count();
    assert_eq!(short, 0, "estimate against least squares: {rows:.3?}");
}

#[test]
fn a_tenth_of_inliers_is_found() {
    let found = (0..100).filter(|&seed| {
        let (truth, pairs, _) = scene(seed, 500, 0.1, 1.0);
        let found = estimate(ModelKind::Homography, &pairs, &RobustOptions::default(), &Cpu::sequential());
        found.is_ok_and(|found| corner_error(&found.b_from_a, &truth) < 10.0)
    });
    let found = found.count();
    assert!(found >= 97, "{found} of 100");
}
