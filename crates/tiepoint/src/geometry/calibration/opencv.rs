//! From the entries of a calibration file to cameras and rectified pairs.

use super::document::{Document, Entry, Names, Parsed, Value};
use super::{
    Camera, Distortion, Projection, RectifiedCalibration, StereoCalibration, StoredRectification,
    check_rotation,
};
use crate::geometry::matrix::{IDENTITY, Mat3, product, times, transpose};
use crate::image::Size;
use crate::{Error, Result};
use std::slice::from_ref;

/// The names, separated by spaces, of each camera's matrix and its distortion, and of one camera alone.
const CAMERAS: [[&str; 2]; 2] = [
    [
        "M1 K1 cameraMatrix1 camera_matrix_1 CM1 M_l KL cameraMatrixL left_camera_matrix",
        "D1 distCoeffs1 dist_coeffs_1 distortion_coefficients_1 dist1 distCoeff1 dist_coeff1 dist_coeff_1 dist_coeffs1 D_l DL distCoeffsL \
         left_distortion_coefficients",
    ],
    [
        "M2 K2 cameraMatrix2 camera_matrix_2 CM2 M_r KR cameraMatrixR right_camera_matrix",
        "D2 distCoeffs2 dist_coeffs_2 distortion_coefficients_2 dist2 distCoeff2 dist_coeff2 dist_coeff_2 dist_coeffs2 D_r DR distCoeffsR \
         right_distortion_coefficients",
    ],
];
const ALONE: [&str; 2] = [
    "camera_matrix cameraMatrix Camera_Matrix K M",
    "distortion_coefficients distCoeffs Distortion_Coefficients dist_coeffs dist_coeff distCoeff dist D",
];
const ROTATION: &str = "R rotation_matrix stereo_R";
const TRANSLATION: &str = "T t translation_vector stereo_T";
const WIDTH: &str = "image_width image_Width imageWidth width";
const HEIGHT: &str = "image_height image_Height imageHeight height";
const SIZE: &str = "image_size imageSize img_size size";
/// The size of the right camera's pictures, in a calibration of Kalibr.
pub(super) const SECOND_SIZE: &str = "image_size_2";

/// The entry under one of `names`, in the first document that has it.
fn find<'a>(documents: &'a [Document], names: &str) -> Option<(&'a Document, &'a Entry)> {
    documents.iter().find_map(|d| Some((d, d.find(names)?)))
}

/// As [`find`], for an entry that must be there.
fn require<'a>(documents: &'a [Document], names: &str, what: &str) -> Result<(&'a Document, &'a Entry)> {
    find(documents, names).ok_or_else(|| lacks(documents, names, what))
}

fn lacks(documents: &[Document], names: &str, what: &str) -> Error {
    let several = if documents.len() > 1 { "none of the files holds" } else { "the file does not hold" };
    let first = names.split(' ').next().unwrap_or_default();
    let reason = format!("{several} {what} ({first} or the like)");
    documents
        .first()
        .map_or_else(|| Error::Mismatch("no calibration file was given".into()), |d| d.wrong(reason))
}

pub(super) fn stereo(documents: &[Document]) -> Result<StereoCalibration> {
    if let [document] = documents {
        match document.names {
            Names::Middlebury => return side_by_side(document),
            Names::Kitti => {
                let reason = "KITTI's pictures are rectified already: `stereo --calibration` takes this file";
                return Err(document.wrong(reason));
            }
            Names::OpenCv => {}
        }
    }
    if let Some(other) = documents.iter().find(|d| d.names == Names::Middlebury) {
        return Err(other.wrong("a Middlebury calib.txt is complete: give it alone"));
    }
    check_contradictions(documents)?;
    let cameras = cameras(documents)?;
    let stored = stored(documents)?;
    let posed = if find(documents, ROTATION).is_none() { ros(documents)? } else { None };
    let (document, rotation, translation) = match &posed {
        Some(rectified) => {
            let (rotation, translation) = pose(rectified);
            (&documents[1], rotation, translation)
        }
        None => {
            let (document, entry) =
                require(documents, ROTATION, "the rotation from the left to the right camera")?;
            let turned = rotation(document, entry)?;
            let (document, entry) =
                require(documents, TRANSLATION, "the translation from the left to the right camera")?;
            (document, turned, document.vector(entry)?)
        }
    };
    let sizes = sizes(documents)?;
    let stored = stored.or(posed);
    let calibration = StereoCalibration { cameras, sizes, rotation, translation, stored };
    calibration.check().map(|()| calibration).map_err(|e| match e {
        Error::Mismatch(reason) => document.wrong(reason),
        other => other,
    })
}

