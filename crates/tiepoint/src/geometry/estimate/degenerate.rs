//! Matches that do not determine a model, and fundamental matrices that fit only a plane.
//!
//! - Samples: collinear or unlike oriented ones are refused where models are made (`minimal`).
//! - A fundamental matrix from a sample with five or more matches on one plane fits the plane and says
//!   nothing of the rest (DEGENSAC: Chum, Werner, Matas 2005). The homography of the plane is found from the
//!   sample, and F = \[e'\]× H completed with two matches off the plane.
//! - Results: inliers on a line or at one point; and agreement that chance explains, by the number of false
//!   alarms of Moisan and Stival (2004): with n matches, k inliers, samples of m and a probability p that a
//!   wrong match falls within the threshold, max(n − m, 1) C(n, k) C(k, m) p^(k−m) is how many such models are expected
//!   of wrong matches. Matches of one place count once. p is the area that a match may fall in and agree, as a share of
//!   the box of the inliers, in the image where that share is greater: inliers crowded in a corner say less, and a
//!   map that shrinks everything to a point says nothing.

use super::Scored;
use super::local::Judge;
use super::points::Points;
use super::residual::{reach, squared};
use crate::geometry::matrix::{Mat3, cross, dot, flat, inverse, product, skew, times};
use crate::geometry::model::epipole;
use crate::geometry::{ModelKind, linear::eigen, matrix::transpose};
use crate::synth::{Random, finish};
use crate::{Error, Result};

/// Largest logarithm of the number of false alarms of the parallax off a plane: 1 in 100.
const PARALLAX_ALARMS: f64 = -4.6;

/// Why a fundamental matrix is refused that enough matches obey.
pub(crate) const ON_A_PLANE: &str =
    "the matches that agree lie on a plane, or the camera only turned; a homography says all there is";

/// Pairs of matches off the plane that are tried.
const PARALLAX_SAMPLES: usize = 200;

fn error(kind: ModelKind, reason: &'static str) -> Error {
    Error::Degenerate { model: kind.noun(), reason }
}

/// A model that matches are claimed to determine, and what counts as agreement with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::geometry) struct Claim<'p> {
    pub(in crate::geometry) kind: ModelKind,
    pub(in crate::geometry) points: &'p Points,
    /// Largest residual of an agreeing match, between normalised points.
    pub(in crate::geometry) threshold: f64,
    /// Largest logarithm of the number of false alarms.
    pub(in crate::geometry) most_alarms: f64,
}

/// Why no sample gave a model.
pub(super) fn explain(judge: &Judge<'_>) -> Error {
    let all: Vec<usize> = (0..judge.points.len()).collect();
    match spread(&judge.claim(), &all) {
        [major, _] if major < judge.threshold * judge.threshold => {
            error(judge.kind, "all matches lie at one point")
        }
        [_, minor] if minor < judge.threshold * judge.threshold => {
            error(judge.kind, "all matches lie on a line")
        }
        _ => error(judge.kind, "no sample of them gives one"),
    }
}

/// The variances along the major and minor axis of the points at `indices`: the lesser of both images.
fn spread(judge: &Claim<'_>, indices: &[usize]) -> [f64; 2] {
    let axes = |x: &[f64], y: &[f64]| {
        let n = indices.len().max(1) as f64;
        let [sx, sy] = indices.iter().fold([0.0; 2], |[sx, sy], &i| [sx + x[i], sy + y[i]]);
        let (mx, my) = (sx / n, sy / n);
        let [xx, xy, yy] = indices.iter().fold([0.0; 3], |[xx, xy, yy], &i| {
            let (u, v) = (x[i] - mx, y[i] - my);
            [xx + u * u, xy + u * v, yy + v * v]
        });
        eigen([[xx / n, xy / n], [xy / n, yy / n]]).0
    };
    let points = judge.points;
    let (a, b) = (axes(&points.xa, &points.ya), axes(&points.xb, &points.yb));
    [a[1].min(b[1]), a[0].min(b[0])]
}

/// How many points differ in a bit, of those at `indices`.
fn different(x: &[f64], y: &[f64], indices: &[usize]) -> usize {
    const FREE: u32 = u32::MAX;
    let bits = |i: usize| [x[i].to_bits(), y[i].to_bits()];
    // Open addressing, at most half full.
    let mut table = vec![FREE; (2 * indices.len()).next_power_of_two()];
    let last = table.len() - 1;
    let mut count = 0;
    for &i in indices {
        let own = bits(i);
        let mut slot = finish(own[0] ^ finish(own[1])) as usize & last;
        while table[slot] != FREE && bits(table[slot] as usize) != own {
            slot = (slot + 1) & last;
        }
        if table[slot] == FREE {
            table[slot] = i as u32;
            count += 1;
        }
    }
    count
}

