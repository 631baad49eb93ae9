//! Models: estimated, applied, inverted; and images warped by them.

use crate::device::run_on;
use crate::errors::{raised, wrong_image};
use crate::image::{matrix, rows, table, values, vector};
use crate::matching::NamedModel;
use crate::options::{Options, named};
use crate::picture::{Picture, made};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tiepoint::by_pixel;
use tiepoint::geometry::calibration::{Camera, Distortion};
use tiepoint::geometry::estimate::fit;
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::geometry::{
    Affine, Correspondence, Essential, Fundamental, Homography, Model, ModelKind, RobustOptions, Similarity,
    estimate as estimated,
};
use tiepoint::image::Size;
use tiepoint::options::Named;
use tiepoint::register::warp_onto;

pub(crate) fn model_of((kind, matrix_): &NamedModel<'_>) -> PyResult<Model> {
    let m = matrix(matrix_, "the matrix of the model")?;
    let kind = ModelKind::from_name(kind).map_err(raised)?;
    let last = |wanted: [f64; 3]| {
        let found = m[2];
        let message =
            format!("the last row of the matrix is {found:?}: expected {wanted:?} of {}", kind.phrase());
        if found == wanted { Ok(()) } else { Err(wrong_image(&message)) }
    };
    let made = match kind {
        ModelKind::Homography => Homography::new(m).map(Model::Homography),
        ModelKind::Fundamental => Fundamental::new(m).map(Model::Fundamental),
        ModelKind::Affine => {
            last([0.0, 0.0, 1.0])?;
            Affine::new([m[0], m[1]]).map(Model::Affine)
        }
        ModelKind::Similarity | ModelKind::Rigid | ModelKind::Translation => {
            last([0.0, 0.0, 1.0])?;
            let (turn, shift) = ([m[0][0], m[1][0]], [m[0][2], m[1][2]]);
            let length = turn[0] * turn[0] + turn[1] * turn[1];
            let expected = match kind {
                _ if (m[0][0], m[0][1]) != (m[1][1], -m[1][0]) => Some("[[p, -q, x], [q, p, y], [0, 0, 1]]"),
                ModelKind::Rigid if (length - 1.0).abs() > 1e-6 => Some("p, q of length 1"),
                ModelKind::Translation if turn != [1.0, 0.0] => Some("[[1, 0, x], [0, 1, y], [0, 0, 1]]"),
                _ => None,
            };
            if let Some(expected) = expected {
                return Err(wrong_image(&format!(
                    "the matrix is not {}: expected {expected}",
                    kind.phrase()
                )));
            }
            let model = match kind {
                ModelKind::Rigid => Model::Rigid,
                ModelKind::Translation => Model::Translation,
                _ => Model::Similarity,
            };
            Similarity::new(turn, shift).map(model)
        }
        ModelKind::Essential => {
            return Err(wrong_image("an essential matrix relates rays: expected its fundamental matrix"));
        }
    };
    made.map_err(raised)
}

pub(crate) fn model_tuple<'py>(py: Python<'py>, model: &Model) -> PyResult<NamedModel<'py>> {
    Ok((model.kind().name().to_owned(), rows(py, model.matrix().to_vec())?))
}

