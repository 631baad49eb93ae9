//! Matching: which feature of one image corresponds to which feature of another.
//!
//! The search is exact: every pair is compared, by 8-bit multiply-adds if the descriptors are 8-bit
//! (`nearest`, `product`). With a known model only the pairs that it allows are compared, with the help of a
//! grid over the second image (`guided`).
//!
//! **Filters**, in this order: sign of contrast (Bay et al. 2008, section 4.3: the sign of the Laplacian, which the
//! detector computes anyway; all pairs are compared if a sign of either side is not known), distance and ratio
//! (`ratio`), mutual nearest neighbours.
//!
//! **Why no k-d tree.** For as many features as an image has, an approximate index is slower and finds fewer matches;
//! with a known model the guided search is faster than both (`docs/notebook/matching.md`).
//!
//! **Distance** is Euclidean between unit descriptors, from 0 to 2; 8-bit descriptors are unit vectors times
//! 512. Results do not depend on threads or SIMD level; the contract of the arithmetic is in `product`.

pub mod files;
pub(crate) mod gpu;
pub(crate) mod guided;
mod matcher;
mod nearest;
mod product;
mod ratio;

pub use gpu::{GpuMatcher, GpuMatches, GpuNearest, GpuNeighbours, GpuPacked};
pub use matcher::Matcher;

use crate::device::{Cpu, Processor};
use crate::feature::{Descriptors, Features, Keypoint, by_value};
use crate::geometry::{Correspondence, Model};
use crate::options::{AboveTo, options};
use crate::{Error, Result};
use nearest::Best;
use product::{Distance, Element};

/// The largest number of values per descriptor, for which sums of 8-bit products fit 32 bits.
pub const MAX_DIMENSION: usize = 4096;

options! {
    /// Which pairs count as matches.
    #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct MatchOptions {
        /// Keep a match when its distance is below this share of the distance to the second nearest; none: keep all
        /// (Lowe, IJCV 2004, section 7.1: 0.8 loses 5 % of the correct matches and 90 % of the false).
        ratio / with_ratio: Option<f32> = Some(0.8) => AboveTo(0.0, 1.0), unit "SHARE";
        /// Keep a match only when each feature is the other's nearest.
        mutual / with_mutual: bool = true, flag "!one-way",
            without "Also keep matches where only one of the two features is the other's nearest";
        /// Compare only features of equal contrast sign: bright on dark with bright on dark (Bay et al., CVIU 2008,
        /// section 4.3). Halves the work; not for pictures of different sensors.
        same_sign / with_same_sign: bool = true, flag "!any-sign",
            without "Also compare bright-on-dark features with dark-on-bright ones";
        /// Keep a match only up to this distance of its descriptors; none: keep all.
        ///
        /// Unit vectors are at most 2 apart; descriptors of other programs that are not unit vectors have no limit.
        max_distance / with_max_distance: Option<f32> = None => 0.0.., unit "D";
    }
    besides {
        /// Compare only the pairs that a known model allows. Default none. A guide belongs to one pair of images and is
        /// not stored with options.
        #[serde(skip)]
        guide / with_guide: Option<Guide> = None;
    }
    check this {
        match this.guide.map(|guide| guide.radius) {
            Some(radius) if !(radius > 0.0 && radius.is_finite()) => {
                Err(Error::option("radius", radius, "above 0, in pixels"))
            }
            _ => Ok(()),
        }
    }
}

/// A known model that restricts the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guide {
    /// The model from A to B.
    pub b_from_a: Model,
    /// How far from the predicted place, or from the epipolar line, a match may lie: pixels of B, above 0.
    pub radius: f64,
}

/// One match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Index of the feature in A.
    pub a: u32,
    /// Index of the feature in B.
    pub b: u32,
    /// Euclidean distance of the unit descriptors.
    pub distance: f32,
    /// Distance divided by the distance of the second nearest; the smaller, the more distinct the match. 0 if there was
    /// no second, 1 if both distances are 0.
    pub ratio: f32,
}

