//! Verified tie points from two sets of features.

use crate::device::{Cpu, Processor};
use crate::feature::gpu::GpuFeatures;
use crate::feature::{Features, Keypoint};
use crate::geometry::estimate::refine;
use crate::geometry::{Correspondence, Estimate, Model, ModelKind, RobustOptions, estimate};
use crate::matching::{GpuMatcher, Guide, Match, MatchOptions, Matcher};
use crate::options::setters;
use crate::{Error, Result};

/// How to find tie points.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct TieOptions {
    /// The first matching.
    pub matching: MatchOptions,
    /// The model that verifies the matches; `None` takes them unverified. Default a homography.
    pub model: Option<ModelKind>,
    /// Its estimation.
    pub robust: RobustOptions,
    /// The second search, near what the model predicts; `None` for none.
    pub rematch: Option<Rematch>,
}

/// The search that is repeated with the model's help.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rematch {
    /// Search radius around the predicted point, or half width of the band along the epipolar line, as a
    /// multiple of the inlier threshold; 1 to 100. Default 2.
    pub radius: f64,
    /// Ratio among the candidates there; above 0 and at most 1. Default 0.9.
    pub ratio: f32,
    /// How often search and refinement alternate, at least 1; it ends when a round finds the matches of the
    /// round before. Default 2.
    pub rounds: u8,
}

setters!(Rematch { with_radius: radius = f64, with_ratio: ratio = f32, with_rounds: rounds = u8 });

setters!(TieOptions {
    with_matching: matching = MatchOptions,
    with_model: model = Option<ModelKind>,
    with_robust: robust = RobustOptions,
    with_rematch: rematch = Option<Rematch>,
});

impl Default for Rematch {
    fn default() -> Self {
        Self { radius: 2.0, ratio: 0.9, rounds: 2 }
    }
}

impl Default for TieOptions {
    fn default() -> Self {
        Self {
            matching: MatchOptions::default(),
            model: Some(ModelKind::Homography),
            robust: RobustOptions::default(),
            rematch: Some(Rematch::default()),
        }
    }
}

impl TieOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        self.matching.check()?;
        self.robust.check()?;
        let Some(rematch) = self.rematch else { return Ok(()) };
        if !(1.0..=100.0).contains(&rematch.radius) {
            return Err(Error::option("rematch radius", rematch.radius, "1 to 100 thresholds"));
        }
        if !(rematch.ratio > 0.0 && rematch.ratio <= 1.0) {
            return Err(Error::option("rematch ratio", rematch.ratio, "above 0 and at most 1"));
        }
        if rematch.rounds == 0 {
            return Err(Error::option("rematch rounds", rematch.rounds, "at least 1"));
        }
        Ok(())
    }
}

/// Matches, and which of them a model confirms.
#[derive(Clone, Debug, PartialEq)]
pub struct TiePoints {
    /// Matches in the order of their index in A.
    pub matches: Vec<Match>,
    /// The model from A to B, if one was asked for.
    pub b_from_a: Option<Model>,
    /// Indices into `matches` of those that agree with the model, ascending; all without a model.
    pub inliers: Vec<usize>,
    /// Root mean square residual of the inliers, pixels; 0 without a model.
    pub rms_px: f64,
    /// Samples that the estimation drew.
    pub iterations: usize,
}

/// Positions and qualities of matches, for [`estimate()`].
fn correspondences([a, b]: [&[Keypoint]; 2], matches: &[Match]) -> Vec<Correspondence> {
    let pair = |m: &Match| {
        let (p, q) = (&a[m.a as usize], &b[m.b as usize]);
        let place = |x: f32, y: f32| [f64::from(x), f64::from(y)];
        Correspondence { a: place(p.x, p.y), b: place(q.x, q.y), quality: -f64::from(m.ratio) }
    };
    matches.iter().map(pair).collect()
}

/// Tie points between two images. Matching runs on the processor's GPU where there is one that can; the CPU
/// finds the same.
///
/// # Errors
/// As [`TieOptions::check`], [`Matcher`] and [`estimate()`]; [`Error::Device`] when the GPU fails.
pub fn tie_points(
    a: &Features,
    b: &Features,
    options: &TieOptions,
    processor: &Processor,
) -> Result<TiePoints> {
    options.check()?;
    let mut matcher = Matcher::new(a, b, processor)?;
    let keypoints = [&a.keypoints[..], &b.keypoints];
    tie_points_by(keypoints, options, &processor.cpu, |matching| matcher.match_features(matching))
}

/// [`tie_points`] of features in a GPU's memory, which searches them where they lie. Keypoints and matches come to the host,
/// where the model is estimated.
///
/// # Errors
/// As [`tie_points`]; [`Error::Memory`] and [`Error::Unsupported`] where the GPU is too small or too simple.
pub fn tie_points_on_device(
    a: &GpuFeatures,
    b: &GpuFeatures,
    options: &TieOptions,
    cpu: &Cpu,
) -> Result<TiePoints> {
    options.check()?;
    let matcher = GpuMatcher::new(a.gpu());
    let keypoints = [a.download_keypoints()?, b.download_keypoints()?];
    let keypoints = keypoints.each_ref().map(Vec::as_slice);
    tie_points_by(keypoints, options, cpu, |matching| matcher.match_features(a, b, matching))
}

