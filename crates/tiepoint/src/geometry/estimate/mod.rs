//! Robust estimation: the model that most of the matches agree with, and the best fit to those that do. There is one such
//! engine: `match` and `register` call it through [`estimate()`], collections through `two_view`, which decides by
//! COLMAP's rules what kind of two views a pair is, on the CPU or for many pairs side by side on a GPU.
//!
//! 1. Samples of as few matches as determine the model (`sampler`: PROSAC; `minimal`, `seven_point`, `five_point`) are
//!    judged by the number of matches within the threshold (`residual` defines these, `judge` counts them).
//! 2. The best of a batch, if it beats the best so far, is improved by reweighted Gauss–Newton steps (`improve`, `step`:
//!    LO-RANSAC, Chum, Matas, Kittler 2003), and a fundamental matrix that fits a plane is completed (`degenerate`).
//! 3. The search ends when a better model would have been drawn with the requested confidence (`search`).
//! 4. The last model is settled (`improve`): least squares over its own inliers, found anew until they stay the same, then
//!    by weights that fall with the residual where most inliers lie much nearer than the threshold.
//! 5. If the inliers do not determine the model, or chance could explain them, no model is returned (`degenerate`).
//!
//! Where there are very many matches, an evenly thinned part of them serves for all steps but the last two.
//!
//! Deterministic: a sample depends only on its number, and batches do not depend on the threads; models are compared by
//! integers; sums have a fixed order; all arithmetic is f64, IEEE operations and square roots only.

pub(crate) mod degenerate;
pub(super) mod five_point;
pub(super) mod gpu;
pub(super) mod improve;
pub(super) mod judge;
mod minimal;
mod parts;
pub(super) mod points;
pub(super) mod rays;
mod residual;
pub(super) mod sampler;
pub(super) mod search;
mod seven_point;
mod step;

use super::calibration::Camera;
use super::linear::eigen;
use super::matrix::{IDENTITY, Mat3, flat, is_finite, of_flat, unit};
use super::model::rank_two;
use super::{Affine, Essential, Fundamental, Homography, Model, ModelKind, Similarity};
use crate::device::Cpu;
use crate::options::{Above, OrInfinite, options};
use crate::{Error, Result};
use judge::Judge;
use parts::{joined, parts_of};
use points::Points;
use rays::Rays;
use sampler::Sampler;
use search::{Budget, Extent};

/// Two points that may show the same thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correspondence {
    /// Point in A, pixels.
    pub a: [f64; 2],
    /// Point in B, pixels.
    pub b: [f64; 2],
    /// Its quality in any unit: matches of higher quality are sampled earlier. Equal for all if nothing is known.
    pub quality: f64,
}

options! {
    /// How to estimate a model.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct RobustOptions {
        /// Largest distance of an inlier from the model, in pixels.
        ///
        /// The transfer error, or the distance to the epipolar line as the harmonic mean over both images (√2 times
        /// Sampson's distance); matches beyond do not count.
        threshold_px / with_threshold_px: f64 = 3.0 => Above(0.0), name "threshold", flag "inlier-distance", unit "PX";
        /// Stop when a better model would have been found with this probability.
        confidence / with_confidence: f64 = 0.9999 => 0.0..1.0, unit "P";
        /// The most samples, rounded up to a multiple of 64.
        max_iterations / with_max_iterations: usize = 50_000 => 1..=1_000_000_000, unit "N";
        /// Refuse a model if wrong matches alone are expected to give more than this many models as good as it in one
        /// estimate: the number of false alarms (Moisan and Stival, IJCV 2004). Infinity accepts any.
        ///
        /// The default: a wrong model for one in a million pairs of unrelated images, if their matches are independent.
        false_alarms / with_false_alarms: f64 = 1e-6 => OrInfinite(Above(0.0)), unit "N";
        /// Seed of the sampler; the same seed gives the same result everywhere.
        seed / with_seed: u64 = 0, unit "N";
    }
    besides {
        /// The cameras of A and B, which an essential matrix needs and no other model uses. Default none.
        cameras / with_cameras: Option<[Camera; 2]> = None;
        /// How exact the model is to be. Default settled.
        precision / with_precision: Precision = Precision::Settled;
    }
    check this {
        this.cameras.iter().flatten().try_for_each(Camera::check)
    }
}

/// How exact a model is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Good enough to search near it: if there are very many matches, it is fitted only to the part that judges
    /// samples.
    Guiding,
    /// To convergence over all matches.
    Settled,
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

/// The most samples that are judged together.
const MOST_TOGETHER: usize = 4096;

