//! The model that most matches agree with: the search that all three kinds of model share.
//!
//! A sample of as few matches as determine the model gives up to ten models; each is judged by the number of matches
//! within the threshold (`agreement`). The best of a batch of [`BATCH`] samples, if it beats all before, is improved by
//! reweighted Gauss–Newton steps (`improve`), of which one with fewer inliers counts nothing (LO-RANSAC: Chum, Matas,
//! Kittler 2003). At the end more steps settle it (`settle`). The search ends when a model of more inliers would, with
//! the confidence asked for, have been drawn, and at the latest when one would have been that has as many inliers as a
//! pair needs to be verified at all: of 20 matches that is after 48 samples of 7, as 15 have to agree.
//!
//! Which matches a sample holds follows from the key of the pair, the kind of model and the number of the sample. The
//! earlier ones come from the matches that evidence and quality favour (PROSAC: Chum, Matas 2005).

mod agreement;
mod five_point;
pub(super) mod gpu;
mod improve;

use super::{Essential, ImagePair, TwoViewOptions, evidence};
use crate::device::{Cpu, Level, dispatch};
use crate::geometry::calibration::Camera;
use crate::geometry::estimate::points::{BLOCK, Points};
use crate::geometry::estimate::sampler::{MAX_SAMPLE, Sampler};
use crate::geometry::estimate::seven_point::seven_point;
use crate::geometry::estimate::{is_usable, minimal};
use crate::geometry::matrix::{Mat3, flat, is_finite, product, transpose};
use crate::geometry::real::{WIDTH, each, lane_of};
use crate::geometry::{Homography, ModelKind};
use crate::numeric::finish;
use fearless_simd::{Simd, f64x8, prelude::*};
use five_point::Reduced;
use std::sync::Arc;

/// Samples that are judged together: a lane each on a GPU.
pub(super) const BATCH: usize = BLOCK;

/// Steps of the table of samples over the share of inliers.
const SHARES: usize = 1024;

/// What is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Homography,
    Fundamental,
    Essential,
}

impl Kind {
    const fn sample(self) -> usize {
        match self {
            Self::Homography => 4,
            Self::Fundamental => 7,
            Self::Essential => 5,
        }
    }
}

/// How many samples to draw, by the share of inliers.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    homography: Vec<u32>,
    fundamental: Vec<u32>,
    essential: Vec<u32>,
    options: TwoViewOptions,
}

impl Budget {
    pub(super) fn new(options: &TwoViewOptions) -> Self {
        let table = |kind: Kind| {
            (0..=SHARES).map(|s| samples(s as f64 / SHARES as f64, kind.sample(), options)).collect()
        };
        Self {
            homography: table(Kind::Homography),
            fundamental: table(Kind::Fundamental),
            essential: table(Kind::Essential),
            options: *options,
        }
    }

    fn table(&self, kind: Kind) -> &[u32] {
        match kind {
            Kind::Homography => &self.homography,
            Kind::Fundamental => &self.fundamental,
            Kind::Essential => &self.essential,
        }
    }

    /// Samples that find a model of so many inliers; the share is rounded down.
    fn needed(&self, kind: Kind, inliers: u32, matches: usize) -> u32 {
        let share = u64::from(inliers) * SHARES as u64 / matches.max(1) as u64;
        self.table(kind)[usize::try_from(share).unwrap_or(SHARES).min(SHARES)]
    }

    /// Samples that find a model of just as many inliers as a pair needs.
    fn most(&self, kind: Kind, matches: usize) -> u32 {
        let fewest = self.options.min_inliers as f64 / matches.max(1) as f64;
        samples(self.options.min_inlier_ratio.max(fewest).min(1.0), kind.sample(), &self.options)
    }
}

/// How many samples find one of inliers only, with the confidence asked for, within the bounds of the options.
fn samples(share: f64, size: usize, options: &TwoViewOptions) -> u32 {
    let good = (0..size).fold(1.0, |product, _| product * share);
    let (least, most) = (options.min_iterations as f64, options.max_iterations as f64);
    // ln(1 − g) of a tiny g is −g.
    let miss = if good < 1e-9 { -good } else { libm::log(1.0 - good) };
    let needed = if good < 1.0 { (libm::log(1.0 - options.confidence) / miss).ceil() } else { 1.0 };
    needed.max(least).min(most) as u32
}

/// A camera between normalised points: focal lengths and principal point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intrinsics {
    focal: [f64; 2],
    principal: [f64; 2],
}

impl Intrinsics {
    fn new(camera: &Camera, centre: [f64; 2], scale: f64) -> Self {
        let at = |i: usize| (camera.principal[i] - centre[i]) * scale;
        Self { focal: camera.focal.map(|f| f * scale), principal: [at(0), at(1)] }
    }

    /// The matrix from a point to its ray.
    fn inverse(&self) -> Mat3 {
        let ([fx, fy], [cx, cy]) = (self.focal, self.principal);
        [[1.0 / fx, 0.0, -cx / fx], [0.0, 1.0 / fy, -cy / fy], [0.0, 0.0, 1.0]]
    }
}

