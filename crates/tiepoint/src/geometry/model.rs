//! The models, and how they are applied, inverted and composed.

use super::calibration::Camera;
use super::linear::{Singular, singular};
use super::matrix::{self, IDENTITY, Mat3, determinant, dot, product, times, transpose};
use crate::image::Size;
use crate::numeric::length;
use crate::options::named;
use crate::{Error, Result};

named! {
    /// Which model relates two images.
    pub enum ModelKind as "model" {
        /// A plane seen from two places, or any scene from one place: 8 degrees of freedom, 4 matches.
        #[default]
        "homography": Homography, "A plane, or a camera that only turns";
        /// Parallel lines stay parallel: 6 degrees of freedom, 3 matches.
        "affine": Affine, "Six parameters: also shear and unequal scales";
        /// 4 degrees of freedom, 2 matches.
        "similarity": Similarity, "Four parameters: turned, scaled, shifted";
        /// 3 degrees of freedom, 2 matches.
        "rigid": Rigid, "Three parameters: turned and shifted";
        /// 2 degrees of freedom, 1 match.
        "translation": Translation, "Two parameters: shifted";
        /// A rigid scene seen from two places: 7 degrees of freedom, 7 matches.
        "fundamental": Fundamental, "Two views of anything: epipolar geometry";
        /// Their focal lengths and principal points are known: 5 degrees of freedom, 5 matches.
        "essential": Essential, "Epipolar geometry of two cameras that are known";
    }
}

impl ModelKind {
    /// The fewest matches that determine the model.
    pub const fn minimum(self) -> usize {
        match self {
            Self::Homography => 4,
            Self::Affine => 3,
            Self::Similarity | Self::Rigid => 2,
            Self::Translation => 1,
            Self::Fundamental => 7,
            Self::Essential => 5,
        }
    }

    /// Whether it relates points to lines; the others map points to points.
    pub const fn is_epipolar(self) -> bool {
        matches!(self, Self::Fundamental | Self::Essential)
    }

    /// The model's name in a sentence.
    pub fn noun(self) -> &'static str {
        self.phrase().split_once(' ').map_or(self.phrase(), |(_, noun)| noun)
    }

    /// The same with its article.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Homography => "a homography",
            Self::Affine => "an affine map",
            Self::Similarity => "a similarity",
            Self::Rigid => "a rigid motion",
            Self::Translation => "a translation",
            Self::Fundamental => "a fundamental matrix",
            Self::Essential => "an essential matrix",
        }
    }
}

/// A model from image A to image B: variables that hold one are named `b_from_a`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// A plane projective map.
    Homography(Homography),
    /// An affine map.
    Affine(Affine),
    /// A similarity.
    Similarity(Similarity),
    /// A rotation and a shift: a similarity of scale 1.
    Rigid(Similarity),
    /// A shift: a similarity of scale 1 that does not turn.
    Translation(Similarity),
    /// Epipolar geometry.
    Fundamental(Fundamental),
    /// Epipolar geometry of known cameras.
    Essential(Essential),
}

impl Model {
    /// Which model this is.
    pub const fn kind(&self) -> ModelKind {
        match self {
            Self::Homography(_) => ModelKind::Homography,
            Self::Affine(_) => ModelKind::Affine,
            Self::Similarity(_) => ModelKind::Similarity,
            Self::Rigid(_) => ModelKind::Rigid,
            Self::Translation(_) => ModelKind::Translation,
            Self::Fundamental(_) => ModelKind::Fundamental,
            Self::Essential(_) => ModelKind::Essential,
        }
    }

