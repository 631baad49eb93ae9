//! Scoring models over all matches, and improving them.
//!
//! Sums over the matches are taken by parts of [`PART`] matches, which threads share: in a part eight sums side by
//! side, of every eighth match each, which are added in pairs at its end; the parts' sums are then added in their
//! order.

#![allow(clippy::needless_range_loop, reason = "indices of rows, columns and lanes are the notation here")]

use super::degenerate::Claim;
use super::minimal;
use super::points::Points;
use super::residual::{Normal, SUMS, squared, term};
use super::sampler::{MAX_SAMPLE, Sampler};
use super::score::Score;
use super::seven_point::seven_point;
use super::{RobustOptions, Scored};
use crate::device::{Cpu, dispatch};
use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, flat, is_finite};
use crate::geometry::real::{WIDTH, lane_of, splat};
use fearless_simd::{Simd, f64x8, prelude::*};
use std::sync::atomic::{AtomicU64, Ordering};

/// Steps of the optimisation of each new best model, and of the last one.
const STEPS: usize = 12;
const LAST_STEPS: usize = 100;

/// The share of the score by which a step must gain for another to follow.
const GAIN: f64 = 1e-4;
const LAST_GAIN: f64 = 1e-10;

/// The same where very many matches settle a model. Of 22 822 matches of a scene with relief ten stretched steps gain
/// what 24 plain ones do; those that follow move no corner by a hundredth of a pixel.
const SETTLED_GAIN: f64 = 1e-7;
const SETTLED_STEPS: usize = 16;

/// A model that scores below this share of the best among the first [`PART`] matches is given up.
const HOPELESS: f64 = 0.5;

/// How much wider the first threshold of the optimisation is.
const WIDE: f64 = 2.5;

/// Matches whose sums are one task, and their vectors.
pub(super) const PART: usize = 1024;
const VECTORS: usize = PART / WIDTH;

/// Parts from which on threads share them.
const SHARED: usize = 3;

/// The matches, and the score by which models are judged.
pub(super) struct Judge<'p> {
    pub(super) kind: ModelKind,
    pub(super) points: &'p Points,
    /// The threshold between normalised points.
    pub(super) threshold: f64,
    /// Largest logarithm of the number of false alarms of a model.
    pub(super) most_alarms: f64,
    score: Score,
    /// The score for a start that is off by more than the threshold.
    wide: Score,
    pub(super) cpu: &'p Cpu,
}

/// The best model of a few samples, and the sample that it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) scored: Scored,
    pub(super) sample: [usize; MAX_SAMPLE],
}

impl<'p> Judge<'p> {
    pub(super) fn new(kind: ModelKind, points: &'p Points, options: &RobustOptions, cpu: &'p Cpu) -> Self {
        let threshold = options.threshold_px * points.scale;
        let score = Score::new(threshold);
        let (wide, most_alarms) = (score.widened(WIDE), libm::log(options.false_alarms));
        Self { kind, points, threshold, most_alarms, score, wide, cpu }
    }

    /// The same score, by other matches in the same coordinates.
    pub(super) fn of<'q>(&'q self, points: &'q Points) -> Judge<'q> {
        Judge { points, score: self.score.clone(), wide: self.wide.clone(), ..*self }
    }

    /// The same matches, for another kind of model.
    pub(super) fn as_kind(&self, kind: ModelKind) -> Self {
        Self { kind, score: self.score.clone(), wide: self.wide.clone(), ..*self }
    }

