//! Matches that do not determine a model, and fundamental matrices that fit only a plane.
//!
//! - Samples whose points are collinear, or oriented differently in both images, are refused where models are made
//!   (`minimal`).
//! - A fundamental matrix from a sample with five or more matches on one plane fits the plane and is arbitrary off it
//!   (DEGENSAC: Chum, Werner, Matas 2005). The homography of the plane is found from the sample, and F = \[e'\]× H is
//!   completed with two matches off the plane.
//! - A fundamental matrix is refused if a homography explains all inliers except as many as chance could explain, an
//!   essential matrix if a rotation of the rays does: then the camera only turned, and any baseline would fit.
//! - Results are refused if the inliers lie on a line or at one point, or if chance could explain their agreement. That
//!   is judged by the number of false alarms of Moisan and Stival (2004): with n matches, k inliers, samples of m
//!   matches, and a probability p that a wrong match falls within the threshold, wrong matches are expected to give
//!   max(n − m, 1) C(n, k) C(k, m) p^(k−m) such models. Matches at one place count once. p is the area in which a match
//!   agrees, divided by the bounding box of the inliers, in the image where that quotient is greater. Inliers crowded
//!   in a corner are therefore weaker evidence, and for a map that shrinks everything to a point there is none.

use super::Fit;
use super::judge::Judge;
use super::parts::{parts_of, sums};
use super::points::Points;
use super::residual::{reach, squared};
use crate::geometry::matrix::{Mat3, cross, dot, flat, inverse, is_finite, product, skew, times};
use crate::geometry::model::epipole;
use crate::geometry::{ModelKind, linear::eigen, matrix::transpose};
use crate::numeric::{Random, finish};
use crate::{Error, Result};

/// The largest logarithm of the number of false alarms at which parallax off a plane is accepted: 1 in 100.
const PARALLAX_ALARMS: f64 = -4.6;

/// The reason why a fundamental matrix is refused although enough matches obey it.
pub(crate) const ON_A_PLANE: &str =
    "the matches that agree lie on a plane, or the camera only turned; a homography says all there is";

/// The reason why an essential matrix is refused although enough matches obey it.
const ONLY_TURNED: &str = "the camera only turned, or did not move; a homography says all there is";

/// The reasons that may disappear if more samples are drawn.
const NO_SAMPLE: &str = "no sample of them gives one";
const FEW_AGREE: &str = "too few different places agree";
const BY_CHANCE: &str = "they agree no better than chance would";

/// The error of a search that ended at `max_iterations`, before it had drawn every possible sample.
pub(super) fn so_far(error: Error) -> Error {
    let Error::Degenerate { model, reason } = error else { return error };
    let reason = match reason {
        NO_SAMPLE => "no sample of them gives one, of as many as max_iterations allows",
        FEW_AGREE => "too few different places agree, in as many samples as max_iterations allows",
        BY_CHANCE => "they agree no better than chance would, in as many samples as max_iterations allows",
        settled => settled,
    };
    Error::Degenerate { model, reason }
}

/// Samples that are drawn to find a plane, and pairs of matches off a plane or turn that are tried.
const PARALLAX_SAMPLES: usize = 200;

/// The number of distances from a plane that are tried, each twice the previous one, to find the smallest beyond which
/// chance could explain the parallax.
const PARALLAX_LIMITS: i32 = 8;

pub(super) fn error(kind: ModelKind, reason: &'static str) -> Error {
    Error::Degenerate { model: kind.noun(), reason }
}

/// The error when no sample gave a model.
pub(super) fn explain(judge: &Judge<'_>) -> Error {
    let all: Vec<usize> = (0..judge.points.len()).collect();
    let (least, sample) = (judge.threshold * judge.threshold, judge.kind.minimum());
    let reason = match spread(judge, &all) {
        [major, _] if sample > 1 && major < least => "all matches lie at one point",
        [_, minor] if sample > 2 && minor < least => "all matches lie on a line",
        _ => NO_SAMPLE,
    };
    error(judge.kind, reason)
}

