//! The descriptor (Lowe §6): 4×4 histograms of 8 directions around the keypoint, in its own frame.
//!
//! A cell is 3σ wide. Every pixel of the keypoint's level within 2½ cells adds its gradient, weighted by a Gaussian
//! of two cells, to the eight nearest bins (two rows, two columns, two directions) in proportion. The vector is
//! normalised, clipped at 0.2 and normalised again.
//!
//! Value r·32 + c·8 + o is direction o of the cell in row r and column c; rows run along +y, columns along +x of
//! the keypoint's frame. Directions turn from +x towards −y, as in Lowe's program, OpenCV and COLMAP (VLFeat's
//! turn the other way: its direction o is (8 − o) mod 8 here).
//!
//! Contributions are fixed point as in [`super::orient`], so their order does not matter. The norms are sums of
//! rounded squares in sixteen partial sums (by index modulo 16, ascending), added as a binary tree.

use super::orient::{Gradients, LANES, UNIT, orient, to_integer, window};
use super::refine::Point;
use super::scale_space::Octave;
use super::{DIMENSION, DescriptorKind, SiftOptions, SiftPreset};
use crate::device::Cpu;
use crate::feature::{Descriptors, Keypoint};
use crate::numeric;
use fearless_simd::{Simd, dispatch};
use fearless_simd_macros::simd;
use std::f32::consts::{SQRT_2, TAU};

/// Cells along a side.
const CELLS: usize = 4;

/// Directions of a cell.
const DIRECTIONS: usize = 8;

/// Bins of a cell while gradients are added: one more than there are directions, for a place of exactly 8.
const BINS: usize = DIRECTIONS + 1;

/// Cells along a side while gradients are added: half a cell beyond the edge belongs to the window.
const PADDED: usize = CELLS + 2;

/// A cell's width in σ.
const CELL: f32 = 3.0;

/// What each bin got as the first of two neighbouring directions, and what it passed on to the next as the second.
/// Kept apart, so that what is added at once is one aligned pair: pairs that overlap by half would make each addition
/// wait until the one before has left the processor.
type Histogram = [[i32; 2]; PADDED * PADDED * BINS];

/// Half the side of the square of pixels that holds the window of a keypoint of this scale.
fn radius(scale: f32) -> usize {
    (CELL * scale * SQRT_2 * (CELLS + 1) as f32 * 0.5).round_ties_even() as usize
}

/// Rows above and below an extremum that refinement, orientation and description may read: five moves, the
/// greatest window, its gradients and roundings.
pub(super) fn reach(options: &SiftOptions) -> usize {
    let beyond = if options.preset == SiftPreset::VlFeat { 1.5 } else { options.settled_below() };
    let levels = f32::from(options.levels);
    let scale = options.sigma * numeric::exp((levels + beyond) / levels * std::f32::consts::LN_2);
    radius(scale) + 5 + 4
}

/// Every orientation of every point, described.
pub(super) fn orient_and_describe(
    octave: &Octave,
    points: &[Point],
    options: &SiftOptions,
    cpu: &Cpu,
) -> (Vec<Keypoint>, Descriptors) {
    let mut keypoints = Vec::with_capacity(points.len() * 2);
    let (mut bytes, mut floats) = (Vec::new(), Vec::new());
    for point in points {
        fetch(octave, point);
        for angle in dispatch!(cpu.level(), simd => orient(simd, octave, point, options)) {
            keypoints.push(Keypoint { angle, ..point.keypoint });
            if options.descriptors == DescriptorKind::None {
                continue;
            }
            let histogram =
                dispatch!(cpu.level(), simd => histogram(simd, octave, point, angle, options.preset));
            let values = normalise(&histogram, options.root);
            match options.descriptors {
                DescriptorKind::F32 => floats.extend(values),
                _ => bytes.extend(values.map(|v| (v * 512.0).round_ties_even() as u8)),
            }
        }
    }
    let descriptors = match options.descriptors {
        DescriptorKind::F32 => Descriptors::F32(floats),
        _ => Descriptors::U8(bytes),
    };
    (keypoints, descriptors)
}

