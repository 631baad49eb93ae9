//! Which configuration a pair is, from the numbers of inliers of its models: COLMAP's rules.
//!
//! If an essential matrix has nearly as many inliers as the fundamental one, the focal lengths are right. If a
//! homography has nearly as many inliers as the epipolar geometry, the scene is a plane or the camera only turned. If
//! the focal lengths are known, the camera only turned if K R K⁻¹, with R the nearest rotation, has nearly as many
//! inliers as the homography. Finally the inliers are tested for a watermark. One rule is not COLMAP's: many epipolar
//! geometries fit a plane or a turn, so inliers far from the homography count only if chance cannot explain them.

use super::prepared::{FoundAll, Prepared};
use super::{Configuration, ImageCamera, ImagePair, TwoView, TwoViewOptions};
use crate::device::Cpu;
use crate::geometry::estimate::{Fit, residuals};
use crate::geometry::linear::nearest_rotation;
use crate::geometry::matrix::{Mat3, determinant, inverse, product};
use crate::geometry::{Correspondence, Essential, Fundamental, Homography, Model, ModelKind};

/// A model with enough inliers, and those inliers.
struct Supported {
    found: Fit,
    inliers: Vec<usize>,
}

pub(super) fn decide(
    pair: &ImagePair<'_>,
    prepared: &Prepared,
    found: FoundAll,
    options: &TwoViewOptions,
) -> TwoView {
    let (mut all, cpu) = (None, &Cpu::sequential());
    let mut supported = |kind: ModelKind, found: Option<Fit>| -> Option<Supported> {
        let found = found.filter(|f| f.inliers as usize >= options.min_inliers)?;
        let judge = prepared.judge(kind, cpu);
        let inliers = judge.inliers(&found.model);
        let all = *all.get_or_insert_with(|| judge.places(&(0..prepared.len()).collect::<Vec<_>>()));
        let places = [all, judge.places(&inliers)];
        let checked = judge.check(&found.model, &inliers, options.false_alarms, || places);
        checked.is_ok().then_some(Supported { found, inliers })
    };
    let homography = &supported(ModelKind::Homography, found.homography);
    let fundamental = &supported(ModelKind::Fundamental, found.fundamental);
    let essential = &supported(ModelKind::Essential, found.essential);
    let count = |m: &Option<Supported>| m.as_ref().map_or(0, |m| m.inliers.len());
    let (h, f, e) = (count(homography), count(fundamental), count(essential));
    let calibrated = e > 0 && e as f64 > options.min_essential_ratio * f as f64;
    let (kind, epipolar) = match calibrated && e >= f {
        true => (ModelKind::Essential, essential),
        false => (ModelKind::Fundamental, fundamental),
    };
    let planar = h > 0 && h as f64 > options.max_homography_ratio * if calibrated { e } else { f } as f64;
    let agreeing = match (epipolar, homography) {
        (Some(m), Some(plane)) if planar => {
            let [judge, on_plane] = [kind, ModelKind::Homography].map(|kind| prepared.judge(kind, cpu));
            let (f, h) = (&m.found.model, &plane.found.model);
            let kept = judge.without_chance_parallax(f, &m.inliers, &on_plane, h);
            if count(homography) > kept.len() { plane.inliers.clone() } else { kept }
        }
        (Some(m), _) | (None, Some(m)) => m.inliers.clone(),
        (None, None) => return TwoView::degenerate(found.iterations),
    };
    let to_pixels = |kind, m: &Supported| prepared.points.to_pixels(kind, &m.found.model);
    let h_in_pixels = |m| Homography::new(to_pixels(ModelKind::Homography, m)).ok();
    let in_pixels = homography.as_ref().and_then(h_in_pixels);
    let inliers: Vec<u32> = agreeing.iter().map(|&p| prepared.usable[p] as u32).collect();
    let configuration = match in_pixels {
        _ if options.detect_watermark && is_watermark(pair, &inliers, options) => Configuration::Watermark,
        Some(b_from_a) if planar => plane_or_turn(pair, &b_from_a, h, options),
        Some(_) | None if calibrated => Configuration::Calibrated,
        Some(_) | None => Configuration::Uncalibrated,
    };
    let f_in_pixels = |m| Fundamental::new(to_pixels(ModelKind::Fundamental, m)).ok();
    TwoView {
        configuration,
        inliers,
        fundamental: fundamental.as_ref().and_then(f_in_pixels),
        essential: essential
            .as_ref()
            .zip(prepared.cameras)
            .and_then(|(m, cameras)| Essential::new(m.found.essential, cameras).ok()),
        homography: in_pixels,
        iterations: found.iterations,
    }
}

/// Whether a homography with this number of inliers is that of a plane or of a camera that only turned.
fn plane_or_turn(
    pair: &ImagePair<'_>,
    b_from_a: &Homography,
    inliers: usize,
    options: &TwoViewOptions,
) -> Configuration {
    let [Some(a), Some(b)] = pair.views.map(|v: ImageCamera| v.camera) else {
        return Configuration::PlanarOrPanoramic;
    };
    let turned = turn(b_from_a, &a.matrix(), &b.matrix()).map_or(0, |turned| {
        let residuals = residuals(&Model::Homography(turned), pair.matches);
        residuals.iter().filter(|r| **r <= options.threshold_px).count()
    });
    match turned as f64 > options.max_homography_ratio * inliers as f64 {
        true => Configuration::Panoramic,
        false => Configuration::Planar,
    }
}

/// K R K⁻¹ of the rotation nearest to K⁻¹ H K.
fn turn(b_from_a: &Homography, ka: &Mat3, kb: &Mat3) -> Option<Homography> {
    let between_rays = product(&product(&inverse(kb)?, &b_from_a.matrix()), ka);
    // A homography is determined only up to its sign.
    let sign = determinant(&between_rays).signum();
    let rotation = nearest_rotation(&between_rays.map(|row| row.map(|v| sign * v)));
    Homography::new(product(&product(kb, &rotation), &inverse(ka)?)).ok()
}

/// The number of inliers whose shift is tried on the others.
const SHIFTS: usize = 100;

/// Whether the inliers are those of a mark at the borders of both images, which one shift explains.
fn is_watermark(pair: &ImagePair<'_>, inliers: &[u32], options: &TwoViewOptions) -> bool {
    let in_border = |place: [f64; 2], view: &ImageCamera| {
        let (width, height) = (view.size.width as f64, view.size.height as f64);
        let border = options.watermark_border * (width * width + height * height).sqrt();
        let inside = |v: f64, extent: f64| v >= border && v <= extent - 1.0 - border;
        !(inside(place[0], width) && inside(place[1], height))
    };
    let matches: Vec<_> = inliers.iter().map(|&i| pair.matches[i as usize]).collect();
    let [a, b] = &pair.views;
    let in_both = matches.iter().filter(|m| in_border(m.a, a) && in_border(m.b, b)).count();
    let enough = |count: usize| count as f64 >= options.watermark_ratio * matches.len() as f64;
    if !enough(in_both) {
        return false;
    }
    let shift = |m: &Correspondence| [m.b[0] - m.a[0], m.b[1] - m.a[1]];
    let limit = options.threshold_px * options.threshold_px;
    let every = matches.len().div_ceil(SHIFTS);
    matches.iter().step_by(every.max(1)).any(|m| {
        let [x, y] = shift(m);
        let near = |other: &&Correspondence| {
            let [u, v] = shift(other);
            (u - x) * (u - x) + (v - y) * (v - y) <= limit
        };
        enough(matches.iter().filter(near).count())
    })
}
