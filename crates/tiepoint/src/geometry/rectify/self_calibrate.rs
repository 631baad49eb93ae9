//! A calibration from tie points alone, and the rectification that follows.
//!
//! Principal points are assumed in the middle of the pictures and pixels to be square; the baseline has length 1. As in
//! the quasi-Euclidean rectification of Fusiello and Irsara (2008), rotations and a focal length are found, never a
//! general homography, so that the pictures are not sheared. The search (`relative`) starts from the fundamental matrix
//! at five focal lengths; the best result is taken.
//!
//! Lens distortion is estimated only if a focal length is known (`lens`), because a wrong focal length hides much of it.
//!
//! **Perspective or affine.** Cameras far away with a long focal length see along nearly parallel rays. Tie points then
//! fit an affine epipolar geometry (`affine`), which has three parameters fewer and no focal length. It is taken if no
//! two perspective cameras have the scene in front of them, or if it explains the tie points better than they do: by
//! the criterion of Schwarz (1978), n ln(σ²/σ'²) > 3 ln n with σ and σ' the root mean square distances of the n tie
//! points, and by a tenth of σ, which is more than unknown lenses and principal points cause. If both explain them
//! equally well, perspective cameras are taken, because they give depth.

use super::affine::AffineEpipolar;
use super::lens::{NOISE, camera, lens, straightened};
use super::output_frame::framed;
use super::relative::{Prior, Relative};
use super::{Agreement, OutputFrame, Principal, Rectification, RectifyOptions};
use crate::device::Cpu;
use crate::geometry::calibration::{Camera, Projection, StereoCalibration};
use crate::geometry::estimate::is_usable;
use crate::geometry::matrix::{Mat3, product, transpose};
use crate::geometry::{Correspondence, Fundamental};
use crate::image::Size;
use crate::options::options;
use crate::{Error, Result};
use std::collections::HashSet;

options! {
    /// What is known about the cameras.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct SelfCalibrationOptions {
        /// Focal length of the left picture in pixels; by default found from the tie points, near the larger side.
        focal / with_focal: Option<f64> = None => 1.0..=1e7, unit "PX";
        /// Focal length of the right picture in pixels; by default near the left one's.
        focal_right / with_focal_right: Option<f64> = None => 1.0..=1e7, unit "PX";
    }
}

impl SelfCalibrationOptions {
    /// The focal length of the left picture, if either is known.
    fn known(&self) -> Option<f64> {
        self.focal.or(self.focal_right)
    }
}

/// Cameras found from tie points.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfCalibration {
    /// The cameras; their distance is 1. They have a lens where a focal length is known.
    pub calibration: StereoCalibration,
    /// Root mean square Sampson distance of the tie points, pixels.
    pub rms_px: f64,
    /// The least and the greatest depth, as multiples of that of these cameras, with other lenses that fit nearly as well;
    /// 1 where no focal length is known, without which depth is uncertain anyway.
    pub depths: [f64; 2],
}

/// The epipolar geometry of a pair and its matches, in pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct EpipolarTies {
    /// The fundamental matrix from A to B.
    pub fundamental: Fundamental,
    /// The matches that agree with it.
    pub inliers: Vec<Correspondence>,
    /// The matches that were found before there was a geometry to search near, wrong ones among them, by which a lens is
    /// found; if there are none, it is found by the inliers.
    pub first: Vec<Correspondence>,
}

impl EpipolarTies {
    /// The same without matches whose coordinates are not finite.
    fn usable(&self) -> Self {
        let usable = |all: &[Correspondence]| all.iter().copied().filter(is_usable).collect();
        Self { inliers: usable(&self.inliers), first: usable(&self.first), ..self.clone() }
    }
}

/// A rectified pair from tie points.
#[derive(Clone, Debug, PartialEq)]
pub struct FromTiePoints {
    /// The pair. Disparities begin at 0.
    pub rectification: Rectification,
    /// How the tie points agree; its disparities are those after the shift.
    pub agreement: Agreement,
    /// Whether picture B is the left one.
    pub exchanged: bool,
}

/// Focal lengths to start from, as multiples of the expected one.
const STARTS: [f64; 5] = [1.0, 0.7, 1.4, 0.5, 2.0];

/// Tie points that the starts are judged by, at most.
const JUDGED: usize = 1000;

/// The expected focal length as a multiple of the larger side: a field of view of 53°, as of a compact
/// camera.
const EXPECTED: f64 = 1.0;

/// The weight that fixes a known focal length.
const KNOWN: f64 = 1e9;