    /// The 3×3 matrix, row-major. That of an essential matrix is between rays, all others between pixels.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        match self {
            Self::Homography(m) => m.matrix(),
            Self::Affine(m) => m.matrix(),
            Self::Similarity(m) | Self::Rigid(m) | Self::Translation(m) => m.matrix(),
            Self::Fundamental(m) => m.matrix(),
            Self::Essential(m) => m.matrix(),
        }
    }

    /// The model as a homography; `None` for epipolar geometry.
    pub fn homography(&self) -> Option<Homography> {
        match self {
            Self::Homography(m) => Some(*m),
            Self::Affine(m) => Some((*m).into()),
            Self::Similarity(m) | Self::Rigid(m) | Self::Translation(m) => Some(Affine::from(*m).into()),
            Self::Fundamental(_) | Self::Essential(_) => None,
        }
    }

    /// The matrix between pixels; for an essential matrix the fundamental matrix.
    pub(crate) fn between_pixels(&self) -> [[f64; 3]; 3] {
        match self {
            Self::Essential(m) => m.fundamental().matrix(),
            _ => self.matrix(),
        }
    }

    /// The model from B to A; `None` when it is singular.
    pub fn inverse(&self) -> Option<Self> {
        Some(match self {
            Self::Homography(m) => Self::Homography(m.inverse()?),
            Self::Affine(m) => Self::Affine(m.inverse()?),
            Self::Similarity(m) => Self::Similarity(m.inverse()?),
            Self::Rigid(m) => Self::Rigid(m.inverse()?),
            Self::Translation(m) => Self::Translation(m.inverse()?),
            Self::Fundamental(m) => Self::Fundamental(m.inverse()),
            Self::Essential(m) => Self::Essential(m.inverse()),
        })
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        matrix::fmt(&self.matrix(), f)
    }
}

fn check_finite(matrix: &Mat3, model: &'static str) -> Result<()> {
    if matrix::is_finite(matrix) {
        return Ok(());
    }
    Err(Error::Degenerate { model, reason: "its matrix holds a value that is not finite" })
}

/// A plane projective map, `b_from_a`: b ~ H · (x, y, 1)ᵀ. Scaled so that its last element is 1, unless
/// that is nearly 0.
///
/// A matrix alone does not say which side of its horizon a camera saw. A homography made from a matrix maps the points
/// of both sides, as OpenCV does. One estimated from matches on the same side as the origin of A maps no points beyond
/// the horizon, so that a warped picture is empty there.
#[derive(Clone, Copy, Debug)]
pub struct Homography {
    matrix: Mat3,
    /// Whether points with a negative denominator are known to lie beyond the horizon and are not mapped.
    has_front: bool,
}

impl Default for Homography {
    fn default() -> Self {
        Self { matrix: IDENTITY, has_front: true }
    }
}

impl PartialEq for Homography {
    /// Whether the matrices are equal.
    fn eq(&self, other: &Self) -> bool {
        self.matrix == other.matrix
    }
}

impl Homography {
    /// A homography from its matrix, at any scale and with either sign.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when the matrix is singular or not finite.
    pub fn new(matrix: [[f64; 3]; 3]) -> Result<Self> {
        check_finite(&matrix, "homography")?;
        let singular = Error::Degenerate { model: "homography", reason: "its matrix is singular" };
        let unit = matrix::unit(&matrix).filter(|unit| determinant(unit).abs() >= 1e-300).ok_or(singular)?;
        // A matrix that is scaled already keeps its bits.
        let largest = matrix.iter().flatten().fold(0.0, |a: f64, v| a.max(v.abs()));
        let is_scaled = matrix[2][2] == 1.0 && largest < 1e12;
        Ok(if is_scaled { Self::of(matrix, false) } else { Self::scaled(unit, false) })
    }

    /// As [`new`](Self::new), of a matrix with positive denominators at the points that a camera saw.
    pub(crate) fn in_front(matrix: Mat3) -> Result<Self> {
        let made = Self::new(matrix)?;
        Ok(Self { has_front: made.has_front || made.matrix[2][2] == 1.0 && matrix[2][2] > 0.0, ..made })
    }

    fn of(matrix: Mat3, has_front: bool) -> Self {
        // Without a horizon nothing lies beyond it.
        let is_affine = matrix[2] == [0.0, 0.0, 1.0];
        Self { matrix, has_front: is_affine || has_front && matrix[2][2] == 1.0 }
    }

    /// Scales so that the last element is 1, unless it is nearly 0. With `has_front` denominators are positive at the points
    /// that a camera saw.
    fn scaled(m: Mat3, has_front: bool) -> Self {
        let last = m[2][2];
        let largest = m.iter().flatten().fold(0.0, |a: f64, v| a.max(v.abs()));
        match last.abs() > largest * 1e-12 {
            true => Self::of(m.map(|r| r.map(|v| v / last)), has_front && last > 0.0),
            false => Self::of(m, false),
        }
    }

