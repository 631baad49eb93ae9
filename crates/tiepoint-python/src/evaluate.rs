//! Scores against the truth.

use crate::call::abandonable;
use crate::errors::{raised, wrong_option};
use crate::features::Features;
use crate::geometry::correspondences;
use crate::image::{Input, mask, mask_view, matrix, output, table};
use crate::options::Options;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::evaluate as scores;
use tiepoint::geometry::Homography;
use tiepoint::image::Size;

fn homography(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Homography> {
    Homography::new(matrix(object, what)?).map_err(raised)
}

#[pyfunction]
pub(crate) fn corner_error(
    found: &Bound<'_, PyAny>,
    truth: &Bound<'_, PyAny>,
    size: (i64, i64),
) -> PyResult<f64> {
    let (found, truth) = (homography(found, "the matrix found")?, homography(truth, "the true matrix")?);
    if size.0 < 1 || size.1 < 1 {
        return Err(wrong_option(&format!("size is {size:?}: expected a width and a height of 1 or more")));
    }
    Ok(scores::corner_error(&found, &truth, Size::new(size.0 as usize, size.1 as usize)))
}

/// The number of right matches, their mean differences in x and y, and root mean square and median of their distances.
type Places = (usize, (f64, f64), f64, f64);

/// The shares of matches within 1, 2, … 10 pixels of the truth, and the places of those `within` pixels.
#[pyfunction]
pub(crate) fn matching_accuracy(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    truth: &Bound<'_, PyAny>,
    within: f64,
) -> PyResult<([f64; 10], Places)> {
    let pairs: Vec<_> = correspondences(a, b, None)?.into_iter().map(|pair| (pair.a, pair.b)).collect();
    let truth = homography(truth, "the true matrix")?;
    if within.is_nan() || within < 0.0 {
        return Err(wrong_option(&format!("within is {within}: expected a distance in pixels, 0 or more")));
    }
    let places = scores::position_error(&pairs, &truth, within);
    let places = (places.count, places.bias.into(), places.rms, places.median);
    Ok((scores::matching_accuracy(&pairs, &truth), places))
}

/// The error of the directions of matched features: the number of pairs, mean and median in radians.
#[pyfunction]
pub(crate) fn angle_error(
    a: &Bound<'_, PyAny>,
    angle_a: &Bound<'_, PyAny>,
    angle_b: &Bound<'_, PyAny>,
    truth: &Bound<'_, PyAny>,
) -> PyResult<(usize, f64, f64)> {
    let a = table::<f64, 2>(a, "xy_a")?;
    let angle = |given, what| crate::image::values::<f64>(given, what, Some(a.len()));
    let (angle_a, angle_b) = (angle(angle_a, "angle_a")?, angle(angle_b, "angle_b")?);
    let triples: Vec<_> = a.iter().zip(angle_a).zip(angle_b).map(|((p, a), b)| (*p, a, b)).collect();
    let found = scores::angle_error(&triples, &homography(truth, "the true matrix")?);
    Ok((found.count, found.bias, found.median))
}

/// How many features are found again: the number of A's that lie in B, of B's that lie in A, pairs, and their share.
#[pyfunction]
pub(crate) fn repeatability(
    py: Python<'_>,
    a: &Bound<'_, Features>,
    b: &Bound<'_, Features>,
    truth: &Bound<'_, PyAny>,
    options: &Bound<'_, PyDict>,
) -> PyResult<(usize, usize, usize, f64)> {
    let options = scores::RepeatabilityOptions::default().with(options)?;
    let (a, b) = (a.get().found(py)?, b.get().found(py)?);
    let truth = homography(truth, "the true matrix")?;
    let (sizes, a, b) = ([a.image, b.image], a.keypoints.clone(), b.keypoints.clone());
    let found = abandonable(py, move || scores::repeatability(&a, &b, sizes, &truth, &options))?;
    let found = found.map_err(raised)?;
    Ok((found.a, found.b, found.pairs, found.share))
}

/// 255 where the right image shows what the left one does, by the true disparities of both.
#[pyfunction]
pub(crate) fn non_occluded<'py>(
    py: Python<'py>,
    left: &Bound<'py, PyAny>,
    right: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (left, right) = (Input::of(left, "the truth")?, Input::of(right, "the truth of the right image")?);
    let (left, right) = (left.floats("the truth")?, right.floats("the truth of the right image")?);
    output(py, scores::non_occluded(left, right).map_err(raised)?)
}

#[pyfunction]
pub(crate) fn disparity_score<'py>(
    py: Python<'py>,
    found: &Bound<'py, PyAny>,
    truth: &Bound<'py, PyAny>,
    mask_: Option<&Bound<'py, PyAny>>,
    thresholds: Vec<f32>,
    fill: bool,
) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let (found, truth) = (Input::of(found, "the disparity map")?, Input::of(truth, "the truth")?);
    let mask = mask(mask_)?;
    let scoring = scores::DisparityScoring::default().with_thresholds(thresholds).with_fill(fill);
    found.floats("the disparity map").and(truth.floats("the truth"))?;
    let (score, notes) = abandonable(py, move || {
        let (found, truth) = (found.floats("the disparity map")?, truth.floats("the truth")?);
        let score =
            scores::disparity_score(found, truth, mask_view(mask.as_ref()), &scoring).map_err(raised)?;
        let notes = scores::disparity_notes(found, truth, &score);
        Ok::<_, PyErr>((score, notes))
    })??;
    let score = dict!(py, {
        "pixels": score.pixels,
        "density": score.density,
        "bad": score.bad,
        "bad_of_valid": score.bad_of_valid,
        "epe": score.epe,
    });
    Ok((score, notes))
}
