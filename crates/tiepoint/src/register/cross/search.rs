//! Hypotheses: similarities on which many matches of structure agree.
//!
//! Levels of A are matched with B itself, and A itself with levels of B, at twelve turns. For each such combination of
//! turn and scale, the shifts between matched places are counted in cells, 3 × 3 of them together, because a turn
//! between two of the twelve and a scale between two levels move places by about as much. The score is the number of
//! votes over the root of the number of matches.
//!
//! The combinations with the best scores are fitted. Similarities through two matches that voted together, near that
//! turn and scale, are judged by how many matches lie within 5 pixels. The matches are those of this combination and of
//! its neighbours, at most one turn and one level away: between two turns or levels each neighbour finds some of the
//! right matches, and none finds enough. A similarity grows to an affine map, and that to a homography, where clearly
//! more matches agree: each is fitted again and again to what agrees with the fit before. Hypotheses are ordered by how
//! many places they cover in both pictures, because one edge that resembles another gives many matches in one place.

use crate::Result;
use crate::device::gpu::{Commands, Gpu};
use crate::device::{Cpu, dispatch};
use crate::feature::Keypoint;
use crate::feature::gpu::GpuFeatures;
use crate::feature::structure::{Level, StructureFinder, TURNS, turned};
use crate::geometry::weighted::{Measured, WeightedFit, beyond_similarity, fit};
use crate::geometry::{Homography, ModelKind};
use crate::image::Size;
use crate::matching::{GpuMatcher, GpuNearest, MatchOptions, Nearest, match_features};
use crate::numeric::length;
use fearless_simd::Simd;
use std::cmp::Reverse;

/// A similarity from A to B: x' = c x − s y + x₀, y' = s x + c y + y₀, in pixels at the size at which they are searched;
/// and a more general map, where clearly more matches agree on one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hypothesis {
    /// (c, s).
    pub(super) turn: [f64; 2],
    pub(super) shift: [f64; 2],
    /// The number of cells with matches that agree, in the picture that has fewer.
    pub(super) cells: usize,
    /// A more general map on which clearly more matches agree, if there is one.
    pub(super) grown: Option<Homography>,
}

impl Hypothesis {
    pub(super) fn apply(&self, p: [f64; 2]) -> [f64; 2] {
        let [x, y] = times(self.turn, p);
        [x + self.shift[0], y + self.shift[1]]
    }

    pub(super) fn scale(&self) -> f64 {
        length(self.turn)
    }

    pub(super) fn homography(&self) -> Result<Homography> {
        let ([c, s], [x, y]) = (self.turn, self.shift);
        Homography::new([[c, -s, x], [s, c, y], [0.0, 0.0, 1.0]])
    }

    /// The composition: `first`, then this hypothesis.
    pub(super) fn after(&self, first: &Self) -> Self {
        let grown = self.grown.and_then(|map| Some(map.compose(&first.homography().ok()?)));
        Self { turn: times(self.turn, first.turn), shift: self.apply(first.shift), cells: self.cells, grown }
    }

    /// Whether it maps this point of A about as `map` does: to within [`SAME_PLACE`], at about the same turn and scale.
    pub(super) fn is_like(&self, map: &Homography, at: [f64; 2]) -> bool {
        let beside = |map: &Homography| map.apply(at).zip(map.apply([at[0] + 1.0, at[1]]));
        beside(map).is_some_and(|(place, next)| {
            let own = self.grown.and_then(|grown| beside(&grown));
            let (own, turn) = own.map_or((self.apply(at), self.turn), |(own, next)| (own, minus(next, own)));
            let [c, s] = over(turn, minus(next, place));
            squared(minus(own, place)) < SAME_PLACE * SAME_PLACE
                && squared([c - 1.0, s]) < SAME_TURN * SAME_TURN
        })
    }
}