/// The files that hold a single camera, unless one holds both.
fn alone(documents: &[Document]) -> Vec<&Document> {
    match find(documents, CAMERAS[0][0]) {
        Some(_) => vec![],
        None => documents.iter().filter(|d| d.find(ALONE[0]).is_some()).collect(),
    }
}

/// Two cameras from M1 and M2, or from two files of one camera each.
fn cameras(documents: &[Document]) -> Result<[Camera; 2]> {
    let alone = alone(documents);
    let sides = match alone[..] {
        [] => {
            let [left, right] = CAMERAS;
            [(documents, left, "the left camera's matrix"), (documents, right, "the right camera's matrix")]
        }
        [left, right] => [left, right].map(|document| (from_ref(document), ALONE, "its matrix")),
        [first, ..] => {
            return Err(first.wrong(format!(
                "{} of the files hold a single camera (camera_matrix): expected two, the left one first, or one file \
                 with M1 and M2",
                alone.len()
            )));
        }
    };
    check_lenses(sides.map(|(documents, [_, lens], _)| (documents, lens)))?;
    let [left, right] = sides.map(|(documents, names, what)| camera(documents, names, what));
    Ok([left?, right?])
}

/// Fails if only one camera has a distortion, or if an entry looks like a missing one under an unknown name.
fn check_lenses(cameras: [(&[Document], &str); 2]) -> Result<()> {
    let found = cameras.map(|(documents, names)| find(documents, names).is_some());
    let Some(missing) = found.iter().position(|found| !found) else { return Ok(()) };
    let (documents, names) = cameras[missing];
    let known = |key: &str| {
        [CAMERAS[0][1], CAMERAS[1][1], ALONE[1]].iter().any(|names| names.split(' ').any(|name| name == key))
    };
    let is_lens = |e: &&Entry| {
        let key = e.key.to_ascii_lowercase();
        key.contains("dist") && matches!(e.value, Value::Matrix(_)) && !known(&e.key)
    };
    if let Some((document, entry)) = documents.iter().find_map(|d| Some((d, d.entries.iter().find(is_lens)?)))
    {
        let reason = format!("is no known name of a distortion: expected one of {names}");
        return Err(document.wrong_at(entry, reason));
    }
    if !found[1 - missing] {
        return Ok(());
    }
    let side = ["left", "right"][missing];
    let what =
        format!("the {side} camera's distortion, but the other camera has one; give zeros if there is none");
    Err(lacks(documents, names, &what))
}

/// Fails where two files give different numbers for the same entry of the pair.
fn check_contradictions(documents: &[Document]) -> Result<()> {
    let [[m1, d1], [m2, d2]] = CAMERAS;
    for names in [m1, d1, m2, d2, ROTATION, TRANSLATION, "R1", "R2", "P1", "P2"] {
        let mut given = documents.iter().filter_map(|d| Some((d, d.find(names)?)));
        let Some((first, one)) = given.next() else { continue };
        if let Some((second, other)) = given.find(|(_, other)| other.value != one.value) {
            let reason =
                format!("has other numbers than {} in {}: give one of them", one.key, first.path.display());
            return Err(second.wrong_at(other, reason));
        }
    }
    Ok(())
}

/// The camera whose matrix and distortion have these names.
fn camera(documents: &[Document], [matrix, lens]: [&str; 2], what: &str) -> Result<Camera> {
    let (document, entry) = require(documents, matrix, what)?;
    let (focal, principal) = pinhole(document, entry, &document.fixed(entry)?)?;
    let lens = find(documents, lens);
    let distortion = lens.map_or(Ok(Distortion::default()), |(d, e)| distortion(d, e))?;
    let camera = Camera { focal, principal, distortion };
    camera.check().map_err(|e| document.wrong(format!("line {}: {}: {e}", entry.line, entry.key)))?;
    Ok(camera)
}