/// The variances along the major and minor axis of the points at `indices`: the lesser of both images.
fn spread(judge: &Judge<'_>, indices: &[usize]) -> [f64; 2] {
    let (points, n) = (judge.points, indices.len().max(1) as f64);
    let added: [f64; 4] = sums(judge.cpu, indices, |sum, i| {
        let place = points.places(i);
        std::array::from_fn(|k| sum[k] + place[k])
    });
    let mean = added.map(|sum| sum / n);
    let products = sums(judge.cpu, indices, |[xx, xy, yy, uu, uv, vv], i| {
        let place = points.places(i);
        let [x, y, u, v] = std::array::from_fn(|k| place[k] - mean[k]);
        [xx + x * x, xy + x * y, yy + y * y, uu + u * u, uv + u * v, vv + v * v]
    });
    let [xx, xy, yy, uu, uv, vv] = products.map(|sum| sum / n);
    let (a, b) = (eigen([[xx, xy], [xy, yy]]).0, eigen([[uu, uv], [uv, vv]]).0);
    [a[1].min(b[1]), a[0].min(b[0])]
}

/// The probability that a wrong match agrees with a model if its points are uniformly distributed in the bounding boxes
/// of the matches `among`: the greater of the two images' probabilities.
fn chance(judge: &Judge<'_>, model: &Mat3, among: &[usize]) -> f64 {
    let (t, points, count) = (judge.threshold, judge.points, among.len());
    let ends = parts_of(judge.cpu, count, |part| {
        let none = [[f64::INFINITY, f64::NEG_INFINITY]; 4];
        among[part].iter().fold(none, |ends, &i| {
            let place = points.places(i);
            std::array::from_fn(|k| [ends[k][0].min(place[k]), ends[k][1].max(place[k])])
        })
    });
    let length = |k: usize| {
        let low = ends.iter().map(|part| part[k][0]).fold(f64::INFINITY, f64::min);
        let high = ends.iter().map(|part| part[k][1]).fold(f64::NEG_INFINITY, f64::max);
        high - low + 2.0 * t
    };
    let boxes = [[length(0), length(1)], [length(2), length(3)]];
    let reached = match judge.kind.is_epipolar() {
        // A band about the epipolar line, no longer than the diagonal.
        true => boxes.map(|[w, h]| 2.0 * t * (w * w + h * h).sqrt()),
        false => {
            let areas = sums(judge.cpu, among, |sum, i| {
                let area = reach(model, [points.xa[i], points.ya[i]]);
                [sum[0] + area[0], sum[1] + area[1]]
            });
            areas.map(|area| std::f64::consts::PI * t * t * area / count.max(1) as f64)
        }
    };
    let share = |image: usize| reached[image] / (boxes[image][0] * boxes[image][1]);
    let greater = share(0).max(share(1));
    // Written so that NaN becomes a probability of 1.
    if greater < 1.0 { greater } else { 1.0 }
}

/// The logarithm of the number of false alarms for `k` of `n` agreeing.
fn false_alarms(n: usize, k: usize, sample: usize, p: f64) -> f64 {
    // The logarithm of a binomial coefficient, one logarithm for sixteen of its factors.
    let choose = |n: usize, k: usize| -> f64 {
        let factors = k.min(n - k);
        let product = |i: usize| (i..factors.min(i + 16)).map(|i| (n - i) as f64 / (i + 1) as f64).product();
        (0..factors).step_by(16).map(|i| libm::log(product(i))).sum()
    };
    libm::log(n.saturating_sub(sample).max(1) as f64)
        + choose(n, k)
        + choose(k, sample)
        + (k - sample) as f64 * libm::log(p)
}

