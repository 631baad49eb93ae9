//! Judging models by the number of matches that agree with them. These are whole numbers, so that neither threads nor a
//! GPU change which model is best. Counting ends early for a model that cannot beat the best so far.

use super::five_point::Reduced;
use super::minimal;
use super::parts::joined;
use super::points::Points;
use super::rays::Rays;
use super::residual::{agrees, squared};
use super::sampler::{MAX_SAMPLE, Sampler};
use super::seven_point::seven_point;
use super::{Fit, NO_ESSENTIAL};
use crate::device::{Cpu, dispatch};
use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, flat, is_finite};
use crate::geometry::model::nearest_essential;
use crate::geometry::real::{WIDTH, lane_of, splat};
use fearless_simd::{Simd, f64x8, prelude::*};
use std::sync::atomic::{AtomicU32, Ordering};

/// The matches, and the limits within which they agree with a model of this kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::geometry) struct Judge<'p> {
    pub(in crate::geometry) kind: ModelKind,
    pub(in crate::geometry) points: &'p Points,
    /// The threshold T between normalised points.
    pub(super) threshold: f64,
    /// T²/2: the limit of Sampson's squared distance.
    pub(in crate::geometry) limit: f64,
    /// The cameras, which an essential matrix needs.
    pub(super) rays: Option<Rays>,
    pub(super) cpu: &'p Cpu,
}

/// The best model of a few samples, and the sample that it comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) fit: Fit,
    pub(super) sample: [usize; MAX_SAMPLE],
}

impl<'p> Judge<'p> {
    pub(in crate::geometry) fn new(
        kind: ModelKind,
        points: &'p Points,
        threshold_px: f64,
        rays: Option<Rays>,
        cpu: &'p Cpu,
    ) -> Self {
        let threshold = threshold_px * points.scale;
        Self { kind, points, threshold, limit: 0.5 * (threshold * threshold), rays, cpu }
    }

    /// The same judge for other matches in the same coordinates.
    pub(super) fn of<'q>(&self, points: &'q Points) -> Judge<'q>
    where
        'p: 'q,
    {
        Judge { points, ..*self }
    }

    /// The same matches, for another kind of model.
    pub(super) fn as_kind(&self, kind: ModelKind) -> Self {
        Self { kind, ..*self }
    }

    /// r² of all matches.
    pub(super) fn residuals(&self, m: &Mat3) -> Vec<f64> {
        let m = flat(m);
        let one = |i: usize| squared(self.kind, &m, self.points.places(i));
        joined(self.cpu, self.points.len(), |part| part.map(one).collect())
    }

    /// Positions of the matches that agree, ascending.
    pub(in crate::geometry) fn inliers(&self, m: &Mat3) -> Vec<usize> {
        let m = flat(m);
        let one = |i: &usize| agrees(self.kind, &m, self.points.places(*i), self.limit);
        joined(self.cpu, self.points.len(), |part| part.filter(one).collect())
    }

    pub(super) fn counted(&self, fit: Fit) -> Fit {
        let (kind, points, m) = (self.kind, self.points, flat(&fit.model));
        let inliers =
            dispatch!(self.cpu.level(), simd => count(simd, kind, &m, points, self.limit, &Least::NONE));
        Fit { inliers, ..fit }
    }

    /// A model with the number of its inliers; for the kind essential, the essential matrix nearest to `model`.
    pub(super) fn judged(&self, model: Mat3) -> Fit {
        let rays = self.rays.filter(|_| self.kind == ModelKind::Essential);
        let nearest = |rays: Rays| {
            let essential = nearest_essential(&rays.between_rays(&model)?);
            Some((rays.fundamental(&essential), essential))
        };
        let (model, essential) = rays.and_then(nearest).unwrap_or((model, NO_ESSENTIAL));
        self.counted(Fit { model, essential, inliers: 0 })
    }

    /// The best of some models; the first of equal ones.
    pub(super) fn best_of(&self, models: &[Mat3]) -> Option<Fit> {
        let judged = self.cpu.map(models.len(), |i| self.judged(models[i]));
        first_best(judged.into_iter(), |fit| fit.inliers)
    }

    /// The best model of the eight samples from number `first` on, of the points `drawn`, if it has more than `least`
    /// inliers; the first of equal ones. May be `None`, too, if another thread has found a better one (`elsewhere`).
    pub(super) fn best_of_eight(
        &self,
        sampler: &Sampler,
        drawn: &Points,
        first: u64,
        least: u32,
        elsewhere: &AtomicU32,
    ) -> Option<Candidate> {
        let samples: [_; WIDTH] = std::array::from_fn(|i| sampler.draw(first + i as u64));
        let best = Best {
            judge: self,
            least: Least { inliers: least, elsewhere: Some(elsewhere) },
            candidate: None,
        };
        dispatch!(self.cpu.level(), simd => judge_eight(simd, best, drawn, &samples))
    }
}

