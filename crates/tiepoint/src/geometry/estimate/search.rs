//! The search for the model that most matches agree with. Samples are drawn and judged until a better model would have
//! been drawn with the requested confidence. The best model of a batch is improved if it beats all before. `search.cl`
//! does the same on a GPU for many pairs of images side by side.

use super::Fit;
use super::judge::{Candidate, Judge, first_best};
use super::points::{BLOCK, Points};
use super::sampler::Sampler;
use crate::geometry::real::WIDTH;
use std::sync::atomic::AtomicU32;

/// The smallest batch of samples that is judged together: on a GPU one for each lane.
pub(in crate::geometry) const BATCH: usize = BLOCK;

/// Steps of the table of samples over the share of inliers.
pub(in crate::geometry) const SHARES: usize = 1024;

/// The number of samples to draw for models of one kind, as a function of the share of inliers.
#[derive(Clone, Debug)]
pub(in crate::geometry) struct Budget {
    /// Samples by the share of inliers, in [`SHARES`] steps.
    pub(in crate::geometry) table: Vec<u32>,
    size: usize,
    confidence: f64,
    bounds: [f64; 2],
}

impl Budget {
    /// The budget for samples of `size` matches; `least` and `most` bound their number.
    pub(in crate::geometry) fn new(size: usize, confidence: f64, [least, most]: [usize; 2]) -> Self {
        let mut budget = Self { table: Vec::new(), size, confidence, bounds: [least as f64, most as f64] };
        budget.table = (0..=SHARES).map(|s| budget.at(s as f64 / SHARES as f64)).collect();
        budget
    }

    /// The number of samples of which at least one contains only inliers with the requested confidence, if `share` of
    /// the matches are inliers.
    pub(in crate::geometry) fn at(&self, share: f64) -> u32 {
        let good = (0..self.size).fold(1.0, |product, _| product * share);
        let [least, most] = self.bounds;
        // ln(1 − g) of a tiny g is −g.
        let miss = if good < 1e-9 { -good } else { libm::log(1.0 - good) };
        let needed = if good < 1.0 { (libm::log(1.0 - self.confidence) / miss).ceil() } else { 1.0 };
        needed.max(least).min(most) as u32
    }

    /// The number of samples that find a model with this number of inliers; the share is rounded down.
    fn needed(&self, inliers: u32, matches: usize) -> u32 {
        let share = u64::from(inliers) * SHARES as u64 / matches.max(1) as u64;
        self.table[usize::try_from(share).unwrap_or(SHARES).min(SHARES)]
    }
}

#[derive(Clone, Copy)]
pub(in crate::geometry) struct Extent<'b> {
    pub(in crate::geometry) budget: &'b Budget,
    /// Samples at most.
    pub(in crate::geometry) most: u32,
    /// The most samples judged together. A batch has as many as were drawn before it, but at least [`BATCH`], so that
    /// threads have more to share the longer the search takes. The result depends on it, because only the best of a
    /// batch is improved.
    pub(in crate::geometry) together: usize,
    /// If set, a sample only has to beat earlier samples, not the models improved from them, and it is improved for as long
    /// as that gains inliers. This finds a few noisy inliers among many wrong matches, and takes longer.
    pub(in crate::geometry) thorough: bool,
}

/// The model that most matches agree with, and the number of samples of `drawn` that it took. `start` is the first
/// model to beat; `better` may replace an improved model by a better one. The search ends early when the work is
/// cancelled, which the caller has to check.
pub(in crate::geometry) fn search(
    judge: &Judge<'_>,
    drawn: &Points,
    sampler: &mut Sampler,
    extent: &Extent<'_>,
    start: Option<Fit>,
    better: impl Fn(Fit, &[usize]) -> Fit,
) -> (Option<Fit>, u32) {
    let improved = |start: Fit| {
        let mut best = judge.improve(start);
        let again = |best: Fit| extent.thorough.then(|| judge.improve(best));
        while let Some(next) = again(best).filter(|next| next.inliers > best.inliers) {
            best = next;
        }
        best
    };
    let mut best = start.map(improved);
    let mut least = best.map_or(0, |b| b.inliers);
    // The budget counts samples that are drawn from all matches.
    let times = sampler.one_of_all_in();
    let left = |best: &Option<Fit>| {
        let needed = |b: Fit| times.saturating_mul(extent.budget.needed(b.inliers, judge.points.len()));
        best.map_or(extent.most, |b| extent.most.min(needed(b)))
    };
    let (mut needed, mut number) = (left(&best), 0);
    while number < needed && judge.cpu.check().is_ok() {
        let most = ((needed - number) as usize).next_multiple_of(BATCH);
        let batch = (number as usize).clamp(BATCH, extent.together).min(most);
        sampler.reach(u64::from(number) + batch as u64 - 1, judge.cpu);
        let (highest, sampler) = (AtomicU32::new(0), &*sampler);
        let eight = |task: usize| {
            let first = u64::from(number) + (task * WIDTH) as u64;
            judge.best_of_eight(sampler, drawn, first, least, &highest)
        };
        let found: Vec<Option<Candidate>> = judge.cpu.map(batch / WIDTH, eight);
        number += batch as u32;
        if let Some(winner) = first_best(found.into_iter().flatten(), |c| c.fit.inliers) {
            let found = better(improved(winner.fit), &winner.sample[..judge.kind.minimum()]);
            least = if extent.thorough { winner.fit.inliers } else { found.inliers };
            if best.is_none_or(|best| found.inliers > best.inliers) {
                best = Some(found);
                needed = left(&best);
            }
        }
    }
    (best, number)
}
