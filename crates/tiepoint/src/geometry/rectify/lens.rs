//! The lens distortion of a pair of photographs, from their matches: one κ for both, of r' = r (1 + κ r²), where r is the
//! distance of a point from the middle in units of the larger side.
//!
//! Matches that were found near epipolar lines are not used, because the geometry behind these lines has no lens, and they
//! favour matches that fit it: of a lens with k₁ = −0.28 they show a third. Where cameras are close to each other, lenses
//! that fit nearly as well can lead to other rotations, and so to other depths, whose range is given, too.

use super::relative::{Prior, Relative, Ties};
use crate::geometry::calibration::{Camera, Distortion};
use crate::geometry::linear::least_squares;
use crate::image::Size;
use crate::numeric::length;

/// The lenses that are tried: κ in steps from the first to the last, which move the corner of a picture of 4:3 inwards by
/// 8 % of its distance from the middle, and outwards by 23 %. An OpenCV k₁ is −κ (f / larger side)².
const TRIED: [i32; 2] = [-4, 12];
const STEP: f64 = 0.05;

/// The noise of points by which lenses are compared, in pixels: a match at this distance costs half as much as a wrong one.
pub(super) const NOISE: f64 = 0.5;
/// The same at the start of the search for the cameras of a lens.
const ROUGH: f64 = 4.0;

/// By how much a lens must lower the [cost](Relative::cost), which is at most 1 for each match, to be taken. One that costs
/// at most this much more than the best fits nearly as well.
const LENS_GAIN: f64 = 3.0;

/// The κ that fits the first matches best and its cameras; 0 and none if a lens without distortion fits nearly as well. Also
/// the least and the greatest depth of the inliers with those that fit nearly as well.
pub(super) fn lens(
    state: &Relative,
    [first, inliers]: [&Ties; 2],
    scale: f64,
    prior: &Prior,
) -> (f64, Option<Relative>, [f64; 2]) {
    let with = |from: &Relative, kappa: f64| {
        let ties = straightened(first, kappa);
        // First roughly: matches that a lens moves by pixels pull little on exact cameras.
        let state = from.refined(&ties, scale / ROUGH, prior).refined(&ties, scale / NOISE, prior);
        (state.cost(&ties, scale / NOISE, prior), state)
    };
    let at = |i: i32| f64::from(i) * STEP;
    // From no lens outwards: the cameras of one lens lead to those of the next.
    let plain = with(state, 0.0);
    let mut tried = vec![(plain, 0)];
    for i in (1..=TRIED[1]).chain((TRIED[0]..0).rev()) {
        let near = if i == -1 { &plain.1 } else { &tried[tried.len() - 1].0.1 };
        tried.push((with(near, at(i)), i));
    }
    let ((least, near), i) =
        tried.iter().copied().fold((plain, 0), |best, next| if next.0.0 < best.0.0 { next } else { best });
    let cost = |kappa: f64| with(&near, kappa).0;
    // By the golden section.
    let share = 0.5 * (5_f64.sqrt() - 1.0);
    let (mut low, mut high) = (at(i - 1), at(i + 1));
    let mut inner = [high - share * (high - low), low + share * (high - low)];
    let mut off = inner.map(cost);
    for _ in 0..12 {
        if off[0] < off[1] {
            high = inner[1];
            inner = [high - share * (high - low), inner[0]];
            off = [cost(inner[0]), off[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + share * (high - low)];
            off = [off[1], cost(inner[1])];
        }
    }
    let kappa = 0.5 * (low + high);
    let (own_cost, own) = with(&near, kappa);
    let (kappa, own) = if plain.0 - own_cost > LENS_GAIN { (kappa, Some(own)) } else { (0.0, None) };
    let parallax = |state: &Relative, kappa: f64| state.parallax(&straightened(inliers, kappa));
    let ours = parallax(&own.unwrap_or(plain.1), kappa);
    let as_good = tried.iter().filter(|((cost, _), _)| *cost <= least + LENS_GAIN);
    let depths =
        as_good.map(|((_, state), i)| ours / parallax(state, at(*i))).filter(|depth| depth.is_finite());
    (kappa, own, depths.fold([1.0; 2], |[low, high], depth| [low.min(depth), high.max(depth)]))
}

/// Tie points as lenses without distortion would have shown them.
pub(super) fn straightened(ties: &Ties, kappa: f64) -> Vec<([f64; 3], [f64; 3])> {
    let straight = |[x, y, one]: [f64; 3]| {
        let radial = 1.0 + kappa * (x * x + y * y);
        [x * radial, y * radial, one]
    };
    ties.iter().map(|&(a, b)| (straight(a), straight(b))).collect()
}

/// The camera of a focal length in units of the larger side. Its lens is the inverse of r' = r (1 + κ r²) by least squares
/// at distances from the middle to the corner.
pub(super) fn camera(focal: f64, kappa: f64, scale: f64, size: Size) -> Camera {
    const PLACES: usize = 16;
    let corner = 0.5 * length([size.width as f64, size.height as f64]) / scale;
    let places = (1..=PLACES).map(|i| {
        let share = i as f64 / PLACES as f64;
        let straight = 1.0 + kappa * (share * corner) * (share * corner);
        let square = (share * straight) * (share * straight);
        ([square, square * square, square * square * square], 1.0 / straight - 1.0)
    });
    let [a, b, c] = least_squares(places).unwrap_or_default();
    // The squares were in units of that of the corner.
    let unit = (focal / corner) * (focal / corner);
    let distortion =
        Distortion { k1: a * unit, k2: b * unit * unit, k3: c * unit * unit * unit, ..Distortion::default() };
    Camera { distortion, ..Camera::centred(focal * scale, size) }
}
