//! A survey of a pair by tie points: whether its rows agree, and the range of its disparities.
//!
//! Both pictures are halved until their longer side is at most [`LONGEST`], and their SIFT features are matched. If
//! half of the matches lie in nearly the same row, or near a plane of row differences, as where a camera is rolled a
//! little, these are the tie points. Otherwise the tie points are the matches that agree on an epipolar geometry, or on a
//! homography if the scene is flat, so that wrong matches, however many, do not affect the rows. The range of disparities
//! is that of the tie points that their neighbours confirm, as `geometry::rectify` finds it. All of it runs on the CPU,
//! with the same numbers for any number of threads.

use super::halving::Side;
use crate::device::{Cpu, Processor};
use crate::feature::Detector;
use crate::feature::sift::SiftOptions;
use crate::geometry::estimate::estimate;
use crate::geometry::linear::Plane;
use crate::geometry::rectify::{confirmed_range, widened};
use crate::geometry::{Correspondence, ModelKind, RobustOptions};
use crate::image::{Image, Range, prepare};
use crate::matching::{MatchOptions, match_features};
use crate::numeric::median;
use crate::{Error, Result};

/// Pictures are halved until their longer side has at most this many pixels.
const LONGEST: usize = 1000;

/// This many tie points are enough to determine the range of disparities.
pub const ENOUGH: usize = 100;

/// The greatest difference of rows of a tie point in a rectified pair, in pixels of the reduced pictures.
const NEAR: f64 = 1.0;

/// Matches whose rows differ by at most this fix the plane of row differences, in the same pixels.
const WIDE: f64 = 4.0;

/// The fewest tie points from which anything is concluded; they are enough to determine whether rows agree.
pub const FEWEST: usize = 20;

/// The share of the range by which the search is extended towards nearer things, often smooth and without tie points.
const NEARER: f64 = 0.2;

/// The number of disparities searched is a multiple of this.
pub const STEP: usize = 16;

/// The result of a survey.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// Features of the left and of the right picture.
    pub features: [usize; 2],
    /// Matches, right and wrong.
    pub matches: usize,
    /// Tie points among them.
    pub ties: usize,
    /// The median difference of the rows of tie points, or half of the greatest that a plane through them has in a corner if
    /// that is more, in pixels; none if there are too few.
    pub rows_px: Option<f64>,
    /// The greatest median of a rectified pair.
    pub tolerance_px: f64,
    /// The least and the greatest disparity of the tie points that their neighbours confirm, with a margin; none if
    /// rows differ, or there are too few.
    pub disparities: Option<[f64; 2]>,
    /// The least of them, without the margin.
    pub least: Option<f64>,
}

impl Survey {
    /// Whether the tie points show that the pair is not rectified.
    pub fn rows_differ(&self) -> bool {
        self.rows_px.is_some_and(|px| px > self.tolerance_px)
    }

    /// The disparities to search, as [`to_search`]: the least, and how many. If there are fewer than [`ENOUGH`] tie
    /// points, their range is first extended by its length at both ends. `None` if the range is not known.
    pub fn search(&self, least: Option<i32>) -> Option<(i32, usize)> {
        self.disparities.map(|[low, high]| {
            let unsure = if self.ties < ENOUGH { high - low } else { 0.0 };
            to_search([low - unsure, high + unsure], least)
        })
    }
}

/// The disparities to search in a pair with tie points of this range: the least, and how many. They begin at `least` if
/// it is given, otherwise at 0 unless that doubles the work, and end a fifth of the range beyond it. Their number is a
/// multiple of [`STEP`], at most 4096.
pub fn to_search(range: [f64; 2], least: Option<i32>) -> (i32, usize) {
    let [low, high] = range;
    let [low, high] = [low, high + NEARER * (high - low)].map(|d| d.clamp(-32768.0, 32767.0));
    let near_zero = low >= 0.0 && low < high - low;
    let first = least.unwrap_or(if near_zero { 0 } else { low.floor() as i32 });
    let count = (high.ceil() as i64 - i64::from(first) + 1).max(1) as usize;
    (first, count.next_multiple_of(STEP).min(4096))
}

/// The least and the greatest of the disparities [`to_search`] for tie points of this range. A calibration stores them
/// as the pair's range, because the scene may reach beyond its tie points.
pub fn range_to_search(range: [f64; 2]) -> [f64; 2] {
    let (first, count) = to_search(range, None);
    [f64::from(first), f64::from(first) + (count - 1) as f64]
}

