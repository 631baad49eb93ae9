//! The descriptor (Lowe §6): 4×4 histograms of 8 directions around the keypoint, in its own frame.
//!
//! A cell is 3σ wide. Every pixel of the keypoint's level within 2½ cells adds its gradient, weighted by a
//! Gaussian of two cells, to the eight nearest bins (two rows, two columns, two directions) in proportion.
//! The vector is normalised, clipped at 0.2 and normalised again.
//!
//! Value r·32 + c·8 + o is direction o of the cell in row r and column c; rows run along +y, columns along +x
//! of the keypoint's frame. Directions turn from +x towards −y, as in Lowe's program, OpenCV and COLMAP
//! (VLFeat's turn the other way: its direction o is (8 − o) mod 8 here).
//!
//! # Domain-size pooling
//! J. Dong, S. Soatto, *Domain-Size Pooling in Local Descriptors: DSP-SIFT*, CVPR 2015: a point seen from near or far
//! is detected at a slightly different scale, so its descriptor is averaged over several sizes of its window. Here d̄ =
//! Σ d(kσ) over k = 1, 1½, 2, where d(kσ) is the descriptor above with cells 3kσ wide, of the same level and direction,
//! normalised and clipped; d̄ is normalised again (by its sum for RootSIFT). The paper pools windows from ⅙ to 4⁄3,
//! COLMAP from ⅙ to 3, of patches that they resample.
//!
//! Of all combinations that were compared, these three sizes give the most right matches and the most points of a
//! reconstruction (`docs/notebook/features.md`).
//!
//! Contributions are fixed point as in [`orient`](super::orient), so their order does not matter. The norms
//! are sums of rounded squares in sixteen partial sums (by index modulo 16, ascending), added as a binary
//! tree.

pub(crate) mod gpu;

use crate::device::{Cpu, dispatch};
use crate::feature::DescriptorKind;
use crate::feature::sift::orient::orient;
use crate::feature::sift::refine::Point;
use crate::feature::sift::scale_space::Octave;
use crate::feature::sift::window::{LANES, Samples, UNIT, Window, around, to_integer, visit};
use crate::feature::sift::{DIMENSION, SiftOptions, SiftPreset};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::numeric::{self, ROUNDER};
use fearless_simd::{Simd, i32x16, prelude::*};
use fearless_simd_macros::simd;
use std::f32::consts::{SQRT_2, TAU};
use std::ops::Range;

/// Cells along a side.
pub(super) const CELLS: usize = 4;

pub(super) const DIRECTIONS: usize = 8;

/// Bins of a cell while gradients are added: one more than there are directions, for a position of exactly 8.
const BINS: usize = DIRECTIONS + 1;

/// A cell's width in σ.
pub(super) const CELL: f32 = 3.0;

/// Positions of the first of two neighbouring cells: the window reaches half a cell beyond the outer cells.
const PLACES: usize = CELLS + 1;

/// A sample adds to eight bins: the first and the second row, column and direction. What it adds is stored at
/// the first of its bins as a vector of eight, so that a sample is one aligned addition. The first bin is
/// (row · [`PLACES`] + column) · [`BINS`] + direction; there are 256 of them, so that any byte is a valid
/// index.
#[repr(align(64))]
struct Histogram([[i32; 8]; 256]);

/// Half the side of the square of pixels that holds the window of a keypoint of this scale.
fn radius(scale: f32) -> usize {
    (CELL * scale * SQRT_2 * (CELLS + 1) as f32 * 0.5).round_ties_even() as usize
}

/// Rows above and below a point that orientation and description may read: the greatest window, its gradients
/// and roundings.
pub(super) fn reach(options: &SiftOptions) -> usize {
    let beyond = if options.preset == SiftPreset::VlFeat { 1.5 } else { options.settled_below() };
    let levels = f32::from(options.levels);
    reach_of(options.sigma * numeric::exp((levels + beyond) / levels * std::f32::consts::LN_2), options)
}

/// The same for points up to a scale, in pixels of the octave.
pub(super) fn reach_of(scale: f32, options: &SiftOptions) -> usize {
    let widest = domains(options).iter().fold(1.0, |a: f32, b| a.max(*b));
    radius(scale * widest).saturating_add(4)
}