/// The weight that holds the ratio of focal lengths where one is known: half a percent, by which focusing a lens anew changes
/// it, costs 0.25. A ratio that is free to change by some percent takes on what a lens does.
const SAME: f64 = 1e4;

/// The share of tie points that must lie in front of both cameras, or agree with an affine geometry.
const IN_FRONT: f64 = 0.7;

/// With a lens, an inlier whose rows differ by more than this in the rectified pair is taken for wrong; in pixels.
const NEAR_ROWS: f64 = 2.0;

/// Finds the cameras from tie points and their fundamental matrix. Matches with coordinates that are not finite are left
/// out.
///
/// # Errors
/// [`Error::TooFewMatches`] for inliers at fewer than 8 different places; [`Error::Degenerate`] when no cameras fit; as
/// [`SelfCalibrationOptions::check`].
pub fn self_calibrate(
    ties: &EpipolarTies,
    sizes: [Size; 2],
    options: &SelfCalibrationOptions,
) -> Result<SelfCalibration> {
    options.check()?;
    let EpipolarTies { fundamental, inliers: pairs, first } = &ties.usable();
    if let Some(empty) = sizes.iter().find(|s| s.is_empty()) {
        return Err(Error::Image(format!("a picture is empty ({empty})")));
    }
    let places = |of: fn(&Correspondence) -> [f64; 2]| {
        pairs.iter().map(|p| of(p).map(f64::to_bits)).collect::<HashSet<_>>().len()
    };
    let found = places(|p| p.a).min(places(|p| p.b));
    if found < 8 {
        return Err(Error::TooFewMatches { model: "pair of cameras", found, needed: 8 });
    }
    let larger = |s: Size| s.width.max(s.height) as f64;
    let scale = larger(sizes[0]).max(larger(sizes[1]));
    let middles = sizes.map(|s| Camera::centred(1.0, s).principal);
    let relative =
        |p: [f64; 2], i: usize| [(p[0] - middles[i][0]) / scale, (p[1] - middles[i][1]) / scale, 1.0];
    let tie = |p: &Correspondence| (relative(p.a, 0), relative(p.b, 1));
    let ties: Vec<_> = pairs.iter().map(tie).collect();
    let step = ties.len().div_ceil(JUDGED);
    let judged: Vec<_> = ties.iter().step_by(step).copied().collect();
    let expected = options.known().map_or(EXPECTED * larger(sizes[0]) / scale, |f| f / scale);
    let weight = options.known().map_or(Prior::FOCAL_WEIGHT, |_| KNOWN);
    // A known ratio gets no more weight than an assumed one, because refocusing a lens changes its focal length by half
    // a percent.
    let log_ratio = match (options.focal, options.focal_right) {
        (Some(left), Some(right)) => libm::log(right / left),
        _ => 0.0,
    };
    let prior = |share: f64| Prior {
        log_focal: libm::log(expected),
        focal_weight: share * weight,
        log_ratio,
        ratio_weight: share * if options.known().is_some() { SAME } else { Prior::RATIO_WEIGHT },
    };
    let few = prior(1.0 / step as f64);
    let normalised = normalised(fundamental, middles, scale);
    let mut best: Option<(f64, Relative)> = None;
    let starts = if options.known().is_some() { &STARTS[..1] } else { &STARTS[..] };
    for start in starts {
        let focal = expected * start;
        let by = [focal, focal, 1.0];
        let essential = std::array::from_fn(|i| std::array::from_fn(|j| by[i] * normalised[i][j] * by[j]));
        let Some(state) = Relative::from_essential(&essential, &judged, libm::log(focal)) else { continue };
        let state = state.refined(&judged, scale, &few);
        let cost = state.cost(&judged, scale, &few);
        let sound = state.in_front(&judged) as f64 >= IN_FRONT * judged.len() as f64;
        if sound && best.as_ref().is_none_or(|(c, _)| cost < *c) {
            best = Some((cost, state));
        }
    }
    let first = if first.is_empty() { pairs } else { first };
    let first: Vec<_> = first.iter().map(tie).collect();
    let (lens, near, depths) = match &best {
        Some((_, state)) if options.known().is_some() => {
            let step = first.len().div_ceil(JUDGED);
            let some: Vec<_> = first.iter().step_by(step).copied().collect();
            lens(state, [&some, &judged], scale, &prior(1.0 / step as f64))
        }
        _ => (0.0, None, [1.0; 2]),
    };
    let ties = straightened(&ties, lens);
    let found = best.map(|(_, state)| match near {
        // Most of the inliers of a geometry without a lens lie where it hardly bends.
        Some(near) => near.refined(&straightened(&first, lens), scale / NOISE, &prior(1.0)),
        None => state.refined(&ties, scale, &prior(1.0)),
    });
    let found = found.filter(|s| s.in_front(&ties) as f64 >= IN_FRONT * ties.len() as f64).ok_or(
        Error::Degenerate {
            model: "pair of cameras",
            reason: "no two cameras have the scene in front of them: it has too little depth, for which registration is made, or \
                     its cameras must be given by a calibration",
        },
    )?;
    let [f, g] = found.focals();
    let calibration = StereoCalibration {
        cameras: [(f, sizes[0]), (g, sizes[1])].map(|(focal, size)| camera(focal, lens, scale, size)),
        sizes: [None; 2],
        rotation: found.rotation,
        translation: found.direction,
        stored: None,
    };
    calibration.check()?;
    Ok(SelfCalibration { calibration, rms_px: found.rms(&ties, scale), depths })
}