/// If there are more matches than this, samples are judged, and the model is improved, by an evenly thinned part of at
/// most this many; all matches only settle it. That is enough: 50 000 samples find no model with fewer than a tenth of
/// inliers, and a tenth of this part is hundreds of matches.
const ENOUGH: usize = 8192;

/// The model of `kind` that the matches agree on. Matches with coordinates that are not finite are outliers.
///
/// # Errors
/// [`Error::Option`] as [`RobustOptions::check`]; [`Error::TooFewMatches`] for fewer than determine the model;
/// [`Error::Degenerate`] when they do not determine it: all on a line, all at one point, all on a plane (for a
/// fundamental matrix), from a camera that only turned (for an essential matrix, too, unless any number of false alarms
/// is accepted), or so few in agreement that chance could explain them ([`RobustOptions::false_alarms`]).
pub fn estimate(
    kind: ModelKind,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    options.check()?;
    let _stage = cpu.stage("estimate");
    cpu.run(|| {
        let problem = Problem::new(kind, pairs, options, cpu)?;
        let thinned = problem.thinned();
        let (all, drawn) = (problem.judge(&problem.points), &problem.points);
        let judge = all.of(thinned.as_ref().unwrap_or(drawn));
        let quality = |i: usize| pairs[problem.usable[i]].quality;
        let mut sampler = Sampler::new(drawn.len(), quality, kind.minimum(), options.seed, cpu);
        let budget = Budget::new(kind.minimum(), options.confidence, [1, options.max_iterations]);
        let most = options.max_iterations as u32;
        let extent = Extent { budget: &budget, most, together: MOST_TOGETHER, thorough: true };
        let resolve = |best: Fit, sample: &[usize]| degenerate::resolve(&judge, best, drawn, sample);
        let (best, iterations) = search::search(&judge, drawn, &mut sampler, &extent, None, resolve);
        cpu.check()?;
        let found = match best {
            Some(best) => problem.finish([&all, &judge], best, iterations as usize),
            None => Err(degenerate::explain(&all)),
        };
        // The number of different samples of these matches.
        let samples = (0..kind.minimum()).map(|i| (drawn.len() - i) as f64 / (i + 1) as f64).product::<f64>();
        let is_cut_short = iterations >= most && samples > f64::from(most);
        if is_cut_short { found.map_err(degenerate::so_far) } else { found }
    })
}

struct Problem<'p> {
    kind: ModelKind,
    options: &'p RobustOptions,
    /// Which matches have finite coordinates.
    usable: Vec<usize>,
    points: Points,
    rays: Option<Rays>,
    cpu: &'p Cpu,
}

/// The model near `start` that the matches agree on: [`estimate()`] without samples, only improving and settling, for
/// matches that were found with the help of `start`.
///
/// # Errors
/// As [`estimate()`].
pub fn refine(
    start: &Model,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    options.check()?;
    let _stage = cpu.stage("estimate");
    let (options, essential) = match start {
        Model::Essential(essential) => (&options.with_cameras(Some(essential.cameras())), essential.matrix()),
        _ => (options, NO_ESSENTIAL),
    };
    cpu.run(|| {
        let problem = Problem::new(start.kind(), pairs, options, cpu)?;
        let thinned = problem.thinned();
        let all = problem.judge(&problem.points);
        let judge = all.of(thinned.as_ref().unwrap_or(&problem.points));
        let model = problem.points.normalised(problem.kind, &start.between_pixels());
        let start = judge.counted(Fit { model, essential, inliers: 0 });
        // The matrix of a homography may have either sign.
        let other = judge.counted(Fit { model: start.model.map(|row| row.map(|v| -v)), ..start });
        let start = judge.improve(if other.inliers > start.inliers { other } else { start });
        problem.finish([&all, &judge], start, 0)
    })
}

/// When all matches are fitted, points within a third of this distance of a line count as lying on it.
const NARROW_PX: f64 = 1e-6;

