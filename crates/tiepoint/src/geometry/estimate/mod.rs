//! Robust estimation: the model that most of the matches agree on.
//!
//! Samples of as few matches as determine the model (`sampler`, `minimal`) are scored over all matches (`residual`,
//! `score`); the best of a batch, if it beats the best so far, is optimised locally (`local`: LO-RANSAC, Chum, Matas,
//! Kittler 2003, by iteratively reweighted Gauss–Newton steps on the geometric error) and checked for degeneracy
//! (`degenerate`). It ends when a better model would, with the confidence asked for, have been drawn. The last step is
//! the same optimisation, to convergence, over all matches. Of very many matches an evenly thinned part does all but
//! that. A model that finds less than half of what the best so far finds among the first [`PART`](local::PART) matches
//! is not compared with the others (bail-out: Capel 2005).
//!
//! Deterministic: a sample follows from its number; what is judged together does not depend on the threads; sums
//! have a fixed order (`local`); all arithmetic is f64, IEEE operations and square roots only.

pub(crate) mod degenerate;
mod groups;
mod local;
pub(super) mod minimal;
mod parts;
pub(super) mod points;
pub(super) mod residual;
pub(super) mod sampler;
mod score;
pub(super) mod seven_point;

use super::matrix::{Mat3, flat};
use super::real::WIDTH;
use super::{Affine, Fundamental, Homography, Model, ModelKind, Similarity};
use crate::device::Cpu;
use crate::options::setters;
use crate::{Error, Result};
use local::{Highest, Judge, first_best};
use parts::{joined, sums};
use points::Points;
use sampler::Sampler;

/// Two points that may show the same thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correspondence {
    /// Point in A, pixels.
    pub a: [f64; 2],
    /// Point in B, pixels.
    pub b: [f64; 2],
    /// Its quality in any unit: higher ones are sampled earlier. Equal for all where nothing is known.
    pub quality: f64,
}

/// How to estimate a model.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RobustOptions {
    /// A match is an inlier up to this residual (see `residual`: transfer error or distance to the epipolar
    /// line, averaged over both images), and counts nothing beyond: pixels, above 0. Default 3.
    pub threshold_px: f64,
    /// Stop when a better model would have been found with this probability, 0 to below 1. Default 0.9999.
    pub confidence: f64,
    /// Samples at most, 1 to 10⁹. Default 50 000.
    pub max_iterations: usize,
    /// Refuse a model for which wrong matches agree as well more often than so many times in as many estimates: the
    /// number of false alarms (Moisan, Stival 2004), above 0. Infinity accepts any, from as few matches as determine
    /// it. Default 10⁻⁶: once in a million pairs of unrelated images, were the places of their matches independent.
    pub false_alarms: f64,
    /// Seed of the sampler; the same seed gives the same result everywhere. Default 0.
    pub seed: u64,
}

setters!(RobustOptions {
    with_threshold_px: threshold_px = f64,
    with_confidence: confidence = f64,
    with_max_iterations: max_iterations = usize,
    with_false_alarms: false_alarms = f64,
    with_seed: seed = u64,
});

impl Default for RobustOptions {
    fn default() -> Self {
        Self { threshold_px: 3.0, confidence: 0.9999, max_iterations: 50_000, false_alarms: 1e-6, seed: 0 }
    }
}

impl RobustOptions {
    /// Checks every option.
    ///
    /// # Errors
    /// [`Error::Option`] names the first that is out of range.
    pub fn check(&self) -> Result<()> {
        if !(self.threshold_px > 0.0 && self.threshold_px.is_finite()) {
            return Err(Error::option("threshold_px", self.threshold_px, "above 0, in pixels"));
        }
        if !(0.0..1.0).contains(&self.confidence) {
            return Err(Error::option("confidence", self.confidence, "0 to below 1"));
        }
        if !(1..=1_000_000_000).contains(&self.max_iterations) {
            return Err(Error::option("max_iterations", self.max_iterations, "1 to 1000000000"));
        }
        if self.false_alarms.is_nan() || self.false_alarms <= 0.0 {
            return Err(Error::option("false_alarms", self.false_alarms, "above 0"));
        }
        Ok(())
    }
}

/// A model and the matches that agree with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The model from A to B.
    pub b_from_a: Model,
    /// Indices of the inliers, ascending.
    pub inliers: Vec<usize>,
    /// Root mean square residual of the inliers in pixels.
    pub rms_px: f64,
    /// Samples drawn.
    pub iterations: usize,
}