impl Match {
    /// The points of the match in pixels, looked up in the keypoints of A and of B, for the estimation of a model. The
    /// more distinct the match, the higher its quality.
    ///
    /// # Panics
    /// If an index of the match is beyond its keypoints.
    pub fn correspondence(&self, a: &[Keypoint], b: &[Keypoint]) -> Correspondence {
        let point = |k: &Keypoint| [k.x, k.y].map(f64::from);
        let [a, b] = [&a[self.a as usize], &b[self.b as usize]].map(point);
        Correspondence { a, b, quality: -f64::from(self.ratio) }
    }
}

/// The nearest neighbour of a descriptor, and the distance of the second nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// Index of the nearest; of equally near ones the smallest index.
    pub index: u32,
    /// Its Euclidean distance between unit descriptors.
    pub distance: f32,
    /// The distance of the second nearest, infinite when there is none.
    pub second: f32,
}

/// The two nearest neighbours of every feature: first those of A in B, then those of B in A. `None` if the other side
/// is empty or all distances are NaN. They are found on the processor's GPU if that supports it.
///
/// # Errors
/// [`Error::Mismatch`] when the descriptors are of different kinds or dimensions, or missing;
/// [`Error::Device`] when a GPU fails.
pub fn nearest_neighbours(
    a: &Features,
    b: &Features,
    processor: &Processor,
) -> Result<[Vec<Option<Nearest>>; 2]> {
    Matcher::new(a, b, processor)?.nearest_neighbours()
}

/// The matches of A with B, in the order of their index in A, found on the processor's GPU if that supports it. To
/// match the same features several times with different options, keep a [`Matcher`].
///
/// # Errors
/// [`Error::Mismatch`] when the descriptors are of different kinds or dimensions, or missing;
/// [`Error::Option`] as [`MatchOptions::check`]; [`Error::Device`] when a GPU fails.
pub fn match_features(
    a: &Features,
    b: &Features,
    options: &MatchOptions,
    processor: &Processor,
) -> Result<Vec<Match>> {
    Matcher::new(a, b, processor)?.match_features(options)
}

/// Given pairs of features of A and B as matches, with the distances that a search gives them, or 0 where there are no
/// descriptors to compare. Their ratios are unknown and set to 1.
pub(crate) fn given_matches(a: &Features, b: &Features, pairs: &[[u32; 2]]) -> Vec<Match> {
    let unknown = vec![0.0; pairs.len()];
    let distances = match a.dimension == 0 || check_pair(a, b).is_err() {
        true => unknown,
        false => by_value!(
            (&a.descriptors, &b.descriptors),
            (va, vb) => distances(va, vb, a.dimension, pairs),
            else unknown
        ),
    };
    pairs.iter().zip(distances).map(|(&[a, b], distance)| Match { a, b, distance, ratio: 1.0 }).collect()
}

fn distances<E: Element>(a: &[E], b: &[E], dimension: usize, pairs: &[[u32; 2]]) -> Vec<f32> {
    let (level, mut found) = (Cpu::sequential().level(), Vec::with_capacity(1));
    let distance = |&[i, j]: &[u32; 2]| {
        let [a, b] = [(a, i), (b, j)].map(|(of, i)| &of[i as usize * dimension..][..dimension]);
        E::distances(level, a, b, &[E::length(b)], &[0], &mut found);
        found[0].euclidean()
    };
    pairs.iter().map(distance).collect()
}

