//! The accuracy of a disparity map: the share of bad pixels, the end-point error, the density (Scharstein, Szeliski,
//! "A taxonomy and evaluation of dense two-frame stereo correspondence algorithms", 2002, section 5.1).
//!
//! Maps belong to the left image. A value that is not finite means that the pixel has no disparity, or an unknown one.

use crate::image::{Image, ImageView, Size};
use crate::numeric::median;
use crate::options::options;
use crate::{Error, Result};

options! {
    /// How a map is scored.
    #[derive(Clone, Debug, PartialEq)]
    pub struct DisparityScoring {
        /// Fill invalid pixels first, as [`filled`] does; otherwise an invalid pixel is bad.
        fill / with_fill: bool = false;
    }
    besides {
        /// A pixel is bad when it is off by more than this, in pixels; each is scored. 0 or more. Default 1.
        thresholds / with_thresholds: Vec<f32> = vec![1.0];
    }
    check this {
        let wrong = this.thresholds.iter().find(|t| !(**t >= 0.0 && t.is_finite()));
        let expected = "pixels, 0 or more, at least one threshold";
        match (wrong, this.thresholds.is_empty()) {
            (Some(t), _) => Err(Error::option("threshold", t, expected)),
            (None, true) => Err(Error::option("threshold", "missing", expected)),
            (None, false) => Ok(()),
        }
    }
}

/// The scores of a disparity map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DisparityScore {
    /// The number of pixels that are scored: those with a known true disparity, inside the mask.
    pub pixels: usize,
    /// The share of them that had a disparity, before any filling.
    pub density: f64,
    /// For every threshold the share of the pixels that are off by more, or have no disparity.
    pub bad: Vec<f64>,
    /// For every threshold the share of the pixels *with a disparity* that are off by more; NaN if there are none.
    pub bad_of_valid: Vec<f64>,
    /// The mean distance from the truth, in pixels, over the pixels with a disparity; NaN if there are none.
    pub epe: f64,
}

/// Scores the disparities `found` of the left image, in pixels, against `truth`, where the truth is known and `mask` is
/// not 0.
///
/// # Errors
/// [`Error::Mismatch`] when sizes differ, [`Error::Image`] for more than one channel or when no pixel is left
/// to be scored, and as [`DisparityScoring::check`].
pub fn disparity_score(
    found: ImageView<'_, f32>,
    truth: ImageView<'_, f32>,
    mask: Option<ImageView<'_, u8>>,
    scoring: &DisparityScoring,
) -> Result<DisparityScore> {
    scoring.check()?;
    let size = truth.size();
    same_shape("disparity map", found.size(), found.channels(), size)?;
    same_shape("truth", size, truth.channels(), size)?;
    mask.map_or(Ok(()), |m| same_shape("mask", m.size(), m.channels(), size))?;
    let full = scoring.fill.then(|| filled(found));
    let scored = full.as_ref().map_or(found, Image::view);
    let (mut pixels, mut had, mut valid, mut distance) = (0_usize, 0_usize, 0_usize, 0.0);
    let mut bad = vec![0_usize; scoring.thresholds.len()];
    for y in 0..size.height {
        for (x, &t) in truth.row(y).iter().enumerate() {
            if !t.is_finite() || mask.is_some_and(|m| m.row(y)[x] == 0) {
                continue;
            }
            pixels += 1;
            had += usize::from(found.row(y)[x].is_finite());
            let value = scored.row(y)[x];
            if value.is_finite() {
                let off = (value - t).abs();
                valid += 1;
                distance += f64::from(off);
                bad.iter_mut().zip(&scoring.thresholds).for_each(|(n, t)| *n += usize::from(off > *t));
            }
        }
    }
    if pixels == 0 {
        let reason = "no pixel can be scored: none has a known disparity inside the mask";
        return Err(Error::Image(reason.into()));
    }
    // If no pixel has a disparity, shares and means over those that have one are NaN.
    let (invalid, all, some) = (pixels - valid, pixels as f64, valid as f64);
    let (density, epe) = (had as f64 / all, distance / some);
    let bad_of_valid = bad.iter().map(|n| *n as f64 / some).collect();
    let bad = bad.iter().map(|n| (n + invalid) as f64 / all).collect();
    Ok(DisparityScore { pixels, density, bad, bad_of_valid, epe })
}

