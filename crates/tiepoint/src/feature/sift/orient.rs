//! The directions of a keypoint (Lowe §5).
//!
//! Gradients of the level nearest in scale, by differences of neighbours, weighted by a Gaussian of 1.5 times the
//! keypoint's σ, are split between the two nearest of 36 bins. The histogram is smoothed; every peak of at least 80 % of the highest gives a
//! direction, refined by a parabola through three bins.
//!
//! Contributions are magnitude · weight in units of 2⁻²¹, rounded to nearest even, and added as integers.

use super::refine::Point;
use super::scale_space::Octave;
use super::{SiftOptions, SiftPreset};
use crate::numeric;
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::f32::consts::TAU;

/// Bins of the histogram, 10° each.
const BINS: usize = 36;

/// Fixed-point units of a gradient of 1. A gradient is at most √2, so a contribution stays below 2²².
pub(super) const UNIT: f32 = 2_097_152.0;

/// Adding 1.5·2²³ leaves a float's nearest integer, ties to even, in its lowest bits; right for |v| < 2²².
#[inline(always)]
pub(super) fn to_integer(v: f32) -> i32 {
    const ROUNDER: f32 = 12_582_912.0;
    (v + ROUNDER).to_bits() as i32 - ROUNDER.to_bits() as i32
}

/// Samples that are worked on together.
pub(super) const LANES: usize = 16;

/// Gradients of up to [`LANES`] neighbouring pixels of a row; what lies beyond `n` is 0. Aligned, so that a vector that
/// is stored and loaded again does not cross a cache line.
#[repr(align(64))]
pub(super) struct Gradients {
    pub(super) x: [f32; LANES],
    pub(super) y: [f32; LANES],
}

impl Gradients {
    /// At pixels `x..x + n` of the middle of three rows; needs 1 ≤ x and x + n < width.
    #[inline(always)]
    pub(super) fn read(rows: [&[f32]; 3], x: usize, n: usize) -> Self {
        // A constant count makes the loop a few vector instructions; only at the right edge are there too few
        // pixels for it.
        if x + LANES < rows[1].len() {
            Self::difference(rows, x, LANES)
        } else {
            Self::difference(rows, x, n)
        }
    }

    #[inline(always)]
    fn difference(rows: [&[f32]; 3], x: usize, n: usize) -> Self {
        let part = |row: usize, x: usize| &rows[row][x..x + n];
        let (above, left, right, below) = (part(0, x), part(1, x - 1), part(1, x + 1), part(2, x));
        let mut g = Self { x: [0.0; LANES], y: [0.0; LANES] };
        for i in 0..n {
            g.x[i] = right[i] - left[i];
            g.y[i] = below[i] - above[i];
        }
        g
    }
}

/// For each of [`LANES`] pixels, a bin and what it adds to it and to the next.
#[derive(Default)]
#[repr(align(64))]
struct Votes {
    bin: [i32; LANES],
    low: [i32; LANES],
    high: [i32; LANES],
}

/// Pixels at distance ≤ `radius` of `centre`, short of the one-pixel frame in which there is no gradient.
pub(super) fn window(centre: f32, radius: usize, n: usize) -> std::ops::Range<usize> {
    let centre = centre.round_ties_even() as isize;
    let low = (centre - radius as isize).max(1) as usize;
    let high = (centre + radius as isize + 1).clamp(0, n as isize - 1) as usize;
    low..high.max(low)
}

