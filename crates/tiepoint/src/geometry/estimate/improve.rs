//! A model moved towards the matches that agree with it, by the steps of `step`.
//!
//! - **Improving** ([`Judge::improve`]) moves the model of a sample, which rests on a few noisy matches, towards one
//!   that more matches agree with, by steps weighted by Tukey's biweight; the threshold is twice as wide at first. The
//!   model with most inliers is kept: the start or the result of a step.
//! - **Settling** ([`Judge::settle`]) makes the last model the least-squares fit to its own inliers, which are found
//!   anew after every step, until it no longer changes. Each step must lower Σ min(r²/T², 1) over all matches, as a
//!   better fit and a better set of inliers both do; a step that does not is shortened (Levenberg, Marquardt).
//!
//! Sums over the matches are [`LANES`] sums, of every [`LANES`]-th match each, in their order, and then added in pairs:
//! lane l and lane l + 32, then l and l + 16, and so on. f64, nothing fused. Threads share the lanes of many matches.

#![allow(clippy::needless_range_loop, reason = "indices of sums and lanes are the notation here")]

use super::Fit;
use super::judge::Judge;
use super::points::{BLOCK, Points};
use super::residual::{Terms, Weights};
use super::step::Normal;
use crate::device::{Cpu, dispatch};
use crate::geometry::matrix::flat;
use crate::geometry::real::{WIDTH, splat};
use fearless_simd::{Simd, f64x8, prelude::*};

/// Inliers farther than this many deviations do not count in the last fit.
const WIDE: f64 = 4.2;
/// The most steps of the last fit.
const WEIGHTED: usize = 10;
/// The last fit ends when a step changes the loss by at most this share.
const STEADY: f64 = 1e-5;
/// If the squared deviation estimated from the nearer half is less than this times the one estimated from the nearest
/// quarter, the errors are spread more evenly than normal ones.
const EVEN: f64 = 0.9;
/// A squared deviation below this share of the squared threshold counts as rounding error.
const EXACT: f64 = 1e-9;

/// The number of sums side by side.
pub(in crate::geometry) const LANES: usize = BLOCK;

/// T² of each improving step, in units of the threshold's square.
pub(super) const LIMITS: [f64; 5] = [4.0, 2.25, 1.0, 1.0, 1.0];

/// The most settling steps, and the share of the loss by which a step must lower it for another step to follow.
pub(super) const SETTLING: usize = 24;
pub(super) const GAIN: f64 = 1e-7;
/// The damping after the first step that does not lower the loss, and the damping at which settling gives up.
pub(super) const DAMPED: f64 = 1e-3;
pub(super) const MOST_DAMPED: f64 = 1e4;

/// From this many matches on, threads share the lanes.
const SHARED: usize = 4096;

impl Judge<'_> {
    /// The model with most inliers among the start and those after the steps of [`LIMITS`]; the last of equal ones.
    pub(in crate::geometry) fn improve(&self, start: Fit) -> Fit {
        let (mut best, mut at) = (start, start);
        for wide in LIMITS {
            let (_, normal) = self.system(&at, wide * self.limit, Weights::Biweight);
            let Some(next) = normal.step(self.kind, &at, self.rays.as_ref(), 0.0) else { break };
            at = self.counted(next);
            if at.inliers >= best.inliers {
                best = at;
            }
        }
        best
    }

    /// The least-squares fit to its own inliers that `start` leads to.
    pub(in crate::geometry) fn settle(&self, start: Fit) -> Fit {
        let system = |at: &Fit| self.system(at, self.limit, Weights::Equal);
        let mut best = start;
        let (mut loss, mut normal) = system(&best);
        let mut damping = 0.0;
        for _ in 0..SETTLING {
            let next = normal.step(self.kind, &best, self.rays.as_ref(), damping);
            match next.map(|next| (next, system(&next))) {
                Some((next, (its, there))) if its < loss => {
                    let is_last = loss - its <= GAIN * loss;
                    (best, loss, normal) = (next, its, there);
                    damping *= 0.1;
                    if is_last {
                        break;
                    }
                }
                Some((_, (its, _))) if its - loss <= GAIN * loss => break,
                _ => damping = f64::max(damping * 10.0, DAMPED),
            }
            if damping > MOST_DAMPED {
                break;
            }
        }
        self.counted(best)
    }

    /// As [`settle`](Self::settle), then with inliers weighted by Tukey's biweight of [`WIDE`] times their deviation,
    /// which is estimated from the nearest quarter of them. In photographs most inliers lie much nearer to the model
    /// than the threshold, and those far from it agree by chance. If the errors are spread more evenly than normal ones
    /// ([`EVEN`]), there is no such core, and all inliers have equal weight. For normal errors the weighted fit
    /// deviates about 4 % more than least squares.
    pub(super) fn settle_by_deviation(&self, start: Fit) -> Fit {
        let mut fit = self.settle(start);
        let m = flat(&fit.model);
        let squared = |&i: &usize| super::residual::squared(self.kind, &m, self.points.places(i));
        let mut squared: Vec<f64> = self.inliers(&fit.model).iter().map(squared).collect();
        let quarter = squared.len() / 4;
        if quarter == 0 {
            return fit;
        }
        let half = *squared.select_nth_unstable_by(2 * quarter, f64::total_cmp).1;
        let nearest = *squared.select_nth_unstable_by(quarter, f64::total_cmp).1;
        // A quarter and a half of the squares of normal errors of deviation 1 lie below these.
        let below = if self.kind.is_epipolar() { [0.1015, 0.455] } else { [0.5754, 1.386] };
        let [deviation, wider] = [nearest / below[0], half / below[1]];
        if wider < EVEN * deviation || deviation < EXACT * self.limit {
            return fit;
        }
        let mut last = f64::INFINITY;
        for _ in 0..WEIGHTED {
            let (loss, normal) = self.system(&fit, WIDE * WIDE * deviation, Weights::Biweight);
            let Some(next) = normal.step(self.kind, &fit, self.rays.as_ref(), 0.0) else { break };
            fit = next;
            if (last - loss).abs() <= STEADY * loss {
                break;
            }
            last = loss;
        }
        self.counted(fit)
    }

    /// Σ min(r²/T², 1), and the weighted system of a step.
    fn system(&self, at: &Fit, limit: f64, weights: Weights) -> (f64, Normal) {
        let (m, points, cpu) = (flat(&at.model), self.points, self.cpu);
        if self.kind.is_epipolar() {
            let sums = sums(points, cpu, weights, &m, limit);
            (sums[0], Normal::of_epipolar(&sums))
        } else {
            let sums = sums(points, cpu, weights, &m, limit);
            (sums[0], Normal::of_map(&sums))
        }
    }
}