/// Surveys a pair of pictures of one size. Features of a small pair (one that was not halved) with fewer than
/// [`ENOUGH`] tie points are searched again at twice the size, which finds more, in several times the time.
///
/// # Errors
/// [`Error::Mismatch`] for pictures of two sizes or masks of another, [`Error::Image`] for more than four channels.
pub fn survey(pair: &[Side; 2], cpu: &Cpu) -> Result<Survey> {
    let _stage = cpu.stage("survey");
    let sizes = pair.each_ref().map(|side| side.image.size());
    if sizes[0] != sizes[1] {
        return Err(Error::Mismatch(format!("the left image is {}, the right one {}", sizes[0], sizes[1])));
    }
    let longer = sizes[0].width.max(sizes[0].height);
    let halvings = (0..16).find(|n| longer.div_ceil(1 << n) <= LONGEST).unwrap_or(16);
    let reduced = |side: &Side| -> Result<Side> {
        let made = prepare(side.image.view(), side.mask.as_ref().map(Image::view), Range::Auto, cpu)?;
        let mut side = Side { image: made.image.into_image(), mask: made.mask.into_image() };
        for _ in 0..halvings {
            side = side.halved(cpu)?;
        }
        Ok(side)
    };
    let sides = [reduced(&pair[0])?, reduced(&pair[1])?];
    let factor = f64::from(1_u32 << halvings);
    let found = survey_with(&sides, factor, 0, cpu)?;
    match found.ties < ENOUGH && halvings == 0 {
        true => survey_with(&sides, factor, -1, cpu),
        false => Ok(found),
    }
}

/// A survey by features from this octave on; the pair is `factor` times as large as the sides.
fn survey_with(sides: &[Side; 2], factor: f64, first_octave: i8, cpu: &Cpu) -> Result<Survey> {
    let processor = Processor::from(cpu.clone());
    let finder = Detector::Sift(SiftOptions::default().with_first_octave(first_octave)).open(&processor)?;
    let [a, b] = sides.each_ref().map(|side| finder.detect(&side.image, side.mask.as_ref().map(Image::view)));
    let (a, b) = (a?, b?);
    let matches = match_features(&a, &b, &MatchOptions::default(), &processor)?;
    let at_full_size = |point: [f64; 2]| point.map(|v| (v + 0.5) * factor - 0.5);
    let pairs = matches.iter().map(|m| m.correspondence(&a.keypoints, &b.keypoints));
    let pairs = pairs.map(|pair| Correspondence { a: at_full_size(pair.a), b: at_full_size(pair.b), ..pair });
    let pairs: Vec<_> = pairs.collect();
    let apart = |p: &Correspondence| (p.a[1] - p.b[1]).abs();
    let extent = [sides[0].image.size().width, sides[0].image.size().height].map(|side| factor * side as f64);
    let tilt = tilt(&pairs, extent, factor);
    let off = |p: &Correspondence| (p.b[1] - p.a[1] - tilt.at(p.a)).abs();
    let near: Vec<_> = pairs.iter().filter(|p| off(p) <= NEAR * factor).copied().collect();
    let ties = if 2 * near.len() >= pairs.len() { near } else { agreeing(&pairs, factor, cpu)? };
    let rows_px = median(ties.iter().map(apart)).filter(|_| ties.len() >= FEWEST);
    // Tie points may lie where rows agree.
    let rows_px = rows_px.map(|px| px.max(0.5 * tilt.greatest(extent)));
    let mut found = Survey {
        features: [a.len(), b.len()],
        matches: pairs.len(),
        ties: ties.len(),
        rows_px,
        tolerance_px: 0.75 + 0.25 * factor,
        disparities: None,
        least: None,
    };
    if rows_px.is_some() && !found.rows_differ() {
        let places: Vec<_> = ties.iter().map(|p| (p.a, p.b)).collect();
        let range = confirmed_range(&places);
        (found.disparities, found.least) = (range.map(widened), range.map(|[least, _]| least));
    }
    Ok(found)
}

/// The plane of row differences in a pair of this width and height; 0 if it stays within [`NEAR`] everywhere, or there is
/// none.
fn tilt(pairs: &[Correspondence], extent: [f64; 2], factor: f64) -> Plane {
    let mut found = Plane::default();
    for reach in [WIDE, WIDE, NEAR, NEAR] {
        let row = |p: &Correspondence| (p.a, p.b[1] - p.a[1]);
        let near = pairs.iter().map(row).filter(|(at, by)| (by - found.at(*at)).abs() <= reach * factor);
        found = Plane::through(near).unwrap_or_default();
    }
    if found.greatest(extent) > NEAR * factor { found } else { Plane::default() }
}

