//! Files: images, features, matches, disparities, points, calibrations, homographies.

use crate::call::{abandonable, writing};
use crate::errors::{raised, wrong_image, wrong_option};
use crate::features::Features;
use crate::geometry::model_of;
use crate::image::{Input, any_output, output, rows, table, values, vector};
use crate::matching::NamedModel;
use crate::options::{bytes, count};
use crate::stereo::with_nan;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};
use std::io::Write;
use std::path::PathBuf;
use tiepoint::feature::files as feature_files;
use tiepoint::files::write_atomically;
use tiepoint::geometry::calibration::{
    Camera, Distortion, Projection, RectifiedCalibration, StereoCalibration, StoredRectification,
};
use tiepoint::image::{Compression, Known, OutputFormat, ReadOptions, Size};
use tiepoint::matching::{
    Match,
    files::{self as match_files, MatchFormat, MatchRow, MatchedImages, ReadMatches},
};
use tiepoint::options::Named;
use tiepoint::stereo::cloud::{self, CloudOptions, PlyFormat};
use tiepoint::stereo::files::{self as disparity_files, DisparityReading};

/// The limits of an image as given: the most pixels, and the most bytes in memory. None stands for the default.
pub(crate) type Limits<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// The limits for reading images, checked.
pub(crate) fn limits((max_pixels, max_bytes): &Limits<'_>) -> PyResult<ReadOptions> {
    let mut options = ReadOptions::default();
    if let Some(given) = max_pixels {
        options.max_pixels = count("max_pixels", given)?;
    }
    if let Some(given) = max_bytes {
        options.max_bytes = bytes("max_bytes", given)?;
    }
    options.check().map_err(raised)?;
    Ok(options)
}

#[pyfunction]
pub(crate) fn read<'py>(
    py: Python<'py>,
    path: PathBuf,
    limited: Limits<'py>,
    orient: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = limits(&limited)?.with_orient(orient);
    any_output(py, abandonable(py, move || tiepoint::image::read(&path, &options))?.map_err(raised)?)
}

#[pyfunction]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    data: PyBackedBytes,
    limited: Limits<'py>,
    orient: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let options = limits(&limited)?.with_orient(orient);
    let found = abandonable(py, move || tiepoint::image::decode(&data, "the bytes", &options))?;
    any_output(py, found.map_err(raised)?)
}

/// Writes an image in the format of the name's extension.
#[pyfunction]
pub(crate) fn write(py: Python<'_>, path: PathBuf, image: &Bound<'_, PyAny>, compress: &str) -> PyResult<()> {
    let compression = Compression::from_name(compress).map_err(raised)?;
    let image = Input::of(image, "the image")?;
    let cut = OutputFormat::of(&path).map_err(raised)?.cuts(image.view());
    if cut > 0 {
        let text = format!(
            "{}: {cut} values lie outside 0 to 1 and are cut to it; .tif, .pfm, .exr and .npy keep them",
            path.display()
        );
        py.import("tiepoint._warn")?.call_method1("warn", (text,))?;
    }
    let known = Known { compression, ..Known::default() };
    writing(py, move || tiepoint::image::write_known(&path, image.view(), &known))?.map_err(raised)
}

/// Writes a text, whole or not at all.
#[pyfunction]
pub(crate) fn write_text(py: Python<'_>, path: PathBuf, text: String) -> PyResult<()> {
    writing(py, move || write_atomically(path, |out| out.write_all(text.as_bytes())))?.map_err(raised)
}

#[pyfunction]
pub(crate) fn read_features(py: Python<'_>, path: PathBuf) -> PyResult<Features> {
    abandonable(py, || feature_files::read(path))?.map(Features::new).map_err(raised)
}

/// Writes features in the format of the name's extension.
#[pyfunction]
pub(crate) fn write_features(py: Python<'_>, path: PathBuf, features: &Bound<'_, Features>) -> PyResult<()> {
    // Copied from the device first, if they lie on one: threads that write have no interpreter.
    features.get().found(py)?;
    let features = features.clone().unbind();
    let write = move || Ok(feature_files::write(&path, features.get().here()?));
    writing(py, write)?.and_then(|written: tiepoint::Result<()>| written.map_err(raised))
}

