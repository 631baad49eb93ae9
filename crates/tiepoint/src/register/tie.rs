//! Verified tie points from two sets of features.

use crate::device::Processor;
use crate::feature::Features;
use crate::feature::gpu::GpuFeatures;
use crate::geometry::estimate::refine;
use crate::geometry::{Correspondence, Estimate, Model, ModelKind, RobustOptions, estimate};
use crate::matching::{GpuMatcher, Guide, Match, MatchOptions, match_features};
use crate::{Error, Result};

/// How to find tie points.
#[derive(Clone, Copy, Debug, PartialEq)]
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
pub struct Rematch {
    /// Search radius around the predicted place, or half width of the band along the epipolar line, as a
    /// multiple of the inlier threshold; 1 to 100. Default 2.
    pub radius: f64,
    /// Ratio among the candidates there; above 0 and at most 1. Default 0.9.
    pub ratio: f32,
    /// How often search and refinement alternate, at least 1; it ends when a round finds the matches of the
    /// round before. Default 2.
    pub rounds: u8,
}

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
    pub model: Option<Model>,
    /// Indices into `matches` of those that agree with the model, ascending; all without a model.
    pub inliers: Vec<usize>,
    /// Root mean square residual of the inliers, pixels; 0 without a model.
    pub rms_px: f64,
    /// Samples that the estimation drew.
    pub iterations: usize,
}

/// Places and qualities of matches, for [`estimate()`].
pub(super) fn correspondences(a: &Features, b: &Features, matches: &[Match]) -> Vec<Correspondence> {
    let pair = |m: &Match| {
        let (p, q) = (&a.keypoints[m.a as usize], &b.keypoints[m.b as usize]);
        let place = |x: f32, y: f32| [f64::from(x), f64::from(y)];
        Correspondence { a: place(p.x, p.y), b: place(q.x, q.y), quality: -f64::from(m.ratio) }
    };
    matches.iter().map(pair).collect()
}

/// Two sets of features, on the device that matches them.
#[derive(Debug)]
enum Matcher<'f> {
    Cpu([&'f Features; 2]),
    Gpu(GpuMatcher, [GpuFeatures; 2]),
}

impl<'f> Matcher<'f> {
    fn new(a: &'f Features, b: &'f Features, processor: &Processor) -> Result<Self> {
        Ok(match &processor.gpu {
            Some(gpu) => {
                Self::Gpu(GpuMatcher::new(gpu), [GpuFeatures::upload(gpu, a)?, GpuFeatures::upload(gpu, b)?])
            }
            None => Self::Cpu([a, b]),
        })
    }

    fn matches(&self, options: &MatchOptions, processor: &Processor) -> Result<Vec<Match>> {
        let found = match self {
            Self::Cpu([a, b]) => match_features(a, b, options, &processor.cpu),
            Self::Gpu(matcher, [a, b]) => matcher.match_features(a, b, options),
        };
        processor.collect_times();
        found
    }
}

/// Tie points between two images. Matching runs on the processor's GPU where there is one.
///
/// # Errors
/// As [`TieOptions::check`], [`match_features`] and [`estimate()`].
pub fn tie_points(
    a: &Features,
    b: &Features,
    options: &TieOptions,
    processor: &Processor,
) -> Result<TiePoints> {
    options.check()?;
    let cpu = &processor.cpu;
    let matcher = Matcher::new(a, b, processor)?;
    let mut matches = matcher.matches(&options.matching, processor)?;
    let Some(kind) = options.model else {
        let inliers = (0..matches.len()).collect();
        return Ok(TiePoints { matches, model: None, inliers, rms_px: 0.0, iterations: 0 });
    };
    let mut found = estimate(kind, &correspondences(a, b, &matches), &options.robust, cpu)?;
    let iterations = found.iterations;
    for _ in 0..options.rematch.map_or(0, |r| r.rounds) {
        let Some((again, refined)) = improve(a, b, &matcher, options, &found, processor) else { break };
        let settled = again == matches;
        (matches, found) = (again, refined);
        if settled {
            break;
        }
    }
    Ok(TiePoints {
        matches,
        model: Some(found.model),
        inliers: found.inliers,
        rms_px: found.rms_px,
        iterations,
    })
}

/// One round of searching near the model and refining it; `None` when that gives fewer inliers.
fn improve(
    a: &Features,
    b: &Features,
    matcher: &Matcher<'_>,
    options: &TieOptions,
    found: &Estimate,
    processor: &Processor,
) -> Option<(Vec<Match>, Estimate)> {
    let rematch = options.rematch?;
    let radius = rematch.radius * options.robust.threshold_px;
    let guide = Some(Guide { model: found.model, radius });
    let matching = MatchOptions { guide, ratio: Some(rematch.ratio), mutual: true, ..options.matching };
    let matches = matcher.matches(&matching, processor).ok()?;
    let refined =
        refine(&found.model, &correspondences(a, b, &matches), &options.robust, &processor.cpu).ok()?;
    (refined.inliers.len() >= found.inliers.len()).then_some((matches, refined))
}