/// Samples judged together: as many as were drawn before, within these bounds, so that the threads have more to share
/// the longer it takes. Part of the result: the best of a batch alone is improved, and the number of samples drawn is a
/// multiple of the least.
const BATCH: usize = 128;
const MOST_TOGETHER: usize = 4096;

/// Of more matches than this, an evenly thinned part of no more judges samples and leads the model to where all matches
/// together settle it: 50 000 samples find no model with fewer than a tenth of inliers, of which this part has
/// hundreds.
const ENOUGH: usize = 8192;

/// The model of `kind` that the matches agree on. Matches with coordinates that are not finite are outliers.
///
/// # Errors
/// [`Error::Option`] as [`RobustOptions::check`]; [`Error::TooFewMatches`] for fewer than determine the model;
/// [`Error::Degenerate`] when they do not determine it: all on a line, all at one point, all on a plane (for
/// a fundamental matrix), or no more of them in agreement than chance brings about
/// ([`RobustOptions::false_alarms`]).
pub fn estimate(
    kind: ModelKind,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    estimate_to(Precision::Settled, kind, pairs, options, cpu)
}

/// How exactly a model is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    /// Good enough to search near it: of very many matches those that judge samples alone have optimised it.
    Guiding,
    /// To convergence over all matches.
    Settled,
}

/// As [`estimate()`], to a precision.
pub(crate) fn estimate_to(
    precision: Precision,
    kind: ModelKind,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    options.check()?;
    let _stage = cpu.stage("estimate");
    cpu.run(|| {
        let usable = usable(kind, pairs, cpu)?;
        let points = Points::new(pairs, &usable, cpu);
        let quality = |i: usize| pairs[usable[i]].quality;
        let mut sampler = Sampler::new(usable.len(), quality, kind.minimum(), options.seed, cpu);
        let (all, thinned) = (Judge::new(kind, &points, options, cpu), thinned(&points, cpu));
        let judge = all.of(thinned.as_ref().unwrap_or(&points));
        let (best, iterations) = search(&judge, &points, &mut sampler, options)?;
        let Some(best) = best else { return Err(degenerate::explain(&all)) };
        finish(precision, [&all, &judge], best, &usable, iterations)
    })
}

/// The matches that judge samples, where all are more than [`ENOUGH`].
fn thinned(points: &Points, cpu: &Cpu) -> Option<Points> {
    (points.len() > ENOUGH).then(|| points.thinned(points.len().div_ceil(ENOUGH), cpu))
}

/// The model nearest to `start` that the matches agree on: the last step of [`estimate()`] alone, for matches
/// found with the help of `start`.
///
/// # Errors
/// As [`estimate()`].
pub fn refine(
    start: &Model,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    refine_to(Precision::Settled, start, pairs, options, cpu)
}

/// As [`refine`], to a precision.
pub(crate) fn refine_to(
    precision: Precision,
    start: &Model,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    options.check()?;
    let _stage = cpu.stage("estimate");
    let kind = start.kind();
    cpu.run(|| {
        let usable = usable(kind, pairs, cpu)?;
        let points = Points::new(pairs, &usable, cpu);
        let (all, thinned) = (Judge::new(kind, &points, options, cpu), thinned(&points, cpu));
        let judge = all.of(thinned.as_ref().unwrap_or(&points));
        let best = judge.judged(points.normalised(kind, &start.matrix()));
        finish(precision, [&all, &judge], best, &usable, 0)
    })
}

/// How far each match is from a model, in pixels: the residual that [`RobustOptions::threshold_px`] is compared with.
/// Infinite behind the horizon and where a coordinate is not finite.
///
/// The estimation judges in normalised coordinates: its residuals differ from these by rounding.
pub fn residuals(b_from_a: &Model, pairs: &[Correspondence]) -> Vec<f64> {
    let (kind, m) = (b_from_a.kind(), flat(&b_from_a.matrix()));
    let one = |p: &Correspondence| match is_usable(p) {
        true => residual::squared(kind, &m, [p.a[0], p.a[1], p.b[0], p.b[1]]).sqrt(),
        false => f64::INFINITY,
    };
    pairs.iter().map(one).collect()
}

/// Whether coordinates are finite, and small enough that their squares do not overflow on the way.
pub(super) fn is_usable(pair: &Correspondence) -> bool {
    pair.a.iter().chain(&pair.b).all(|c| c.abs() < 1e30)
}