/// Writes matches in a format, of the name's extension unless one is given.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the columns of a table")]
pub(crate) fn write_matches(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    names: (String, String),
    a: &Bound<'_, Features>,
    b: &Bound<'_, Features>,
    pairs: &Bound<'_, PyAny>,
    distance: &Bound<'_, PyAny>,
    ratio: &Bound<'_, PyAny>,
    inliers: Option<&Bound<'_, PyAny>>,
    model: Option<NamedModel<'_>>,
) -> PyResult<()> {
    let pairs = table::<i64, 2>(pairs, "pairs")?;
    let n = Some(pairs.len());
    let (distance, ratio) = (values::<f32>(distance, "distance", n)?, values::<f32>(ratio, "ratio", n)?);
    let inliers = inliers.map(|given| values::<bool>(given, "inliers", n)).transpose()?;
    let place = |features: &Bound<'_, Features>, i: i64| {
        let keypoints = &features.get().found(py)?.keypoints;
        let keypoint = usize::try_from(i).ok().and_then(|i| keypoints.get(i));
        let index = u32::try_from(i).ok().zip(keypoint);
        index
            .map(|(i, k)| (i, [k.x, k.y], k.scale))
            .ok_or_else(|| wrong_image(&format!("pairs name the feature {i} of {}", keypoints.len())))
    };
    let row = |i: usize| {
        let ((ia, a_xy, a_scale), (ib, b_xy, b_scale)) = (place(a, pairs[i][0])?, place(b, pairs[i][1])?);
        let pair = Match { a: ia, b: ib, distance: distance[i], ratio: ratio[i] };
        let (scales, inlier) = ([a_scale, b_scale], inliers.as_ref().is_none_or(|inliers| inliers[i]));
        Ok(MatchRow { pair, a_xy, b_xy, scales, inlier })
    };
    let rows = (0..pairs.len()).map(row).collect::<PyResult<Vec<_>>>()?;
    let format = format.map(MatchFormat::from_name).transpose().map_err(raised)?;
    let model = model.as_ref().map(model_of).transpose()?;
    let sizes = [a.get().found(py)?.image, b.get().found(py)?.image];
    let sizes = Some(sizes).filter(|sizes| !sizes.iter().any(|size| size.is_empty()));
    writing(py, move || {
        let names = [names.0.as_str(), names.1.as_str()];
        let images = MatchedImages { sizes, model, ..names.into() };
        match_files::write_matches(&path, format, images, &rows)
    })?
    .map_err(raised)
}

/// The tie points in a file.
#[pyfunction]
pub(crate) fn read_matches(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let ReadMatches { names, rows: found, .. } =
        abandonable(py, move || match_files::read_matches(path))?.map_err(raised)?;
    let pair = |row: &MatchRow| [row.pair.a, row.pair.b].map(i64::from);
    Ok(dict!(py, {
        "xy_a": rows(py, found.iter().map(|row| row.a_xy).collect())?,
        "xy_b": rows(py, found.iter().map(|row| row.b_xy).collect())?,
        "scales": rows(py, found.iter().map(|row| row.scales).collect())?,
        "pairs": rows(py, found.iter().map(pair).collect())?,
        "inliers": vector::<bool>(py, found.iter().map(|row| row.inlier).collect()),
        "names": names.map(|[a, b]| (a, b)),
    }))
}

/// The disparities in a file, NaN where there are none, and a note.
#[pyfunction]
pub(crate) fn read_disparity(
    py: Python<'_>,
    path: PathBuf,
    scale: Option<f32>,
    signed: Option<bool>,
) -> PyResult<(Bound<'_, PyAny>, Option<String>)> {
    let reading = DisparityReading::default().with_scale(scale).with_signed(signed);
    let read = move || disparity_files::read_with_note(&path, &reading);
    let (found, note) = abandonable(py, read)?.map_err(raised)?;
    Ok((output(py, with_nan(found))?, note))
}