/// The directions of a point in radians, \[0, 2π), by ascending bin.
#[simd]
pub(super) fn orient<S: Simd>(simd: S, octave: &Octave, point: &Point, options: &SiftOptions) -> Vec<f32> {
    if options.upright {
        return vec![0.0];
    }
    let histogram = histogram(simd, octave, point, options.preset);
    match options.preset {
        SiftPreset::VlFeat => {
            let mut smooth = histogram;
            for _ in 0..6 {
                smooth = std::array::from_fn(|i| {
                    smooth[(i + BINS - 1) % BINS] + smooth[i] + smooth[(i + 1) % BINS]
                });
            }
            let mut angles = peaks(&smooth, 0.5);
            angles.truncate(4);
            angles
        }
        _ => {
            let h = |i: usize| histogram[i % BINS];
            let smooth = std::array::from_fn(|i| {
                let i = i + BINS;
                h(i - 2) + h(i + 2) + 4 * (h(i - 1) + h(i + 1)) + 6 * h(i)
            });
            peaks(&smooth, if options.preset == SiftPreset::OpenCv { 0.0 } else { 0.5 })
        }
    }
}

/// Sums of weighted gradients by direction, in units of 1 / [`UNIT`].
#[simd]
fn histogram<S: Simd>(_: S, octave: &Octave, point: &Point, preset: SiftPreset) -> [i64; BINS] {
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let sigma = 1.5 * point.scale;
    let falloff = -0.5 / (sigma * sigma);
    // OpenCV measures distances from the nearest pixel and takes the nearest bin.
    let exact = preset != SiftPreset::OpenCv;
    let (cx, cy) =
        if exact { (point.x, point.y) } else { (point.x.round_ties_even(), point.y.round_ties_even()) };
    let radius = (3.0 * sigma).round_ties_even() as usize;
    let columns = window(point.x, radius, octave.size.width);
    let mut histogram = [0_i32; BINS + 1];
    for y in window(point.y, radius, octave.size.height) {
        let rows = [level.row(y - 1), level.row(y), level.row(y + 1)];
        let dy = y as f32 - cy;
        for x in columns.clone().step_by(LANES) {
            let n = LANES.min(columns.end - x);
            let gradient = Gradients::read(rows, x, n);
            let mut votes = Votes::default();
            for i in 0..LANES {
                let (gx, gy) = (gradient.x[i], gradient.y[i]);
                let dx = (x + i) as f32 - cx;
                let weight = numeric::exp(dx.mul_add(dx, dy * dy) * falloff);
                let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * UNIT;
                let place = numeric::atan2(gy, gx) * (BINS as f32 / TAU);
                if exact {
                    // Bin b is centred at b + ½; the part beyond its centre belongs to the next.
                    let shifted = place + (BINS as f32 - 0.5);
                    let nearest = to_integer(shifted - 0.5);
                    votes.bin[i] = nearest;
                    votes.high[i] = to_integer(strength * (shifted - nearest as f32));
                    votes.low[i] = to_integer(strength) - votes.high[i];
                } else {
                    votes.bin[i] = to_integer(place);
                    votes.low[i] = to_integer(strength);
                }
            }
            for i in 0..n {
                let b = votes.bin[i] as usize % BINS;
                histogram[b] += votes.low[i];
                histogram[b + 1] += votes.high[i];
            }
        }
    }
    histogram[0] += histogram[BINS];
    std::array::from_fn(|i| i64::from(histogram[i]))
}

/// Every local maximum of at least 80 % of the greatest bin, as an angle; `centre` is a bin's centre.
fn peaks(histogram: &[i64; BINS], centre: f32) -> Vec<f32> {
    let greatest = histogram.iter().copied().max().unwrap_or(0);
    let mut angles = Vec::new();
    for (i, &value) in histogram.iter().enumerate() {
        let (left, right) = (histogram[(i + BINS - 1) % BINS], histogram[(i + 1) % BINS]);
        if value > left && value > right && 5 * value >= 4 * greatest {
            let offset = 0.5 * (left - right) as f32 / (left - 2 * value + right) as f32;
            let bin = i as f32 + offset + centre;
            let bin = if bin < 0.0 { bin + BINS as f32 } else { bin };
            let angle = bin * (TAU / BINS as f32);
            angles.push(if angle < TAU { angle } else { 0.0 });
        }
    }
    angles
}
