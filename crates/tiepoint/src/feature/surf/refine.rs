//! The position of an extremum between the samples: the top of the quadratic through its 27 values.
//!
//! Brown and Lowe 2002; Δ = −H⁻¹g with g and H from central differences of the magnitudes, in x, y (in
//! samples) and scale (in intervals). f32, no fused steps, H inverted by its adjugate, every sum from left to
//! right as written. An offset of one half or more in any direction means that the sample was not the
//! nearest one, and the extremum is dropped (OpenCV: above 1).

use super::{SurfPreset, plan::Octave};
use crate::feature::Keypoint;

/// The offset (x, y, scale) of the top from the centre of `v[layer][row][column]`. Not finite when there is
/// no top.
pub(super) fn offset(v: &[[[f32; 3]; 3]; 3]) -> [f32; 3] {
    let [below, own, above] = v;
    let centre = own[1][1];
    let g =
        [-0.5 * (own[1][2] - own[1][0]), -0.5 * (own[2][1] - own[0][1]), -0.5 * (above[1][1] - below[1][1])];
    let second = |a: f32, b: f32| a - 2.0 * centre + b;
    let mixed = |a: f32, b: f32, c: f32, d: f32| (a - b - c + d) * 0.25;
    let xx = second(own[1][0], own[1][2]);
    let yy = second(own[0][1], own[2][1]);
    let ss = second(below[1][1], above[1][1]);
    let xy = mixed(own[2][2], own[2][0], own[0][2], own[0][0]);
    let xs = mixed(above[1][2], above[1][0], below[1][2], below[1][0]);
    let ys = mixed(above[2][1], above[0][1], below[2][1], below[0][1]);
    let adjugate = [
        [yy * ss - ys * ys, xs * ys - xy * ss, xy * ys - xs * yy],
        [xs * ys - xy * ss, xx * ss - xs * xs, xs * xy - xx * ys],
        [xy * ys - xs * yy, xs * xy - xx * ys, xx * yy - xy * xy],
    ];
    let determinant = xx * adjugate[0][0] + xy * adjugate[1][0] + xs * adjugate[2][0];
    let inverse = 1.0 / determinant;
    adjugate.map(|row| inverse * (row[0] * g[0] + row[1] * g[1] + row[2] * g[2]))
}

/// The sample at which an extremum was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub octave: usize,
    pub layer: usize,
    pub row: usize,
    pub column: usize,
    /// The signed response.
    pub response: f32,
}

/// The keypoint of an extremum, without its angle; `None` when the offset is too large.
///
/// σ is 1.2/9 of the filter size at the refined interval: 1.2/9 · 3 · (2^(o+1)·(i + Δσ + 1) + 1).
pub(super) fn keypoint(
    preset: SurfPreset,
    octave: &Octave,
    sample: Sample,
    offset: [f32; 3],
) -> Option<Keypoint> {
    let near = |d: f32| match preset {
        SurfPreset::Paper | SurfPreset::OpenSurf => d.abs() < 0.5,
        SurfPreset::OpenCv => d.abs() <= 1.0,
    };
    if !offset.into_iter().all(near) {
        return None;
    }
    let step = octave.step as f32;
    let at = |grid: usize, d: f32| (grid as f32 + d) * step + octave.centre;
    let scale = match preset {
        SurfPreset::Paper | SurfPreset::OpenSurf => {
            let doubling = (2_u32 << sample.octave) as f32;
            0.4 * (doubling * (sample.layer as f32 + offset[2] + 1.0) + 1.0)
        }
        SurfPreset::OpenCv => {
            let size = |layer: usize| octave.layers[layer].filter.size as f32;
            let growth = size(sample.layer) - size(sample.layer - 1);
            (size(sample.layer) + offset[2] * growth).round_ties_even() * (1.2 / 9.0)
        }
    };
    Some(Keypoint {
        x: at(sample.column, offset[0]),
        y: at(sample.row, offset[1]),
        scale,
        angle: 0.0,
        response: sample.response.abs(),
        sign: if sample.response > 0.0 { 1 } else { -1 },
        octave: sample.octave as i8,
        layer: sample.layer as u8,
    })
}