    /// The matrix, row-major.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        self.matrix
    }

    /// The matrix at a scale that encodes which points are mapped: only those with a positive denominator if its last
    /// element is 1, otherwise all.
    pub(crate) fn sided(&self) -> Mat3 {
        match self.matrix[2][2] == 1.0 && !self.has_front {
            // Doubling leaves the bits of quotients unchanged.
            true => self.matrix.map(|row| row.map(|v| 2.0 * v)),
            false => self.matrix,
        }
    }

    /// The point of B for (x, y); `None` on the horizon, and beyond it where that is known.
    pub fn apply(&self, [x, y]: [f64; 2]) -> Option<[f64; 2]> {
        let [u, v, w] = times(&self.matrix, [x, y, 1.0]);
        let front = if self.has_front { w } else { w.abs() };
        (front > 1e-12).then(|| [u / w, v / w]).filter(|p| p[0].is_finite() && p[1].is_finite())
    }

    /// The greatest distance by which a corner of a picture of `size` moves, in pixels; infinite if one is not mapped.
    pub(crate) fn moves(&self, size: Size) -> f64 {
        let (width, height) = (size.width as f64, size.height as f64);
        let corners = [[0.0, 0.0], [width, 0.0], [0.0, height], [width, height]];
        let moved = |p: [f64; 2]| self.apply(p).map_or(f64::INFINITY, |q| length([q[0] - p[0], q[1] - p[1]]));
        corners.map(moved).into_iter().fold(0.0, f64::max)
    }

    /// The derivatives \[∂x'/∂x, ∂x'/∂y, ∂y'/∂x, ∂y'/∂y\] of [`apply`](Self::apply) at a point; not finite
    /// on the horizon.
    pub fn derivative(&self, [x, y]: [f64; 2]) -> [f64; 4] {
        let h = &self.matrix;
        let [u, v, w] = times(h, [x, y, 1.0]);
        let (u, v) = (u / w, v / w);
        [
            (h[0][0] - u * h[2][0]) / w,
            (h[0][1] - u * h[2][1]) / w,
            (h[1][0] - v * h[2][0]) / w,
            (h[1][1] - v * h[2][1]) / w,
        ]
    }

    /// The homography from B to A; `None` when it is singular to working precision.
    pub fn inverse(&self) -> Option<Self> {
        let inverse = matrix::adjugate(&self.matrix);
        // The adjugate of a mirroring matrix has the other sign than its inverse.
        let has_front = self.has_front && determinant(&self.matrix) > 0.0;
        (matrix::is_finite(&inverse) && determinant(&inverse) != 0.0)
            .then(|| Self::scaled(inverse, has_front))
    }

    /// `c_from_b.compose(&b_from_a)` is `c_from_a`.
    #[must_use]
    pub fn compose(&self, b_from_a: &Self) -> Self {
        Self::scaled(product(&self.matrix, &b_from_a.matrix), self.has_front && b_from_a.has_front)
    }
}

impl std::fmt::Display for Homography {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        matrix::fmt(&self.matrix, f)
    }
}

/// An affine map: b = M · (x, y, 1)ᵀ with a 2×3 matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine([[f64; 3]; 2]);

impl Default for Affine {
    fn default() -> Self {
        Self([IDENTITY[0], IDENTITY[1]])
    }
}

impl Affine {
    /// An affine map from its 2×3 matrix.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when a value is not finite.
    pub fn new(matrix: [[f64; 3]; 2]) -> Result<Self> {
        let affine = Self(matrix);
        check_finite(&affine.matrix(), "affine map").map(|()| affine)
    }

    /// The 3×3 matrix, row-major; its last row is 0, 0, 1.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        [self.0[0], self.0[1], IDENTITY[2]]
    }

    /// The point of B for (x, y).
    pub fn apply(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        self.0.map(|r| r[0] * x + r[1] * y + r[2])
    }

    /// The map from B to A; `None` when it is singular to working precision.
    pub fn inverse(&self) -> Option<Self> {
        let [[a, b, x], [c, d, y]] = self.0;
        let det = a * d - b * c;
        let regular = det.abs() > 1e-14 * ((a * a + b * b) * (c * c + d * d)).sqrt();
        let (p, q, r, s) = (d / det, -b / det, -c / det, a / det);
        regular.then(|| Self([[p, q, -(p * x + q * y)], [r, s, -(r * x + s * y)]]))
    }

    /// `c_from_b.compose(&b_from_a)` is `c_from_a`.
    #[must_use]
    pub fn compose(&self, b_from_a: &Self) -> Self {
        let m = product(&self.matrix(), &b_from_a.matrix());
        Self([m[0], m[1]])
    }
}

