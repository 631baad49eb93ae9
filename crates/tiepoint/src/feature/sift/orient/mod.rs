//! The directions of a keypoint (Lowe §5).
//!
//! Gradients of the level nearest in scale, by differences of neighbours and weighted by a Gaussian of 1.5
//! times the keypoint's σ, are split between the two nearest of 36 bins. The histogram is smoothed; every
//! peak of at least 80 % of the highest gives a direction, refined by a parabola through three bins.
//!
//! Contributions are magnitude · weight in units of 2⁻²¹, rounded to nearest even, and added as integers.

pub(crate) mod gpu;

use crate::feature::sift::refine::Point;
use crate::feature::sift::scale_space::Octave;
use crate::feature::sift::window::{LANES, Samples, UNIT, Window, around, to_integer, visit};
use crate::feature::sift::{SiftOptions, SiftPreset};
use crate::numeric;
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::f32::consts::TAU;
use std::ops::Range;

/// Bins of the histogram, 10° each.
pub(super) const BINS: usize = 36;

/// Bins while gradients are added. They continue beyond a full turn, because half a bin is added before
/// rounding.
const PADDED: usize = 2 * BINS;

/// For each bin, the sum that was added to it as the first of two neighbours, and the sum that was added to the next
/// bin as the second: a gradient adds one aligned pair. Two histograms are used in turn, so that an addition need not
/// wait for the one before, which is most often to the same bin.
type Histogram = [[[i32; 2]; PADDED]; 2];

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
        SiftPreset::Default | SiftPreset::OpenCv => {
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
fn histogram<S: Simd>(simd: S, octave: &Octave, point: &Point, preset: SiftPreset) -> [i64; BINS] {
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let sigma = 1.5 * point.scale;
    // OpenCV measures distances from the nearest pixel and takes the nearest bin.
    let exact = preset != SiftPreset::OpenCv;
    let centre =
        if exact { (point.x, point.y) } else { (point.x.round_ties_even(), point.y.round_ties_even()) };
    let radius = (3.0 * sigma).round_ties_even() as usize;
    let mut directions = Directions {
        columns: around(point.x, radius, octave.size.width),
        falloff: -0.5 / (sigma * sigma),
        exact,
        histogram: [[[0; 2]; PADDED]; 2],
    };
    visit(simd, level, centre, around(point.y, radius, octave.size.height), &mut directions);
    let bin = |i: usize, part: usize| {
        let sums = directions.histogram.iter().flat_map(|h| [h[i][part], h[i + BINS][part]]);
        sums.map(i64::from).sum::<i64>()
    };
    std::array::from_fn(|i| bin(i, 0) + bin((i + BINS - 1) % BINS, 1))
}

struct Directions {
    columns: Range<usize>,
    falloff: f32,
    exact: bool,
    histogram: Histogram,
}

impl<S: Simd> Window<S> for Directions {
    #[inline(always)]
    fn columns(&self, _: f32) -> Range<usize> {
        self.columns.clone()
    }

    #[inline(always)]
    fn add(&mut self, _: S, samples: &Samples) {
        let mut votes = Votes::default();
        for i in 0..LANES {
            let (gx, gy, dx, dy) = (samples.gx[i], samples.gy[i], samples.dx[i], samples.dy[i]);
            let weight = numeric::exp(dx.mul_add(dx, dy * dy) * self.falloff);
            let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * UNIT;
            let position = numeric::atan2(gy, gx) * (BINS as f32 / TAU);
            if self.exact {
                // Bin b is centred at b + ½; the part beyond its centre belongs to the next bin.
                let shifted = position + (BINS as f32 - 0.5);
                let nearest = to_integer(shifted - 0.5);
                let second = to_integer(strength * (shifted - nearest as f32));
                votes.bin[i] = nearest;
                votes.parts[i] = [to_integer(strength) - second, second];
            } else {
                votes.bin[i] = to_integer(position);
                votes.parts[i] = [to_integer(strength), 0];
            }
        }
        for i in 0..LANES {
            let sums = &mut self.histogram[i % 2][votes.bin[i] as usize];
            *sums = [sums[0] + votes.parts[i][0], sums[1] + votes.parts[i][1]];
        }
    }
}

/// For each of [`LANES`] pixels, its bin, and its contributions to that bin and to the next.
#[derive(Default)]
#[repr(align(64))]
struct Votes {
    bin: [i32; LANES],
    parts: [[i32; 2]; LANES],
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