/// Side of a cell of shifts, as a share of the diagonal of B, and its least value in pixels.
const CELL: [f64; 2] = [0.04, 20.0];
/// The most combinations of turn and scale that are fitted.
const FITTED: usize = 10;
/// The most samples of two matches for a fit.
const SAMPLES: usize = 2000;
/// Samples that are judged together on one thread.
const PART: usize = 125;
/// The distance within which a match agrees, in pixels of the coarser picture.
const NEAR: f64 = 5.0;
/// How far a similarity may be from the fitted combination: the square of the ratio of scales (e^½), and tan 0.4.
const APART: [f64; 2] = [1.6487212707001282, 0.4227932187381618];
/// The distance from 1 that the ratio of both, as complex numbers, may then have: √(e^½ + 1 − 2 e^¼ cos 0.4).
const RATIO_APART: f64 = 0.533;
/// A more general map replaces a similarity if at least the first number times as many matches agree on it, and at
/// least the second number more. It is fitted at most [`GROWTH`] times.
const GROWS: [f64; 2] = [1.25, 8.0];
const GROWTH: usize = 10;
/// The least distance between the two matches of a sample in A, in pixels; in B half of this times the scale.
const BASE: f64 = 20.0;
/// Two maps count as different if they map a point to points that are farther apart than this, in pixels, or if the
/// ratio of their turns and scales, as complex numbers, is farther from 1 than [`SAME_TURN`].
const SAME_PLACE: f64 = 20.0;
const SAME_TURN: f64 = 0.4;
/// Side of the cells in which covered places are counted.
const PLACE: f64 = 24.0;

/// The ends of a match, in A and in B.
type Ends = [[f64; 2]; 2];

/// The matches at one turn and scale.
#[derive(Debug)]
pub(super) struct Voted {
    /// The points of the matches.
    ends: Vec<Ends>,
    /// The index of the turn, and the index of the level of A less that of B.
    at: [i32; 2],
    turn: [f64; 2],
    score: f64,
    /// The indices of the matches in the 3 × 3 cells with the most votes.
    together: Vec<usize>,
}

#[inline(always)]
fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c - b * d, a * d + b * c]
}

fn over(n: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    let square = c * c + d * d;
    times(n, [c / square, -d / square])
}

fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

#[inline(always)]
fn squared(a: [f64; 2]) -> f64 {
    a[0] * a[0] + a[1] * a[1]
}

/// The votes at every number of turns below `turns`. Each level of A is matched with B at its own size, and each level of
/// B with A at its own size, unless both levels of the combination are among the first `seen`, matched before.
pub(super) fn votes(
    [a, b]: [&[Level]; 2],
    seen: [usize; 2],
    turns: usize,
    finder: &StructureFinder<'_>,
) -> Result<Vec<Voted>> {
    let processor = finder.processor;
    let options = MatchOptions::default().with_ratio(None).with_same_sign(false);
    let Size { width, height } = b[0].image();
    let cell = (CELL[0] * length([width as f64, height as f64])).max(CELL[1]);
    let others = |i: usize| if i == 0 { b.len() } else { 1 };
    let turned_levels = (0..a.len()).flat_map(|i| (0..turns).map(move |turn| (i, turn)));
    let combinations = turned_levels.flat_map(|(i, turn)| (0..others(i)).map(move |k| (i, turn, k)));
    let combinations: Vec<_> = combinations.filter(|(i, _, k)| *i >= seen[0] || *k >= seen[1]).collect();
    let matched = processor.gpu_or_cpu(
        "matching of structure",
        |gpu| matched_on(gpu, [a, b], &combinations, turns, finder),
        |cpu| {
            let on_cpu = cpu.clone().into();
            let [a, b] = [a, b].map(|levels| levels.iter().map(Level::on_host).collect::<Result<Vec<_>>>());
            let (a, b) = (a?, b?);
            cpu.try_map(combinations.len(), |n| {
                let (i, turn, k) = combinations[n];
                let matches = match_features(&turned(&a[i], turn), &b[k], &options, &on_cpu)?;
                Ok(matches.iter().map(|m| [m.a, m.b]).collect())
            })
        },
    )?;
    let _stage = processor.cpu.stage("votes");
    processor.cpu.try_map(combinations.len(), |n| {
        let (i, turn, k) = combinations[n];
        let (level, other) = (&a[i], &b[k]);
        let ends = matched[n].iter().map(|[p, q]| {
            let at = |k: &Keypoint| [f64::from(k.x), f64::from(k.y)];
            [at(&level.keypoints()[*p as usize]), at(&other.keypoints()[*q as usize])]
        });
        Ok(vote(ends.collect(), [turn as i32, i as i32 - k as i32], level.scale / other.scale, cell))
    })
}