/// The sizes of a window whose descriptors are pooled, in units of the usual size.
static POOLED: [f32; 3] = [1.0, 1.5, 2.0];

fn domains(options: &SiftOptions) -> &'static [f32] {
    if options.domain_size_pooling { &POOLED } else { &POOLED[..1] }
}

/// The features of the points, appended to those that `found` begins with.
pub(super) fn orient_and_describe(
    octave: &Octave,
    points: &[Point],
    options: &SiftOptions,
    mut found: Features,
    cpu: &Cpu,
) -> Features {
    found.keypoints.reserve(points.len() * 2);
    for point in points {
        fetch(octave, point);
        for angle in dispatch!(cpu.level(), simd => orient(simd, octave, point, options)) {
            found.keypoints.push(Keypoint { angle, ..point.keypoint });
            if options.descriptors == DescriptorKind::None {
                continue;
            }
            let values = describe(octave, point, angle, options, cpu);
            match &mut found.descriptors {
                Descriptors::F32(floats) => floats.extend(values),
                Descriptors::U8(bytes) => bytes.extend(as_bytes(values)),
            }
        }
    }
    found
}

/// A descriptor in units of 1/512.
pub(super) fn as_bytes(values: [f32; DIMENSION]) -> [u8; DIMENSION] {
    values.map(|v| to_integer(v * 512.0).min(255) as u8)
}

pub(super) fn describe(
    octave: &Octave,
    point: &Point,
    angle: f32,
    options: &SiftOptions,
    cpu: &Cpu,
) -> [f32; DIMENSION] {
    let of = |size: f32, root: bool| {
        let point = &Point { scale: point.scale * size, ..*point };
        let histogram = dispatch!(cpu.level(), simd => histogram(simd, octave, point, angle, options.preset));
        dispatch!(cpu.level(), simd => normalise(simd, &histogram, root))
    };
    match domains(options) {
        [size] => of(*size, options.root),
        sizes => {
            let mut pooled = [0.0; DIMENSION];
            for size in sizes {
                pooled.iter_mut().zip(of(*size, false)).for_each(|(sum, v)| *sum += v);
            }
            if pooled == [0.0; DIMENSION] { pooled } else { unit(pooled, options.root) }
        }
    }
}

/// Reads a value of every cache line of a point's window, so that the lines are fetched together. Otherwise the
/// histograms would spend most of their time waiting for one line after the other.
fn fetch(octave: &Octave, point: &Point) {
    const LINE: usize = 16;
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let radius = radius(point.scale) + 1;
    let columns = around(point.x, radius, octave.size.width);
    let mut seen = 0;
    for y in around(point.y, radius, octave.size.height) {
        let row = &level.row(y)[columns.clone()];
        for value in row.iter().step_by(LINE).chain(row.last()) {
            seen ^= value.to_bits();
        }
    }
    std::hint::black_box(seen);
}

/// The keypoint's frame: its position, and its axes divided by the width of a cell.
#[derive(Clone, Copy)]
struct Frame {
    x: f32,
    y: f32,
    angle: f32,
    cos: f32,
    sin: f32,
    /// 1 / cos and 1 / −sin.
    inverse: [f32; 2],
    /// Fixed-point units of a gradient of 1.
    unit: f32,
}

impl Frame {
    fn new(point: &Point, angle: f32, preset: SiftPreset) -> Self {
        let (x, y) = match preset {
            SiftPreset::OpenCv => (point.x.round_ties_even(), point.y.round_ties_even()),
            SiftPreset::Default | SiftPreset::VlFeat => (point.x, point.y),
        };
        let (sin, cos) = numeric::sin_cos(angle);
        let cell = CELL * point.scale;
        let (cos, sin) = (cos / cell, sin / cell);
        // Only given keypoints are this large: the sums over so many pixels would overflow 32-bit integers.
        let (mut unit, mut scale) = (UNIT, point.scale);
        while scale > 24.0 {
            (unit, scale) = (unit * 0.25, scale * 0.5);
        }
        Self { x, y, angle, cos, sin, inverse: [1.0 / cos, -1.0 / sin], unit }
    }

