//! Scoring models over all matches, and improving them.

use super::degenerate::Claim;
use super::minimal;
use super::points::Points;
use super::residual::{Normal, residuals};
use super::score::Score;
use super::{RobustOptions, Scored};
use crate::device::Level;
use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, is_finite};

/// Steps of the optimisation of each new best model, and of the last one.
const STEPS: usize = 12;
const LAST_STEPS: usize = 100;

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
    level: Level,
}

impl<'p> Judge<'p> {
    pub(super) fn new(kind: ModelKind, points: &'p Points, options: &RobustOptions, level: Level) -> Self {
        let threshold = options.threshold_px * points.scale;
        Self {
            kind,
            points,
            threshold,
            most_alarms: options.false_alarms.ln(),
            score: Score::new(threshold),
            wide: Score::new(WIDE * threshold),
            level,
        }
    }

    /// The same matches, for another kind of model.
    pub(super) fn as_kind(&self, kind: ModelKind) -> Self {
        Self { kind, points: self.points, score: self.score.clone(), wide: self.wide.clone(), ..*self }
    }

    /// What the matches are claimed to determine.
    pub(super) fn claim(&self) -> Claim<'p> {
        let Self { kind, points, threshold, most_alarms, .. } = *self;
        Claim { kind, points, threshold, most_alarms }
    }

    /// Squared residuals of all matches.
    pub(super) fn residuals(&self, m: &Mat3) -> Vec<f64> {
        let mut squared = vec![0.0; self.points.len()];
        residuals(self.kind, self.level, m, self.points, &mut squared);
        squared
    }

    /// Indices of the matches within the threshold.
    pub(super) fn inliers(&self, m: &Mat3) -> Vec<usize> {
        let limit = self.threshold * self.threshold;
        let squared = self.residuals(m);
        (0..squared.len()).filter(|&i| squared[i] <= limit).collect()
    }

    pub(super) fn judged(&self, model: Mat3) -> Scored {
        Scored { model, score: self.score.total(&self.residuals(&model)) }
    }

    /// The best model through a sample.
    pub(super) fn best_of(&self, sample: &[usize]) -> Option<Scored> {
        let models = minimal::models(self.kind, self.points, sample).into_iter().flatten();
        let judged = models.filter(is_finite).map(|m| self.judged(m));
        judged.reduce(|best, next| if next.score > best.score { next } else { best })
    }

    /// A few reweighted steps with a wide threshold, then with the right one.
    pub(super) fn optimise(&self, start: Scored) -> Scored {
        let wide = Scored { score: self.wide.total(&self.residuals(&start.model)), ..start };
        let wide = self.descend(wide, &self.wide, STEPS / 3);
        let from_wide = self.descend(self.judged(wide.model), &self.score, STEPS);
        let direct = self.descend(start, &self.score, STEPS);
        if from_wide.score > direct.score { from_wide } else { direct }
    }

    /// Reweighted steps until nothing changes.
    pub(super) fn converge(&self, start: Scored) -> Scored {
        self.descend(self.optimise(start), &self.score, LAST_STEPS)
    }

    /// Iteratively reweighted Gauss–Newton steps, damped (Levenberg, Marquardt) when one fails to improve.
    fn descend(&self, start: Scored, score: &Score, steps: usize) -> Scored {
        let mut best = start;
        let mut squared = self.residuals(&best.model);
        let mut damping = 0.0;
        let mut normal = None;
        for _ in 0..steps {
            let system = normal.get_or_insert_with(|| {
                let weights: Vec<f64> = squared.iter().map(|&r| score.weight(r)).collect();
                Normal::new(self.kind, &best.model, self.points, &weights)
            });
            let stepped = system.step(self.kind, &best.model, damping).filter(is_finite);
            let next = stepped.map(|model| {
                let squared = self.residuals(&model);
                (Scored { model, score: score.total(&squared) }, squared)
            });
            match next {
                Some((found, its)) if found.score > best.score => {
                    let gained = found.score - best.score;
                    (best, squared, normal) = (found, its, None);
                    damping *= 0.1;
                    if gained < 1e-10 * best.score {
                        break;
                    }
                }
                _ => damping = f64::max(damping * 10.0, 1e-3),
            }
            if damping > 1e4 {
                break;
            }
        }
        best
    }
}

/// How much wider the first threshold of the optimisation is.
const WIDE: f64 = 2.5;