/// The corners of A and B that match, found by a GPU, for each combination of a level of A, a turn and a level of B.
/// Two searches serve all turns of two levels: one finds the nearest corners in B of the turned corners of A, the other
/// the nearest corners in A of the corners of B, turned back. The distances in both are equal.
fn matched_on(
    gpu: &Gpu,
    levels: [&[Level]; 2],
    combinations: &[(usize, usize, usize)],
    turns: usize,
    finder: &StructureFinder<'_>,
) -> Result<Vec<Vec<[u32; 2]>>> {
    let (stages, matcher, mut commands) = (finder.on(gpu)?, GpuMatcher::new(gpu), Commands::new());
    let mut side = |side: usize| -> Result<Vec<[GpuFeatures; 2]>> {
        let both = |level: &Level| {
            let upright = level.on(gpu)?;
            let turned = stages.turned(&mut commands, &upright, turns, side == 1)?;
            Ok([upright, turned])
        };
        levels[side].iter().map(both).collect()
    };
    let [a, b] = [side(0)?, side(1)?];
    let mut pairs: Vec<[usize; 2]> = combinations.iter().map(|(i, _, k)| [*i, *k]).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let searches = pairs.iter().map(|&[i, k]| {
        let forth = matcher.record_forth(&mut commands, [&a[i][1], &b[k][0]], false)?;
        Ok([forth, matcher.record_forth(&mut commands, [&b[k][1], &a[i][0]], false)?])
    });
    let searches: Vec<[GpuNearest; 2]> = searches.collect::<Result<_>>()?;
    gpu.run(&commands)?;
    let counts = |[i, k]: [usize; 2]| [levels[0][i].keypoints().len(), levels[1][k].keypoints().len()];
    let nearest = pairs.iter().zip(&searches).map(|(&pair, searches)| {
        let [n, m] = counts(pair).map(|n| n * turns);
        Ok([searches[0].forth(n)?, searches[1].forth(m)?])
    });
    let nearest: Vec<[Vec<Option<Nearest>>; 2]> = nearest.collect::<Result<_>>()?;
    let found = combinations.iter().map(|&(i, turn, k)| {
        let (of, [n, m]) = (pairs.partition_point(|pair| *pair < [i, k]), counts([i, k]));
        let [forth, back] = [&nearest[of][0][turn * n..][..n], &nearest[of][1][turn * m..][..m]];
        let mutual = |(a, there): (usize, &Option<Nearest>)| {
            let b = there.as_ref()?.index;
            (back[b as usize].as_ref()?.index as usize == a).then_some([a as u32, b])
        };
        forth.iter().enumerate().filter_map(mutual).collect()
    });
    Ok(found.collect())
}