/// The probability that a wrong match agrees with a model, its points being as likely anywhere in the bounding boxes
/// of the matches `among`: of both images the greater.
fn chance(judge: &Claim<'_>, model: &Mat3, among: &[usize]) -> f64 {
    let t = judge.threshold;
    let sides = |x: &[f64], y: &[f64]| {
        [x, y].map(|v| {
            let ends = (f64::INFINITY, f64::NEG_INFINITY);
            let (low, high) = among.iter().fold(ends, |(l, h), &i| (l.min(v[i]), h.max(v[i])));
            high - low + 2.0 * t
        })
    };
    let points = judge.points;
    let boxes = [sides(&points.xa, &points.ya), sides(&points.xb, &points.yb)];
    let reached = match judge.kind {
        // A band about the epipolar line, no longer than the diagonal.
        ModelKind::Fundamental => boxes.map(|[w, h]| 2.0 * t * (w * w + h * h).sqrt()),
        ModelKind::Homography | ModelKind::Affine | ModelKind::Similarity => {
            let areas = among.iter().map(|&i| reach(model, [points.xa[i], points.ya[i]]));
            let sum = areas.fold([0.0; 2], |sum, area| [sum[0] + area[0], sum[1] + area[1]]);
            sum.map(|area| std::f64::consts::PI * t * t * area / among.len().max(1) as f64)
        }
    };
    let share = |image: usize| reached[image] / (boxes[image][0] * boxes[image][1]);
    let greater = share(0).max(share(1));
    // Written so that NaN is certainty.
    if greater < 1.0 { greater } else { 1.0 }
}

/// The logarithm of the number of false alarms for `k` of `n` agreeing.
fn false_alarms(n: usize, k: usize, sample: usize, p: f64) -> f64 {
    // The logarithm of a binomial coefficient, one logarithm for sixteen of its factors.
    let choose = |n: usize, k: usize| -> f64 {
        let factors = k.min(n - k);
        let product = |i: usize| (i..factors.min(i + 16)).map(|i| (n - i) as f64 / (i + 1) as f64).product();
        (0..factors).step_by(16).map(|i| f64::ln(product(i))).sum()
    };
    (n.saturating_sub(sample).max(1) as f64).ln()
        + choose(n, k)
        + choose(k, sample)
        + (k - sample) as f64 * p.ln()
}

/// Fails when the inliers do not determine the model.
pub(super) fn check(judge: &Judge<'_>, model: &Mat3, inliers: &[usize]) -> Result<()> {
    let (claim, points) = (judge.claim(), judge.points);
    let all: Vec<usize> = (0..points.len()).collect();
    let (a, b) = ((&points.xa, &points.ya), (&points.xb, &points.yb));
    let counted = [(a, &all[..]), (b, &all[..]), (a, inliers), (b, inliers)];
    let counts = judge.cpu.map(4, |i| different(counted[i].0.0, counted[i].0.1, counted[i].1));
    let places = Places { all: counts[0].min(counts[1]), agreeing: counts[2].min(counts[3]) };
    claim.check(model, inliers, places)?;
    if judge.kind == ModelKind::Fundamental && on_a_plane(judge, model, inliers) {
        return Err(error(judge.kind, ON_A_PLANE));
    }
    Ok(())
}

/// Matches whose points differ, in A or in B, whichever are fewer.
#[derive(Clone, Copy, Debug)]
pub(in crate::geometry) struct Places {
    /// Of all matches.
    pub(in crate::geometry) all: usize,
    /// Of those that agree.
    pub(in crate::geometry) agreeing: usize,
}

impl Claim<'_> {
    /// The number of different points among some matches, in A or in B, whichever is less.
    pub(in crate::geometry) fn places(&self, indices: &[usize]) -> usize {
        let points = self.points;
        different(&points.xa, &points.ya, indices).min(different(&points.xb, &points.yb, indices))
    }

    /// Fails when the inliers lie at too few places, at one point, on a line, or are no more than chance explains.
    pub(in crate::geometry) fn check(&self, model: &Mat3, inliers: &[usize], places: Places) -> Result<()> {
        let (kind, sample) = (self.kind, self.kind.minimum());
        let Places { all: n, agreeing: k } = places;
        // Points within a third of a threshold of a line, or of a point, are taken to lie on it.
        let least = self.threshold * self.threshold / 9.0;
        let [major, minor] = spread(self, inliers);
        if k < sample {
            return Err(error(kind, "fewer different places agree than determine one"));
        }
        if major < least {
            return Err(error(kind, "the matches that agree lie at one point"));
        }
        if kind != ModelKind::Similarity && minor < least {
            return Err(error(kind, "the matches that agree lie on a line"));
        }
        if false_alarms(n, k, sample, chance(self, model, inliers)) > self.most_alarms {
            return Err(error(kind, "no more of them agree than chance brings about"));
        }
        Ok(())
    }
}