/// Both cameras as matrices from points to rays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rays {
    ray_from_a: Mat3,
    /// Transposed.
    ray_from_b: Mat3,
}

impl Rays {
    /// The fundamental matrix between normalised points of an essential matrix.
    fn fundamental(&self, essential: &Mat3) -> Mat3 {
        product(&product(&self.ray_from_b, essential), &self.ray_from_a)
    }
}

/// The matches of a pair, ready for the search.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) points: Points,
    /// Which matches the points are.
    pub(super) usable: Vec<usize>,
    /// The threshold between normalised points.
    pub(super) threshold: f64,
    /// The cameras, where both are known.
    rays: Option<Rays>,
    /// Matches, best first, and whether they differ.
    order: Arc<Vec<u32>>,
    graded: bool,
    seed: u64,
    key: u64,
}

impl Prepared {
    /// `None` where fewer matches are usable than a pair needs.
    pub(super) fn new(pair: &ImagePair<'_>, options: &TwoViewOptions) -> Option<Self> {
        if pair.matches.len() < options.min_inliers {
            return None;
        }
        let usable: Vec<_> = (0..pair.matches.len()).filter(|&i| is_usable(&pair.matches[i])).collect();
        if usable.len() < options.min_inliers {
            return None;
        }
        let points = Points::new(pair.matches, &usable, &Cpu::sequential());
        let (order, graded) = evidence::order(pair.matches, pair.evidence, &usable);
        let order = Arc::new(order);
        let [centre_a, centre_b] = points.centres();
        let intrinsics = |view: usize, centre: [f64; 2]| {
            pair.views[view].camera.map(|camera| Intrinsics::new(&camera, centre, points.scale).inverse())
        };
        let rays = intrinsics(0, centre_a)
            .zip(intrinsics(1, centre_b))
            .map(|(a, b)| Rays { ray_from_a: a, ray_from_b: transpose(&b) });
        let threshold = options.threshold_px * points.scale;
        let (seed, key) = (options.seed, pair.key);
        Some(Self { points, usable, threshold, rays, order, graded, seed, key })
    }

    pub(super) fn len(&self) -> usize {
        self.usable.len()
    }

    fn sampler(&self, kind: Kind, most: u32) -> Sampler {
        let key = finish(self.seed ^ finish(self.key ^ finish(kind.sample() as u64)));
        Sampler::keyed(self.order.clone(), self.graded, kind.sample(), f64::from(most), key)
    }

    /// Positions of the points that agree with a model, ascending.
    pub(super) fn inliers(&self, found: &Found) -> Vec<usize> {
        agreement::inliers(found.kind, &flat(&found.model), &self.points, self.limit())
    }

    /// T².
    fn limit(&self) -> f64 {
        self.threshold * self.threshold
    }

    /// How many points agree with a model.
    fn count(&self, found: &Found, level: Level) -> u32 {
        let (model, limit) = (flat(&found.model), self.limit());
        dispatch!(level, simd => agreement::count(simd, found.kind, &model, &self.points, limit, 0))
    }

    /// An essential matrix of norm 1.
    pub(super) fn essential(found: &Found) -> Option<Essential> {
        crate::geometry::matrix::unit(&found.essential).map(Essential)
    }
}

/// The best model of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) kind: Kind,
    /// Between normalised points: a homography, or a fundamental matrix.
    pub(super) model: Mat3,
    /// The essential matrix, of that kind alone.
    pub(super) essential: Mat3,
    pub(super) inliers: u32,
}

/// What was found of every kind, and the samples drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FoundAll {
    pub(super) homography: Option<Found>,
    pub(super) fundamental: Option<Found>,
    pub(super) essential: Option<Found>,
    pub(super) iterations: usize,
}

/// Searches for every kind of model. The fundamental matrix of the essential one is the first to be beaten.
pub(super) fn search_all(prepared: &Prepared, budget: &Budget, level: Level) -> FoundAll {
    let mut iterations = 0;
    let mut run = |kind, start| {
        let (best, drawn) = search(prepared, kind, budget, start, level);
        iterations += drawn as usize;
        best
    };
    let essential = prepared.rays.is_some().then(|| run(Kind::Essential, None)).flatten();
    let start = essential.map(|e| Found { kind: Kind::Fundamental, ..e });
    let fundamental = run(Kind::Fundamental, start);
    let homography = run(Kind::Homography, None);
    FoundAll { homography, fundamental, essential, iterations }
}

/// Searches for one kind of model; gives it and the number of samples drawn.
fn search(
    prepared: &Prepared,
    kind: Kind,
    budget: &Budget,
    start: Option<Found>,
    level: Level,
) -> (Option<Found>, u32) {
    let most = budget.most(kind, prepared.len());
    let sampler = prepared.sampler(kind, most);
    let mut best = start.map(|start| improve::improve(prepared, start, level));
    let left = |best: &Option<Found>| {
        best.map_or(most, |b| most.min(budget.needed(kind, b.inliers, prepared.len())))
    };
    let (mut needed, mut drawn) = (left(&best), 0);
    while drawn < needed {
        let samples: [_; BATCH] = std::array::from_fn(|i| sampler.draw(u64::from(drawn) + i as u64));
        let least = best.map_or(0, |b| b.inliers);
        let winner = dispatch!(level, simd => judge(simd, prepared, kind, &samples, least));
        drawn += BATCH as u32;
        if let Some(winner) = winner {
            best = Some(improve::improve(prepared, winner, level));
            needed = left(&best);
        }
    }
    (best.map(|best| improve::settle(prepared, best, level)), drawn)
}