/// Reads a value of every cache line of a point's window. The rows were written long ago; one after the other, as the
/// histograms need them, their lines would each be waited for, while these reads do not depend on each other.
/// 2026-11-21: two thirds of the time of orientation and description were such waiting.
fn fetch(octave: &Octave, point: &Point) {
    const LINE: usize = 16;
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let radius = radius(point.scale) + 1;
    let columns = window(point.x, radius, octave.size.width);
    let mut seen = 0;
    for y in window(point.y, radius, octave.size.height) {
        let row = &level.row(y)[columns.clone()];
        for value in row.iter().step_by(LINE).chain(row.last()) {
            seen ^= value.to_bits();
        }
    }
    std::hint::black_box(seen);
}

/// The keypoint's frame: where it is, and its axes divided by the width of a cell.
#[derive(Clone, Copy)]
struct Frame {
    x: f32,
    y: f32,
    angle: f32,
    cos: f32,
    sin: f32,
}

impl Frame {
    fn new(point: &Point, angle: f32, preset: SiftPreset) -> Self {
        let (x, y) = match preset {
            SiftPreset::OpenCv => (point.x.round_ties_even(), point.y.round_ties_even()),
            _ => (point.x, point.y),
        };
        let (sin, cos) = numeric::sin_cos(angle);
        let cell = CELL * point.scale;
        Self { x, y, angle, cos: cos / cell, sin: sin / cell }
    }

    /// Columns at a distance of `dy` rows that can lie in the window, by the two bands of 5 cells that cross in it;
    /// a pixel too many on either side does no harm.
    fn columns(&self, dy: f32, columns: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let half = (CELLS + 1) as f32 * 0.5;
        let (mut low, mut high) = (columns.start as f32, columns.end as f32);
        // Each band: |a·dx + b| < half.
        for (a, b) in [(self.cos, self.sin * dy), (-self.sin, self.cos * dy)] {
            if a.abs() > 1e-6 {
                let (p, q) = ((-half - b) / a, (half - b) / a);
                low = low.max(p.min(q) + self.x - 1.0);
                high = high.min(p.max(q) + self.x + 2.0);
            }
        }
        let low = low as usize;
        low..(high as usize).max(low)
    }
}

/// Adds up the window's gradients.
#[simd]
fn histogram<S: Simd>(_: S, octave: &Octave, point: &Point, angle: f32, preset: SiftPreset) -> Histogram {
    let level = &octave.levels[usize::from(point.keypoint.layer)];
    let frame = Frame::new(point, angle, preset);
    let radius = radius(point.scale) + 1;
    let columns = window(point.x, radius, octave.size.width);
    let mut histogram = [[0; 2]; PADDED * PADDED * BINS];
    for y in window(point.y, radius, octave.size.height) {
        let rows = [level.row(y - 1), level.row(y), level.row(y + 1)];
        let dy = y as f32 - frame.y;
        let columns = frame.columns(dy, &columns);
        for x in columns.clone().step_by(LANES) {
            let n = LANES.min(columns.end - x);
            let gradients = Gradients::read(rows, x, n);
            let samples = Samples::new(&gradients, &frame, x as f32 - frame.x, dy);
            samples.add(n, &mut histogram);
        }
    }
    histogram
}

/// For each of [`LANES`] pixels, the first of its eight bins and what it adds to them; aligned as [`Gradients`].
#[repr(align(64))]
struct Samples {
    bin: [i32; LANES],
    /// By row and column, for the two directions: 00, 01, 10, 11.
    parts: [[[i32; 2]; LANES]; 4],
}