/// Fails when the inliers do not determine the model. Whether they lie on a plane is decided by `judge`, which may hold
/// only a part of the matches of `all`.
pub(super) fn check(
    all: &Judge<'_>,
    judge: &Judge<'_>,
    false_alarms: f64,
    model: &Mat3,
    inliers: &[usize],
) -> Result<()> {
    all.check(model, inliers, false_alarms, || {
        let every: Vec<usize> = (0..all.points.len()).collect();
        let counts = all.cpu.map(4, |i| all.different(i % 2, if i < 2 { &every } else { inliers }));
        [counts[0].min(counts[1]), counts[2].min(counts[3])]
    })?;
    match all.kind {
        // A caller who accepts any number of false alarms accepts parallax that chance explains, too.
        ModelKind::Essential if false_alarms == f64::INFINITY => Ok(()),
        _ => check_parallax([all, judge], model, inliers),
    }
}

/// Fails for a fundamental matrix whose inliers lie on a plane, and for an essential matrix whose inliers show a camera
/// that only turned: many such matrices fit them.
pub(super) fn check_parallax([all, judge]: [&Judge<'_>; 2], model: &Mat3, inliers: &[usize]) -> Result<()> {
    match all.kind {
        ModelKind::Fundamental if on_a_plane(all, judge, model, inliers) => Err(error(all.kind, ON_A_PLANE)),
        ModelKind::Essential if only_turned(all, judge, model, inliers) => Err(error(all.kind, ONLY_TURNED)),
        _ => Ok(()),
    }
}

impl Judge<'_> {
    /// The number of different points among some matches, in the image with fewer.
    pub(in crate::geometry) fn places(&self, indices: &[usize]) -> usize {
        self.different(0, indices).min(self.different(1, indices))
    }

    /// The number of different points among some matches in one image; points are the same if all their bits are.
    fn different(&self, image: usize, indices: &[usize]) -> usize {
        const FREE: u32 = u32::MAX;
        let points = self.points;
        let [x, y] = [[&points.xa[..], &points.ya], [&points.xb, &points.yb]][image];
        let bits = |i: usize| [x[i].to_bits(), y[i].to_bits()];
        // Indices of points by the lowest bits of their hashes, at most half full.
        let mut table = vec![FREE; (2 * indices.len()).next_power_of_two()];
        let (last, mut count) = (table.len() - 1, 0);
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

    /// Fails when the inliers lie at too few places, at one point or on a line, or when chance could explain them.
    /// `places` counts the different [`places`](Self::places) of all matches and of those that agree, and is called only if
    /// the result depends on it; `most_alarms` is the largest number of false alarms.
    pub(in crate::geometry) fn check(
        &self,
        model: &Mat3,
        inliers: &[usize],
        most_alarms: f64,
        places: impl FnOnce() -> [usize; 2],
    ) -> Result<()> {
        let most_alarms = libm::log(most_alarms);
        let (kind, sample) = (self.kind, self.kind.minimum());
        let p = chance(self, model, inliers);
        let [n, k] = self.enough(inliers, p, most_alarms).unwrap_or_else(places);
        // Points within a third of a threshold of a line, or of a point, are taken to lie on it.
        let least = self.threshold * self.threshold / 9.0;
        let reason = match spread(self, inliers) {
            _ if k < sample => FEW_AGREE,
            [major, _] if sample > 1 && major < least => {
                "the matches that agree lie at one point of one image: they are nearer together than the threshold"
            }
            [_, minor] if sample > 2 && minor < least => "the matches that agree lie on a line",
            _ if false_alarms(n, k, sample, p) > most_alarms => BY_CHANCE,
            _ => return Ok(()),
        };
        Err(error(kind, reason))
    }

    /// The probability that a match at a random position in the pictures agrees with a fundamental matrix.
    fn anywhere(&self, f: &Mat3) -> f64 {
        chance(self, f, &(0..self.points.len()).collect::<Vec<_>>())
    }

    /// Whether chance could explain the inliers that are off a plane, if a wrong match agrees with the probability `p`.
    fn is_parallax_chance(&self, inliers: &[usize], p: f64, is_off: impl Fn(&usize) -> bool) -> bool {
        let off = inliers.iter().filter(|i| is_off(i)).count();
        let wrong = self.points.len() - (inliers.len() - off);
        // Two matches off the plane fix the epipole, more confirm it.
        off < 3 || false_alarms(wrong.max(off), off, 2, p) > PARALLAX_ALARMS
    }

    /// The inliers of `f` without those far from the plane, if chance could explain these. Many matrices fit a plane,
    /// and each finds inliers among wrong matches near its epipolar lines. Fewer than three distant inliers are always
    /// attributed to chance. `plane` judges the plane's homography `h`.
    pub(in crate::geometry) fn without_chance_parallax(
        &self,
        f: &Mat3,
        inliers: &[usize],
        plane: &Self,
        h: &Mat3,
    ) -> Vec<usize> {
        let (off_plane, p) = (plane.residuals(h), self.anywhere(f));
        // Matches just off the plane are mostly noise and seldom wrong, so only greater distances are judged, each
        // separately.
        let limit = |power: i32| plane.threshold * plane.threshold * f64::from(1 << (2 * power));
        let is_chance = |far: &f64| self.is_parallax_chance(inliers, p, |i| off_plane[*i] > *far);
        let far = (1..=PARALLAX_LIMITS).map(limit).find(is_chance).unwrap_or(f64::INFINITY);
        inliers.iter().copied().filter(|i| off_plane[*i] <= far).collect()
    }

    /// Whether in one image a line contains all distinct points but one, so that a homography is undetermined.
    pub(super) fn all_but_one_on_a_line(&self) -> bool {
        let points = self.points;
        [Points::a, Points::b].into_iter().any(|place| {
            let places: Vec<[f64; 3]> = (0..points.len()).map(|i| place(points, i)).collect();
            let Some(first) = places.first() else { return true };
            let Some(second) = places.iter().find(|p| *p != first) else { return true };
            let Some(third) = places.iter().find(|p| *p != first && *p != second) else { return true };
            // Such a line contains at least two of any three points.
            [(first, second), (first, third), (second, third)].into_iter().any(|(p, q)| {
                let line = cross(*p, *q);
                let near = self.threshold / 3.0 * (line[0] * line[0] + line[1] * line[1]).sqrt();
                let mut off = places.iter().filter(|p| dot(line, **p).abs() > near);
                let other = off.next();
                off.all(|p| Some(p) == other)
            })
        })
    }

    /// The number of all matches and of the distinct places of a part of the inliers, if there are very many inliers
    /// and counting the places of all could not change the verdict; otherwise `None`.
    fn enough(&self, inliers: &[usize], p: f64, most_alarms: f64) -> Option<[usize; 2]> {
        const MANY: usize = 4096;
        const PART: usize = 2048;
        if inliers.len() < MANY {
            return None;
        }
        let part: Vec<usize> = inliers.iter().step_by(inliers.len() / PART).copied().collect();
        let (n, k, sample) = (self.points.len(), self.places(&part), self.kind.minimum());
        // From k to k + 1 the false alarms are multiplied by (n - k) p / (k + 1 - m), which falls as k grows. The false
        // alarms rise with n.
        let fall_from_here = k >= sample && (n - k) as f64 * p <= (k + 1 - sample) as f64;
        let are_few = || false_alarms(n, k, sample, p) <= most_alarms;
        (fall_from_here && are_few()).then_some([n, k])
    }
}

/// Whether a homography explains so many inliers that noise and chance could explain the rest.
fn on_a_plane(all: &Judge<'_>, judge: &Judge<'_>, f: &Mat3, inliers: &[usize]) -> bool {
    plane_of_most(all, judge, f, inliers).is_some_and(|plane| {
        let off_plane = all.as_kind(ModelKind::Homography).residuals(&plane);
        let off = |i: &usize| off_plane[*i] > all.threshold * all.threshold;
        all.is_parallax_chance(inliers, all.anywhere(f), off) || explains(&plane, all, f, inliers, 3)
    })
}

/// Whether a rotation of the rays explains all inliers except as many as noise, repeated structure and chance could. A
/// plane determines an essential matrix up to two solutions; if the camera only turned or did not move, the baseline is
/// undetermined. So it is if fewer than a hundredth of the inliers show parallax: a row of windows can look so.
fn only_turned(all: &Judge<'_>, judge: &Judge<'_>, f: &Mat3, inliers: &[usize]) -> bool {
    let plane = plane_of_most(all, judge, f, inliers);
    let turn = all.rays.zip(plane).and_then(|(rays, plane)| {
        let agreeing = judge.as_kind(ModelKind::Homography).inliers(&plane);
        rays.rotation(judge.points, &agreeing, judge.cpu)
    });
    turn.is_some_and(|turn| explains(&turn, all, f, inliers, (inliers.len() / 100).max(3)))
}

/// The homography that most of the inliers obey.
fn plane_of_most(all: &Judge<'_>, judge: &Judge<'_>, f: &Mat3, inliers: &[usize]) -> Option<Mat3> {
    let plane = judge.as_kind(ModelKind::Homography);
    let mut random = Random::new(1);
    let planes = (0..PARALLAX_SAMPLES).filter_map(|_| {
        let sample: [usize; 3] = std::array::from_fn(|_| inliers[random.below(inliers.len())]);
        plane_through(all.points, f, &sample)
    });
    let best = plane.best_of(&planes.collect::<Vec<_>>())?;
    Some(plane.settle(plane.improve(best)).model)
}

/// Whether this map explains so many inliers that fewer than `least` deviate from it, or that noise, repeated structure
/// and chance could explain those that do.
fn explains(map: &Mat3, all: &Judge<'_>, f: &Mat3, inliers: &[usize], least: usize) -> bool {
    let (off_map, off_line) = (all.as_kind(ModelKind::Homography).residuals(map), all.residuals(f));
    let limit = all.threshold * all.threshold;
    // The square of the distance from its line within which nearly every inlier lies: below the limit if noise is low.
    let mean = inliers.iter().map(|i| off_line[*i]).sum::<f64>() / inliers.len() as f64;
    let band = limit.min(9.0 * mean);
    let every: Vec<usize> = (0..off_map.len()).collect();
    let anywhere = (band / limit).sqrt() * chance(all, f, &every);
    // A wrong match lies anywhere, or, by noise or repeated structure, at some distance from where the map leads. Its
    // epipolar line passes through there, so that in a random direction it is within the band with the probability
    // 2/π asin(band / distance): nearly 1 for what is just off where noise is as large as the threshold.
    let near = |i: &usize| {
        let share = (band / off_map[*i]).sqrt().min(1.0);
        (std::f64::consts::FRAC_2_PI * libm::asin(share)).max(anywhere)
    };
    // Distant matches are stronger evidence, but there may be far more near ones, and wrong ones lie far away.
    let ranges = [1.0, 4.0, 16.0, 64.0].map(|from| from..f64::INFINITY);
    ranges.into_iter().chain([1.0..4.0, 4.0..16.0]).all(|range| {
        let is_off = |i: &&usize| range.contains(&(off_map[**i] / limit));
        let agrees = |i: &&usize| is_off(i) && off_line[**i] <= band;
        let (off, wrong) = (inliers.iter().filter(agrees).count(), every.iter().filter(is_off).count());
        let p = every.iter().filter(is_off).map(near).sum::<f64>() / wrong as f64;
        if off < least || off as f64 <= p * wrong as f64 {
            return true;
        }
        // p is not small here, so the matches that do not lie near their lines must be counted, too.
        let others = if off < wrong { (wrong - off) as f64 * libm::log(1.0 - p) } else { 0.0 };
        false_alarms(wrong, off, 2, p) + others > PARALLAX_ALARMS
    })
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
    is_finite(&h).then_some(h)
}

/// Replaces a fundamental matrix whose sample of the points `drawn` lies mostly on a plane by one from plane and
/// parallax, and an essential matrix most of whose inliers obey a rotation by one from rotation and parallax, if that
/// has more inliers. Other models are returned unchanged.
pub(super) fn resolve(judge: &Judge<'_>, best: Fit, drawn: &Points, sample: &[usize]) -> Fit {
    let plane = judge.as_kind(ModelKind::Homography);
    let limit = plane.threshold * plane.threshold;
    let h = match judge.kind {
        ModelKind::Fundamental => dominant_plane(&best.model, drawn, sample, limit)
            .map(|h| plane.settle(plane.improve(plane.judged(h))).model),
        ModelKind::Essential => dominant_turn(judge, &plane, &best),
        _ => None,
    };
    let Some(h) = h else { return best };
    let squared = plane.residuals(&h);
    let off: Vec<usize> = (0..squared.len()).filter(|&i| squared[i] > limit).collect();
    if off.len() < 2 {
        return best;
    }
    // Noise puts many matches just off a turn, so every other pair is drawn from those far off it, if there are any.
    let turned = judge.kind == ModelKind::Essential;
    let far: Vec<usize> = off.iter().copied().filter(|i| turned && squared[*i] > 9.0 * limit).collect();
    let mut random = Random::new(sample[0] as u64);
    let completed = (0..PARALLAX_SAMPLES).filter_map(|number| {
        let among = if number % 2 == 1 && far.len() > 1 { &far } else { &off };
        let [i, j] = [among[random.below(among.len())], among[random.below(among.len())]];
        let line = |i: usize| cross(times(&h, judge.points.a(i)), judge.points.b(i));
        let e = cross(line(i), line(j));
        (i != j).then(|| crate::geometry::matrix::unit(&product(&skew(e), &h))).flatten()
    });
    let found = judge.best_of(&completed.collect::<Vec<_>>());
    // Two noisy matches give only a rough baseline, which may have fewer inliers than `best` until it is improved.
    let found =
        found.filter(|found| turned || found.inliers > best.inliers).map(|found| judge.improve(found));
    found.filter(|found| found.inliers > best.inliers).unwrap_or(best)
}

/// The rotation of the rays that at least three quarters of an essential matrix's inliers obey.
fn dominant_turn(judge: &Judge<'_>, plane: &Judge<'_>, best: &Fit) -> Option<Mat3> {
    let inliers = judge.inliers(&best.model);
    let turn = |agreeing: &[usize]| judge.rays?.rotation(judge.points, agreeing, judge.cpu);
    let rough = turn(&inliers)?;
    let turn = turn(&plane.inliers(&rough))?;
    (4 * plane.inliers(&turn).len() >= 3 * inliers.len()).then_some(turn)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::geometry::{Correspondence, Homography};

    /// Distinct places are counted in a part of many inliers if that decides the answer, otherwise in all.
    #[test]
    fn places_are_counted_only_where_they_matter() {
        let model = Homography::new([[1.0, 0.0, 3.0], [0.0, 1.0, 2.0], [0.0, 0.0, 1.0]]).unwrap();
        let cpu = Cpu::sequential();
        for (different, counted) in [(40_000, false), (8, true), (5, true), (3, true)] {
            let mut random = Random::new(5);
            let mut place = || [random.range(0.0, 2000.0), random.range(0.0, 1500.0)];
            let places: Vec<[f64; 2]> = (0..different).map(|_| place()).collect();
            let pair = |i: usize| {
                let a = places[i % different];
                Correspondence { a, b: [a[0] + 3.0, a[1] + 2.0], quality: 0.0 }
            };
            let pairs: Vec<_> = (0..40_000).map(pair).collect();
            let all: Vec<usize> = (0..pairs.len()).collect();
            let points = Points::new(&pairs, &all, &cpu);
            let kind = ModelKind::Homography;
            let judge = Judge::new(kind, &points, 3.0, None, &cpu);
            let normalised = points.normalised(kind, &model.matrix());
            let mut count = 0;
            let found = judge.check(&normalised, &all, 1e-6, || {
                count += 1;
                [judge.places(&all); 2]
            });
            assert_eq!(count, i32::from(counted), "{different} places");
            assert_eq!(found.is_ok(), different >= 8, "{different} places: {found:?}");
        }
    }
}