/// Writes disparities in the format of the name's extension.
#[pyfunction]
pub(crate) fn write_disparity(
    py: Python<'_>,
    path: PathBuf,
    disparity: &Bound<'_, PyAny>,
    compress: &str,
) -> PyResult<()> {
    let compression = Compression::from_name(compress).map_err(raised)?;
    let map = Input::of(disparity, "the disparity map")?;
    let write = move || Ok(disparity_files::write(&path, map.floats("the disparity map")?, compression));
    writing(py, write)?.and_then(|written: tiepoint::Result<()>| written.map_err(raised))
}

#[pyfunction]
pub(crate) fn read_points(py: Python<'_>, path: PathBuf) -> PyResult<[Bound<'_, PyAny>; 2]> {
    let found = abandonable(py, || cloud::read_ply(path))?.map_err(raised)?;
    let (places, colours) = found.into_iter().map(|point| (point.place, point.colour)).unzip();
    Ok([rows(py, places)?, rows(py, colours)?])
}

/// Writes the points of a disparity map as PLY, and returns their number.
#[pyfunction]
pub(crate) fn write_points(
    py: Python<'_>,
    path: PathBuf,
    disparity: &Bound<'_, PyAny>,
    colours: &Bound<'_, PyAny>,
    calibration: &Bound<'_, PyDict>,
    max_depth: f64,
    ascii: bool,
) -> PyResult<u64> {
    let (map, colours) = (Input::of(disparity, "the disparity map")?, Input::of(colours, "the image")?);
    let calibration = calibration_of(calibration)?;
    let format = if ascii { PlyFormat::Ascii } else { PlyFormat::Binary };
    let options = CloudOptions::default().with_max_depth(max_depth).with_format(format);
    let write = move || {
        let map = map.floats("the disparity map")?;
        Ok(cloud::write_ply(&path, map, colours.view(), &calibration, &options))
    };
    writing(py, write)?.and_then(|written: tiepoint::Result<u64>| written.map_err(raised))
}

/// The homography in a file, (3, 3).
#[pyfunction]
pub(crate) fn read_homography(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let found =
        abandonable(py, || tiepoint::evaluate::ground_truth::read_homography(path))?.map_err(raised)?;
    rows(py, found.matrix().to_vec())
}

fn item<'py>(of: &Bound<'py, PyDict>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    of.get_item(key)?.ok_or_else(|| wrong_option(&format!("the calibration lacks {key}")))
}

/// A rectified pair from the fields of `tiepoint.Calibration`.
pub(crate) fn calibration_of(fields: &Bound<'_, PyDict>) -> PyResult<RectifiedCalibration> {
    let size: Option<(usize, usize)> = item(fields, "size")?.extract()?;
    let projection = match item(fields, "affine")?.extract()? {
        true => Projection::Affine,
        false => Projection::Perspective,
    };
    let range: Option<(f64, f64)> = item(fields, "disparities")?.extract()?;
    let principal: (f64, f64) = item(fields, "principal")?.extract()?;
    Ok(RectifiedCalibration {
        size: size.map(|(width, height)| Size::new(width, height)),
        focal: item(fields, "focal")?.extract()?,
        principal: principal.into(),
        doffs: item(fields, "doffs")?.extract()?,
        baseline: item(fields, "baseline")?.extract()?,
        range: range.map(Into::into),
        projection,
    })
}

/// The fields of `tiepoint.Calibration`.
pub(crate) fn calibration_dict<'py>(
    py: Python<'py>,
    pair: &RectifiedCalibration,
) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "focal": pair.focal,
        "principal": (pair.principal[0], pair.principal[1]),
        "doffs": pair.doffs,
        "baseline": pair.baseline,
        "size": pair.size.map(|size| (size.width, size.height)),
        "disparities": pair.range.map(|[low, high]| (low, high)),
        "affine": pair.projection == Projection::Affine,
    }))
}

#[pyfunction]
pub(crate) fn read_rectified(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    calibration_dict(py, &abandonable(py, || RectifiedCalibration::read(path))?.map_err(raised)?)
}