/// The best hypotheses, by the places they cover, without near duplicates, grown to maps no more general than `kind`.
pub(super) fn hypotheses(voted: &mut [Voted], kind: ModelKind, cpu: &Cpu) -> Result<Vec<Hypothesis>> {
    let _stage = cpu.stage("hypotheses");
    voted.sort_by(|a, b| b.score.total_cmp(&a.score));
    let voted = &*voted;
    let fits = cpu.try_map(voted.len().min(FITTED), |i| {
        // Turn and scale are the same, or next to these.
        let is_near = |other: &&Voted| {
            let turns = (other.at[0] - voted[i].at[0]).rem_euclid(TURNS as i32);
            turns.min(TURNS as i32 - turns) <= 1 && (other.at[1] - voted[i].at[1]).abs() <= 1
        };
        let near = voted.iter().filter(is_near).flat_map(|v| &v.ends);
        Ok(Fit::new(&voted[i], near.copied().collect()))
    })?;
    let parts = |(i, fit): (usize, &Fit)| (0..fit.samples.len()).step_by(PART).map(move |start| (i, start));
    let parts: Vec<(usize, usize)> = fits.iter().enumerate().flat_map(parts).collect();
    let best = cpu.try_map(parts.len(), |n| Ok(fits[parts[n].0].best_from(parts[n].1, cpu)))?;
    let found = cpu.try_map(fits.len(), |i| {
        let of_fit = parts.iter().zip(&best).filter(|((of, _), _)| *of == i);
        let best = of_fit.filter_map(|(_, best)| *best).max();
        Ok(best.and_then(|(_, Reverse(sample))| fits[i].hypothesis(sample, kind)))
    })?;
    let mut found: Vec<Hypothesis> = found.into_iter().flatten().collect();
    found.sort_by_key(|h| Reverse(h.cells));
    let mut kept: Vec<Hypothesis> = Vec::new();
    for one in found {
        // Both map three places of a picture to almost the same places: less than 12 pixels apart.
        let is_like = |other: &Hypothesis| {
            let places = [[0.0, 0.0], [400.0, 0.0], [0.0, 400.0]];
            places.iter().all(|p| squared(minus(other.apply(*p), one.apply(*p))) < 144.0)
        };
        if !kept.iter().any(is_like) {
            kept.push(one);
        }
    }
    Ok(kept)
}

fn vote(ends: Vec<Ends>, at: [i32; 2], scale: f64, cell: f64) -> Voted {
    let (sin, cos) = libm::sincos(f64::from(at[0]) * std::f64::consts::PI / 6.0);
    let turn = [scale * cos, scale * sin];
    let cells: Vec<[i64; 2]> =
        ends.iter().map(|[a, b]| minus(*b, times(turn, *a)).map(|v| (v / cell).floor() as i64)).collect();
    let [left, top] = [0, 1].map(|c| cells.iter().map(|at| at[c]).min().unwrap_or(0) - 1);
    let [width, height] = [(0, left), (1, top)]
        .map(|(c, first)| (cells.iter().map(|at| at[c]).max().unwrap_or(0) - first + 2) as usize);
    let place = |[x, y]: [i64; 2]| (y - top) as usize * width + (x - left) as usize;
    let mut counts = vec![0_u32; width * height];
    cells.iter().for_each(|at| counts[place(*at)] += 1);
    let votes = |i: usize| {
        let middle = place(cells[i]);
        let rows = [middle - width, middle, middle + width];
        rows.map(|at| counts[at - 1..=at + 1].iter().sum::<u32>()).into_iter().sum::<u32>()
    };
    let Some((n, Reverse(i))) = (0..cells.len()).map(|i| (votes(i), Reverse(i))).max() else {
        return Voted { ends, at, turn, score: 0.0, together: vec![] };
    };
    let near = |p: &[i64; 2]| (p[0] - cells[i][0]).abs() <= 1 && (p[1] - cells[i][1]).abs() <= 1;
    let together = (0..cells.len()).filter(|k| near(&cells[*k])).collect();
    let score = f64::from(n) / (ends.len() as f64).sqrt();
    Voted { ends, at, turn, score, together }
}

/// The squared distance of a match's point in B from the point to which a similarity maps its point in A.
#[inline(always)]
fn miss(turn: [f32; 2], shift: [f32; 2], [[ax, ay], [bx, by]]: [[f32; 2]; 2]) -> f32 {
    let x = turn[0] * ax - turn[1] * ay + shift[0] - bx;
    let y = turn[0] * ay + turn[1] * ax + shift[1] - by;
    x * x + y * y
}

