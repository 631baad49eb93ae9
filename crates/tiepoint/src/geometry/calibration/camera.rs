//! One camera: pinhole projection and the lens distortion of Brown (1966) and Conrady (1919).
//!
//! A ray (X, Y, Z) meets the plane Z = 1 at x = X/Z, y = Y/Z. With r² = x² + y² the lens moves it to x' = x
//! (1 + k₁r² + k₂r⁴ + k₃r⁶) + 2 p₁xy + p₂(r² + 2x²), y' = y (1 + k₁r² + k₂r⁴ + k₃r⁶) + p₁(r² + 2y²) + 2 p₂xy,
//! and the pixel is (fx x' + cx, fy y' + cy), pixel centres at integers, as in OpenCV. Computed in f64, in the order
//! written, without fused operations.
//!
//! The radial part describes a lens only as long as r (1 + k₁r² + …) grows with r. Beyond that it folds back and would
//! draw far rays into the image a second time. Such rays have no pixel.

use crate::geometry::linear::cubic_roots;
use crate::geometry::matrix::Mat3;
use crate::image::Size;
use crate::{Error, Result};

/// Coefficients of the lens distortion, without unit, on the plane Z = 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Distortion {
    /// Radial, of r².
    pub k1: f64,
    /// Radial, of r⁴.
    pub k2: f64,
    /// Tangential, along y.
    pub p1: f64,
    /// Tangential, along x.
    pub p2: f64,
    /// Radial, of r⁶.
    pub k3: f64,
}

impl Distortion {
    /// The coefficients in OpenCV's order: k₁, k₂, p₁, p₂, k₃.
    pub fn from_opencv([k1, k2, p1, p2, k3]: [f64; 5]) -> Self {
        Self { k1, k2, p1, p2, k3 }
    }

    /// Whether there is no distortion.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Distorts a point on the plane Z = 1.
    #[inline(always)]
    pub fn apply(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        let r2 = x * x + y * y;
        let radial = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3));
        let xy = 2.0 * x * y;
        [
            x * radial + (self.p1 * xy + self.p2 * (r2 + 2.0 * x * x)),
            y * radial + (self.p1 * (r2 + 2.0 * y * y) + self.p2 * xy),
        ]
    }

    /// The derivatives of [`apply`](Self::apply), row by row.
    fn derivative(&self, [x, y]: [f64; 2]) -> [[f64; 2]; 2] {
        let r2 = x * x + y * y;
        let radial = 1.0 + r2 * (self.k1 + r2 * (self.k2 + r2 * self.k3));
        // d radial / d r², doubled.
        let slope = 2.0 * (self.k1 + r2 * (2.0 * self.k2 + r2 * 3.0 * self.k3));
        let mixed = slope * x * y + 2.0 * (self.p1 * x + self.p2 * y);
        [
            [radial + slope * x * x + 2.0 * self.p1 * y + 6.0 * self.p2 * x, mixed],
            [mixed, radial + slope * y * y + 6.0 * self.p1 * y + 2.0 * self.p2 * x],
        ]
    }

    /// The square of the radius up to which the radial part grows; infinite where it always does.
    pub fn reach(&self) -> f64 {
        // d/dr r (1 + k₁r² + k₂r⁴ + k₃r⁶) = 0, in r².
        let roots = cubic_roots([1.0, 3.0 * self.k1, 5.0 * self.k2, 7.0 * self.k3]);
        roots.filter(|r| *r > 0.0).fold(f64::INFINITY, f64::min)
    }

    /// Undoes the distortion: the point that [`apply`](Self::apply) moves to `target`, by Newton's method; `None` if
    /// there is none within [`reach`](Self::reach).
    pub fn undo(&self, target: [f64; 2]) -> Option<[f64; 2]> {
        if self.is_none() {
            return Some(target);
        }
        let reach = self.reach();
        let mut p = target;
        for _ in 0..40 {
            let [[a, b], [c, d]] = self.derivative(p);
            let q = self.apply(p);
            let (ex, ey) = (target[0] - q[0], target[1] - q[1]);
            let det = a * d - b * c;
            let step = [(d * ex - b * ey) / det, (a * ey - c * ex) / det];
            p = [p[0] + step[0], p[1] + step[1]];
            let size = p[0] * p[0] + p[1] * p[1];
            if !size.is_finite() {
                return None;
            }
            if step[0] * step[0] + step[1] * step[1] <= 1e-28 * (1.0 + size) {
                return (size <= reach).then_some(p);
            }
        }
        None
    }
}

/// A camera: focal lengths and principal point in pixels, and its lens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// Focal length along x and along y.
    pub focal: [f64; 2],
    /// Where the optical axis meets the image.
    pub principal: [f64; 2],
    /// The lens.
    pub distortion: Distortion,
}

impl Camera {
    /// A camera without distortion, with square pixels and its principal point in the middle of the image.
    pub fn centred(focal: f64, size: Size) -> Self {
        let middle = |n: usize| (n as f64 - 1.0) / 2.0;
        let principal = [middle(size.width), middle(size.height)];
        Self { focal: [focal; 2], principal, distortion: Distortion::default() }
    }

    /// Checks that the focal lengths are above 0.001 pixels, and that the magnitudes of all numbers are below 10¹².
    ///
    /// # Errors
    /// [`Error::Mismatch`] naming the wrong ones.
    pub fn check(&self) -> Result<()> {
        let Distortion { k1, k2, p1, p2, k3 } = self.distortion;
        // With this limit the powers and products of these numbers cannot overflow.
        let sound = |v: f64| v.abs() < 1e12;
        let reason = if !self.focal.iter().all(|f| *f > 1e-3 && sound(*f)) {
            let [x, y] = self.focal;
            format!("a camera's focal lengths are {x}, {y}: expected pixels, above 0.001")
        } else if !self.principal.iter().chain(&[k1, k2, p1, p2, k3]).all(|v| sound(*v)) {
            "a camera's principal point or distortion is not finite, or too large".into()
        } else {
            return Ok(());
        };
        Err(Error::Mismatch(reason))
    }

    /// The matrix K, row-major.
    pub fn matrix(&self) -> Mat3 {
        let ([fx, fy], [cx, cy]) = (self.focal, self.principal);
        [[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]
    }

    /// The point on the plane Z = 1 that appears at a pixel; `None` where the lens images no point.
    pub fn ray(&self, [u, v]: [f64; 2]) -> Option<[f64; 2]> {
        let ([fx, fy], [cx, cy]) = (self.focal, self.principal);
        self.distortion.undo([(u - cx) / fx, (v - cy) / fy])
    }

    /// The pixel at which a point on the plane Z = 1 appears.
    #[inline(always)]
    pub fn pixel(&self, ray: [f64; 2]) -> [f64; 2] {
        let [x, y] = self.distortion.apply(ray);
        [self.focal[0] * x + self.principal[0], self.focal[1] * y + self.principal[1]]
    }
}