impl From<Affine> for Homography {
    fn from(a: Affine) -> Self {
        Self::of(a.matrix(), true)
    }
}

/// A similarity: b = s · R(φ) · a + t, kept as s cos φ, s sin φ and t. No mirroring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Similarity {
    rotation: [f64; 2],
    translation: [f64; 2],
}

impl Default for Similarity {
    fn default() -> Self {
        Self { rotation: [1.0, 0.0], translation: [0.0; 2] }
    }
}

impl Similarity {
    /// The similarity x' = p x − q y + t₀, y' = q x + p y + t₁ with p = s cos φ and q = s sin φ.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when a value is not finite.
    pub fn new([p, q]: [f64; 2], translation: [f64; 2]) -> Result<Self> {
        let similarity = Self { rotation: [p, q], translation };
        check_finite(&similarity.matrix(), "similarity").map(|()| similarity)
    }

    /// The scale s.
    pub fn scale(&self) -> f64 {
        let [p, q] = self.rotation;
        (p * p + q * q).sqrt()
    }

    /// The rotation φ in radians, (−π, π\], turning from +x towards +y.
    pub fn angle(&self) -> f64 {
        libm::atan2(self.rotation[1], self.rotation[0])
    }

    /// The translation t in pixels of B.
    pub fn translation(&self) -> [f64; 2] {
        self.translation
    }

    /// The 3×3 matrix, row-major; its last row is 0, 0, 1.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        Affine::from(*self).matrix()
    }

    /// The point of B for (x, y).
    pub fn apply(&self, place: [f64; 2]) -> [f64; 2] {
        Affine::from(*self).apply(place)
    }

    /// The similarity from B to A; `None` when its scale is 0.
    pub fn inverse(&self) -> Option<Self> {
        let [p, q] = self.rotation;
        let norm = p * p + q * q;
        let (p, q) = (p / norm, -q / norm);
        let [x, y] = self.translation;
        (norm > 0.0).then(|| Self { rotation: [p, q], translation: [-(p * x - q * y), -(q * x + p * y)] })
    }

    /// `c_from_b.compose(&b_from_a)` is `c_from_a`.
    #[must_use]
    pub fn compose(&self, b_from_a: &Self) -> Self {
        let ([p, q], [r, s]) = (b_from_a.rotation, self.rotation);
        Self { rotation: [p * r - q * s, p * s + q * r], translation: self.apply(b_from_a.translation) }
    }
}

impl From<Similarity> for Affine {
    fn from(s: Similarity) -> Self {
        let ([p, q], [x, y]) = (s.rotation, s.translation);
        Self([[p, -q, x], [q, p, y]])
    }
}

/// Epipolar geometry: bᵀ · F · a = 0, rank 2, scaled to Frobenius norm 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fundamental(Mat3);

impl Fundamental {
    /// The fundamental matrix nearest to `matrix` (in Frobenius norm) of those with rank 2.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when the matrix has a rank below 2 or is not finite.
    pub fn new(matrix: [[f64; 3]; 3]) -> Result<Self> {
        check_finite(&matrix, "fundamental matrix")?;
        let wrong =
            || Error::Degenerate { model: "fundamental matrix", reason: "its matrix has a rank below 2" };
        let unit = matrix::unit(&matrix).filter(|unit| !is_of_rank_one(unit)).ok_or_else(wrong)?;
        matrix::unit(&rank_two(&unit)).map(Self).ok_or_else(wrong)
    }

    /// The matrix, row-major.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        self.0
    }

    /// The line `[p, q, r]` in B with p x + q y + r = 0, on which the match of a point of A lies.
    pub fn line_in_b(&self, [x, y]: [f64; 2]) -> [f64; 3] {
        times(&self.0, [x, y, 1.0])
    }

    /// The geometry from B to A: the transpose.
    #[must_use]
    pub fn inverse(&self) -> Self {
        Self(transpose(&self.0))
    }
}