/// The greatest root mean square difference of rows, as a share of the longer side. Beyond it the cameras do not
/// explain the pair.
const MOST_OFF: f64 = 0.005;

/// Rectifies two pictures from their tie points: finds the cameras, their order, the frame, and a shift after which
/// disparities begin at 0. [`OutputFrame::Valid`] is cropped after the shift, which moves the valid pixels. Matches with
/// coordinates that are not finite are left out.
///
/// # Errors
/// As [`self_calibrate`], [`Rectification::new`] and [`Rectification::crop_to_valid`].
pub fn from_tie_points(
    ties: &EpipolarTies,
    sizes: [Size; 2],
    options: &SelfCalibrationOptions,
    frame: OutputFrame,
    cpu: &Cpu,
) -> Result<FromTiePoints> {
    let ties = &ties.usable();
    let pairs = &ties.inliers;
    let perspective = self_calibrate(ties, sizes, options);
    if let Some(affine) = affine_instead(&perspective, pairs, options) {
        return from_affine(&affine, pairs, sizes, frame, cpu);
    }
    let SelfCalibration { calibration: rig, depths, .. } = perspective?;
    let exchanged = !Rectification::in_order(&rig);
    let turn = |p: &Correspondence| if exchanged { Correspondence { a: p.b, b: p.a, ..*p } } else { *p };
    let pairs: Vec<_> = pairs.iter().map(turn).collect();
    let (rig, sizes) = if exchanged { (rig.exchanged(), [sizes[1], sizes[0]]) } else { (rig, sizes) };
    let rectification = Rectification::new(&rig, sizes, &framing(frame))?;
    // Of the inliers of a geometry without a lens some are wrong where there is one.
    let near = match rig.cameras[0].distortion.is_none() {
        true => vec![],
        false => rectification.near_rows(&pairs, NEAR_ROWS),
    };
    let enough = near.len() as f64 >= IN_FRONT * pairs.len() as f64;
    let found = shifted(rectification, if enough { &near } else { &pairs }, frame, exchanged, cpu)?;
    Ok(FromTiePoints { agreement: Agreement { depths, ..found.agreement }, ..found })
}

/// The frame of the views before they are shifted; cropping to valid pixels comes last.
fn framing(frame: OutputFrame) -> RectifyOptions {
    let frame = if frame == OutputFrame::Valid { OutputFrame::Fit } else { frame };
    RectifyOptions { frame, principal: Principal::Own }
}

/// The affine root mean square distance must be below this share of the perspective one to count as clearly less.
const CLEARLY: f64 = 0.9;

/// Greatest root mean square distance of the tie points that agree with an affine geometry, where no perspective one is
/// found; pixels.
const AFFINE_RMS: f64 = 1.0;

/// The affine geometry of the tie points, if they support it rather than the perspective cameras that were found for them,
/// or for which none were found. With a given focal length the geometry is perspective.
fn affine_instead(
    perspective: &Result<SelfCalibration>,
    pairs: &[Correspondence],
    options: &SelfCalibrationOptions,
) -> Option<AffineEpipolar> {
    let affine = AffineEpipolar::fit(pairs).filter(|_| options.known().is_none())?;
    let n = pairs.len() as f64;
    let is_supported = match perspective {
        Ok(found) => {
            let rms = affine.rms(pairs);
            let gained = 2.0 * n * libm::log(found.rms_px.max(1e-9) / rms.max(1e-9));
            gained > 3.0 * libm::log(n) && rms < CLEARLY * found.rms_px
        }
        Err(Error::Degenerate { .. }) => {
            let agreeing = affine.agreeing(pairs);
            agreeing.len() as f64 >= IN_FRONT * n && affine.rms(&agreeing) <= AFFINE_RMS
        }
        Err(_) => false,
    };
    is_supported.then_some(affine)
}