/// Likely reasons why a score says little about the disparities: nearly all pixels are wrong because one of the maps holds
/// multiples of disparities or has the opposite sign, or a number in `found` seems to stand for missing ones.
pub fn disparity_notes(
    found: ImageView<'_, f32>,
    truth: ImageView<'_, f32>,
    score: &DisparityScore,
) -> Vec<String> {
    let nearly_all = score.bad.first().is_some_and(|bad| *bad > 0.9);
    let scale = |of, times| scale_of_truth(of, times).filter(|_| nearly_all);
    let scaled = match (scale(found, truth), scale(truth, found)) {
        (Some(-1.0), _) => Some(
            "nearly all pixels are wrong: one of the maps has the opposite sign (mgm, s2p and ASP use it): negate it"
                .to_owned(),
        ),
        (Some(scale), _) => {
            Some(format!("nearly all pixels are wrong: is the truth stored as a multiple, at a scale of {scale}?"))
        }
        (None, Some(scale)) => Some(format!(
            "nearly all pixels are wrong: are the disparities found stored as a multiple, at a scale of {scale}?"
        )),
        (None, None) => None,
    };
    let marked = mark_of_none(found, truth).map(|(value, share)| {
        format!(
            "{:.1} % of the disparities found are {value}, while the truth is above 0 everywhere: if that means that there \
             is none, store NaN there",
            100.0 * share
        )
    });
    scaled.into_iter().chain(marked).collect()
}

/// The factor by which the truth seems to be scaled: 2, 3, 4, 8, 16, 256, or −1 where a program adds disparities to x
/// (mgm, s2p, ASP), if the ratio of the medians is within 12 % of it; `None` otherwise, or if sizes differ.
pub(crate) fn scale_of_truth(found: ImageView<'_, f32>, truth: ImageView<'_, f32>) -> Option<f32> {
    if found.size() != truth.size() {
        return None;
    }
    let rows = (0..truth.size().height).map(|y| (found.row(y), truth.row(y)));
    let both = rows.flat_map(|(f, t)| f.iter().zip(t)).filter(|(f, t)| f.is_finite() && t.is_finite());
    let (found, truth): (Vec<f64>, Vec<f64>) = both.map(|(f, t)| (f64::from(*f), f64::from(*t))).unzip();
    let ratio = median(truth)? as f32 / median(found)? as f32;
    [-1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 256.0].into_iter().find(|scale| (ratio / scale - 1.0).abs() < 0.12)
}

/// A value of 0 or below that seems to mark missing disparities in `found`, and its share of the pixels: the least
/// value, if a hundredth of the pixels have it and all of the truth is above 0; otherwise `None`.
fn mark_of_none(found: ImageView<'_, f32>, truth: ImageView<'_, f32>) -> Option<(f32, f64)> {
    let least = known(found).reduce(f32::min).filter(|least| *least <= 0.0)?;
    let share = known(found).filter(|d| *d == least).count() as f64 / found.size().area() as f64;
    (share >= 0.01 && known(truth).all(|d| d > 0.0)).then_some((least, share))
}

fn known(map: ImageView<'_, f32>) -> impl Iterator<Item = f32> {
    (0..map.size().height).flat_map(move |y| map.row(y)).copied().filter(|d| d.is_finite())
}

fn same_shape(what: &str, found: Size, channels: usize, truth: Size) -> Result<()> {
    if channels != 1 {
        return Err(Error::Image(format!("the {what} has {channels} channels, expected one")));
    }
    if found != truth {
        return Err(Error::Mismatch(format!("the {what} is {found}, the truth {truth}")));
    }
    Ok(())
}