impl Samples {
    /// Pixels at distances (dx + i, dy) from the keypoint.
    #[inline(always)]
    fn new(gradients: &Gradients, frame: &Frame, dx: f32, dy: f32) -> Self {
        let mut samples = Self { bin: [0; LANES], parts: [[[0; 2]; LANES]; 4] };
        let half = (CELLS + 1) as f32 * 0.5;
        for i in 0..LANES {
            let (gx, gy) = (gradients.x[i], gradients.y[i]);
            let dx = dx + i as f32;
            let u = frame.cos.mul_add(dx, frame.sin * dy);
            let v = frame.cos.mul_add(dy, -(frame.sin * dx));
            let inside = (u.abs() < half) & (v.abs() < half);
            let weight = numeric::exp(u.mul_add(u, v * v) * -0.125);
            let strength = gx.mul_add(gx, gy * gy).sqrt() * weight * UNIT;
            let strength = if inside { strength } else { 0.0 };
            let turned = (frame.angle - numeric::atan2(gy, gx)) * (DIRECTIONS as f32 / TAU);
            let turned = if turned < 0.0 { turned + DIRECTIONS as f32 } else { turned };
            // Outside the window the place does not matter, but must be a bin.
            let (u, v) = if inside { (u, v) } else { (0.0, 0.0) };
            let (r, r1) = split(v + half);
            let (c, c1) = split(u + half);
            let (o, o1) = split(turned);
            samples.bin[i] = to_integer((r * PADDED as f32 + c) * BINS as f32 + o);
            let row1 = strength * r1;
            let row0 = strength - row1;
            let (p01, p11) = (row0 * c1, row1 * c1);
            let (p00, p10) = (row0 - p01, row1 - p11);
            for (k, p) in [p00, p01, p10, p11].into_iter().enumerate() {
                let second = p * o1;
                samples.parts[k][i] = [to_integer(p - second), to_integer(second)];
            }
        }
        samples
    }

    /// Adds the first `n` samples.
    #[inline(always)]
    fn add(&self, n: usize, histogram: &mut Histogram) {
        const ROW: usize = PADDED * BINS;
        for i in 0..n {
            let first = self.bin[i] as usize;
            let Some(bins) = histogram.get_mut(first..first + ROW + BINS + 1) else { continue };
            for (k, at) in [0, BINS, ROW, ROW + BINS].into_iter().enumerate() {
                let ([a, b], [p, q]) = (bins[at], self.parts[k][i]);
                bins[at] = [a + p, b + q];
            }
        }
    }
}

/// A place as its bin and the share of the next one. At a whole number either of the two bins may be the first:
/// the shares are 0 and 1.
#[inline(always)]
fn split(v: f32) -> (f32, f32) {
    let rounded = ((v - 0.5) + 12_582_912.0) - 12_582_912.0;
    let bin = if rounded > 0.0 { rounded } else { 0.0 };
    (bin, v - bin)
}

/// The unit vector of a window's histogram, clipped at 0.2 in between; zeros where there is no gradient.
fn normalise(histogram: &Histogram, root: bool) -> [f32; DIMENSION] {
    let mut values = [0.0; DIMENSION];
    for (i, value) in values.iter_mut().enumerate() {
        let (cell, o) = (i / DIRECTIONS, i % DIRECTIONS);
        let at = ((cell / CELLS + 1) * PADDED + cell % CELLS + 1) * BINS;
        let before = histogram[at + (o + DIRECTIONS - 1) % DIRECTIONS][1];
        let around = if o == 0 { histogram[at + DIRECTIONS][0] } else { 0 };
        *value = (histogram[at + o][0] + before + around) as f32;
    }
    let norm = sum(&values.map(|v| v * v)).sqrt();
    if norm == 0.0 {
        return values;
    }
    values = values.map(|v| v.min(0.2 * norm));
    if root {
        let total = sum(&values);
        return values.map(|v| (v / total).sqrt());
    }
    let scale = 1.0 / sum(&values.map(|v| v * v)).sqrt();
    values.map(|v| v * scale)
}

/// Sum in sixteen partial sums added as a binary tree.
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