/// Epipolar geometry of two known cameras: rᵦᵀ E rₐ = 0 for the rays r = ((u − cx)/fx, (v − cy)/fy, 1) of a match, scaled
/// to Frobenius norm 1. Lens distortion is ignored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Essential {
    matrix: Mat3,
    cameras: [Camera; 2],
}

impl Essential {
    /// The essential matrix of the cameras of A and B nearest to `matrix`, with singular values s, s and 0. A matrix
    /// that has such values up to rounding is only scaled.
    ///
    /// # Errors
    /// [`Error::Degenerate`] when the matrix is 0 or not finite, or far from an essential matrix: if the second singular
    /// value is less than half of the first, or the third more than a tenth of it.
    pub fn new(matrix: [[f64; 3]; 3], cameras: [Camera; 2]) -> Result<Self> {
        let wrong = |reason| Error::Degenerate { model: "essential matrix", reason };
        let unit = matrix::unit(&matrix).ok_or(wrong("its matrix is 0 or not finite"))?;
        let [least, second, first] = singular(&unit).map(|s| dot(s.image, s.image).sqrt());
        if second < 0.5 * first || least > 0.1 * first {
            return Err(wrong("the singular values of its matrix are not s, s and 0"));
        }
        let is_one = first - second <= ROUNDING * first && least <= ROUNDING * first;
        Ok(Self { matrix: if is_one { unit } else { nearest_essential(&unit) }, cameras })
    }

    /// The matrix between rays, row-major.
    pub fn matrix(&self) -> [[f64; 3]; 3] {
        self.matrix
    }

    /// The cameras of A and B.
    pub fn cameras(&self) -> [Camera; 2] {
        self.cameras
    }

    /// The same between pixels: Kᵦ⁻ᵀ E Kₐ⁻¹.
    pub fn fundamental(&self) -> Fundamental {
        let [ka, kb] = self.cameras.map(|camera| {
            let ([fx, fy], [cx, cy]) = (camera.focal, camera.principal);
            [[1.0 / fx, 0.0, -cx / fx], [0.0, 1.0 / fy, -cy / fy], IDENTITY[2]]
        });
        let between = product(&product(&transpose(&kb), &self.matrix), &ka);
        Fundamental(matrix::unit(&between).unwrap_or(between))
    }

    /// The geometry from B to A.
    #[must_use]
    pub fn inverse(&self) -> Self {
        let [a, b] = self.cameras;
        Self { matrix: transpose(&self.matrix), cameras: [b, a] }
    }
}

/// Whether all 2×2 minors are 0 up to rounding, whatever the scale of the rows and columns.
fn is_of_rank_one(m: &Mat3) -> bool {
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let is_zero = |(i, j): (usize, usize), (k, l): (usize, usize)| {
        let [p, q] = [m[i][k] * m[j][l], m[i][l] * m[j][k]];
        (p - q).abs() <= 1e-14 * (p.abs() + q.abs())
    };
    pairs.into_iter().all(|rows| pairs.into_iter().all(|columns| is_zero(rows, columns)))
}

/// The unit vector e that minimises |m e|.
pub(super) fn epipole(m: &Mat3) -> [f64; 3] {
    singular(m)[0].right
}

/// A share of the greatest singular value that rounding can cause.
const ROUNDING: f64 = 1e-9;

/// The essential matrix of norm 1 nearest to a matrix: its two greater singular values become equal, the least 0. Not
/// finite where these are 0.
pub(super) fn nearest_essential(m: &Mat3) -> Mat3 {
    let [_, p, q] = singular(m).map(|Singular { right, image }| {
        let scale = std::f64::consts::FRAC_1_SQRT_2 / dot(image, image).sqrt();
        (image.map(|x| x * scale), right)
    });
    std::array::from_fn(|i| std::array::from_fn(|j| p.0[i] * p.1[j] + q.0[i] * q.1[j]))
}