/// The model with most inliers, and more than `least`, of a batch of samples; of as many the first.
#[inline(always)]
fn judge<S: Simd>(
    simd: S,
    prepared: &Prepared,
    kind: Kind,
    samples: &[[usize; MAX_SAMPLE]; BATCH],
    least: u32,
) -> Option<Found> {
    let mut best = Best { prepared, kind, least, winner: None };
    for eight in samples.as_chunks().0 {
        match (kind, &prepared.rays) {
            (Kind::Homography, _) => homographies(simd, eight, &mut best),
            (Kind::Fundamental, _) => fundamentals(simd, eight, &mut best),
            (Kind::Essential, Some(rays)) => essentials(simd, rays, eight, &mut best),
            (Kind::Essential, None) => {}
        }
    }
    best.winner
}

/// The best model so far of a batch.
struct Best<'p> {
    prepared: &'p Prepared,
    kind: Kind,
    least: u32,
    winner: Option<Found>,
}

impl Best<'_> {
    #[inline(always)]
    fn take<S: Simd>(&mut self, simd: S, model: Mat3, essential: Mat3) {
        let Self { prepared, kind, .. } = *self;
        let least = self.winner.map_or(self.least, |w| w.inliers);
        let inliers = agreement::count(simd, kind, &flat(&model), &prepared.points, prepared.limit(), least);
        if inliers > least {
            self.winner = Some(Found { kind, model, essential, inliers });
        }
    }
}

/// No essential matrix.
const NONE: Mat3 = [[0.0; 3]; 3];

#[inline(always)]
fn homographies<S: Simd>(simd: S, eight: &[[usize; MAX_SAMPLE]; WIDTH], best: &mut Best<'_>) {
    for sample in eight {
        let found = minimal::model(ModelKind::Homography, &best.prepared.points, &sample[..4]);
        if let Some(model) = found.filter(is_finite) {
            best.take(simd, model, NONE);
        }
    }
}

#[inline(always)]
fn fundamentals<S: Simd>(simd: S, eight: &[[usize; MAX_SAMPLE]; WIDTH], best: &mut Best<'_>) {
    let [a, b] = best.prepared.points.gathered(simd, eight);
    let [(f, f_is), (g, g_is), (h, h_is)] = seven_point(&a, &b);
    let (one, zero) = (f64x8::splat(simd, 1.0), f64x8::splat(simd, 0.0));
    let (models, exist) =
        ([f, g, h], [f_is.select(one, zero), g_is.select(one, zero), h_is.select(one, zero)]);
    for i in 0..3 * WIDTH {
        let (lane, root) = (i / 3, i % 3);
        if exist[root][lane] > 0.0 {
            best.take(simd, lane_of(&models[root], lane), NONE);
        }
    }
}

#[inline(always)]
fn essentials<S: Simd>(simd: S, rays: &Rays, eight: &[[usize; MAX_SAMPLE]; WIDTH], best: &mut Best<'_>) {
    let [a, b] = best.prepared.points.gathered::<S, 5, MAX_SAMPLE>(simd, eight);
    let back = transpose(&rays.ray_from_b);
    let a = each(
        a,
        #[inline(always)]
        |p| ray(&rays.ray_from_a, p),
    );
    let b = each(
        b,
        #[inline(always)]
        |p| ray(&back, p),
    );
    let reduced = Reduced::new(&a, &b);
    let [near, far] = reduced.values();
    for lane in 0..WIDTH {
        let (a, b) = (lane_of_points(&a, lane), lane_of_points(&b, lane));
        let mut found = Vec::new();
        reduced.lane(lane).solutions([&near, &far].map(|v| v.map(|v| v[lane])), &a, &b, |e| found.push(e));
        for e in found {
            best.take(simd, rays.fundamental(&e), e);
        }
    }
}

/// The ray (x, y, 1) of points, by a matrix without shear.
#[inline(always)]
fn ray<S: Simd>(matrix: &Mat3, [x, y]: [f64x8<S>; 2]) -> [f64x8<S>; 2] {
    [x * matrix[0][0] + matrix[0][2], y * matrix[1][1] + matrix[1][2]]
}

fn lane_of_points<S: Simd, const N: usize>(side: &[[f64x8<S>; 2]; N], lane: usize) -> [[f64; 2]; N] {
    std::array::from_fn(|i| [side[i][0][lane], side[i][1][lane]])
}

/// The homography in pixels.
pub(super) fn to_pixels(prepared: &Prepared, found: &Found) -> Option<Homography> {
    Homography::new(prepared.points.to_pixels(ModelKind::Homography, &found.model)).ok()
}
