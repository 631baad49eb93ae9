//! Models through the fewest matches that determine them.

use super::points::Points;
use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, adjugate, determinant, dot, product, times, transpose};

/// The model of points through a sample; `None` when the sample is degenerate. (For epipolar geometry see
/// `seven_point` and `five_point`.)
pub(in crate::geometry) fn model(kind: ModelKind, p: &Points, sample: &[usize]) -> Option<Mat3> {
    match kind {
        ModelKind::Homography => homography(p, sample),
        ModelKind::Affine => affine(p, sample),
        ModelKind::Similarity => similarity(p, sample),
        ModelKind::Rigid => rigid(p, sample),
        ModelKind::Translation => translation(p, sample),
        ModelKind::Fundamental | ModelKind::Essential => None,
    }
}

/// Three points of a sample are taken as collinear if twice the area of their triangle is less than this share of the
/// sample's squared [`extent`]. Both images have one scale, but their units may differ by any factor, as those of pixels
/// and degrees do.
const COLLINEAR: f64 = 1e-9;

/// The sum of the squared distances of points from the first of them.
fn extent<const N: usize>(points: [[f64; 3]; N]) -> f64 {
    let [first, rest @ ..] = &points[..] else { return 0.0 };
    rest.iter().fold(0.0, |sum, p| {
        let (x, y) = (p[0] - first[0], p[1] - first[1]);
        sum + (x * x + y * y)
    })
}

/// Three points of either image as the columns of a matrix.
fn frames(p: &Points, points: [usize; 3]) -> (Mat3, Mat3) {
    (transpose(&points.map(|i| p.a(i))), transpose(&points.map(|i| p.b(i))))
}

/// Both images' points are images of the projective frame (1,0,0), (0,1,0), (0,0,1), (1,1,1). The weights of
/// the frame's points are areas of the triangles with the fourth point: their signs tell whether the
/// quadrilaterals are oriented alike, as those of a surface seen from one side are.
fn homography(p: &Points, sample: &[usize]) -> Option<Mat3> {
    let four @ [i, j, k, l] = *<&[usize; 4]>::try_from(sample).ok()?;
    let (frame_a, frame_b) = frames(p, [i, j, k]);
    let inverse_a = adjugate(&frame_a);
    let (wa, wb) = (times(&inverse_a, p.a(l)), times(&adjugate(&frame_b), p.b(l)));
    let [least_a, least_b] =
        [COLLINEAR * extent(four.map(|i| p.a(i))), COLLINEAR * extent(four.map(|i| p.b(i)))];
    let alike = |a: f64, b: f64, sign: f64| a.abs() > least_a && b.abs() > least_b && a * b * sign > 0.0;
    let sign = determinant(&frame_a) * determinant(&frame_b);
    // Written so that NaN gives `None`.
    if !(sign.abs() > least_a * least_b && (0..3).all(|c| alike(wa[c], wb[c], sign))) {
        return None;
    }
    let weighted = frame_b.map(|row| std::array::from_fn(|c| row[c] * wb[c] / wa[c]));
    let h = product(&weighted, &inverse_a);
    // In front of both cameras the denominator is positive.
    let front = dot(h[2], p.a(i));
    Some(h.map(|row| row.map(|v| v / front)))
}

fn affine(p: &Points, sample: &[usize]) -> Option<Mat3> {
    let three = *<&[usize; 3]>::try_from(sample).ok()?;
    let (frame_a, frame_b) = frames(p, three);
    let (da, db) = (determinant(&frame_a), determinant(&frame_b));
    let is_flat = |d: f64, points: [[f64; 3]; 3]| d.abs() <= COLLINEAR * extent(points);
    if is_flat(da, three.map(|i| p.a(i))) || is_flat(db, three.map(|i| p.b(i))) {
        return None;
    }
    let m = product(&frame_b, &adjugate(&frame_a));
    Some([m[0].map(|v| v / da), m[1].map(|v| v / da), [0.0, 0.0, 1.0]])
}

fn similarity(p: &Points, sample: &[usize]) -> Option<Mat3> {
    let &[i, j] = sample else { return None };
    let (x, y) = (p.xa[j] - p.xa[i], p.ya[j] - p.ya[i]);
    let (u, v) = (p.xb[j] - p.xb[i], p.yb[j] - p.yb[i]);
    let norm = x * x + y * y;
    if norm == 0.0 || u * u + v * v == 0.0 {
        return None;
    }
    let (c, s) = ((x * u + y * v) / norm, (x * v - y * u) / norm);
    let tx = p.xb[i] - (c * p.xa[i] - s * p.ya[i]);
    let ty = p.yb[i] - (s * p.xa[i] + c * p.ya[i]);
    Some([[c, -s, tx], [s, c, ty], [0.0, 0.0, 1.0]])
}

/// The rotation of the similarity; it moves the middle of the two points of A to that of B.
fn rigid(p: &Points, sample: &[usize]) -> Option<Mat3> {
    let &[i, j] = sample else { return None };
    let [[c, ..], [s, ..], _] = similarity(p, sample)?;
    let scale = (c * c + s * s).sqrt();
    let (c, s) = (c / scale, s / scale);
    let middle = |v: &[f64]| 0.5 * (v[i] + v[j]);
    let (x, y) = (middle(&p.xa), middle(&p.ya));
    let shift = [middle(&p.xb) - (c * x - s * y), middle(&p.yb) - (s * x + c * y)];
    Some([[c, -s, shift[0]], [s, c, shift[1]], [0.0, 0.0, 1.0]])
}

fn translation(p: &Points, sample: &[usize]) -> Option<Mat3> {
    let &[i] = sample else { return None };
    Some([[1.0, 0.0, p.xb[i] - p.xa[i]], [0.0, 1.0, p.yb[i] - p.ya[i]], [0.0, 0.0, 1.0]])
}