/// [`nearest_neighbours`] on the CPU, among the pairs that a guide allows.
fn neighbours_on_cpu(
    a: &Features,
    b: &Features,
    guide: Option<Guide>,
    cpu: &Cpu,
) -> Result<[Vec<Option<Nearest>>; 2]> {
    if a.is_empty() || b.is_empty() {
        return Ok([a, b].map(|features| vec![None; features.len()]));
    }
    by_value!(
        (&a.descriptors, &b.descriptors),
        (va, vb) => {
            let found = match guide {
                Some(guide) => guided::search(a, b, va, vb, &guide, cpu)?,
                None => nearest::search(va, vb, a.dimension, cpu)?,
            };
            Ok(found.map(|side| side.iter().map(finished).collect()))
        },
        else Err(kinds_differ())
    )
}

fn finished<T: Distance>(best: &Best<T>) -> Option<Nearest> {
    let second = if best.second < T::FAR { best.second.euclidean() } else { f32::INFINITY };
    let found = Nearest { index: best.index, distance: best.first.euclidean(), second };
    (best.index != nearest::NONE).then_some(found)
}

/// Whether `same_sign` restricts the search: the signs of both sides are known.
fn by_sign(same_sign: bool, sides: [&Features; 2]) -> bool {
    same_sign && sides.iter().all(|side| Keypoint::have_signs(&side.keypoints))
}

/// [`neighbours_on_cpu`], only among features of equal contrast sign if `by_sign`.
fn neighbours_of_signs(
    sides: [&Features; 2],
    by_sign: bool,
    guide: Option<Guide>,
    cpu: &Cpu,
) -> Result<[Vec<Option<Nearest>>; 2]> {
    let mut found = sides.map(|side| vec![None; side.len()]);
    for bright in if by_sign { &[Some(true), Some(false)][..] } else { &[None] } {
        let takes = |k: &Keypoint| bright.is_none_or(|bright| (k.sign >= 0) == bright);
        let picked =
            sides.map(|side| (0..side.len()).filter(|&i| takes(&side.keypoints[i])).collect::<Vec<usize>>());
        let [a, b] = [sides[0].subset(&picked[0])?, sides[1].subset(&picked[1])?];
        for (side, nearest) in neighbours_on_cpu(&a, &b, guide, cpu)?.into_iter().enumerate() {
            let index = |n: Nearest| picked[1 - side][n.index as usize] as u32;
            for (&i, nearest) in picked[side].iter().zip(nearest) {
                found[side][i] = nearest.map(|n| Nearest { index: index(n), ..n });
            }
        }
    }
    Ok(found)
}

/// The matches, without a guide, of one in `every` of A's `features`. `nearest_of` gives the neighbours of some
/// features of its first side among all of its second.
fn matches_of_some(
    features: usize,
    options: &MatchOptions,
    every: usize,
    mut nearest_of: impl FnMut([usize; 2], &[u32]) -> Result<Vec<Option<Nearest>>>,
) -> Result<Vec<Match>> {
    options.check()?;
    let some: Vec<u32> = (0..features as u32).step_by(every).collect();
    let mut matches = ratio::accepted(&some, &nearest_of([0, 1], &some)?, options);
    if options.mutual {
        let found: Vec<u32> = matches.iter().map(|m| m.b).collect();
        let mut back = nearest_of([1, 0], &found)?.into_iter();
        matches.retain(|m| back.next().flatten().is_some_and(|n| n.index == m.a));
    }
    Ok(matches)
}

/// The two nearest neighbours of the features at `indices` among all of `others`, on the CPU.
fn nearest_of_some(
    features: &Features,
    indices: &[u32],
    others: &Features,
    same_sign: bool,
    cpu: &Cpu,
) -> Result<Vec<Option<Nearest>>> {
    let _stage = cpu.stage("match");
    let by_sign = by_sign(same_sign, [features, others]);
    let indices: Vec<usize> = indices.iter().map(|&i| i as usize).collect();
    let [nearest, _] = neighbours_of_signs([&features.subset(&indices)?, others], by_sign, None, cpu)?;
    Ok(nearest)
}