    /// Columns at a distance of `dy` rows that can lie in the window, which is the intersection of two bands
    /// 5 cells wide; there may be a pixel too many on either side.
    fn columns(&self, dy: f32, columns: &Range<usize>) -> Range<usize> {
        let half = (CELLS + 1) as f32 * 0.5;
        let (mut low, mut high) = (columns.start as f32, columns.end as f32);
        // Each band: |a·dx + b| < half.
        for (inverse, b) in self.inverse.into_iter().zip([self.sin * dy, self.cos * dy]) {
            if inverse.abs() < 1e6 {
                let (p, q) = ((-half - b) * inverse, (half - b) * inverse);
                low = low.max(p.min(q) + self.x - 1.0);
                high = high.min(p.max(q) + self.x + 2.0);
            }
        }
        let low = low as usize;
        low..(high as usize).max(low)
    }
}

#[simd]
fn histogram<S: Simd>(simd: S, octave: &Octave, point: &Point, angle: f32, preset: SiftPreset) -> Histogram {
    let frame = Frame::new(point, angle, preset);
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let radius = radius(point.scale) + 1;
    let columns = around(point.x, radius, octave.size.width);
    let mut cells = Cells { frame, columns, histogram: Histogram([[0; 8]; 256]) };
    visit(simd, level, (frame.x, frame.y), around(point.y, radius, octave.size.height), &mut cells);
    cells.histogram
}

struct Cells {
    frame: Frame,
    columns: Range<usize>,
    histogram: Histogram,
}

impl<S: Simd> Window<S> for Cells {
    #[inline(always)]
    fn columns(&self, dy: f32) -> Range<usize> {
        self.frame.columns(dy, &self.columns)
    }

    #[inline(always)]
    fn add(&mut self, simd: S, samples: &Samples) {
        let shares = Shares::new(samples, &self.frame);
        let parts = shares.by_sample(simd);
        for k in 0..LANES {
            // Neighbouring pixels most often add to the same bin, where one addition would wait for the
            // other.
            let i = k / 2 + k % 2 * (LANES / 2);
            let sums = &mut self.histogram.0[usize::from(shares.bin[i] as u8)];
            for (sum, part) in sums.iter_mut().zip(&parts.0[i]) {
                *sum += part;
            }
        }
    }
}

/// For each of [`LANES`] pixels, the first of its eight bins, and its contributions to them.
#[repr(align(64))]
struct Shares {
    bin: [i32; LANES],
    /// By row, column and direction.
    parts: [[i32; LANES]; 8],
}

#[repr(align(64))]
struct BySample([[i32; 8]; LANES]);

impl Shares {
    #[inline(always)]
    fn new(samples: &Samples, frame: &Frame) -> Self {
        let mut shares = Self { bin: [0; LANES], parts: [[0; LANES]; 8] };
        let half = (CELLS + 1) as f32 * 0.5;
        for i in 0..LANES {
            let (gx, gy, dx, dy) = (samples.gx[i], samples.gy[i], samples.dx[i], samples.dy[i]);
            let u = frame.cos.mul_add(dx, frame.sin * dy);
            let v = frame.cos.mul_add(dy, -(frame.sin * dx));
            let inside = (u.abs() < half) & (v.abs() < half);
            let weight = numeric::exp(u.mul_add(u, v * v) * -0.125);
            let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * frame.unit;
            let strength = if inside { strength } else { 0.0 };
            let turned = (frame.angle - numeric::atan2(gy, gx)) * (DIRECTIONS as f32 / TAU);
            let turned = if turned < 0.0 { turned + DIRECTIONS as f32 } else { turned };
            // Outside the window the position does not matter, but it must be a valid bin.
            let (u, v) = if inside { (u, v) } else { (0.0, 0.0) };
            let (r, r1) = split(v + half);
            let (c, c1) = split(u + half);
            let (o, o1) = split(turned);
            shares.bin[i] = to_integer((r * PLACES as f32 + c) * BINS as f32 + o);
            let row1 = strength * r1;
            let row0 = strength - row1;
            let (p01, p11) = (row0 * c1, row1 * c1);
            let (p00, p10) = (row0 - p01, row1 - p11);
            for (k, p) in [p00, p01, p10, p11].into_iter().enumerate() {
                let second = p * o1;
                shares.parts[2 * k][i] = to_integer(p - second);
                shares.parts[2 * k + 1][i] = to_integer(second);
            }
        }
        shares
    }