/// Whether a homography explains so many inliers that the others may be due to chance.
fn on_a_plane(judge: &Judge<'_>, f: &Mat3, inliers: &[usize]) -> bool {
    let plane = judge.as_kind(ModelKind::Homography);
    let mut random = Random::new(1);
    let planes = (0..PARALLAX_SAMPLES).filter_map(|_| {
        let sample: [usize; 3] = std::array::from_fn(|_| inliers[random.below(inliers.len())]);
        plane_through(judge.points, f, &sample)
    });
    let Some(best) = plane.best_of(&planes.collect::<Vec<_>>()) else { return false };
    let best = plane.optimise(best);
    let squared = plane.residuals(&best.model);
    let limit = plane.threshold * plane.threshold;
    let off = inliers.iter().filter(|&&i| squared[i] > limit).count();
    let wrong = judge.points.len() - (inliers.len() - off);
    // Two matches off the plane fix the epipole, more confirm it.
    let all: Vec<usize> = (0..judge.points.len()).collect();
    off < 3 || false_alarms(wrong.max(off), off, 2, chance(&judge.claim(), f, &all)) > PARALLAX_ALARMS
}

/// The homography of the plane through three matches that obey F (Hartley, Zisserman 2004, result 13.6).
fn plane_through(drawn: &Points, f: &Mat3, sample: &[usize; 3]) -> Option<Mat3> {
    let e = epipole(&transpose(f));
    let a = product(&skew(e), f);
    let points = sample.map(|i| drawn.a(i));
    let offsets: [f64; 3] = std::array::from_fn(|k| {
        let b = drawn.b(sample[k]);
        let toward = cross(b, e);
        dot(cross(b, times(&a, points[k])), toward) / dot(toward, toward)
    });
    let v = times(&inverse(&points)?, offsets);
    let h: Mat3 = std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] - e[i] * v[j]));
    let front = dot(h[2], points[0]);
    let h = h.map(|row| row.map(|x| x / front));
    h.iter().flatten().all(|x| x.is_finite()).then_some(h)
}

/// For a fundamental matrix from a sample, of the points `drawn` from, mostly on a plane: a better one from the plane and
/// parallax, if there is one. Other models stay as they are.
pub(super) fn resolve(judge: &Judge<'_>, best: Scored, drawn: &Points, sample: &[usize]) -> Scored {
    if judge.kind != ModelKind::Fundamental {
        return best;
    }
    let plane = judge.as_kind(ModelKind::Homography);
    let limit = plane.threshold * plane.threshold;
    let Some(h) = dominant_plane(&best.model, drawn, sample, limit) else { return best };
    let h = plane.optimise(plane.judged(h)).model;
    let squared = plane.residuals(&h);
    let off: Vec<usize> = (0..squared.len()).filter(|&i| squared[i] > limit).collect();
    if off.len() < 2 {
        return best;
    }
    let mut random = Random::new(sample[0] as u64);
    let completed = (0..PARALLAX_SAMPLES).filter_map(|_| {
        let [i, j] = [off[random.below(off.len())], off[random.below(off.len())]];
        let line = |i: usize| cross(times(&h, judge.points.a(i)), judge.points.b(i));
        let e = cross(line(i), line(j));
        (i != j).then(|| crate::geometry::matrix::unit(&product(&skew(e), &h))).flatten()
    });
    let found = judge.best_of(&completed.collect::<Vec<_>>());
    found.filter(|found| found.score > best.score).map_or(best, |found| judge.optimise(found))
}

/// The homography that five or more of a sample's seven matches obey, to a squared residual of `limit`.
fn dominant_plane(f: &Mat3, drawn: &Points, sample: &[usize], limit: f64) -> Option<Mat3> {
    // Any five of seven contain one of these triplets (Chum et al., section 3.1).
    [[0, 1, 2], [3, 4, 5], [0, 1, 6], [3, 4, 6], [2, 5, 6]].into_iter().find_map(|triplet| {
        let h = plane_through(drawn, f, &triplet.map(|t: usize| sample[t]))?;
        let obeys = |i: &&usize| squared(ModelKind::Homography, &flat(&h), drawn.places(**i)) <= limit;
        (sample.iter().filter(obeys).count() >= 5).then_some(h)
    })
}