/// Focal lengths and principal point of a camera matrix; fails if it has skew or other elements.
fn pinhole(document: &Document, entry: &Entry, k: &Mat3) -> Result<([f64; 2], [f64; 2])> {
    let [[fx, skew, cx], [a, fy, cy], last] = *k;
    if skew.abs() > 1e-9 * fx.abs() {
        return Err(document.wrong_at(entry, format!("has a skew of {skew}; only 0 is supported")));
    }
    if a != 0.0 || last != [0.0, 0.0, 1.0] {
        return Err(document.wrong_at(entry, "is not of the form [fx 0 cx; 0 fy cy; 0 0 1]"));
    }
    Ok(([fx, fy], [cx, cy]))
}

/// k₁ k₂ p₁ p₂ \[k₃\]; further ones must be 0.
fn distortion(document: &Document, entry: &Entry) -> Result<Distortion> {
    let (line, key) = (entry.line, &entry.key);
    let m = document.matrix(entry)?;
    let n = m.data.len();
    if m.rows.min(m.columns) != 1 || !matches!(n, 4 | 5 | 8 | 12 | 14) {
        let reason = format!("has {n} coefficients: expected 4 or 5 (k1 k2 p1 p2 k3)");
        return Err(document.wrong_at(entry, reason));
    }
    if let Some(i) = m.data.iter().skip(5).position(|v| *v != 0.0) {
        return Err(document.wrong(format!(
            "line {line}: coefficient {} of {key} is not 0: the rational, thin prism and tilted models are not \
             supported; calibrate with k1 k2 p1 p2 k3 only",
            i + 6
        )));
    }
    Ok(Distortion::from_opencv(std::array::from_fn(|i| m.data.get(i).copied().unwrap_or(0.0))))
}

fn rotation(document: &Document, entry: &Entry) -> Result<Mat3> {
    let m: Mat3 = document.fixed(entry)?;
    let wrong = |reason| document.wrong(format!("line {}: {reason}", entry.line));
    check_rotation(&entry.key, &m).map(|()| m).map_err(wrong)
}

/// A number of pixels.
fn side(document: &Document, entry: &Entry, v: f64) -> Result<usize> {
    let sound = (1.0..=f64::from(u32::MAX)).contains(&v) && v.fract() == 0.0;
    let wrong = || document.wrong_at(entry, format!("is {v}, expected a number of pixels"));
    sound.then_some(v as usize).ok_or_else(wrong)
}

fn both_sides(document: &Document, entry: &Entry) -> Result<Size> {
    let [w, h] = document.vector(entry)?;
    Ok(Size::new(side(document, entry, w)?, side(document, entry, h)?))
}

/// Width and height, in one entry or in two.
fn size(documents: &[Document]) -> Result<Option<Size>> {
    if let Some((d, e)) = find(documents, SIZE) {
        return both_sides(d, e).map(Some);
    }
    let one = |names| find(documents, names).map(|(d, e)| side(d, e, d.number(e)?)).transpose();
    Ok(one(WIDTH)?.zip(one(HEIGHT)?).map(|(w, h)| Size::new(w, h)))
}

/// The sizes of the left and of the right camera's pictures: each from its own file if there are two of one camera
/// each, otherwise one size for both unless the second camera has its own.
fn sizes(documents: &[Document]) -> Result<[Option<Size>; 2]> {
    if let [left, right] = alone(documents)[..] {
        return Ok([size(from_ref(left))?, size(from_ref(right))?]);
    }
    let (both, second) = (size(documents)?, find(documents, SECOND_SIZE));
    Ok([both, second.map(|(d, e)| both_sides(d, e)).transpose()?.or(both)])
}

fn stored(documents: &[Document]) -> Result<Option<StoredRectification>> {
    let found = ["R1", "R2", "P1", "P2"].map(|name| find(documents, name));
    let [Some((d1, r1)), Some((d2, r2)), Some((d3, p1)), Some((d4, p2))] = found else { return Ok(None) };
    let rotations = [rotation(d1, r1)?, rotation(d2, r2)?];
    Ok(Some(StoredRectification { rotations, projections: [d3.fixed(p1)?, d4.fixed(p2)?] }))
}