/// Writes the calibration of a rectified pair as Middlebury's calib.txt.
#[pyfunction]
pub(crate) fn write_rectified(
    py: Python<'_>,
    path: PathBuf,
    calibration: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let calibration = calibration_of(calibration)?;
    writing(py, move || calibration.write(&path))?.map_err(raised)
}

/// Two cameras from the fields of `tiepoint.StereoCalibration`.
pub(crate) fn rig_of(fields: &Bound<'_, PyDict>) -> PyResult<StereoCalibration> {
    let matrix = |key: &str| crate::image::matrix(&item(fields, key)?, key);
    let camera = |matrix_key: &str, lens_key: &str| {
        let m = matrix(matrix_key)?;
        if (m[0][1], m[1][0], m[2]) != (0.0, 0.0, [0.0, 0.0, 1.0]) {
            let message = format!("{matrix_key} is {m:?}: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]");
            return Err(wrong_image(&message));
        }
        let lens = item(fields, lens_key)?.call_method0("ravel")?;
        let lens = values::<f64>(&lens, lens_key, None)?;
        if lens.len() > 5 {
            return Err(wrong_image(&format!(
                "{lens_key} has {} values: expected k1, k2, p1, p2, k3",
                lens.len()
            )));
        }
        let k = |i: usize| lens.get(i).copied().unwrap_or(0.0);
        let distortion = Distortion::from_opencv(std::array::from_fn(k));
        Ok(Camera { focal: [m[0][0], m[1][1]], principal: [m[0][2], m[1][2]], distortion })
    };
    let size = |key: &str| -> PyResult<Option<Size>> {
        let size: Option<(usize, usize)> = item(fields, key)?.extract()?;
        Ok(size.map(|(width, height)| Size::new(width, height)))
    };
    let projection = |key: &str| {
        let rows = table::<f64, 4>(&item(fields, key)?, key)?;
        <[[f64; 4]; 3]>::try_from(rows).map_err(|_| wrong_image(&format!("{key}: expected (3, 4)")))
    };
    let left = size("size")?;
    let translation = item(fields, "T")?.call_method0("ravel")?;
    let translation = values::<f64>(&translation, "T", Some(3))?;
    let rig = StereoCalibration {
        cameras: [camera("K1", "D1")?, camera("K2", "D2")?],
        sizes: [left, size("size2")?.or(left)],
        rotation: matrix("R")?,
        translation: [translation[0], translation[1], translation[2]],
        stored: match item(fields, "P1")?.is_none() {
            true => None,
            false => Some(StoredRectification {
                rotations: [matrix("R1")?, matrix("R2")?],
                projections: [projection("P1")?, projection("P2")?],
            }),
        },
    };
    rig.check().map_err(raised)?;
    Ok(rig)
}

#[pyfunction]
pub(crate) fn read_calibration<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyDict>> {
    let paths = paths.extract::<Vec<PathBuf>>()?;
    let rig = abandonable(py, move || StereoCalibration::read(&paths))?.map_err(raised)?;
    let fields = PyDict::new(py);
    for (camera, (matrix, lens)) in rig.cameras.iter().zip([("K1", "D1"), ("K2", "D2")]) {
        fields.set_item(matrix, rows(py, camera.matrix().to_vec())?)?;
        let Distortion { k1, k2, p1, p2, k3 } = camera.distortion;
        fields.set_item(lens, vector(py, vec![k1, k2, p1, p2, k3]))?;
    }
    fields.set_item("R", rows(py, rig.rotation.to_vec())?)?;
    fields.set_item("T", vector(py, rig.translation.to_vec()))?;
    let [left, right] = rig.sizes;
    for (key, size) in [("size", left), ("size2", right.filter(|_| right != left))] {
        fields.set_item(key, size.map(|size| (size.width, size.height)))?;
    }
    for (i, (rotation, projection)) in [("R1", "P1"), ("R2", "P2")].into_iter().enumerate() {
        let stored = rig.stored.as_ref();
        fields.set_item(rotation, stored.map(|s| rows(py, s.rotations[i].to_vec())).transpose()?)?;
        fields.set_item(projection, stored.map(|s| rows(py, s.projections[i].to_vec())).transpose()?)?;
    }
    Ok(fields)
}