/// m − m v vᵀ for its last right singular vector v: the nearest matrix of rank 2.
pub(super) fn rank_two(m: &Mat3) -> Mat3 {
    let v = epipole(m);
    m.map(|row| {
        let along = dot(row, v);
        std::array::from_fn(|j| row[j] - along * v[j])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::estimate::{Correspondence, residuals};
    use proptest::prelude::*;

    fn close(a: [f64; 2], b: [f64; 2]) -> bool {
        (a[0] - b[0]).abs().max((a[1] - b[1]).abs()) < 1e-6
    }

    proptest! {
        #[test]
        fn inverses_and_compositions(v in proptest::array::uniform8(-0.4_f64..0.4), p in [0.0_f64..500.0, 0.0..400.0]) {
            let linear = [[1.0 + v[0], v[1], 90.0 * v[2]], [v[3], 1.0 + v[4], 90.0 * v[5]]];
            let (affine, similarity) =
                (Affine::new(linear).unwrap(), Similarity::new([1.0 + v[0], v[1]], [90.0 * v[2], v[3]]).unwrap());
            let h = Homography::new([linear[0], linear[1], [4e-4 * v[6], 4e-4 * v[7], 1.0]]).unwrap();
            prop_assert!(close(affine.inverse().unwrap().apply(affine.apply(p)), p), "affine");
            prop_assert!(close(similarity.inverse().unwrap().apply(similarity.apply(p)), p), "similarity");
            let there = h.apply(p).unwrap();
            prop_assert!(close(h.inverse().unwrap().apply(there).unwrap(), p), "homography");
            prop_assert!(close(affine.compose(&affine).apply(p), affine.apply(affine.apply(p))), "affine twice");
            prop_assert!(close(similarity.compose(&similarity).apply(p), similarity.apply(similarity.apply(p))), "twice");
            let both = Homography::from(affine).compose(&h).apply(p).unwrap();
            prop_assert!(close(both, affine.apply(there)), "homography, then affine");
            let turned = Affine::from(similarity).apply(p);
            prop_assert!(close(turned, Model::Similarity(similarity).homography().unwrap().apply(p).unwrap()), "as");
        }

        #[test]
        fn fundamental_has_rank_two(v in proptest::array::uniform9(-1.0_f64..1.0)) {
            let Ok(f) = Fundamental::new([[v[0], v[1], v[2]], [v[3], v[4], v[5]], [v[6], v[7], v[8]]]) else {
                return Ok(());
            };
            prop_assert!(determinant(&f.matrix()).abs() < 1e-14, "rank 2");
            let worst = times(&f.matrix(), epipole(&f.matrix())).into_iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            prop_assert!(worst < 1e-7, "F e = 0, not {}", worst);
        }
    }

    #[test]
    fn a_matrix_between_pixels_far_from_the_origin_keeps_its_lines() {
        let exact = [[0.02, -0.9, 0.3], [0.8, 0.05, -0.6], [-0.28, 0.62, 0.0]];
        // Its third column is a mixture of the others: rank 2.
        let exact = exact.map(|[x, y, _]| [x, y, 0.3 * x - 0.7 * y]);
        for [scale, shift] in [[1.0, 0.0], [1e3, 5e2], [3.2e4, 1.6e4], [1e6, 5e5], [900.0, 2e4], [900.0, 5e5]]
        {
            let to_rays =
                [[1.0 / scale, 0.0, -shift / scale], [0.0, 1.0 / scale, -shift / scale], IDENTITY[2]];
            let between_pixels = product(&product(&transpose(&to_rays), &exact), &to_rays);
            let f = Model::Fundamental(Fundamental::new(between_pixels).unwrap());
            for [x, y] in [[0.2, 0.3], [-0.4, 0.1], [0.4, -0.3]] {
                let [p, q, r] = times(&exact, [x, y, 1.0]);
                // The point of the line that is nearest to the origin.
                let on_line = [p, q].map(|v| -v * r / (p * p + q * q));
                let [a, b] = [[x, y], on_line].map(|place| place.map(|v| v * scale + shift));
                let found = residuals(&f, &[Correspondence { a, b, quality: 0.0 }])[0];
                assert!(found < 1e-3, "scale {scale}, shift {shift}: {found} px");
            }
        }
    }

    #[test]
    fn essential_matrices_have_two_equal_singular_values() {
        let camera = Camera { focal: [500.0; 2], principal: [320.0, 240.0], distortion: Default::default() };
        let turn = matrix::cayley([0.1, -0.3, 0.2]);
        let exact = matrix::unit(&product(&matrix::skew([0.6, 0.1, -0.3]), &turn)).unwrap();
        let kept = Essential::new(exact, [camera; 2]).unwrap();
        let again = Essential::new(kept.matrix(), [camera; 2]).unwrap();
        assert_eq!(again, kept, "an essential matrix stays as it is");
        let mut near = exact;
        near[0][1] += 0.01;
        let found = singular(&Essential::new(near, [camera; 2]).unwrap().matrix());
        let [least, second, first] = found.map(|s| dot(s.image, s.image).sqrt());
        assert!(first - second < 1e-12 && least < 1e-12, "the nearest: {first}, {second} and {least}");
        let unequal = [[1.0, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0; 3]];
        assert!([IDENTITY, unequal].iter().all(|m| Essential::new(*m, [camera; 2]).is_err()), "far from any");
    }

    #[test]
    fn singular_and_not_finite_are_refused() {
        let nan = [[f64::NAN; 3]; 3];
        let flat = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 0.0]];
        assert!(Homography::new(nan).is_err() && Fundamental::new(nan).is_err(), "not a number");
        assert!(Homography::new(flat).is_err() && Fundamental::new(flat).is_err(), "rank 1");
        assert!(Homography::new([[0.0; 3]; 3]).is_err() && Fundamental::new([[0.0; 3]; 3]).is_err(), "zero");
        assert!(Affine::new([[1.0, 2.0, 3.0], [2.0, 4.0, 9.0]]).unwrap().inverse().is_none(), "no inverse");
        assert!(Similarity::new([0.0; 2], [1.0; 2]).unwrap().inverse().is_none(), "no inverse");
    }

    #[test]
    fn derivatives_are_slopes() {
        let h = Homography::new([[1.1, 0.2, 30.0], [-0.1, 0.9, 12.0], [1e-3, -2e-3, 1.0]]).unwrap();
        let (p, e) = ([20.0, 35.0], 1e-6);
        let slopes = h.derivative(p);
        for (i, step) in [[e, 0.0], [0.0, e]].into_iter().enumerate() {
            let (a, b) = (h.apply(p).unwrap(), h.apply([p[0] + step[0], p[1] + step[1]]).unwrap());
            for k in 0..2 {
                assert!((slopes[2 * k + i] - (b[k] - a[k]) / e).abs() < 1e-5, "derivative {k} by {i}");
            }
        }
    }

    #[test]
    fn a_matrix_that_ends_in_one_keeps_its_bits_and_is_shown_by_rows() {
        let matrix = [[0.1, 0.7, 3.3], [-0.3, 1.1, 1.0 / 3.0], [1e-4, -2e-4, 1.0]];
        assert_eq!(Homography::new(matrix).unwrap().matrix(), matrix, "as given");
        let shown =
            Homography::new([[1.0, 0.5, 2.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]]).unwrap().to_string();
        let rows: Vec<Vec<f64>> =
            shown.lines().map(|row| row.split_whitespace().map(|v| v.parse().unwrap()).collect()).collect();
        assert_eq!(rows, [[1.0, 0.5, 2.0], [0.0, 1.0, -3.0], [0.0, 0.0, 1.0]], "{shown}");
    }

    #[test]
    fn points_on_and_beyond_the_horizon_have_no_image() {
        let matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-0.01, 0.0, 1.0]];
        let (given, seen) = (Homography::new(matrix).unwrap(), Homography::in_front(matrix).unwrap());
        for h in
            [given, seen, seen.inverse().unwrap().inverse().unwrap(), seen.compose(&Homography::default())]
        {
            assert!(h.apply([50.0, 7.0]).is_some() && h.apply([100.0, 7.0]).is_none(), "on it");
            assert_eq!(h.apply([150.0, 7.0]).is_some(), h.sided() != matrix, "beyond it");
        }
        assert!(given.sided() != matrix && seen.sided() == matrix, "known only for the second");
        // Seen from the other side: the origin of A lies beyond the horizon.
        let behind = Homography::in_front(matrix.map(|row| row.map(|v| -v))).unwrap();
        assert_eq!(behind.apply([150.0, 7.0]), given.apply([150.0, 7.0]));
        assert!(behind.apply([150.0, 7.0]).is_some() && behind == given);
    }
}