/// The rectification in the files of ROS, the left camera's and the right one's.
fn ros(documents: &[Document]) -> Result<Option<StoredRectification>> {
    let [left, right] = documents else { return Ok(None) };
    let found = [left, right].map(|d| d.find("rectification_matrix").zip(d.find("projection_matrix")));
    let [Some((r1, p1)), Some((r2, p2))] = found else { return Ok(None) };
    let rotations = [rotation(left, r1)?, rotation(right, r2)?];
    Ok(Some(StoredRectification { rotations, projections: [left.fixed(p1)?, right.fixed(p2)?] }))
}

/// The pose of the right camera relative to the left one, from the rectification that puts them side by side.
fn pose(rectified: &StoredRectification) -> (Mat3, [f64; 3]) {
    let ([r1, r2], [p1, p2]) = (rectified.rotations, rectified.projections);
    let back = transpose(&r2);
    let shift = [(p2[0][3] - p1[0][3]) / p2[0][0], (p2[1][3] - p1[1][3]) / p2[1][1], 0.0];
    (product(&back, &r1), times(&back, shift))
}

/// A rectified pair from P1 and P2, from Q, or from the right camera of ROS: the left camera's projection is the same
/// without the shift.
pub(super) fn rectified(document: &Document) -> Result<RectifiedCalibration> {
    let size = size(from_ref(document))?;
    let wrong = |entry: &Entry, reason: String| document.wrong(format!("line {}: {reason}", entry.line));
    let q = document.find("Q");
    let found = if let (Some(p1), Some(p2)) = (document.find("P1"), document.find("P2")) {
        let found =
            from_projections(&[document.fixed(p1)?, document.fixed(p2)?]).map_err(|r| wrong(p2, r))?;
        // A Q of another form, with a mirrored axis for example, is another program's and is ignored.
        if let Some(q) = q
            && from_q(&document.fixed(q)?).is_ok_and(|of_q| !agree(&found, &of_q))
        {
            return Err(wrong(q, "Q contradicts P1 and P2: give one of both".into()));
        }
        found
    } else if let Some(q) = q {
        from_q(&document.fixed(q)?).map_err(|r| wrong(q, r))?
    } else if let Some(projection) = document.find("projection_matrix") {
        let right: [[f64; 4]; 3] = document.fixed(projection)?;
        let mut left = right;
        left[0][3] = 0.0;
        from_projections(&[left, right])
            .map_err(|r| wrong(projection, format!("{r}; of ROS's files give that of the right camera")))?
    } else {
        return Err(document.wrong("no P1 and P2, and no Q: expected the calibration of a rectified pair"));
    };
    Ok(RectifiedCalibration { size, ..found })
}

/// The rectified pair of two projections: f, cx, cy, and the baseline from P2\[0\]\[3\] − P1\[0\]\[3\] = −f · baseline. P1\[0\]\[3\]
/// is 0 unless both are in the frame of a third camera.
pub(super) fn from_projections([p1, p2]: &[[[f64; 4]; 3]; 2]) -> Parsed<RectifiedCalibration> {
    let focal = p1[0][0];
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * focal.abs();
    let same = close(p2[0][0], focal) && close(p1[1][1], focal) && close(p2[1][1], focal);
    if p2[1][3] != p1[1][3] && p2[0][3] == p1[0][3] {
        return Err("P1 and P2 are those of cameras one above the other: expected cameras side by side; `rectify` turns the pictures \
                    of such a pair where R and T are known, without `--stored`"
            .into());
    }
    if !same || !close(p1[1][2], p2[1][2]) || p2[1][3] != p1[1][3] {
        return Err("P1 and P2 are not those of cameras side by side with one focal length".into());
    }
    sound(focal, [p1[0][2], p1[1][2]], p2[0][2] - p1[0][2], (p1[0][3] - p2[0][3]) / focal)
}

/// OpenCV's Q, or a multiple of it, which maps to the same points.
fn from_q(q: &[[f64; 4]; 4]) -> Parsed<RectifiedCalibration> {
    let q = q.map(|row| row.map(|v| v / q[0][0]));
    let plain = [
        [1.0, 0.0, 0.0, q[0][3]],
        [0.0, 1.0, 0.0, q[1][3]],
        [0.0, 0.0, 0.0, q[2][3]],
        [0.0, 0.0, q[3][2], q[3][3]],
    ];
    let differ = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-6;
    if q.as_flattened().iter().zip(plain.as_flattened()).any(differ) {
        return Err("Q is not that of a rectified pair, [1 0 0 −cx; 0 1 0 −cy; 0 0 0 f; 0 0 1/b (cx₂ − cx)/b] or a multiple \
                    of it: a mirrored axis or another size of pixels belongs in the program that uses the points"
            .into());
    }
    let baseline = 1.0 / q[3][2];
    sound(q[2][3], [-q[0][3], -q[1][3]], q[3][3] * baseline, baseline)
}