/// Tie points from the matches that `search` finds.
pub(super) fn tie_points_by(
    keypoints: [&[Keypoint]; 2],
    options: &TieOptions,
    cpu: &Cpu,
    mut search: impl FnMut(&MatchOptions) -> Result<Vec<Match>>,
) -> Result<TiePoints> {
    let mut matches = search(&options.matching)?;
    let Some(kind) = options.model else {
        let inliers = (0..matches.len()).collect();
        return Ok(TiePoints { matches, b_from_a: None, inliers, rms_px: 0.0, iterations: 0 });
    };
    let mut found = estimate(kind, &correspondences(keypoints, &matches), &options.robust, cpu)?;
    let iterations = found.iterations;
    if let Some(rematch) = options.rematch {
        for _ in 0..rematch.rounds {
            let again = search(&guided(&found.b_from_a, &rematch, options))?;
            let pairs = correspondences(keypoints, &again);
            let Some(refined) = determined(refine(&found.b_from_a, &pairs, &options.robust, cpu))? else {
                break;
            };
            if refined.inliers.len() < found.inliers.len() {
                break;
            }
            let settled = again == matches;
            (matches, found) = (again, refined);
            if settled {
                break;
            }
        }
    }
    Ok(TiePoints {
        matches,
        b_from_a: Some(found.b_from_a),
        inliers: found.inliers,
        rms_px: found.rms_px,
        iterations,
    })
}

/// How to search near what a model predicts.
fn guided(b_from_a: &Model, rematch: &Rematch, options: &TieOptions) -> MatchOptions {
    let guide = Some(Guide { b_from_a: *b_from_a, radius: rematch.radius * options.robust.threshold_px });
    MatchOptions { guide, ratio: Some(rematch.ratio), mutual: true, ..options.matching }
}

/// The estimate, or `None` where the matches do not determine the model.
fn determined(estimated: Result<Estimate>) -> Result<Option<Estimate>> {
    match estimated {
        Err(Error::TooFewMatches { .. } | Error::Degenerate { .. }) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::feature::Descriptors;
    use crate::image::Size;

    /// Features on a grid that is shifted by (3, 2) px from A to B, each pair with a different descriptor.
    fn shifted() -> [Features; 2] {
        [0.0, 1.0].map(|side| {
            let keypoints = (0..36_u8).map(|i| Keypoint {
                x: f32::from(i % 6) * 10.0 + 3.0 * side,
                y: f32::from(i / 6) * 10.0 + 2.0 * side,
                scale: 2.0,
                angle: 0.0,
                response: 1.0,
                sign: 1,
                octave: 0,
                layer: 1,
            });
            let descriptors = (0..36 * 40).map(|at| if at % 41 == 0 { 255 } else { 0 }).collect();
            let descriptors = Descriptors::U8(descriptors);
            Features { keypoints: keypoints.collect(), descriptors, dimension: 40, image: Size::new(80, 80) }
        })
    }

    #[test]
    fn a_failing_second_search_is_an_error_and_no_other_answer() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let processor = cpu.clone().into();
        let mut matcher = Matcher::new(&a, &b, &processor).unwrap();
        let whole = tie_points(&a, &b, &options, &processor).unwrap();
        assert_eq!(whole.inliers.len(), 36, "all agree");
        let mut searches = 0;
        let failing = |matching: &MatchOptions| {
            searches += 1;
            match matching.guide {
                None => matcher.match_features(matching),
                Some(_) => Err(Error::Device { device: "card".into(), reason: "it fell off the bus".into() }),
            }
        };
        let found = tie_points_by([&a.keypoints, &b.keypoints], &options, &cpu, failing);
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Device, "the device's error");
        assert_eq!(searches, 2, "raised by the second search");
    }

    #[test]
    fn a_second_search_that_determines_nothing_leaves_the_first() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let processor = cpu.clone().into();
        let mut matcher = Matcher::new(&a, &b, &processor).unwrap();
        let blind = |matching: &MatchOptions| match matching.guide {
            None => matcher.match_features(matching),
            Some(_) => Ok(vec![]),
        };
        let found = tie_points_by([&a.keypoints, &b.keypoints], &options, &cpu, blind).unwrap();
        assert_eq!(found.inliers.len(), 36, "of the first search");
    }

    #[test]
    fn every_device_finds_the_same_and_says_what_the_cpu_did() {
        let ([a, b], options) = (shifted(), TieOptions::default());
        let cpu = Cpu::sequential();
        let expected = tie_points(&a, &b, &options, &cpu.clone().into()).unwrap();
        for gpu in crate::device::gpu::all() {
            let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
            assert_eq!(tie_points(&a, &b, &options, &processor).unwrap(), expected, "{gpu:?}");
            let notes = processor.take_notes();
            assert_eq!(notes.is_empty(), gpu.info().has_f64, "{gpu:?}: {notes:?}");
            let there = [&a, &b].map(|features| GpuFeatures::upload(gpu, features).unwrap());
            match tie_points_on_device(&there[0], &there[1], &options, &cpu) {
                Err(error) => assert!(error.is_device_limit() && !gpu.info().has_f64, "{gpu:?}: {error}"),
                found => assert_eq!(found.unwrap(), expected, "where they lie on {gpu:?}"),
            }
        }
    }
}