/// How many matches a similarity misses by less than a distance, given squared. Ends in A and B are columns of x and y.
#[inline(always)]
fn agree<S: Simd>(
    _: S,
    [[ax, ay], [bx, by]]: &[[Vec<f32>; 2]; 2],
    turn: [f32; 2],
    shift: [f32; 2],
    square: f32,
) -> u32 {
    let mut count = 0;
    for (((ax, ay), bx), by) in ax.iter().zip(ay).zip(bx).zip(by) {
        count += u32::from(miss(turn, shift, [[*ax, *ay], [*bx, *by]]) < square);
    }
    count
}

/// The matches that can be inliers of a sample's similarity, which differs from the combination's by at most [`APART`]
/// and maps one of the matches that voted together to within `near` pixels.
fn in_reach(voted: &Voted, mut ends: Vec<Ends>, near: f64) -> Vec<Ends> {
    let shift = |[a, b]: &Ends| minus(*b, times(voted.turn, *a));
    let n = voted.together.len() as f64;
    let matches = || voted.together.iter().map(|i| &voted.ends[*i]);
    let middle =
        |of: &dyn Fn(&Ends) -> [f64; 2]| [0, 1].map(|c| matches().map(|ends| of(ends)[c]).sum::<f64>() / n);
    let spread = |of: &dyn Fn(&Ends) -> [f64; 2], middle: [f64; 2]| {
        matches().map(|ends| squared(minus(of(ends), middle))).fold(0.0, f64::max).sqrt()
    };
    let (place, by) = (middle(&|[a, _]| *a), middle(&shift));
    let (wide, off) = (spread(&|[a, _]| *a, place), spread(&shift, by));
    let turned = RATIO_APART * length(voted.turn);
    ends.retain(|match_ends| {
        let reach = near + off + turned * (squared(minus(match_ends[0], place)).sqrt() + wide);
        squared(minus(shift(match_ends), by)) < reach * reach
    });
    ends
}

/// A similarity: turn and scale as a complex number, and shift.
type Similarity = [[f64; 2]; 2];

#[derive(Debug)]
struct Fit {
    scale: f64,
    /// The distance within which a match agrees, squared.
    square: f32,
    /// The matches that can agree with a sample's similarity, and the same as columns.
    ends: Vec<Ends>,
    columns: [[Vec<f32>; 2]; 2],
    /// Similarities through two matches that voted together.
    samples: Vec<Similarity>,
}

impl Fit {
    fn new(voted: &Voted, ends: Vec<Ends>) -> Self {
        let scale = length(voted.turn);
        let near = NEAR * scale.max(1.0);
        let ends = in_reach(voted, ends, near);
        let column = |side: usize, c: usize| ends.iter().map(|of| of[side][c] as f32).collect();
        let columns = [0, 1].map(|side| [0, 1].map(|c| column(side, c)));
        Self { scale, square: (near * near) as f32, ends, columns, samples: samples(voted, scale) }
    }

    fn agreeing(&self, [turn, shift]: Similarity) -> Vec<usize> {
        let (turn, shift) = (turn.map(|v| v as f32), shift.map(|v| v as f32));
        let misses =
            |i: usize| miss(turn, shift, self.columns.each_ref().map(|of| of.each_ref().map(|c| c[i])));
        (0..self.ends.len()).filter(|i| misses(*i) < self.square).collect()
    }

    /// The number of matches that agree with the best sample of a part, and that sample: of equals, the first.
    fn best_from(&self, start: usize, cpu: &Cpu) -> Option<(u32, Reverse<usize>)> {
        let part = start..self.samples.len().min(start + PART);
        let count = |i: usize| {
            let [turn, shift] = self.samples[i].map(|of| of.map(|v| v as f32));
            dispatch!(cpu.level(), simd => agree(simd, &self.columns, turn, shift, self.square))
        };
        part.map(|i| (count(i), Reverse(i))).max()
    }