pub(crate) fn correspondences(
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    quality: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Correspondence>> {
    let (a, b) = (table::<f64, 2>(a, "xy_a")?, table::<f64, 2>(b, "xy_b")?);
    if a.len() != b.len() {
        return Err(wrong_image(&format!(
            "there are {} places in A and {} in B: expected pairs",
            a.len(),
            b.len()
        )));
    }
    let quality = match quality {
        None => vec![0.0; a.len()],
        Some(given) => values::<f64>(given, "quality", Some(a.len()))?,
    };
    let pairs = a.into_iter().zip(b).zip(quality);
    Ok(pairs.map(|((a, b), quality)| Correspondence { a, b, quality }).collect())
}

fn cameras_of(matrices: [Bound<'_, PyAny>; 2]) -> PyResult<[Camera; 2]> {
    let [a, b] = matrices.map(|of| {
        let [[fx, skew, cx], [shear, fy, cy], last] = matrix(&of, "the matrix of a camera")?;
        if skew != 0.0 || shear != 0.0 || last != [0.0, 0.0, 1.0] {
            return Err(wrong_image(
                "the matrix is no camera's: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]",
            ));
        }
        Ok(Camera { focal: [fx, fy], principal: [cx, cy], distortion: Distortion::default() })
    });
    Ok([a?, b?])
}

/// The model that most pairs of places agree on, which of them agree, their root mean square residual, and the number
/// of samples drawn. Without a threshold among the options it is the least-squares fit to all pairs.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "those of the Python function")]
pub(crate) fn estimate<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    kind: &Bound<'py, PyAny>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    quality: Option<&Bound<'py, PyAny>>,
    cameras: Option<[Bound<'py, PyAny>; 2]>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<(NamedModel<'py>, Bound<'py, PyAny>, f64, usize)> {
    let kind = named::<ModelKind>(kind)?;
    let cameras = cameras.map(cameras_of).transpose()?;
    let robust =
        options.map_or(Ok(RobustOptions::default()), |given| RobustOptions::default().with(given))?;
    let robust = robust.with_cameras(cameras);
    robust.check().map_err(raised)?;
    let pairs = correspondences(a, b, quality)?;
    let by_samples = options.map_or(Ok(false), |given| given.contains("threshold"))?;
    let found = run_on(py, device, |processor| match by_samples {
        true => estimated(kind, &pairs, &robust, &processor.cpu),
        false => fit(kind, &pairs, &robust, &processor.cpu),
    })?;
    let mut agrees = vec![false; pairs.len()];
    found.inliers.iter().for_each(|&i| agrees[i] = true);
    Ok((model_tuple(py, &found.b_from_a)?, vector(py, agrees), found.rms_px, found.iterations))
}

/// The essential matrix nearest to a matrix, of length 1, and its fundamental matrix.
#[pyfunction]
pub(crate) fn essential<'py>(
    py: Python<'py>,
    matrix_: &Bound<'py, PyAny>,
    cameras: [Bound<'py, PyAny>; 2],
) -> PyResult<[Bound<'py, PyAny>; 2]> {
    let cameras = cameras_of(cameras)?;
    cameras.iter().try_for_each(Camera::check).map_err(raised)?;
    let made = Essential::new(matrix(matrix_, "the matrix of the model")?, cameras).map_err(raised)?;
    Ok([rows(py, made.matrix().to_vec())?, rows(py, made.fundamental().matrix().to_vec())?])
}

/// How far pairs are from a model, in pixels.
#[pyfunction]
pub(crate) fn residuals<'py>(
    py: Python<'py>,
    model: NamedModel<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let model = model_of(&model)?;
    Ok(vector(py, tiepoint::geometry::estimate::residuals(&model, &correspondences(a, b, None)?)))
}

/// Places mapped by a model: (N, 2), NaN on the horizon; for a fundamental matrix the epipolar lines, (N, 3).
#[pyfunction]
pub(crate) fn apply<'py>(
    py: Python<'py>,
    model: NamedModel<'py>,
    xy: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let places = table::<f64, 2>(xy, "xy")?;
    match model_of(&model)? {
        Model::Fundamental(f) => rows(py, places.iter().map(|&p| f.line_in_b(p)).collect()),
        Model::Essential(e) => rows(py, places.iter().map(|&p| e.fundamental().line_in_b(p)).collect()),
        Model::Homography(h) => {
            rows(py, places.iter().map(|&p| h.apply(p).unwrap_or([f64::NAN; 2])).collect())
        }
        Model::Affine(m) => rows(py, places.iter().map(|&p| m.apply(p)).collect()),
        Model::Similarity(m) | Model::Rigid(m) | Model::Translation(m) => {
            rows(py, places.iter().map(|&p| m.apply(p)).collect())
        }
    }
}

/// The inverse of a model; None if it has none.
#[pyfunction]
pub(crate) fn invert<'py>(py: Python<'py>, model: NamedModel<'py>) -> PyResult<Option<NamedModel<'py>>> {
    let inverse = model_of(&model)?.inverse();
    inverse.as_ref().map(|inverse| model_tuple(py, inverse)).transpose()
}

#[pyfunction]
pub(crate) fn warp<'py>(
    py: Python<'py>,
    device: Option<&Bound<'py, PyAny>>,
    image: &Bound<'py, PyAny>,
    model: NamedModel<'py>,
    size: (usize, usize),
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let model = model_of(&model)?;
    let options = WarpOptions::default().with(options)?;
    let image = Picture::of(image, device, "the image")?;
    if let Picture::Host(image) = &image {
        by_pixel!(type image.view().pixel(), T => options.check_fill::<T>()).map_err(raised)?;
    }
    let size = Size::new(size.0, size.1);
    let warped = image.run(py, device, size.area(), |image, p| warp_onto(image, size, &model, &options, p));
    made(py, warped?.image)
}