/// A mask that is 255 on the pixels of the left image that the right one shows too, and 0 elsewhere: those whose
/// disparity d is known, and whose column x − d, rounded to the nearest (ties to even), is not left of the image and
/// has a true disparity within 1 pixel of d on the right. A column right of the image counts as its last.
///
/// # Errors
/// [`Error::Mismatch`] when the sizes differ, [`Error::Image`] for more than one channel.
pub fn non_occluded(left: ImageView<'_, f32>, right: ImageView<'_, f32>) -> Result<Image<u8>> {
    same_shape("truth of the left image", left.size(), left.channels(), left.size())?;
    same_shape("truth of the right image", right.size(), right.channels(), right.size())?;
    let [l, r] = [left.size(), right.size()];
    if l != r {
        return Err(Error::Mismatch(format!("the truth of the left image is {l}, that of the right {r}")));
    }
    let last = left.size().width.saturating_sub(1) as f64;
    Ok(Image::from_fn(left.size(), |x, y| {
        let d = left.row(y)[x];
        let there = (x as f64 - f64::from(d)).round_ties_even();
        // NaN and infinity fail the first comparison or the second.
        let seen = d.is_finite() && there >= 0.0 && (right.row(y)[there.min(last) as usize] - d).abs() <= 1.0;
        255 * u8::from(seen)
    }))
}

/// The map with every invalid pixel set to the smaller disparity of its two nearest valid neighbours in the row, taken
/// to be that of the background. A row without valid pixels becomes 0.
pub fn filled(disparity: ImageView<'_, f32>) -> Image<f32> {
    let mut out = disparity.to_image();
    let width = out.row_len().max(1);
    out.data_mut().chunks_exact_mut(width).for_each(fill_row);
    out
}

