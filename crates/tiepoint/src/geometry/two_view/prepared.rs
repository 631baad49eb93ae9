//! The matches of a pair, ready for the robust search, and the search for every kind of model.

use super::{ImagePair, TwoViewOptions, evidence};
use crate::device::Cpu;
use crate::geometry::ModelKind;
use crate::geometry::calibration::Camera;
use crate::geometry::estimate::judge::Judge;
use crate::geometry::estimate::points::Points;
use crate::geometry::estimate::rays::Rays;
use crate::geometry::estimate::sampler::Sampler;
use crate::geometry::estimate::search::{BATCH, Budget, Extent, search};
use crate::geometry::estimate::{Fit, is_usable};
use crate::numeric::finish;
use std::sync::Arc;

/// The kinds in the order of their searches: the fundamental matrix starts from the essential one.
pub(super) const KINDS: [ModelKind; 3] =
    [ModelKind::Essential, ModelKind::Fundamental, ModelKind::Homography];

/// How many samples to draw for every kind of model.
#[derive(Clone, Debug)]
pub(super) struct Budgets {
    kinds: [Budget; 3],
    options: TwoViewOptions,
}

impl Budgets {
    pub(super) fn new(options: &TwoViewOptions) -> Self {
        let bounds = [options.min_iterations, options.max_iterations];
        let kinds = KINDS.map(|kind| Budget::new(kind.minimum(), options.confidence, bounds));
        Self { kinds, options: *options }
    }

    pub(super) fn of(&self, kind: ModelKind) -> &Budget {
        let [essential, fundamental, homography] = &self.kinds;
        match kind {
            ModelKind::Essential => essential,
            ModelKind::Fundamental => fundamental,
            _ => homography,
        }
    }

    /// The number of samples that find a model with the smallest share of inliers that a pair may have.
    pub(super) fn most(&self, kind: ModelKind, matches: usize) -> u32 {
        let fewest = self.options.min_inliers as f64 / matches.max(1) as f64;
        self.of(kind).at(self.options.min_inlier_ratio.max(fewest).min(1.0))
    }
}

#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) points: Points,
    /// For each point, the index of its match.
    pub(super) usable: Vec<usize>,
    /// The cameras, where both are known.
    pub(super) cameras: Option<[Camera; 2]>,
    pub(super) rays: Option<Rays>,
    /// The matches, best first, and whether some are better than others.
    pub(super) order: Arc<Vec<u32>>,
    graded: bool,
    options: TwoViewOptions,
    key: u64,
}

impl Prepared {
    /// `None` if fewer matches are usable than a pair needs.
    pub(super) fn new(pair: &ImagePair<'_>, options: &TwoViewOptions) -> Option<Self> {
        let usable: Vec<_> = (0..pair.matches.len()).filter(|&i| is_usable(&pair.matches[i])).collect();
        if usable.len() < options.min_inliers {
            return None;
        }
        let points = Points::new(pair.matches, &usable, &Cpu::sequential());
        let (order, graded) = evidence::order(pair.matches, pair.evidence, &usable);
        let order = Arc::new(order);
        let [a, b] = pair.views;
        let cameras = a.camera.zip(b.camera).map(<[_; 2]>::from);
        let rays = cameras.as_ref().map(|cameras| Rays::new(cameras, &points));
        Some(Self { points, usable, cameras, rays, order, graded, options: *options, key: pair.key })
    }

    pub(super) fn len(&self) -> usize {
        self.usable.len()
    }

    /// The judge for models of this kind. COLMAP's threshold for epipolar geometry is one of Sampson's distance; the
    /// residual is √2 times that distance.
    pub(super) fn judge<'p>(&'p self, kind: ModelKind, cpu: &'p Cpu) -> Judge<'p> {
        let by = if kind.is_epipolar() { std::f64::consts::SQRT_2 } else { 1.0 };
        Judge::new(kind, &self.points, self.options.threshold_px * by, self.rays, cpu)
    }

    pub(super) fn sampler(&self, kind: ModelKind, most: u32) -> Sampler {
        let key = finish(self.options.seed ^ finish(self.key ^ finish(kind.minimum() as u64)));
        Sampler::keyed(self.order.clone(), self.graded, kind.minimum(), f64::from(most), key)
    }
}

/// The best model of every kind, and the samples drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FoundAll {
    pub(super) homography: Option<Fit>,
    pub(super) fundamental: Option<Fit>,
    pub(super) essential: Option<Fit>,
    pub(super) iterations: usize,
}

/// Searches for every kind of model. The search for the fundamental matrix starts from that of the essential one.
pub(super) fn search_all(prepared: &Prepared, budgets: &Budgets, cpu: &Cpu) -> FoundAll {
    let mut iterations = 0;
    let mut run = |kind: ModelKind, start: Option<Fit>| {
        let (judge, most) = (prepared.judge(kind, cpu), budgets.most(kind, prepared.len()));
        let mut sampler = prepared.sampler(kind, most);
        let extent = Extent { budget: budgets.of(kind), most, together: BATCH, thorough: false };
        let (best, drawn) = search(&judge, &prepared.points, &mut sampler, &extent, start, |best, _| best);
        iterations += drawn as usize;
        best.map(|best| judge.settle(best)).filter(|best| best.inliers > 0)
    };
    let essential = prepared.rays.is_some().then(|| run(ModelKind::Essential, None)).flatten();
    let fundamental = run(ModelKind::Fundamental, essential);
    let homography = run(ModelKind::Homography, None);
    FoundAll { homography, fundamental, essential, iterations }
}