    /// What the matches are claimed to determine.
    pub(super) fn claim(&self) -> Claim<'p> {
        let Self { kind, points, threshold, most_alarms, cpu, .. } = *self;
        Claim { kind, points, threshold, most_alarms, cpu }
    }

    /// Squared residuals of all matches.
    pub(super) fn residuals(&self, m: &Mat3) -> Vec<f64> {
        let mut all = vec![0.0; self.points.vectors() * WIDTH];
        let (kind, points, m, level) = (self.kind, self.points, flat(m), self.cpu.level());
        let some = |part: usize, out: &mut [f64]| {
            dispatch!(level, simd => residuals(simd, kind, &m, points, part * VECTORS, out));
        };
        match all.len() < SHARED * PART {
            true => all.chunks_mut(PART).enumerate().for_each(|(part, out)| some(part, out)),
            false => self.cpu.for_chunks(&mut all, PART, some),
        }
        all.truncate(points.len());
        all
    }

    /// The share of the matches that is within the threshold.
    pub(super) fn agreeing(&self, m: &Mat3) -> f64 {
        let limit = self.threshold * self.threshold;
        let squared = self.residuals(m);
        squared.iter().filter(|r| **r <= limit).count() as f64 / squared.len() as f64
    }

    pub(super) fn judged(&self, model: Mat3) -> Scored {
        let score = self.score_above(&model, &Least::NONE);
        Scored { model, score: score.unwrap_or(f64::NEG_INFINITY) }
    }

    fn score_above(&self, model: &Mat3, least: &Least<'_>) -> Option<f64> {
        let (kind, points, m) = (self.kind, self.points, flat(model));
        dispatch!(self.cpu.level(), simd => score_all(simd, kind, &m, points, &self.score, least))
    }

    /// The score of a model by the first [`PART`] matches.
    pub(super) fn first_score(&self, model: &Mat3) -> f64 {
        let (kind, points, m) = (self.kind, self.points, flat(model));
        dispatch!(self.cpu.level(), simd => score_part(simd, kind, &splat(simd, &m), points, &self.score, 0))
    }

    /// The best of some models; of equal ones the first.
    pub(super) fn best_of(&self, models: &[Mat3]) -> Option<Scored> {
        let highest = Highest::default();
        let least = Least { elsewhere: Some(&highest), ..Least::NONE };
        let judged = |i: usize| {
            let score = self.score_above(&models[i], &least)?;
            highest.raise(score);
            Some(Scored { model: models[i], score })
        };
        first_best(self.cpu.map(models.len(), judged).into_iter().flatten(), |s| s.score)
    }

    /// The best model of the eight samples from a number on, of the points `drawn` from; of equal ones the first. Its
    /// score is above the least: in all, and with some reserve by the first matches. None where one of a higher score
    /// is known `elsewhere`.
    pub(super) fn best_of_eight(
        &self,
        sampler: &Sampler,
        drawn: &Points,
        first: u64,
        [all, by_first]: [f64; 2],
        elsewhere: &Highest,
    ) -> Option<Candidate> {
        let samples: [_; WIDTH] = std::array::from_fn(|i| sampler.draw(first + i as u64));
        let least = Least { all, by_first, elsewhere: Some(elsewhere) };
        dispatch!(self.cpu.level(), simd => judge_eight(simd, self, drawn, &samples, least))
    }

    /// A few reweighted steps with a wide threshold, then with the right one; from the start with the right one alone
    /// where that leads nowhere.
    pub(super) fn optimise(&self, start: Scored) -> Scored {
        self.improved(start, Pace { steps: STEPS, gain: GAIN, stretching: false })
    }

    /// Reweighted steps until nothing changes.
    pub(super) fn converge(&self, start: Scored) -> Scored {
        self.improved(start, Pace { steps: LAST_STEPS, gain: LAST_GAIN, stretching: false })
    }

    /// The same from a model that is nearly right, without the wide threshold.
    pub(super) fn settle(&self, start: &Mat3) -> Scored {
        let pace = Pace { steps: SETTLED_STEPS, gain: SETTLED_GAIN, stretching: true };
        self.descend(*start, &self.score, pace)
    }

    fn improved(&self, start: Scored, pace: Pace) -> Scored {
        let few = Pace { steps: STEPS / 3, gain: GAIN, stretching: false };
        let wide = self.descend(start.model, &self.wide, few);
        let from_wide = self.descend(wide.model, &self.score, pace);
        if from_wide.score > start.score {
            return from_wide;
        }
        let direct = self.descend(start.model, &self.score, pace);
        if direct.score > start.score { direct } else { start }
    }

    /// Iteratively reweighted Gauss–Newton steps, damped (Levenberg, Marquardt) when one fails to improve.
    fn descend(&self, start: Mat3, score: &Score, pace: Pace) -> Scored {
        let (mut best, mut normal) = self.system(start, score);
        let (mut damping, mut stretch) = (0.0, Stretch::NONE);
        for _ in 0..pace.steps {
            let stepped = normal.stretched(stretch.factor).step(self.kind, &best.model, damping);
            let next = stepped.filter(is_finite).map(|model| self.system(model, score));
            let gained = next.as_ref().map_or(f64::NEG_INFINITY, |(found, _)| found.score - best.score);
            let stretched = stretch.factor > 1.0;
            match next {
                Some((found, its)) if gained > 0.0 => {
                    (best, normal) = (found, its);
                    damping *= 0.1;
                }
                _ if stretched => {}
                _ => damping = f64::max(damping * 10.0, 1e-3),
            }
            if pace.stretching {
                stretch = stretch.after(gained);
            }
            // What follows a stretched step says whether there is more to gain.
            if !stretched && gained.abs() < pace.gain * best.score {
                break;
            }
            if damping > 1e4 {
                break;
            }
        }
        best
    }

    /// The score of a model, and the weighted system of a step from it.
    fn system(&self, model: Mat3, score: &Score) -> (Scored, Normal) {
        let (kind, points, m) = (self.kind, self.points, flat(&model));
        let level = self.cpu.level();
        let one = |part: usize| dispatch!(level, simd => system_of(simd, kind, &m, points, score, part));
        let parts = points.vectors().div_ceil(VECTORS);
        let found = if parts < SHARED { (0..parts).map(one).collect() } else { self.cpu.map(parts, one) };
        let mut all = [0.0; SUMS + 1];
        found.iter().for_each(|part| all.iter_mut().zip(part).for_each(|(sum, s)| *sum += s));
        let [score, sums @ ..] = all;
        (Scored { model, score }, Normal::new(&sums))
    }
}