    /// The shares transposed: vectors by pixel, made by three rounds of interleaving.
    #[inline(always)]
    fn by_sample<S: Simd>(&self, simd: S) -> BySample {
        let [a, b, c, d, e, f, g, h] = self.parts.each_ref().map(|p| i32x16::from_slice(simd, p));
        let (ae, bf) = (simd.interleave_i32x16(a, e), simd.interleave_i32x16(b, f));
        let (cg, dh) = (simd.interleave_i32x16(c, g), simd.interleave_i32x16(d, h));
        let mut out = BySample([[0; 8]; LANES]);
        let halves = [(ae.0, bf.0, cg.0, dh.0), (ae.1, bf.1, cg.1, dh.1)];
        for (out, (ae, bf, cg, dh)) in out.0.as_flattened_mut().chunks_exact_mut(4 * LANES).zip(halves) {
            let (even, odd) = (simd.interleave_i32x16(ae, cg), simd.interleave_i32x16(bf, dh));
            let (p, q) = simd.interleave_i32x16(even.0, odd.0);
            let (r, s) = simd.interleave_i32x16(even.1, odd.1);
            for (out, v) in out.chunks_exact_mut(LANES).zip([p, q, r, s]) {
                v.store_slice(out);
            }
        }
        out
    }
}

/// The bin of a position, and the share of the next bin. At a whole number either of the two bins may be the
/// first, as their shares are 0 and 1.
#[inline(always)]
fn split(v: f32) -> (f32, f32) {
    let rounded = ((v - 0.5) + ROUNDER) - ROUNDER;
    let bin = if rounded > 0.0 { rounded } else { 0.0 };
    (bin, v - bin)
}

/// The unit vector of a window's histogram, clipped at 0.2 in between; zeros where there is no gradient.
#[simd]
fn normalise<S: Simd>(_: S, histogram: &Histogram, root: bool) -> [f32; DIMENSION] {
    let mut values = [0.0; DIMENSION];
    for (i, value) in values.iter_mut().enumerate() {
        let (r, c, o) = (i / DIRECTIONS / CELLS, i / DIRECTIONS % CELLS, i % DIRECTIONS);
        let before = (o + DIRECTIONS - 1) % DIRECTIONS;
        let mut total = 0;
        for (k, (row, column)) in [(1, 1), (1, 0), (0, 1), (0, 0)].into_iter().enumerate() {
            let at = ((r + row) * PLACES + c + column) * BINS;
            total += histogram.0[at + o][2 * k] + histogram.0[at + before][2 * k + 1];
            if o == 0 {
                total += histogram.0[at + DIRECTIONS][2 * k];
            }
        }
        *value = total as f32;
    }
    let norm = sum(&values.map(|v| v * v)).sqrt();
    if norm == 0.0 {
        return values;
    }
    unit(values.map(|v| v.min(0.2 * norm)), root)
}

/// Values that are not all zeros as a unit vector: divided by their norm, or the roots of their shares of the sum.
#[inline(always)]
fn unit(values: [f32; DIMENSION], root: bool) -> [f32; DIMENSION] {
    if root {
        let total = sum(&values);
        return values.map(|v| (v / total).sqrt());
    }
    let scale = 1.0 / sum(&values.map(|v| v * v)).sqrt();
    values.map(|v| v * scale)
}

/// The sum, as sixteen partial sums that are added as a binary tree.
#[inline(always)]
fn sum(values: &[f32; DIMENSION]) -> f32 {
    let mut partial = [0.0; 16];
    for chunk in values.chunks_exact(16) {
        partial.iter_mut().zip(chunk).for_each(|(p, v)| *p += v);
    }
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            partial[i] += partial[i + half];
        }
    }
    partial[0]
}