/// The model of `kind` that fits all matches best: the least-squares fit by the residuals of [`residuals`], in which
/// outliers count like other matches. Matches with coordinates that are not finite are left out; all others are
/// inliers, except those that the best homography puts on or beyond its horizon. Of the options only the cameras are used,
/// and whether any number of false alarms is accepted.
///
/// # Errors
/// [`Error::Option`] as [`RobustOptions::check`]; [`Error::TooFewMatches`] for fewer than determine the model (8 for a
/// fundamental and an essential matrix); [`Error::Degenerate`] when they do not determine it. That they lie on a plane, or
/// that the camera only turned, is judged as in [`estimate()`], with a threshold of three times the root mean square
/// residual, and accepted if any number of false alarms is.
pub fn fit(
    kind: ModelKind,
    pairs: &[Correspondence],
    options: &RobustOptions,
    cpu: &Cpu,
) -> Result<Estimate> {
    options.check()?;
    let _stage = cpu.stage("estimate");
    // So wide that every match agrees with equal weight, and narrow enough that its square does not overflow.
    let wide = options.with_threshold_px(1e60).with_false_alarms(f64::INFINITY);
    cpu.run(|| {
        let problem = Problem::new(kind, pairs, &wide, cpu)?;
        let (found, needed) = (problem.points.len(), if kind.is_epipolar() { 8 } else { kind.minimum() });
        if found < needed {
            return Err(Error::TooFewMatches { model: kind.noun(), found, needed });
        }
        let all = problem.judge(&problem.points);
        let start = all.linear().ok_or_else(|| degenerate::error(kind, "the matches do not determine it"))?;
        // Matches may lie in any area, however small, but not on a line.
        let narrow = Judge::new(kind, &problem.points, NARROW_PX, problem.rays, cpu);
        let every: Vec<usize> = (0..problem.points.len()).collect();
        let places = narrow.places(&every);
        narrow.check(&start.model, &every, f64::INFINITY, || [places; 2])?;
        if kind == ModelKind::Homography && narrow.all_but_one_on_a_line() {
            return Err(degenerate::error(kind, "all matches but one lie on a line"));
        }
        let best = all.settle(start);
        let found = problem.found(&all, &best, all.inliers(&best.model), 0)?;
        if options.false_alarms < f64::INFINITY {
            // Nearly all noise is below three times its root mean square.
            let noise = NARROW_PX.max(3.0 * found.rms_px);
            let judge = Judge::new(kind, &problem.points, noise, problem.rays, cpu);
            degenerate::check_parallax([&judge; 2], &best.model, &every)?;
        }
        Ok(found)
    })
}

/// How far each match is from a model, in pixels: the residual that [`RobustOptions::threshold_px`] is compared with.
/// Infinite beyond the horizon, if it is known ([`Homography`]), and where a coordinate is not finite.
///
/// The estimation judges in normalised coordinates: its residuals differ from these by rounding.
pub fn residuals(b_from_a: &Model, pairs: &[Correspondence]) -> Vec<f64> {
    let (kind, m) = (b_from_a.kind(), flat(&b_from_a.between_pixels()));
    let squared =
        |m: &[f64; 9], p: &Correspondence| residual::squared(kind, m, [p.a[0], p.a[1], p.b[0], p.b[1]]);
    // A homography maps both sides of its horizon unless it is known which side was seen.
    let has_two_sides = matches!(b_from_a, Model::Homography(h) if h.sided()[2][2] != 1.0);
    let one = |p: &Correspondence| match is_usable(p) {
        true if has_two_sides => squared(&m, p).min(squared(&m.map(|v| -v), p)).sqrt(),
        true => squared(&m, p).sqrt(),
        false => f64::INFINITY,
    };
    pairs.iter().map(one).collect()
}

/// Whether coordinates are finite, and small enough that their squares do not overflow on the way.
pub(super) fn is_usable(pair: &Correspondence) -> bool {
    pair.a.iter().chain(&pair.b).all(|c| c.abs() < 1e30)
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// A map, or a fundamental matrix.
    pub(super) model: Mat3,
    /// The essential matrix between rays, only for that kind of model.
    pub(super) essential: Mat3,
    pub(super) inliers: u32,
}

/// Stands for no essential matrix.
const NO_ESSENTIAL: Mat3 = [[0.0; 3]; 3];

fn cameras(options: &RobustOptions) -> Result<[Camera; 2]> {
    options.cameras.ok_or_else(|| Error::option("cameras", "none", "both cameras, for an essential matrix"))
}

impl<'p> Problem<'p> {
    fn new(
        kind: ModelKind,
        pairs: &[Correspondence],
        options: &'p RobustOptions,
        cpu: &'p Cpu,
    ) -> Result<Self> {
        if kind == ModelKind::Essential {
            cameras(options)?;
        }
        let usable = joined(cpu, pairs.len(), |part| part.filter(|&i| is_usable(&pairs[i])).collect());
        if usable.len() < kind.minimum() {
            let (model, found, needed) = (kind.noun(), usable.len(), kind.minimum());
            return Err(Error::TooFewMatches { model, found, needed });
        }
        let points = Points::new(pairs, &usable, cpu);
        let rays = options.cameras.as_ref().map(|cameras| Rays::new(cameras, &points));
        Ok(Self { kind, options, usable, points, rays, cpu })
    }

    fn judge<'q>(&'q self, points: &'q Points) -> Judge<'q> {
        Judge::new(self.kind, points, self.options.threshold_px, self.rays, self.cpu)
    }