fn fill_row(row: &mut [f32]) {
    let mut left = f32::INFINITY;
    let mut x = 0;
    while x < row.len() {
        if row[x].is_finite() {
            left = row[x];
            x += 1;
            continue;
        }
        let length = row[x..].iter().position(|v| v.is_finite());
        let end = length.map_or(row.len(), |n| x + n);
        let right = row.get(end).copied().unwrap_or(f32::INFINITY);
        let value = left.min(right);
        row[x..end].fill(if value.is_finite() { value } else { 0.0 });
        x = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: f32 = f32::INFINITY;

    fn row(values: &[f32]) -> Image<f32> {
        Image::from_vec(values.to_vec(), Size::new(values.len(), 1), 1).unwrap()
    }

    #[test]
    fn scores_by_hand() {
        let truth = row(&[5.0, 5.0, 5.0, 5.0, NONE, 5.0, 5.0, f32::NAN]);
        let found = row(&[5.0, 5.5, 7.0, NONE, 9.0, f32::NAN, 4.0, 1.0]);
        let scoring = DisparityScoring { thresholds: vec![1.0, 0.0, 3.0], fill: false };
        let score = disparity_score(found.view(), truth.view(), None, &scoring).unwrap();
        assert_eq!((score.pixels, score.density), (6, 4.0 / 6.0), "six known, four found");
        assert_eq!(score.bad, [3.0 / 6.0, 5.0 / 6.0, 2.0 / 6.0], "off by 2, and the two invalid");
        assert_eq!(score.bad_of_valid, [0.25, 0.75, 0.0], "of the four found");
        assert_eq!(score.epe, 3.5 / 4.0, "0, 0.5, 2 and 1");
        let mask = Image::from_vec(vec![0, 1, 9, 1, 1, 0, 0, 0], Size::new(8, 1), 1).unwrap();
        let fill = DisparityScoring { fill: true, ..DisparityScoring::default() };
        let score = disparity_score(found.view(), truth.view(), Some(mask.view()), &fill).unwrap();
        assert_eq!((score.pixels, score.density), (3, 2.0 / 3.0), "three inside the mask");
        assert_eq!(score.bad, [2.0 / 3.0], "7 is bad, and so is the pixel filled from it");
        assert_eq!(score.epe, (0.5 + 2.0 + 2.0) / 3.0, "all three have a disparity");
        let empty = disparity_score(row(&[NONE; 8]).view(), truth.view(), None, &scoring).unwrap();
        assert!(empty.epe.is_nan() && empty.bad_of_valid.iter().all(|bad| bad.is_nan()), "{empty:?}");
        assert_eq!((empty.density, &empty.bad[..]), (0.0, &[1.0; 3][..]));
    }

    #[test]
    fn filling_takes_the_background() {
        let full = filled(row(&[NONE, 3.0, NONE, f32::NAN, 8.0, 2.0, NONE]).view());
        assert_eq!(full.data(), [3.0, 3.0, 3.0, 3.0, 8.0, 2.0, 2.0], "the smaller neighbour");
        assert_eq!(filled(row(&[NONE; 3]).view()).data(), [0.0; 3], "nothing to fill from");
        assert_eq!(filled(row(&[NONE, -4.0, NONE]).view()).data(), [-4.0; 3], "negative");
        assert!(filled(Image::new(Size::new(0, 3)).view()).data().is_empty(), "empty");
    }

    #[test]
    fn a_truth_of_another_scale_or_sign_is_recognised() {
        let found = row(&[10.0, 12.0, NONE, 9.0]);
        for (truth, scale) in [
            ([40.5, 47.0, 1.0, 36.0], Some(4.0)),
            ([-10.5, -12.0, 1.0, -9.0], Some(-1.0)),
            ([10.0, 12.0, 1.0, 9.0], None),
            ([-20.0, -24.0, 1.0, -18.0], None),
        ] {
            assert_eq!(scale_of_truth(found.view(), row(&truth).view()), scale, "{truth:?}");
            assert_eq!(scale_of_truth(row(&truth).view(), found.view()) == Some(-1.0), scale == Some(-1.0));
        }
    }

    #[test]
    fn a_number_that_stands_for_none_is_recognised() {
        let truth = [5.0, 6.0, NONE, 7.0];
        for (found, truth, mark) in [
            ([5.0, -1.0, -1.0, 7.0], truth, Some((-1.0, 0.5))),
            ([5.0, 0.0, NONE, 7.0], truth, Some((0.0, 0.25))),
            ([5.0, NONE, NONE, 7.0], truth, None),
            // A truth with signs.
            ([5.0, -1.0, -1.0, 7.0], [5.0, -6.0, NONE, 7.0], None),
        ] {
            assert_eq!(mark_of_none(row(&found).view(), row(&truth).view()), mark, "{found:?}, {truth:?}");
        }
    }

    #[test]
    fn both_truths_must_agree() {
        let left = row(&[2.0, 1.0, 1.0, 1.5, NONE, -1.0, -3.0]);
        let right = row(&[1.0, 2.5, 0.2, NONE, 2.0, -2.0, -2.0]);
        let seen = non_occluded(left.view(), right.view()).unwrap();
        // By column: 0 leaves the image; 1 → 0 agrees; 2 → 1 is off by 1.5; 3 → 1.5, rounded to 2, is off by 1.3; 4
        // is unknown; 5 → 6 is off by 1; 6 → 9 is clamped to the last column, whose disparity is −2.
        assert_eq!(seen.data(), [0, 255, 0, 0, 0, 255, 255], "by hand");
    }

    #[test]
    fn maps_that_cannot_be_scored_are_errors() {
        let (a, b) = (row(&[1.0, 2.0]), row(&[1.0]));
        let scoring = DisparityScoring::default();
        assert!(disparity_score(a.view(), b.view(), None, &scoring).is_err(), "sizes");
        let refused = non_occluded(a.view(), b.view()).unwrap_err().to_string();
        assert!(refused.contains("truth of the left image is 2x1, that of the right 1x1"), "{refused}");
        assert!(disparity_score(a.view(), row(&[NONE; 2]).view(), None, &scoring).is_err(), "no truth");
        let mask = Image::new(Size::new(2, 1));
        assert!(disparity_score(a.view(), a.view(), Some(mask.view()), &scoring).is_err(), "all masked");
        for thresholds in [vec![], vec![-1.0], vec![f32::NAN]] {
            assert!(DisparityScoring { thresholds, fill: false }.check().is_err(), "thresholds");
        }
        let colour = Image::filled(Size::new(2, 1), 3, 1.0);
        assert!(disparity_score(colour.view(), a.view(), None, &scoring).is_err(), "channels");
    }
}
