//! The places in the input that output pixels show.

use super::Interpolation;
use crate::device::{Level, dispatch};
use crate::geometry::Homography;
use crate::image::Size;
use fearless_simd::Simd;

/// A map from output pixels to places in the input.
pub(crate) trait Map: Sync {
    /// The places (u, v) of the pixels (first, y), (first + 1, y), …; NaN for pixels without one.
    fn part(&self, first: usize, y: f64, u: &mut [f64], v: &mut [f64], level: Level);
}

impl Map for Homography {
    fn part(&self, first: usize, y: f64, u: &mut [f64], v: &mut [f64], level: Level) {
        dispatch!(level, simd => project(simd, self.sided(), first, y, u, v));
    }
}

#[inline(always)]
fn project<S: Simd>(_simd: S, m: [[f64; 3]; 3], first: usize, y: f64, u: &mut [f64], v: &mut [f64]) {
    // Whether a negative denominator lies beyond the horizon; see [`Homography::sided`].
    let sided = m[2][2] == 1.0;
    let [a, b, c] = [m[0], m[1], m[2]].map(|r| r[1] * y + r[2]);
    let first = first as i32;
    for (i, (u, v)) in u.iter_mut().zip(v).enumerate() {
        let at = f64::from(first.wrapping_add(i as i32));
        let w = m[2][0] * at + c;
        let front = if sided { w } else { w.abs() };
        *u = if front > 1e-12 { (m[0][0] * at + a) / w } else { f64::NAN };
        *v = (m[1][0] * at + b) / w;
    }
}

/// Places inside an input lie below these and not below −½.
pub(super) fn bounds(input: Size) -> [f64; 2] {
    [input.width as f64 - 0.5, input.height as f64 - 0.5]
}

pub(super) const COLUMNS: usize = 128;

/// The position of a pixel without input.
pub(super) const NOWHERE: i32 = i32::MIN;

/// Places in the input of neighbouring output pixels in a row: for each the pixel to the left of and above it (or the
/// nearest pixel, or [`NOWHERE`]), and the fractions beyond that pixel.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) left: [i32; COLUMNS],
    pub(super) top: [i32; COLUMNS],
    pub(super) x: [f32; COLUMNS],
    pub(super) y: [f32; COLUMNS],
}

impl Line {
    pub(super) const NOWHERE: Self =
        Self { left: [NOWHERE; COLUMNS], top: [NOWHERE; COLUMNS], x: [0.0; COLUMNS], y: [0.0; COLUMNS] };

    /// Fills the places of the pixels from (`first`, `y`) on; `u` and `v` are scratch memory.
    pub(super) fn find(
        &mut self,
        map: &impl Map,
        [first, y]: [usize; 2],
        input: Size,
        interpolation: Interpolation,
        [u, v]: &mut [[f64; COLUMNS]; 2],
        level: Level,
    ) {
        map.part(first, y as f64, u, v, level);
        dispatch!(level, simd => settle(simd, bounds(input), interpolation, [u, v], self));
    }
}

#[inline(always)]
fn settle<S: Simd>(
    _simd: S,
    [right, bottom]: [f64; 2],
    interpolation: Interpolation,
    [u, v]: [&[f64; COLUMNS]; 2],
    line: &mut Line,
) {
    let is_nearest = interpolation == Interpolation::Nearest;
    let pixel = |place: f64| if is_nearest { (place + 0.5).floor() } else { place.floor() };
    for i in 0..COLUMNS {
        let (u, v) = (u[i], v[i]);
        // NaN fails every comparison.
        let inside = (u >= -0.5) & (v >= -0.5) & (u < right) & (v < bottom);
        let (left, top) = (pixel(u), pixel(v));
        line.left[i] = if inside { whole(left) } else { NOWHERE };
        line.top[i] = if inside { whole(top) } else { NOWHERE };
        line.x[i] = (u - left) as f32;
        line.y[i] = (v - top) as f32;
    }
}

/// A whole number below 2³¹ as an integer: the last bits of its sum with 1.5 · 2⁵². A conversion would also
/// have to treat values that do not fit.
#[inline(always)]
fn whole(v: f64) -> i32 {
    (v + 6_755_399_441_055_744.0).to_bits() as i32
}
