//! Columns as COLMAP stores them: little-endian numbers, one after the other.

use tiepoint::feature::Keypoint;

/// Pixels from the corner of the first pixel, where COLMAP's coordinates begin, to its centre.
const CENTRE: f32 = 0.5;

/// x, y, and the matrix that maps the unit square to the patch: s·cos, −s·sin, s·sin, s·cos.
pub(crate) fn keypoints(keypoints: &[Keypoint]) -> Vec<u8> {
    let row = |k: &Keypoint| {
        let (sin, cos) = (f64::from(k.angle)).sin_cos();
        let scaled = |v: f64| (f64::from(k.scale) * v) as f32;
        [k.x + CENTRE, k.y + CENTRE, scaled(cos), scaled(-sin), scaled(sin), scaled(cos)]
    };
    keypoints.iter().flat_map(row).flat_map(f32::to_le_bytes).collect()
}

pub(crate) fn floats(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub(crate) fn numbers(pairs: &[[u32; 2]]) -> Vec<u8> {
    pairs.iter().flatten().flat_map(|i| i.to_le_bytes()).collect()
}