/// The number of inliers that a model has to exceed.
#[derive(Clone, Copy)]
struct Least<'h> {
    inliers: u32,
    /// The most that any thread has found so far. A model is abandoned only if it is certain to have fewer, so that the
    /// best model does not depend on the order of the threads.
    elsewhere: Option<&'h AtomicU32>,
}

impl Least<'_> {
    const NONE: Self = Self { inliers: 0, elsewhere: None };

    fn is_out_of_reach(&self, most: u32) -> bool {
        most <= self.inliers || self.elsewhere.is_some_and(|highest| most < highest.load(Ordering::Relaxed))
    }
}

/// The first of the items with most inliers.
pub(super) fn first_best<T>(items: impl Iterator<Item = T>, inliers: impl Fn(&T) -> u32) -> Option<T> {
    items.reduce(|best, next| if inliers(&next) > inliers(&best) { next } else { best })
}

/// The number of vectors between two checks whether a count can still exceed `least`.
const LOOK: usize = 8;

/// The number of matches that agree; 0 if counting ended early because it cannot exceed `least`.
#[inline(always)]
fn count<S: Simd>(
    simd: S,
    kind: ModelKind,
    m: &[f64; 9],
    points: &Points,
    limit: f64,
    least: &Least<'_>,
) -> u32 {
    let model = splat(simd, m);
    let (one, zero) = (f64x8::splat(simd, 1.0), f64x8::splat(simd, 0.0));
    let limit = f64x8::splat(simd, limit);
    let mut sum = zero;
    let vectors = points.vectors();
    for first in (0..vectors).step_by(LOOK) {
        for i in first..vectors.min(first + LOOK) {
            sum += agrees(kind, &model, points.vector(simd, i), limit).select(one, zero);
        }
        let left = points.len().saturating_sub((first + LOOK) * WIDTH);
        let found = total(sum);
        if left > 0 && least.is_out_of_reach(found + left as u32) {
            return 0;
        }
    }
    total(sum)
}

#[inline(always)]
fn total<S: Simd>(sum: f64x8<S>) -> u32 {
    let pair = |i: usize| sum[i] + sum[i + 4];
    ((pair(0) + pair(2)) + (pair(1) + pair(3))) as u32
}

struct Best<'j, 'p> {
    judge: &'j Judge<'p>,
    least: Least<'j>,
    candidate: Option<Candidate>,
}

impl Best<'_, '_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, model: Mat3, essential: Mat3, sample: &[usize; MAX_SAMPLE]) {
        let Judge { kind, points, limit, .. } = *self.judge;
        let inliers = count(simd, kind, &flat(&model), points, limit, &self.least);
        if inliers > self.least.inliers {
            self.candidate = Some(Candidate { fit: Fit { model, essential, inliers }, sample: *sample });
            self.least.inliers = inliers;
            if let Some(highest) = self.least.elsewhere {
                highest.fetch_max(inliers, Ordering::Relaxed);
            }
        }
    }
}

#[inline(always)]
fn judge_eight<S: Simd>(
    simd: S,
    mut best: Best<'_, '_>,
    drawn: &Points,
    samples: &[[usize; MAX_SAMPLE]; WIDTH],
) -> Option<Candidate> {
    let kind = best.judge.kind;
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
                    best.take(simd, lane_of(&models[root], lane), NO_ESSENTIAL, &samples[lane]);
                }
            }
        }
        ModelKind::Essential => {
            let rays = best.judge.rays?;
            let [a, b] = rays.of(drawn.gathered(simd, samples));
            let reduced = Reduced::new(&a, &b);
            let [near, far] = reduced.values();
            for (lane, sample) in samples.iter().enumerate() {
                let (a, b) = (lane_of_points(&a, lane), lane_of_points(&b, lane));
                let values = [&near, &far].map(|v| v.map(|v| v[lane]));
                for e in reduced.lane(lane).solutions(values, &a, &b) {
                    best.take(simd, rays.fundamental(&e), e, sample);
                }
            }
        }
        ModelKind::Homography
        | ModelKind::Affine
        | ModelKind::Similarity
        | ModelKind::Rigid
        | ModelKind::Translation => {
            for sample in samples {
                let found = minimal::model(kind, drawn, &sample[..kind.minimum()]);
                if let Some(model) = found.filter(is_finite) {
                    best.take(simd, model, NO_ESSENTIAL, sample);
                }
            }
        }
    }
    best.candidate
}

fn lane_of_points<S: Simd, const N: usize>(side: &[[f64x8<S>; 2]; N], lane: usize) -> [[f64; 2]; N] {
    std::array::from_fn(|i| [side[i][0][lane], side[i][1][lane]])
}