/// The matches that agree on an epipolar geometry or, if the scene is flat, a homography; none if that may be chance.
fn agreeing(pairs: &[Correspondence], factor: f64, cpu: &Cpu) -> Result<Vec<Correspondence>> {
    let options = RobustOptions::default().with_threshold_px(1.5 * factor);
    for kind in [ModelKind::Fundamental, ModelKind::Homography] {
        match estimate(kind, pairs, &options, cpu) {
            Ok(found) => return Ok(found.inliers.iter().map(|&i| pairs[i]).collect()),
            Err(Error::TooFewMatches { .. } | Error::Degenerate { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(vec![])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;
    use crate::stereo::testing;

    fn surveyed(left: &Image<u8>, right: &Image<u8>, cpu: &Cpu) -> Result<Survey> {
        survey(&testing::sides([left, right]), cpu)
    }

    /// The picture with its rows tilted about the middle column and shifted by `down` rows.
    fn turned(image: &Image<u8>, slope: f64, down: f64) -> Image<u8> {
        let height = image.size().height as f64;
        Image::from_fn(image.size(), |x, y| {
            let from = y as f64 + down + slope * (x as f64 - 250.0);
            image.row(from.clamp(0.0, height - 1.0).round() as usize)[x]
        })
    }

    /// A few tie points tell little of the range.
    #[test]
    fn few_tie_points_extend_the_range() {
        let of = |ties: usize, disparities: [f64; 2]| {
            let survey = Survey {
                features: [900; 2],
                matches: 2 * ties,
                ties,
                rows_px: Some(0.1),
                tolerance_px: 0.5,
                disparities: Some(disparities),
                least: None,
            };
            survey.search(None).unwrap()
        };
        assert_eq!(of(400, [56.0, 83.0]), (56, 48));
        assert_eq!(of(40, [56.0, 83.0]), (0, 128), "the scene has 21 to 108");
        assert_eq!(of(40, [-90.0, -60.0]), (-120, 112));
    }

    #[test]
    fn ranges_hold_the_disparities() {
        for range in [[4.0, 60.0], [70.0, 110.0], [-30.0, -4.0]] {
            let pair = testing::scene(Size::new(500, 360), range, 12, 2);
            let found = [1, 2].map(|threads| {
                let cpu = Cpu::with_threads(threads).unwrap();
                surveyed(&pair.left, &pair.right, &cpu).unwrap()
            });
            assert_eq!(found[0], found[1], "for any number of threads");
            assert!(!found[0].rows_differ(), "{found:?}");
            let (first, count) = found[0].search(None).unwrap();
            let last = f64::from(first) + count as f64 - 1.0;
            let truth = pair.truth_left.data().iter().filter(|d| d.is_finite());
            let outside =
                truth.clone().filter(|d| !(f64::from(first)..=last).contains(&f64::from(**d))).count();
            assert!(100 * outside < truth.count(), "{range:?}: {outside} outside {first} to {last}");
            assert!(count as f64 <= 3.0 * (range[1] - range[0]) + 32.0, "{range:?}: {count}");
            assert_eq!(first == 0, range[0] == 4.0, "{range:?} from {first}");
            assert_eq!(found[0].search(Some(-8)).unwrap().0, -8, "from where it was asked for");
        }
    }

    #[test]
    fn unaligned_rows_are_distinguished_from_wrong_matches() {
        let (pair, cpu) = (testing::scene(Size::new(500, 360), [4.0, 60.0], 12, 2), Cpu::sequential());
        let beside = |right: &Image<u8>| surveyed(&pair.left, right, &cpu).unwrap();
        for (slope, down) in [(0.0, 4.0), (0.05, 0.0), (0.012, 0.0)] {
            let found = beside(&turned(&pair.right, slope, down));
            assert!(found.rows_differ() && found.disparities.is_none(), "{slope}, {down}: {found:?}");
        }
        let other = testing::scene(Size::new(500, 360), [5.0, 9.0], 12, 2);
        let found = beside(&turned(&other.right, 0.0, 120.0));
        assert!(found.search(None).is_none() || !found.rows_differ(), "{found:?}");
        let flat = beside(&Image::filled(Size::new(500, 360), 1, 90));
        assert_eq!((flat.rows_px, flat.search(None), flat.matches), (None, None, 0), "nothing to match");
        let small = Image::<u8>::new(Size::new(20, 20));
        assert!(surveyed(&pair.left, &small, &cpu).is_err(), "two sizes");
    }
}