/// The sums over all matches in the order of the contract.
fn sums<const K: usize>(
    points: &Points,
    cpu: &Cpu,
    weights: impl Terms<K>,
    m: &[f64; 9],
    limit: f64,
) -> [f64; K] {
    let eight = |first: usize| dispatch!(cpu.level(), simd => lanes(simd, points, first, weights, m, limit));
    let parts: Vec<_> = match points.len() < SHARED {
        true => (0..LANES / WIDTH).map(eight).collect(),
        false => cpu.map(LANES / WIDTH, eight),
    };
    std::array::from_fn(|k| {
        let mut all = [0.0; LANES];
        parts.iter().zip(all.as_chunks_mut::<WIDTH>().0).for_each(|(part, all)| *all = part[k]);
        in_pairs(all)
    })
}

/// The sums of eight neighbouring lanes.
#[inline(always)]
fn lanes<S: Simd, const K: usize>(
    simd: S,
    points: &Points,
    eight: usize,
    weights: impl Terms<K>,
    m: &[f64; 9],
    limit: f64,
) -> [[f64; WIDTH]; K] {
    let (model, limit) = (splat(simd, m), f64x8::splat(simd, limit));
    let mut sums = [f64x8::splat(simd, 0.0); K];
    for i in (eight..points.vectors()).step_by(LANES / WIDTH) {
        let term = weights.terms(&model, points.vector(simd, i), limit);
        for k in 0..K {
            sums[k] += term[k];
        }
    }
    let mut found = [[0.0; WIDTH]; K];
    for k in 0..K {
        sums[k].store_slice(&mut found[k]);
    }
    found
}

fn in_pairs(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        (0..half).for_each(|l| lanes[l] += lanes[l + half]);
        half /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::super::residual::{EPIPOLAR, TRANSFER};
    use super::*;
    use crate::geometry::Correspondence;
    use crate::numeric::Random;

    /// Compares the sums with those of the contract, match by match, at every SIMD level and on 1 and 3 threads.
    fn check<const K: usize>(points: &Points, weights: impl Terms<K>, m: &[f64; 9], limit: f64) {
        let mut plain = [[0.0; LANES]; K];
        for i in 0..points.len() {
            let term = weights.terms(m, points.places(i), limit);
            (0..K).for_each(|k| plain[k][i % LANES] += term[k]);
        }
        let expected = plain.map(in_pairs);
        assert!(limit < 1.0 || points.len() < 8 || expected[1] > 0.0, "something to sum");
        for level in Cpu::levels() {
            for threads in [1, 3] {
                let cpu = Cpu::with_threads(threads).unwrap().at_level(level).unwrap();
                let found = sums(points, &cpu, weights, m, limit);
                let told = format!("{K} sums of {}, {limit} {level:?} {threads}", points.len());
                assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits), "{told}");
            }
        }
    }

    #[test]
    fn every_level_sums_as_the_contract_says() {
        let mut random = Random::new(2);
        for (n, limit) in
            [1, 7, 8, 63, 64, 65, 300, SHARED + 9].into_iter().flat_map(|n| [(n, 0.02), (n, 4.0)])
        {
            let mut place = || [random.range(0.0, 640.0), random.range(0.0, 480.0)];
            let pair = |_| Correspondence { a: place(), b: place(), quality: 0.0 };
            let (pairs, all): (Vec<_>, Vec<_>) = ((0..n).map(pair).collect(), (0..n).collect());
            let points = Points::new(&pairs, &all, &Cpu::sequential());
            let m: [f64; 9] =
                std::array::from_fn(|i| random.range(-0.3, 0.3) + f64::from(u8::from(i % 4 == 0)));
            for weights in [Weights::Biweight, Weights::Equal] {
                check::<EPIPOLAR>(&points, weights, &m, limit);
                check::<TRANSFER>(&points, weights, &m, limit);
            }
        }
    }
}