/// How far an optimisation goes.
#[derive(Clone, Copy)]
struct Pace {
    /// Steps at most.
    steps: usize,
    /// The share of the score by which a step must gain for another to follow.
    gain: f64,
    /// Whether steps are [stretched](Stretch).
    stretching: bool,
}

/// How much longer the next step is. Reweighted steps converge linearly where many residuals lie in the slope of the
/// loss: from the gains of two follows the factor by which each shortens the way, and a step as long as all that would
/// follow (Aitken's extrapolation) saves most of them.
#[derive(Clone, Copy)]
struct Stretch {
    factor: f64,
    /// What the last step gained, if it was not stretched.
    gained: Option<f64>,
}

impl Stretch {
    const NONE: Self = Self { factor: 1.0, gained: None };
    /// The longest.
    const MOST: f64 = 12.0;

    /// After a step that gained so much.
    fn after(self, gained: f64) -> Self {
        if self.factor > 1.0 || gained <= 0.0 {
            return Self::NONE;
        }
        // Gains shrink as the squares of the steps.
        let shrunk = self.gained.map_or(0.0, |before| gained / before);
        let factor = match shrunk > 0.25 && shrunk < 1.0 {
            true => f64::min(1.0 / (1.0 - shrunk.sqrt()), Self::MOST),
            false => 1.0,
        };
        Self { factor, gained: Some(gained) }
    }
}

/// The highest score that any thread has found so far. What is given up for its sake has a lower one, so that the best
/// does not depend on who comes first.
#[derive(Default)]
pub(super) struct Highest(AtomicU64);

impl Highest {
    fn raise(&self, score: f64) {
        // Numbers that are not negative are ordered as their bits are.
        self.0.fetch_max(score.max(0.0).to_bits(), Ordering::Relaxed);
    }

    /// Whether no score up to `most` reaches it, even if `most` was rounded.
    fn exceeds(&self, most: f64) -> bool {
        most * (1.0 + 1e-9) < f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// What a model has to exceed.
#[derive(Clone, Copy)]
struct Least<'h> {
    /// By all matches.
    all: f64,
    /// By the first [`PART`] of them, of which a share is enough.
    by_first: f64,
    /// What it has to reach.
    elsewhere: Option<&'h Highest>,
}

impl Least<'_> {
    const NONE: Self = Self { all: f64::NEG_INFINITY, by_first: f64::NEG_INFINITY, elsewhere: None };

    fn is_out_of_reach(&self, most: f64) -> bool {
        most <= self.all || self.elsewhere.is_some_and(|highest| highest.exceeds(most))
    }
}

/// The first of the items with the highest score.
pub(super) fn first_best<T>(items: impl Iterator<Item = T>, score: impl Fn(&T) -> f64) -> Option<T> {
    items.reduce(|best, next| if score(&next) > score(&best) { next } else { best })
}

/// The vectors of a part.
fn part_of(points: &Points, part: usize) -> std::ops::Range<usize> {
    part * VECTORS..points.vectors().min((part + 1) * VECTORS)
}

#[inline(always)]
fn in_pairs<S: Simd>(sums: f64x8<S>) -> f64 {
    let pair = |i: usize| sums[i] + sums[i + 4];
    (pair(0) + pair(2)) + (pair(1) + pair(3))
}