    /// The matches that judge samples, where all are more than [`ENOUGH`].
    fn thinned(&self) -> Option<Points> {
        let count = self.points.len();
        (count > ENOUGH).then(|| self.points.thinned(count.div_ceil(ENOUGH), self.cpu))
    }

    /// Settles the model, first by the matches that judge samples, then by all; checks that the inliers determine it;
    /// and converts it to pixels.
    fn finish(&self, [all, judge]: [&Judge<'_>; 2], best: Fit, iterations: usize) -> Result<Estimate> {
        let is_last = self.options.precision == Precision::Guiding || all.points.len() == judge.points.len();
        let best = match is_last {
            true => judge.settle_by_deviation(best),
            false => all.settle_by_deviation(judge.settle(best)),
        };
        self.cpu.check()?;
        let inliers = all.inliers(&best.model);
        degenerate::check(all, judge, self.options.false_alarms, &best.model, &inliers)?;
        self.found(all, &best, inliers, iterations)
    }

    fn found(&self, all: &Judge<'_>, best: &Fit, inliers: Vec<usize>, iterations: usize) -> Result<Estimate> {
        let m = flat(&best.model);
        let squared = |i: &usize| residual::squared(self.kind, &m, all.points.places(*i));
        let parts = parts_of(all.cpu, inliers.len(), |part| inliers[part].iter().map(squared).sum::<f64>());
        let sum = parts.into_iter().reduce(|sum, part| sum + part).unwrap_or(0.0);
        let mean = sum / inliers.len().max(1) as f64;
        Ok(Estimate {
            b_from_a: self.to_model(best)?,
            inliers: inliers.into_iter().map(|i| self.usable[i]).collect(),
            rms_px: mean.sqrt() / all.points.scale,
            iterations,
        })
    }

    fn to_model(&self, best: &Fit) -> Result<Model> {
        let m = self.points.to_pixels(self.kind, &best.model);
        let (turn, shift) = ([m[0][0], m[1][0]], [m[0][2], m[1][2]]);
        Ok(match self.kind {
            ModelKind::Homography => Model::Homography(Homography::in_front(m)?),
            ModelKind::Affine => Model::Affine(Affine::new([m[0], m[1]])?),
            ModelKind::Similarity => Model::Similarity(Similarity::new(turn, shift)?),
            ModelKind::Rigid => Model::Rigid(Similarity::new(turn, shift)?),
            ModelKind::Translation => Model::Translation(Similarity::new([1.0, 0.0], shift)?),
            ModelKind::Fundamental => Model::Fundamental(Fundamental::new(m)?),
            ModelKind::Essential => Model::Essential(Essential::new(best.essential, cameras(self.options)?)?),
        })
    }
}

impl Judge<'_> {
    /// A model from which least squares over all matches can start: for a homography and a fundamental matrix the
    /// linear solution (Hartley, Zisserman 2004, sections 4.1 and 11.2), for an essential matrix the one nearest to
    /// that, for a rigid motion the rotation of the best similarity, and for other maps the identity, because their
    /// systems are linear except for the weights.
    fn linear(&self) -> Option<Fit> {
        let (kind, points) = (self.kind, self.points);
        let mut model = IDENTITY;
        if kind.is_epipolar() || kind == ModelKind::Homography {
            let mut square = [[0.0; 9]; 9];
            let mut add = |row: [f64; 9]| {
                (0..81).for_each(|k| square[k / 9][k % 9] += row[k / 9] * row[k % 9]);
            };
            for [x, y, u, v] in (0..points.len()).map(|i| points.places(i)) {
                match kind {
                    ModelKind::Homography => {
                        add([x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, -u]);
                        add([0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, -v]);
                    }
                    _ => add([u * x, u * y, u, v * x, v * y, v, x, y, 1.0]),
                }
            }
            model = of_flat(eigen(square).1[0]);
            match kind {
                ModelKind::Homography => {
                    // In front of both cameras the denominator is positive: at the origin, the centre of all places.
                    let sign = if model[2][2] < 0.0 { -1.0 } else { 1.0 };
                    model = model.map(|row| row.map(|v| sign * v));
                }
                ModelKind::Essential => {}
                _ => model = unit(&rank_two(&model))?,
            }
        }
        if kind == ModelKind::Rigid {
            // From the identity no step would lead to a half turn.
            let scaled = self.as_kind(ModelKind::Similarity);
            let [[c, _, x], [s, _, y], last] = scaled.settle(scaled.judged(IDENTITY)).model;
            let length = (c * c + s * s).sqrt();
            let (c, s) = (c / length, s / length);
            model = [[c, -s, x], [s, c, y], last];
        }
        is_finite(&model).then(|| self.judged(model))
    }
}

#[cfg(test)]
mod accuracy_tests;
#[cfg(test)]
pub(super) mod tests;
