//! The cameras of an essential matrix, for normalised points.

use super::parts::sums;
use super::points::Points;
use crate::device::Cpu;
use crate::geometry::calibration::Camera;
use crate::geometry::linear::nearest_rotation;
use crate::geometry::matrix::{Mat3, direction, inverse, is_finite, of_flat, product, times, transpose};
use crate::geometry::real::Real;

/// Both cameras as matrices from points to rays (x, y, 1). Lens distortion is ignored.
#[derive(Clone, Copy, Debug)]
pub(in crate::geometry) struct Rays {
    pub(in crate::geometry) ray_from_a: Mat3,
    /// Transposed.
    pub(in crate::geometry) ray_from_b: Mat3,
}

impl Rays {
    pub(in crate::geometry) fn new(cameras: &[Camera; 2], points: &Points) -> Self {
        let scale = points.scale;
        let [a, b] = points.centres;
        let ray_from = |camera: &Camera, centre: [f64; 2]| -> Mat3 {
            let [fx, fy] = camera.focal.map(|f| f * scale);
            let [cx, cy] = [0, 1].map(|i| (camera.principal[i] - centre[i]) * scale);
            [[1.0 / fx, 0.0, -cx / fx], [0.0, 1.0 / fy, -cy / fy], [0.0, 0.0, 1.0]]
        };
        Self { ray_from_a: ray_from(&cameras[0], a), ray_from_b: transpose(&ray_from(&cameras[1], b)) }
    }

    /// An essential matrix as a fundamental matrix between normalised points.
    pub(in crate::geometry) fn fundamental(&self, essential: &Mat3) -> Mat3 {
        product(&product(&self.ray_from_b, essential), &self.ray_from_a)
    }

    /// A fundamental matrix between normalised points as a matrix between rays, which need not be an essential matrix.
    pub(super) fn between_rays(&self, f: &Mat3) -> Option<Mat3> {
        let (a, b) = (inverse(&self.ray_from_a)?, inverse(&self.ray_from_b)?);
        Some(product(&product(&b, f), &a))
    }

    /// The rotation that best takes the rays of these matches in A to those in B, as a homography between normalised
    /// points.
    pub(super) fn rotation(&self, points: &Points, matches: &[usize], cpu: &Cpu) -> Option<Mat3> {
        let back = transpose(&self.ray_from_b);
        let products = sums(cpu, matches, |sum, i| {
            let a = direction(times(&self.ray_from_a, points.a(i)));
            let b = direction(times(&back, points.b(i)));
            std::array::from_fn(|k| sum[k] + b[k / 3] * a[k % 3])
        });
        let rotation = nearest_rotation(&of_flat(products));
        Some(product(&product(&inverse(&back)?, &rotation), &self.ray_from_a)).filter(is_finite)
    }

    #[inline(always)]
    pub(super) fn of<R: Real, const N: usize>(&self, [mut a, mut b]: [[[R; 2]; N]; 2]) -> [[[R; 2]; N]; 2] {
        let back = transpose(&self.ray_from_b);
        for place in &mut a {
            *place = ray(&self.ray_from_a, *place);
        }
        for place in &mut b {
            *place = ray(&back, *place);
        }
        [a, b]
    }
}

/// The ray of a point, by a matrix without shear.
#[inline(always)]
fn ray<R: Real>(m: &Mat3, [x, y]: [R; 2]) -> [R; 2] {
    [x * m[0][0] + m[0][2], y * m[1][1] + m[1][2]]
}
