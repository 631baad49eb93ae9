//! Columns as COLMAP stores them: little-endian numbers, one after the other.

use std::borrow::Cow;
use tiepoint::feature::{Descriptors, Keypoint};

/// Pixels from the corner of the first pixel, where COLMAP's coordinates begin, to its centre.
const CENTRE: f32 = 0.5;

/// x, y, and the matrix that maps the unit square to the patch: s·cos, −s·sin, s·sin, s·cos.
pub(crate) fn keypoints(keypoints: &[Keypoint]) -> Vec<u8> {
    let row = |k: &Keypoint| {
        let (sin, cos) = libm::sincos(f64::from(k.angle));
        let scaled = |v: f64| (f64::from(k.scale) * v) as f32;
        [k.x + CENTRE, k.y + CENTRE, scaled(cos), scaled(-sin), scaled(sin), scaled(cos)]
    };
    keypoints.iter().flat_map(row).flat_map(f32::to_le_bytes).collect()
}

/// The values of descriptors, and the bytes of each.
pub(crate) fn descriptors(values: &Descriptors) -> (Cow<'_, [u8]>, usize) {
    match values {
        Descriptors::U8(values) => (values.into(), 1),
        Descriptors::F32(values) => (values.iter().flat_map(|v| v.to_le_bytes()).collect(), 4),
    }
}

pub(crate) fn floats(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub(crate) fn numbers(pairs: &[[u32; 2]]) -> Vec<u8> {
    pairs.iter().flatten().flat_map(|i| i.to_le_bytes()).collect()
}

/// T⁻ᵀ F T⁻¹, where T moves points by half a pixel along both axes: F for COLMAP's pixels.
pub(crate) fn moved_fundamental(f: [f64; 9]) -> [f64; 9] {
    let t = -f64::from(CENTRE);
    let [a, b, c, d, e, g, h, i, j] = f;
    // The last column absorbs the shift in the first image, then the last row that in the second.
    let (c, g, j) = (c + t * (a + b), g + t * (d + e), j + t * (h + i));
    [a, b, c, d, e, g, h + t * (a + d), i + t * (b + e), j + t * (c + g)]
}

/// T H T⁻¹ with the same T: H for COLMAP's pixels.
pub(crate) fn moved_homography(h: [f64; 9]) -> [f64; 9] {
    let t = f64::from(CENTRE);
    let [a, b, c, d, e, f, g, h, i] = h;
    let (c, f, i) = (c - t * (a + b), f - t * (d + e), i - t * (g + h));
    [a + t * g, b + t * h, c + t * i, d + t * g, e + t * h, f + t * i, g, h, i]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(m: [f64; 9], [x, y]: [f64; 2]) -> [f64; 3] {
        std::array::from_fn(|r| m[3 * r] * x + m[3 * r + 1] * y + m[3 * r + 2])
    }

    #[test]
    fn models_hold_in_colmaps_pixels() {
        let model = [1.5, -0.2, 7.0, 0.3, 0.9, -4.0, 1e-3, -2e-3, 1.25];
        let (p, q) = ([13.0, 29.0], [-3.0, 17.5]);
        let moved = |[x, y]: [f64; 2]| [x + 0.5, y + 0.5];
        let epipolar = |f: [f64; 9], p: [f64; 2], q: [f64; 2]| {
            let line = map(f, p);
            line[0] * q[0] + line[1] * q[1] + line[2]
        };
        let (here, there) = (epipolar(model, p, q), epipolar(moved_fundamental(model), moved(p), moved(q)));
        assert!((here - there).abs() < 1e-9, "{here} and {there}");
        let point = |m, p| {
            let [x, y, w] = map(m, p);
            [x / w, y / w]
        };
        let (here, there) = (moved(point(model, p)), point(moved_homography(model), moved(p)));
        assert!((0..2).all(|i| (here[i] - there[i]).abs() < 1e-9), "{here:?} and {there:?}");
    }

    #[test]
    fn a_keypoint_has_its_place_and_shape() {
        let k = Keypoint { x: 3.0, y: 4.0, scale: 2.0, ..Keypoint::default() };
        let row: Vec<f32> =
            keypoints(&[k]).chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(row, [3.5, 4.5, 2.0, 0.0, 0.0, 2.0], "upright");
    }
}
