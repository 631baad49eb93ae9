//! The descriptor: channels on three rings around a corner, in twelve sectors each.
//!
//! Rings of 8, 17 and 29 pixels use channels smoothed by σ = 3.6, 5.6 and 8.8. A cell's six bins are divided by their
//! length plus 0.3; the mean descriptor of the picture is subtracted, because it does not distinguish corners; the rest
//! is scaled to length 400, rounded to −127..=127 and stored with 128 added.
//!
//! A turn of the picture by 30° moves every sector's cell to the next sector, and every bin to the next bin.

use super::lanes::{BINS, between};
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::filter::gauss::{GaussOptions, gauss};
use crate::image::Image;
use fearless_simd::Simd;

/// Sectors of a ring, and turns that permute a descriptor.
pub(crate) const TURNS: usize = 12;
pub(super) const RADII: [f32; 3] = [8.0, 17.0, 29.0];
/// The blurs at half the size, from 2 × 2 pixels (variance ¼) to the first ring's σ = 3.6, then to 5.6 and to 8.8.
pub(super) const SIGMAS: [f64; 3] = [1.782_553, 2.144_761, 3.394_113];
const RING: usize = TURNS * BINS;
/// Bytes of a descriptor.
pub(super) const LENGTH: usize = RADII.len() * RING;
/// Added to the length of a cell: structure this weak is noise.
pub(super) const WEAK: f32 = 0.3;
pub(super) const UNIT: f32 = 400.0;

/// √3 / 2.
const HALF_ROOT_3: f32 = 0.866_025_4;
/// Cosines of the sectors' directions; the sine is that of three sectors before.
pub(super) const COSINES: [f32; TURNS] =
    [1.0, HALF_ROOT_3, 0.5, 0.0, -0.5, -HALF_ROOT_3, -1.0, -HALF_ROOT_3, -0.5, 0.0, 0.5, HALF_ROOT_3];

/// The descriptors of corners, one after the other; `half` are the picture's channels at half its size.
pub(super) fn describe(half: &Image<f32>, corners: &[Keypoint], cpu: &Cpu) -> Result<Vec<u8>> {
    if corners.is_empty() {
        return Ok(vec![]);
    }
    let mut rings: Vec<Image<f32>> = Vec::with_capacity(RADII.len());
    for sigma in SIGMAS {
        let finer = rings.last().unwrap_or(half);
        let ring = gauss(finer.view(), &GaussOptions::sigma(sigma), cpu)?;
        rings.push(ring);
    }
    let mut cells = vec![0.0_f32; corners.len() * LENGTH];
    cpu.try_for_chunks(&mut cells, LENGTH, |i, out| {
        dispatch!(cpu.level(), simd => sample(simd, &rings, [corners[i].x, corners[i].y], out));
    })?;
    let mut mean = vec![0.0_f64; LENGTH];
    for one in cells.chunks_exact(LENGTH) {
        mean.iter_mut().zip(one).for_each(|(mean, v)| *mean += f64::from(*v));
    }
    let mean: Vec<f32> = mean.into_iter().map(|sum| (sum / corners.len() as f64) as f32).collect();
    let mut bytes = vec![0; cells.len()];
    cpu.try_for_chunks(&mut bytes, LENGTH, |i, out| {
        dispatch!(cpu.level(), simd => quantise(simd, &cells[i * LENGTH..(i + 1) * LENGTH], &mean, out));
    })?;
    Ok(bytes)
}

#[inline(always)]
fn sample<S: Simd>(_: S, rings: &[Image<f32>], [x, y]: [f32; 2], out: &mut [f32]) {
    for (i, cell) in out.chunks_exact_mut(BINS).enumerate() {
        let (ring, sector) = (i / TURNS, i % TURNS);
        let at = [x + RADII[ring] * COSINES[sector], y + RADII[ring] * COSINES[(sector + 9) % TURNS]];
        // Pixel i of half the size lies at 2i + ½.
        let values = between(&rings[ring], at.map(|v| 0.5 * (v - 0.5)));
        let length = values[..BINS].iter().fold(0.0, |sum, v| sum + v * v).sqrt() + WEAK;
        cell.iter_mut().zip(values).for_each(|(cell, v)| *cell = v / length);
    }
}

#[inline(always)]
fn quantise<S: Simd>(_: S, cells: &[f32], mean: &[f32], out: &mut [u8]) {
    let special = || cells.iter().zip(mean).map(|(v, m)| v - m);
    let length = special().fold(0.0, |sum, v| sum + v * v).sqrt() + 1e-6;
    for (out, v) in out.iter_mut().zip(special()) {
        let level = (v / length * UNIT).round_ties_even().clamp(-127.0, 127.0);
        *out = (level + 128.0) as u8;
    }
}

/// The descriptors for the picture turned by `turns` times 30°, from +x towards +y; places are not changed.
pub(crate) fn turned(features: &Features, turns: usize) -> Features {
    let Descriptors::U8(bytes) = &features.descriptors else { return features.clone() };
    let mut out = vec![0; bytes.len()];
    for (from, to) in bytes.chunks_exact(RING).zip(out.chunks_exact_mut(RING)) {
        for (sector, cell) in from.chunks_exact(BINS).enumerate() {
            let to = &mut to[(sector + turns) % TURNS * BINS..][..BINS];
            cell.iter().enumerate().for_each(|(bin, v)| to[(bin + turns) % BINS] = *v);
        }
    }
    Features { descriptors: Descriptors::U8(out), ..features.clone() }
}
