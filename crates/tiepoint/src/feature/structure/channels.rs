//! Gradients by their direction, in six bins of 180°.
//!
//! ```text
//! n = (g − mean g) / (deviation of g + 0.02)                           0 where nothing counts
//! at σ = 0.8 and 1.6:  m = |∇(G_σ ∗ n)|,  m ← min(m / (mean m + 0.05), 4),  bin = angle of ∇ / 30° mod 6
//! ```
//!
//! A pixel divides m linearly between the two bins that its angle lies between. Means are local ones (`means`). Within
//! 3 pixels of pixels that do not count, gradients are 0.

use super::intensity::{Intensity, near};
use super::lanes::{BINS, COUNTS, LANES, Lane, pixels, pixels_mut};
use super::means::Means;
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::resample::{Scaling, resample};
use crate::image::{Image, Size};
use crate::numeric::atan2;
use fearless_simd::Simd;

/// Added to the deviation of brightness (white is 1): structure this weak is noise.
pub(super) const NOISE: f32 = 0.02;
/// Added to the mean of gradients.
pub(super) const FLAT: f32 = 0.05;
/// The largest magnitude of a gradient after the division by its mean.
pub(super) const CAP: f32 = 4.0;
pub(super) const BINS_A_RADIAN: f32 = BINS as f32 / std::f32::consts::PI;
/// The σ of the first scale, and that of the blur from the first to the second (1.6² = 0.8² + 1.386²).
pub(super) const SIGMAS: [f64; 2] = [0.8, 1.385_640_646_055_102];
/// The distance up to which pixels that do not count change gradients.
pub(super) const MARGIN: usize = 3;

/// The structure of a picture.
#[derive(Debug)]
pub(crate) struct Channels {
    /// Six bins for each pixel, and whether it counts: [`lanes`](super::lanes).
    pub(crate) lanes: Image<f32>,
    /// The sum of the bins.
    pub(super) strength: Image<f32>,
}

/// A new image whose rows are written by `row(y, out)`.
pub(super) fn rows_into(
    size: Size,
    channels: usize,
    cpu: &Cpu,
    row: impl Fn(usize, &mut [f32]) + Sync,
) -> Result<Image<f32>> {
    let mut out = Image::try_filled(size, channels, 0.0)?;
    cpu.try_for_chunks(out.data_mut(), (size.width * channels).max(1), row)?;
    Ok(out)
}

impl Channels {
    pub(crate) fn of(intensity: &Intensity, cpu: &Cpu) -> Result<Self> {
        let (size, level) = (intensity.size(), cpu.level());
        let even = normalised(intensity, cpu)?;
        let first = gauss(even.view(), &GaussOptions::sigma(SIGMAS[0]), cpu)?;
        let second = gauss(first.view(), &GaussOptions::sigma(SIGMAS[1]), cpu)?;
        let hidden = near(&Image::from_fn(size, |x, y| intensity.counts.row(y)[x] == 0.0), MARGIN);
        let counts = rows_into(size, 1, cpu, |y, out| {
            out.iter_mut().zip(hidden.row(y)).for_each(|(out, hidden)| *out = f32::from(u8::from(!hidden)));
        })?;
        let blurred = [first, second];
        let magnitudes = cpu.try_map(2, |i| {
            rows_into(size, 1, cpu, |y, out| {
                dispatch!(level, simd => magnitude(simd, Rows::around(&blurred[i], y), counts.row(y), out));
            })
        })?;
        let means = Means::of(&[&magnitudes[0], &magnitudes[1]], &counts, cpu)?;
        let lanes = rows_into(size, LANES, cpu, |y, out| {
            let mut scratch = vec![0.0; size.width * 3];
            let (mean, scratch) = scratch.split_at_mut(size.width);
            pixels_mut(out).iter_mut().zip(counts.row(y)).for_each(|(pixel, v)| pixel[COUNTS] = *v);
            for (i, blurred) in blurred.iter().enumerate() {
                means.row(i, y, mean);
                let of = [magnitudes[i].row(y), mean, counts.row(y)];
                dispatch!(level, simd => fill(simd, Rows::around(blurred, y), of, scratch, out));
            }
        })?;
        let strength = rows_into(size, 1, cpu, |y, out| {
            let sum = |pixel: &Lane| pixel[..BINS].iter().fold(0.0, |sum, v| sum + v);
            out.iter_mut().zip(pixels(lanes.row(y))).for_each(|(out, pixel)| *out = sum(pixel));
        })?;
        Ok(Self { lanes, strength })
    }
}