/// Whether two calibrations are the same to a thousandth, as files round their numbers.
fn agree(a: &RectifiedCalibration, b: &RectifiedCalibration) -> bool {
    let pixels = |c: &RectifiedCalibration| [c.focal, c.principal[0], c.principal[1], c.doffs];
    let baselines = a.baseline.min(b.baseline) / a.baseline.max(b.baseline);
    let close = |(a, b): (f64, f64)| (a - b).abs() <= 1e-3 * a.abs().max(1.0);
    baselines > 0.999 && pixels(a).into_iter().zip(pixels(b)).all(close)
}

fn sound(focal: f64, principal: [f64; 2], doffs: f64, baseline: f64) -> Parsed<RectifiedCalibration> {
    let projection = Projection::Perspective;
    let pair =
        RectifiedCalibration { size: None, focal, principal, doffs, baseline, range: None, projection };
    pair.wrong().map_or(Ok(pair), Err)
}

pub(super) fn middlebury(document: &Document) -> Result<RectifiedCalibration> {
    let require = |name: &str| document.find(name).ok_or_else(|| document.wrong(format!("no {name}=…")));
    let camera = |name: &str| -> Result<([f64; 2], [f64; 2], usize)> {
        let entry = require(name)?;
        let (focal, principal) = pinhole(document, entry, &document.fixed(entry)?)?;
        Ok((focal, principal, entry.line))
    };
    let number = |name: &str| document.find(name).map(|e| document.number(e)).transpose();
    let wrong = |reason: String| Err(document.wrong(reason));
    let size = size(from_ref(document))?;
    let range = match (number("vmin")?, number("vmax")?, number("ndisp")?) {
        (Some(low), Some(high), n) if low != high || n.is_none() => Some([low, high]),
        (_, _, Some(n)) => Some([0.0, n - 1.0]),
        _ => None,
    };
    if let Some([low, high]) = range.filter(|[low, high]| low > high || high - low > 1e6) {
        return wrong(format!("the disparities run from {low} to {high}: expected an ascending range"));
    }
    if number("affine")?.is_some_and(|affine| affine != 0.0) {
        return Ok(RectifiedCalibration::affine(size, range));
    }
    let ((focal, left, _), (focal1, right, line)) = (camera("cam0")?, camera("cam1")?);
    if focal[0] != focal[1] {
        let [fx, fy] = focal;
        return wrong(format!("cam0 has the focal lengths {fx} and {fy}: expected the same across and down"));
    }
    if focal != focal1 || left[1] != right[1] {
        return wrong(format!("line {line}: cam0 and cam1 differ in more than cx: not a rectified pair"));
    }
    let difference = right[0] - left[0];
    let doffs = number("doffs")?.unwrap_or(difference);
    // Files round both to three digits.
    if (doffs - difference).abs() > 0.01 {
        return wrong(format!("doffs is {doffs}, but the cx of cam1 less that of cam0 is {difference}"));
    }
    let baseline = document.number(require("baseline")?)?;
    let found = sound(focal[0], left, doffs, baseline).map_err(|reason| document.wrong(reason))?;
    Ok(RectifiedCalibration { size, range, ..found })
}

/// The cameras of Middlebury's file, the only rectified pair that has them.
fn side_by_side(document: &Document) -> Result<StereoCalibration> {
    let pair = middlebury(document)?;
    if pair.projection == Projection::Affine {
        return Err(document.wrong("an affine pair has no cameras: it is rectified already"));
    }
    let camera = |doffs: f64| Camera {
        focal: [pair.focal; 2],
        principal: [pair.principal[0] + doffs, pair.principal[1]],
        distortion: Distortion::default(),
    };
    Ok(StereoCalibration {
        cameras: [camera(0.0), camera(pair.doffs)],
        sizes: [pair.size; 2],
        rotation: IDENTITY,
        translation: [-pair.baseline, 0.0, 0.0],
        stored: None,
    })
}