/// Indices of the matches with finite coordinates, if there are enough.
fn usable(kind: ModelKind, pairs: &[Correspondence], cpu: &Cpu) -> Result<Vec<usize>> {
    let usable = joined(cpu, pairs.len(), |part| part.filter(|&i| is_usable(&pairs[i])).collect());
    if usable.len() < kind.minimum() {
        let (model, found, needed) = (kind.noun(), usable.len(), kind.minimum());
        return Err(Error::TooFewMatches { model, found, needed });
    }
    Ok(usable)
}

/// A model between normalised points, and its score.
#[derive(Clone, Copy, Debug)]
struct Scored {
    model: Mat3,
    score: f64,
}

/// Draws samples of the points `drawn` from, and judges them, until the confidence is reached.
fn search(
    judge: &Judge<'_>,
    drawn: &Points,
    sampler: &mut Sampler,
    options: &RobustOptions,
) -> Result<(Option<Scored>, usize)> {
    let size = judge.kind.minimum();
    let mut best: Option<Scored> = None;
    let mut needed = options.max_iterations;
    let mut number = 0;
    while number < needed {
        judge.cpu.check()?;
        let least = best.map_or([0.0; 2], |b| [b.score, judge.first_score(&b.model)]);
        let batch = number.clamp(BATCH, MOST_TOGETHER).min((needed - number).next_multiple_of(BATCH));
        sampler.reach((number + batch - 1) as u64, judge.cpu);
        let (first, sampler) = (|task: usize| (number + task * WIDTH) as u64, &*sampler);
        let highest = Highest::default();
        let eight = |task: usize| judge.best_of_eight(sampler, drawn, first(task), least, &highest);
        let found = judge.cpu.map(batch / WIDTH, eight);
        number += batch;
        let Some(winner) = first_best(found.into_iter().flatten(), |c| c.scored.score) else { continue };
        let optimised = judge.optimise(winner.scored);
        let better = degenerate::resolve(judge, optimised, drawn, &winner.sample[..size]);
        best = Some(better);
        needed = samples_needed(judge.agreeing(&better.model), size, options);
    }
    Ok((best, number))
}

/// How many samples find one of inliers only, with the confidence asked for, when `share` are inliers.
fn samples_needed(share: f64, size: usize, options: &RobustOptions) -> usize {
    let good = (0..size).fold(1.0, |product, _| product * share);
    if good >= 1.0 {
        return 1;
    }
    // ln(1 − g) of a tiny g is −g.
    let miss = if good < 1e-9 { -good } else { libm::log(1.0 - good) };
    let needed = libm::log(1.0 - options.confidence) / miss;
    if needed < options.max_iterations as f64 { needed.ceil() as usize } else { options.max_iterations }
}

/// Optimises to convergence, by the matches that judge samples, then by all; checks that the inliers determine the
/// model, and converts it to pixels.
fn finish(
    precision: Precision,
    [all, judge]: [&Judge<'_>; 2],
    best: Scored,
    usable: &[usize],
    iterations: usize,
) -> Result<Estimate> {
    let best = match precision {
        Precision::Guiding => judge.optimise(best).model,
        Precision::Settled if all.points.len() > judge.points.len() => {
            all.settle(&judge.optimise(best).model).model
        }
        Precision::Settled => all.converge(best).model,
    };
    all.cpu.check()?;
    let (squared, limit) = (all.residuals(&best), all.threshold * all.threshold);
    let inliers = joined(all.cpu, squared.len(), |part| part.filter(|&i| squared[i] <= limit).collect());
    degenerate::check(all, judge, &best, &inliers)?;
    let [sum] = sums(all.cpu, inliers.len(), |part| [inliers[part].iter().map(|&i| squared[i]).sum::<f64>()]);
    let mean = sum / inliers.len().max(1) as f64;
    Ok(Estimate {
        b_from_a: to_model(all.kind, &all.points.to_pixels(all.kind, &best))?,
        inliers: inliers.into_iter().map(|i| usable[i]).collect(),
        rms_px: mean.sqrt() / all.points.scale,
        iterations,
    })
}

fn to_model(kind: ModelKind, m: &Mat3) -> Result<Model> {
    Ok(match kind {
        ModelKind::Homography => Model::Homography(Homography::new(*m)?),
        ModelKind::Affine => Model::Affine(Affine::new([m[0], m[1]])?),
        ModelKind::Similarity => Model::Similarity(Similarity::new([m[0][0], m[1][0]], [m[0][2], m[1][2]])?),
        ModelKind::Fundamental => Model::Fundamental(Fundamental::new(*m)?),
    })
}

#[cfg(test)]
mod tests;