/// The rectified pair of an affine geometry. With parallel rays no disparity stands for infinity, so A stays the left
/// picture.
fn from_affine(
    affine: &AffineEpipolar,
    pairs: &[Correspondence],
    sizes: [Size; 2],
    frame: OutputFrame,
    cpu: &Cpu,
) -> Result<FromTiePoints> {
    let (cameras, rotations) = affine.cameras(sizes);
    let [left, right] = framed(cameras, rotations, sizes, &framing(frame))?;
    let rectification = Rectification { left, right, baseline: 1.0, projection: Projection::Affine };
    shifted(rectification, &affine.agreeing(pairs), frame, false, cpu)
}

/// Shifts the views so that disparities begin at 0, and crops them to valid pixels if that was asked for.
fn shifted(
    mut rectification: Rectification,
    pairs: &[Correspondence],
    frame: OutputFrame,
    exchanged: bool,
    cpu: &Cpu,
) -> Result<FromTiePoints> {
    let wrong = |reason| Error::Degenerate { model: "rectification", reason };
    let agreement =
        rectification.agreement(pairs).ok_or(wrong("no tie point lies in both rectified views"))?;
    let longer = rectification.left.input.width.max(rectification.left.input.height) as f64;
    if agreement.rms_vertical_px > (MOST_OFF * longer).max(1.0) {
        return Err(Error::Degenerate {
            model: "pair of cameras",
            reason: "no two cameras bring what corresponds into one row: the scene has too little depth, for which \
                     registration is made, or its cameras must be given by a calibration",
        });
    }
    let [low, high] = agreement.disparities;
    let width = rectification.left.size.width as f64;
    if !(high < 2.0 * width && low > -2.0 * width) {
        return Err(wrong("the tie points lie further apart than the pictures are wide"));
    }
    rectification.start_at(low);
    if frame == OutputFrame::Valid {
        rectification.crop_to_valid(cpu)?;
    }
    let agreement = Agreement { disparities: [0.0, high - low], ..agreement };
    Ok(FromTiePoints { rectification, agreement, exchanged })
}

/// F between places relative to the middles and in units of `scale`.
fn normalised(f: &Fundamental, middles: [[f64; 2]; 2], scale: f64) -> Mat3 {
    let [a, b] = middles.map(|[x, y]| [[scale, 0.0, x], [0.0, scale, y], [0.0, 0.0, 1.0]]);
    product(&transpose(&b), &product(&f.matrix(), &a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    #[test]
    fn parallel_rays_are_rectified_without_perspective() {
        let mut random = Random::new(7);
        let mut unit = || random.below(1_000_001) as f64 * 1e-6;
        let size = Size::new(900, 700);
        // B is A turned, scaled and shifted, with relief of either sign along its own rows.
        let (s, c) = (1.3 * 0.4_f64.sin(), 1.3 * 0.4_f64.cos());
        let pairs: Vec<Correspondence> = (0..400)
            .map(|_| {
                let (x, y, relief) = (900.0 * unit(), 700.0 * unit(), 60.0 * (unit() - 0.5));
                let b = [c * (x + relief) - s * y + 150.0, s * (x + relief) + c * y - 220.0];
                let noise = [0.2 * (unit() - 0.5), 0.2 * (unit() - 0.5)];
                Correspondence { a: [x, y], b: [b[0] + noise[0], b[1] + noise[1]], quality: 0.0 }
            })
            .collect();
        let affine = AffineEpipolar::fit(&pairs).unwrap();
        let found = from_affine(&affine, &pairs, [size; 2], OutputFrame::Fit, &Cpu::sequential()).unwrap();
        assert!(found.agreement.rms_vertical_px < 0.1, "{:?}", found.agreement);
        assert!(found.agreement.points > 380 && !found.exchanged, "{:?}", found.agreement);
        let [low, high] = found.agreement.disparities;
        assert!(low == 0.0 && (50.0..110.0).contains(&high), "{low} to {high}");
        assert_eq!(found.rectification.projection, Projection::Affine);
        assert!(found.rectification.calibration().check_metric().is_err(), "no depth");
        let wide = found.rectification.left.size;
        assert!(wide.width < 1400 && wide.height < 1200, "{wide}: the mean scale is kept");
    }
}
