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
use super::lanes::{BINS, COUNTS, LANES, pixels_mut};
use super::means::{Means, values};
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::filter::resample::{Scaling, resample};
use crate::image::{Image, Size};
use crate::numeric::atan2;
use fearless_simd::Simd;

/// Added to the deviation of brightness (white is 1): structure this weak is noise.
const NOISE: f32 = 0.02;
/// Added to the mean of gradients.
const FLAT: f32 = 0.05;
/// The largest share of one pixel.
const CAP: f32 = 4.0;
/// The σ of the first scale, and that of the blur from the first to the second (1.6² = 0.8² + 1.386²).
const SIGMAS: [f64; 2] = [0.8, 1.385_640_646_055_102];
/// The distance up to which pixels that do not count change gradients.
const MARGIN: usize = 3;

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
        let size = intensity.size();
        let even = normalised(intensity, cpu)?;
        let first = gauss(even.view(), &GaussOptions::sigma(SIGMAS[0]), cpu)?;
        let second = gauss(first.view(), &GaussOptions::sigma(SIGMAS[1]), cpu)?;
        let hidden = Image::from_fn(size, |x, y| intensity.counts.row(y)[x] == 0.0);
        let hidden = near(&hidden, MARGIN);
        let counts = |x: usize, y: usize| f32::from(u8::from(!hidden.row(y)[x]));
        let blurred = [&first, &second];
        let magnitudes = values(size, cpu, |x, y| {
            let safe = counts(x, y);
            let [m, n] = blurred.map(|image| {
                let [gx, gy] = gradient(image, x, y);
                (gx * gx + gy * gy).sqrt() * safe
            });
            [m, n, safe]
        })?;
        let means = Means::of(&magnitudes, cpu)?;
        let lanes = rows_into(size, LANES, cpu, |y, out| {
            let mut mean = vec![0.0; size.width * 3];
            means.row(y, &mut Vec::new(), &mut mean);
            let row = Row { blurred, magnitudes: magnitudes.row(y), means: &mean, y };
            dispatch!(cpu.level(), simd => fill(simd, &row, out));
        })?;
        let strength = values(size, cpu, |x, y| {
            let pixel = &lanes.row(y)[x * LANES..x * LANES + BINS];
            [pixel.iter().fold(0.0, |sum, v| sum + v)]
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
    let size = intensity.size();
    let at = |x: usize, y: usize| (intensity.grey.row(y)[x], intensity.counts.row(y)[x]);
    let squares = values(size, cpu, |x, y| {
        let (grey, counts) = at(x, y);
        [grey * counts, grey * grey * counts, counts]
    })?;
    let means = Means::of(&squares, cpu)?;
    rows_into(size, 1, cpu, |y, out| {
        let mut mean = vec![0.0; size.width * 3];
        means.row(y, &mut Vec::new(), &mut mean);
        for (x, (out, mean)) in out.iter_mut().zip(mean.chunks_exact(3)).enumerate() {
            let (grey, counts) = at(x, y);
            let deviation = (mean[1] - mean[0] * mean[0]).max(0.0).sqrt();
            *out = (grey - mean[0]) / (deviation + NOISE) * counts;
        }
    })
}

/// Half differences of the neighbours, the edge repeated.
#[inline(always)]
fn gradient(image: &Image<f32>, x: usize, y: usize) -> [f32; 2] {
    let size = image.size();
    let row = image.row(y);
    let across = row[(x + 1).min(size.width - 1)] - row[x.saturating_sub(1)];
    let down = image.row((y + 1).min(size.height - 1))[x] - image.row(y.saturating_sub(1))[x];
    [0.5 * across, 0.5 * down]
}

/// The input of a row of bins.
struct Row<'a> {
    blurred: [&'a Image<f32>; 2],
    magnitudes: &'a [f32],
    means: &'a [f32],
    y: usize,
}

#[inline(always)]
fn fill<S: Simd>(_: S, row: &Row<'_>, out: &mut [f32]) {
    for (x, out) in pixels_mut(out).iter_mut().enumerate() {
        let safe = row.magnitudes[3 * x + 2];
        out[COUNTS] = safe;
        for (scale, image) in row.blurred.into_iter().enumerate() {
            let [gx, gy] = gradient(image, x, row.y);
            let m = row.magnitudes[3 * x + scale] / (row.means[3 * x + scale] + FLAT);
            let m = m.min(CAP) * safe;
            let turn = atan2(gy, gx) * (BINS as f32 / std::f32::consts::PI);
            let bin = turn as usize;
            let share = turn - bin as f32;
            out[bin % BINS] += m * (1.0 - share);
            out[(bin + 1) % BINS] += m * share;
        }
    }
}