/// The matches of nearest neighbours that pass the filters of distance, ratio and mutual choice.
fn filtered([forth, back]: &[Vec<Option<Nearest>>; 2], options: &MatchOptions) -> Vec<Match> {
    let own: Vec<u32> = (0..forth.len() as u32).collect();
    let mut matches = ratio::accepted(&own, forth, options);
    if options.mutual {
        matches.retain(|m| back[m.b as usize].is_some_and(|n| n.index == m.a));
    }
    matches
}

fn kinds_differ() -> Error {
    Error::Mismatch(
        "one image has 8-bit descriptors, the other float ones; detect both with the same options".into(),
    )
}

fn dimensions_differ(a: usize, b: usize) -> Error {
    Error::Mismatch(format!(
        "descriptors of {a} and {b} values cannot be compared; detect both with the same options"
    ))
}

/// The error for keypoints without descriptors.
fn without_descriptors(keypoints: usize) -> Error {
    Error::Mismatch(format!(
        "{keypoints} keypoints have no descriptors: detect with descriptors u8 or float to match them"
    ))
}

/// Fails unless the descriptors of both can be compared.
fn check_pair(a: &Features, b: &Features) -> Result<()> {
    for f in [a, b] {
        if f.len() >= nearest::NONE as usize || f.dimension > MAX_DIMENSION {
            return Err(Error::Mismatch(format!(
                "{} features of {} values: at most {} features of {MAX_DIMENSION} values can be matched",
                f.len(),
                f.dimension,
                nearest::NONE - 1
            )));
        }
        if f.dimension == 0 && !f.is_empty() {
            return Err(without_descriptors(f.len()));
        }
        f.check()?;
    }
    if a.is_empty() || b.is_empty() {
        return Ok(());
    }
    if a.dimension != b.dimension {
        return Err(dimensions_differ(a.dimension, b.dimension));
    }
    by_value!((&a.descriptors, &b.descriptors), (_a, _b) => Ok(()), else Err(kinds_differ()))
}

/// Float descriptors are checked on about this many of them. Their squared lengths must lie between [`LENGTHS`]; unless
/// they are about unit vectors, their mean may be at most [`COMMON`] times as long as their standard deviation.
const LOOKED_AT: usize = 1024;
const COMMON: f64 = 8.0;
const LENGTHS: [f64; 2] = [1e-30, 1e30];

/// Fails for floats whose distances |a|² + |b|² − 2ab cannot be resolved in 32 bits.
fn check_floats(features: &Features) -> Result<()> {
    let (Descriptors::F32(values), dimension) = (&features.descriptors, features.dimension) else {
        return Ok(());
    };
    let every = features.len().div_ceil(LOOKED_AT).max(1);
    let is_finite = |row: &&[f32]| row.iter().all(|v| v.is_finite());
    let (mut sums, mut squares, mut count) = (vec![0.0; dimension], 0.0, 0.0);
    let mut others = vec![];
    for row in values.chunks_exact(dimension.max(1)).step_by(every).filter(is_finite) {
        let square = row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>();
        if square > 0.0 && !(LENGTHS[0]..LENGTHS[1]).contains(&square) {
            others.push(square.sqrt());
            continue;
        }
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v));
        (squares, count) = (squares + square, count + 1.0);
    }
    if let Some(length) = others.first().filter(|_| others.len() as f64 > count) {
        return Err(Error::Mismatch(format!(
            "descriptors are {length:.1e} long, and their distances are computed in 32 bits: scale them, best to unit vectors"
        )));
    }
    let length = squares / f64::max(count, 1.0);
    let common = sums.iter().map(|sum| sum * sum).sum::<f64>() / (count * count);
    let apart = length - common;
    if length > 4.0 && apart > 1e-10 * common && common > COMMON * COMMON * apart {
        return Err(Error::Mismatch(format!(
            "descriptors have {:.1e} in common and differ by {:.1e}, which distances in 32 bits do not resolve: subtract their mean \
             from both sides",
            common.sqrt(),
            apart.sqrt()
        )));
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