/// Half the size: the means of 2 × 2 pixels. A pixel counts where all four do.
pub(crate) fn halved_lanes(channels: &Channels, cpu: &Cpu) -> Result<Image<f32>> {
    resample(channels.lanes.view(), Scaling::HalveMean, cpu)
}

/// Brightness less its local mean, divided by its deviation.
fn normalised(intensity: &Intensity, cpu: &Cpu) -> Result<Image<f32>> {
    let (size, Intensity { grey, counts }) = (intensity.size(), intensity);
    let product = |a: &Image<f32>, b: &Image<f32>| {
        rows_into(size, 1, cpu, |y, out| {
            let both = a.row(y).iter().zip(b.row(y));
            out.iter_mut().zip(both).for_each(|(out, (a, b))| *out = a * b);
        })
    };
    let seen = product(grey, counts)?;
    let means = Means::of(&[&seen, &product(&seen, grey)?], counts, cpu)?;
    rows_into(size, 1, cpu, |y, out| {
        let mut square = vec![0.0; size.width];
        means.row(0, y, out);
        means.row(1, y, &mut square);
        dispatch!(cpu.level(), simd => normalise(simd, [grey.row(y), counts.row(y), &square], out));
    })
}

/// A row of local means becomes one of normalised brightness.
#[inline(always)]
fn normalise<S: Simd>(_: S, [grey, counts, square]: [&[f32]; 3], out: &mut [f32]) {
    for (((out, grey), counts), square) in out.iter_mut().zip(grey).zip(counts).zip(square) {
        let mean = *out;
        let deviation = (square - mean * mean).max(0.0).sqrt();
        *out = (grey - mean) / (deviation + NOISE) * counts;
    }
}

/// A row of an image and those above and below it, the edge repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows<'a> {
    above: &'a [f32],
    row: &'a [f32],
    below: &'a [f32],
}

impl<'a> Rows<'a> {
    pub(super) fn around(image: &'a Image<f32>, y: usize) -> Self {
        let last = image.size().height - 1;
        Self { above: image.row(y.saturating_sub(1)), row: image.row(y), below: image.row((y + 1).min(last)) }
    }

    /// Half differences of the neighbours along both axes.
    #[inline(always)]
    pub(super) fn gradients(self, across: &mut [f32], down: &mut [f32]) {
        let (row, n) = (self.row, self.row.len());
        for (out, pair) in across[1..].iter_mut().zip(row.windows(3)) {
            *out = 0.5 * (pair[2] - pair[0]);
        }
        across[0] = 0.5 * (row[1.min(n - 1)] - row[0]);
        across[n - 1] = 0.5 * (row[n - 1] - row[n.saturating_sub(2)]);
        for ((out, above), below) in down.iter_mut().zip(self.above).zip(self.below) {
            *out = 0.5 * (below - above);
        }
    }
}

#[inline(always)]
fn magnitude<S: Simd>(_: S, rows: Rows<'_>, counts: &[f32], out: &mut [f32]) {
    let mut down = vec![0.0; out.len()];
    rows.gradients(out, &mut down);
    for ((out, gy), counts) in out.iter_mut().zip(&down).zip(counts) {
        *out = (*out * *out + gy * gy).sqrt() * counts;
    }
}

/// Adds the gradients of a row to the bins. `of` are their magnitudes, the local means of these, and whether pixels count.
#[inline(always)]
fn fill<S: Simd>(_: S, rows: Rows<'_>, of: [&[f32]; 3], scratch: &mut [f32], out: &mut [f32]) {
    let (turns, strengths) = scratch.split_at_mut(of[0].len());
    rows.gradients(turns, strengths);
    for (x, (turn, strength)) in turns.iter_mut().zip(strengths.iter_mut()).enumerate() {
        *turn = atan2(*strength, *turn) * BINS_A_RADIAN;
        *strength = (of[0][x] / (of[1][x] + FLAT)).min(CAP) * of[2][x];
    }
    for ((pixel, turn), m) in pixels_mut(out).iter_mut().zip(turns).zip(strengths) {
        let bin = *turn as usize;
        let share = *turn - bin as f32;
        pixel[bin % BINS] += *m * (1.0 - share);
        pixel[(bin + 1) % BINS] += *m * share;
    }
}