#[inline(always)]
fn residuals<S: Simd>(
    simd: S,
    kind: ModelKind,
    m: &[f64; 9],
    points: &Points,
    first: usize,
    out: &mut [f64],
) {
    let model = splat(simd, m);
    for (i, out) in out.chunks_exact_mut(WIDTH).enumerate() {
        squared(kind, &model, points.vector(simd, first + i)).store_slice(out);
    }
}

/// The score of a model by a part of the matches.
#[inline(always)]
fn score_part<S: Simd>(
    simd: S,
    kind: ModelKind,
    model: &[f64x8<S>; 9],
    points: &Points,
    score: &Score,
    part: usize,
) -> f64 {
    let mut sum = f64x8::splat(simd, 0.0);
    for i in part_of(points, part) {
        sum += score.vector(simd, squared(kind, model, points.vector(simd, i)))[0];
    }
    in_pairs(sum)
}

/// The score of a model; `None` as soon as it cannot exceed the least any more.
#[inline(always)]
fn score_all<S: Simd>(
    simd: S,
    kind: ModelKind,
    m: &[f64; 9],
    points: &Points,
    score: &Score,
    least: &Least<'_>,
) -> Option<f64> {
    let model = splat(simd, m);
    let parts = points.vectors().div_ceil(VECTORS);
    let mut total = 0.0;
    for part in 0..parts {
        total += score_part(simd, kind, &model, points, score, part);
        // A match adds 1 at most.
        let left = points.len().saturating_sub((part + 1) * PART) as f64;
        if least.is_out_of_reach(total + left)
            || (part == 0 && parts > 1 && total < HOPELESS * least.by_first)
        {
            return None;
        }
    }
    Some(total)
}

/// The score of a part, and its sums.
#[inline(always)]
fn system_of<S: Simd>(
    simd: S,
    kind: ModelKind,
    m: &[f64; 9],
    points: &Points,
    score: &Score,
    part: usize,
) -> [f64; SUMS + 1] {
    let model = splat(simd, m);
    let mut total = f64x8::splat(simd, 0.0);
    let mut sums = [total; SUMS];
    for i in part_of(points, part) {
        let (gain, term) = term(
            kind,
            &model,
            points.vector(simd, i),
            #[inline(always)]
            |squared| score.vector(simd, squared),
        );
        total += gain;
        for k in 0..SUMS {
            sums[k] += term[k];
        }
    }
    let mut all = [in_pairs(total); SUMS + 1];
    for k in 0..SUMS {
        all[k + 1] = in_pairs(sums[k]);
    }
    all
}

/// The best so far of some samples.
struct Best<'j, 'p> {
    judge: &'j Judge<'p>,
    least: Least<'j>,
    candidate: Option<Candidate>,
}

impl Best<'_, '_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, model: Mat3, sample: &[usize; MAX_SAMPLE]) {
        let Judge { kind, points, score, .. } = self.judge;
        if let Some(score) = score_all(simd, *kind, &flat(&model), points, score, &self.least) {
            self.candidate = Some(Candidate { scored: Scored { model, score }, sample: *sample });
            self.least.all = score;
            self.least.elsewhere.inspect(|highest| highest.raise(score));
        }
    }
}

#[inline(always)]
fn judge_eight<S: Simd>(
    simd: S,
    judge: &Judge<'_>,
    drawn: &Points,
    samples: &[[usize; MAX_SAMPLE]; WIDTH],
    least: Least<'_>,
) -> Option<Candidate> {
    let kind = judge.kind;
    let mut best = Best { judge, least, candidate: None };
    match kind {
        ModelKind::Fundamental => {
            let [a, b] = drawn.gathered(simd, samples);
            let (one, zero) = (f64x8::splat(simd, 1.0), f64x8::splat(simd, 0.0));
            let [(f, f_is), (g, g_is), (h, h_is)] = seven_point(&a, &b);
            let exist = [f_is.select(one, zero), g_is.select(one, zero), h_is.select(one, zero)];
            let models = [f, g, h];
            for i in 0..3 * WIDTH {
                let (lane, root) = (i / 3, i % 3);
                if exist[root][lane] > 0.0 {
                    best.take(simd, lane_of(&models[root], lane), &samples[lane]);
                }
            }
        }
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
            for sample in samples {
                let found = minimal::model(kind, drawn, &sample[..kind.minimum()]);
                if let Some(model) = found.filter(is_finite) {
                    best.take(simd, model, sample);
                }
            }
        }
    }
    best.candidate
}