    /// The hypothesis from a sample: its similarity is fitted to the matches that agree with it.
    fn hypothesis(&self, sample: usize, kind: ModelKind) -> Option<Hypothesis> {
        let mut best = self.agreeing(self.samples[sample]);
        let mut fitted = None;
        for _ in 0..3 {
            let Some(found) = least_squares(&self.ends, &best) else { break };
            fitted = Some(found);
            let agree = self.agreeing(found);
            if agree == best {
                break;
            }
            best = agree;
        }
        let [turn, shift] = fitted?;
        let mut grown = None;
        for &next in beyond_similarity(kind) {
            if let Some((agree, map)) = self.grow(next, &best)
                && agree.len() as f64 >= GROWS[0] * best.len() as f64
                && agree.len() >= best.len() + GROWS[1] as usize
            {
                (best, grown) = (agree, Some(map));
            }
        }
        let covered = |side: usize, cell: f64| {
            let cells = best.iter().map(|i| self.ends[*i][side].map(|v| (v / cell).floor() as i64));
            let mut cells: Vec<[i64; 2]> = cells.collect();
            cells.sort_unstable();
            cells.dedup();
            cells.len()
        };
        let cells = covered(0, PLACE).min(covered(1, PLACE * self.scale));
        Some(Hypothesis { turn, shift, cells, grown })
    }

    /// A map fitted to matches, then to those that agree with it, and so on: matches that shear or perspective
    /// displaces come within reach from the middle outwards.
    fn grow(&self, kind: ModelKind, from: &[usize]) -> Option<(Vec<usize>, Homography)> {
        let mut agree = from.to_vec();
        let mut grown = None;
        for _ in 0..GROWTH {
            let place = |i: &usize| {
                let [a, b] = self.ends[*i];
                Measured { a, b, information: [1.0, 0.0, 1.0] }
            };
            let Some(WeightedFit { b_from_a: map, .. }) =
                fit(kind, &agree.iter().map(place).collect::<Vec<_>>())
            else {
                break;
            };
            let near = |i: &usize| {
                let [a, b] = self.ends[*i];
                map.apply(a).is_some_and(|at| squared(minus(at, b)) < f64::from(self.square))
            };
            let now: Vec<usize> = (0..self.ends.len()).filter(near).collect();
            grown = Some(map);
            if now == agree {
                break;
            }
            agree = now;
        }
        Some((agree, grown?))
    }
}

/// The first [`SAMPLES`] similarities through two matches that voted together, near the turn and scale of the combination.
fn samples(voted: &Voted, scale: f64) -> Vec<Similarity> {
    let mut samples = Vec::new();
    for (i, p) in voted.together.iter().enumerate() {
        for q in &voted.together[i + 1..] {
            let [p, q] = [p, q].map(|i| voted.ends[*i]);
            let [a, b] = [0, 1].map(|side| minus(q[side], p[side]));
            if squared(a) < BASE * BASE || squared(b) < BASE * BASE * scale * scale / 4.0 {
                continue;
            }
            let turn = over(b, a);
            let ratio @ [c, s] = over(turn, voted.turn);
            if !(1.0 / APART[0]..=APART[0]).contains(&squared(ratio)) || s.abs() > APART[1] * c {
                continue;
            }
            samples.push([turn, minus(p[1], times(turn, p[0]))]);
            if samples.len() == SAMPLES {
                return samples;
            }
        }
    }
    samples
}

/// The least-squares similarity of these matches; `None` for fewer than three.
fn least_squares(ends: &[Ends], which: &[usize]) -> Option<Similarity> {
    if which.len() < 3 {
        return None;
    }
    let n = which.len() as f64;
    let mean = |side: usize| [0, 1].map(|c| which.iter().map(|i| ends[*i][side][c]).sum::<f64>() / n);
    let [a, b] = [mean(0), mean(1)];
    let (mut product, mut square) = ([0.0; 2], 0.0);
    for i in which {
        let (p, q) = (minus(ends[*i][0], a), minus(ends[*i][1], b));
        let [x, y] = times(q, [p[0], -p[1]]);
        product = [product[0] + x, product[1] + y];
        square += squared(p);
    }
    let turn = product.map(|v| v / square);
    (square > 0.0).then(|| [turn, minus(b, times(turn, a))])
}
