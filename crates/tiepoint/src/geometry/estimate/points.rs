//! The correspondences in normalised coordinates, in which all models are computed.
//!
//! Hartley's normalisation with one scale for both images: centroids are moved to the origin, and the mean distance
//! from it over both images becomes √2. With one scale, residuals are those in pixels times that scale.

#![allow(clippy::needless_range_loop, reason = "indices of rows, columns and lanes are the notation here")]

use super::Correspondence;
use super::parts::sums;
use super::sampler::MAX_SAMPLE;
use crate::device::Cpu;
use crate::geometry::ModelKind;
use crate::geometry::matrix::{Mat3, product, transpose};
use crate::geometry::real::WIDTH;
use crate::numeric::length;
use fearless_simd::{Simd, f64x8, prelude::*};

/// Arrays of points are filled up to a multiple of this.
pub(in crate::geometry) const BLOCK: usize = 64;

const CHUNK: usize = 4096;

/// Normalised points, one array for each coordinate, filled up to whole [`BLOCK`]s with NaN, which agrees with
/// nothing.
#[derive(Clone, Debug, Default)]
pub(in crate::geometry) struct Points {
    pub(in crate::geometry) xa: Vec<f64>,
    pub(in crate::geometry) ya: Vec<f64>,
    pub(in crate::geometry) xb: Vec<f64>,
    pub(in crate::geometry) yb: Vec<f64>,
    matches: usize,
    /// The centroids in A and in B, pixels, which normalisation moves to the origin.
    pub(in crate::geometry) centres: [[f64; 2]; 2],
    /// Normalised length of a pixel.
    pub(in crate::geometry) scale: f64,
}

/// The coordinates of the matches as columns, filled up to whole blocks.
fn columns(matches: usize, cpu: &Cpu, places: impl Fn(usize) -> [f64; 4] + Sync) -> [Vec<f64>; 4] {
    let mut columns: [Vec<f64>; 4] = std::array::from_fn(|_| vec![0.0; matches.next_multiple_of(BLOCK)]);
    columns.iter_mut().for_each(|column| column[matches..].fill(f64::NAN));
    let [xa, ya, xb, yb] = columns.each_mut().map(|column| column[..matches].chunks_mut(CHUNK));
    let mut chunks: Vec<[&mut [f64]; 4]> =
        xa.zip(ya).zip(xb.zip(yb)).map(|((xa, ya), (xb, yb))| [xa, ya, xb, yb]).collect();
    cpu.for_chunks(&mut chunks, 1, |chunk, columns| {
        let [xa, ya, xb, yb] = &mut columns[0];
        for i in 0..xa.len() {
            [xa[i], ya[i], xb[i], yb[i]] = places(chunk * CHUNK + i);
        }
    });
    columns
}

impl Points {
    /// Normalises the pairs at `indices`. If all coincide, the scale is 1.
    pub(in crate::geometry) fn new(pairs: &[Correspondence], indices: &[usize], cpu: &Cpu) -> Self {
        let matches = indices.len();
        let n = matches.max(1) as f64;
        let added = sums(cpu, indices, |[x, y, u, v], i| {
            let Correspondence { a, b, .. } = &pairs[i];
            [x + a[0], y + a[1], u + b[0], v + b[1]]
        });
        let [x, y, u, v] = added.map(|sum| sum / n);
        let centres = [[x, y], [u, v]];
        let far = |p: [f64; 2], c: [f64; 2]| length([p[0] - c[0], p[1] - c[1]]);
        let half = |p: &Correspondence| 0.5 * (far(p.a, centres[0]) + far(p.b, centres[1]));
        let [spread] = sums(cpu, indices, |[sum], i| [sum + half(&pairs[i])]).map(|sum| sum / n);
        let scale = if spread > 0.0 && spread.is_finite() { std::f64::consts::SQRT_2 / spread } else { 1.0 };
        let [xa, ya, xb, yb] = columns(matches, cpu, |i| {
            let Correspondence { a, b, .. } = &pairs[indices[i]];
            let at = |place: f64, centre: f64| (place - centre) * scale;
            [at(a[0], x), at(a[1], y), at(b[0], u), at(b[1], v)]
        });
        Self { xa, ya, xb, yb, matches, centres, scale }
    }

    /// Every `every`-th match, in the same coordinates.
    pub(super) fn thinned(&self, every: usize, cpu: &Cpu) -> Self {
        let matches = self.matches.div_ceil(every);
        let [xa, ya, xb, yb] = columns(matches, cpu, |i| self.places(i * every));
        Self { xa, ya, xb, yb, matches, ..*self }
    }

    pub(in crate::geometry) fn len(&self) -> usize {
        self.matches
    }

    pub(in crate::geometry) fn vectors(&self) -> usize {
        self.matches.div_ceil(WIDTH)
    }

    /// A match: x and y in A, x and y in B.
    #[inline(always)]
    pub(in crate::geometry) fn places(&self, i: usize) -> [f64; 4] {
        [self.xa[i], self.ya[i], self.xb[i], self.yb[i]]
    }

    /// Eight matches side by side.
    #[inline(always)]
    pub(in crate::geometry) fn vector<S: Simd>(&self, simd: S, i: usize) -> [f64x8<S>; 4] {
        let at = |column: &[f64]| f64x8::from_slice(simd, &column[i * WIDTH..][..WIDTH]);
        [at(&self.xa), at(&self.ya), at(&self.xb), at(&self.yb)]
    }

    /// The places in A and in B of eight samples of `N` matches, side by side.
    #[inline(always)]
    pub(in crate::geometry) fn gathered<S: Simd, const N: usize>(
        &self,
        simd: S,
        eight: &[[usize; MAX_SAMPLE]; WIDTH],
    ) -> [[[f64x8<S>; 2]; N]; 2] {
        let mut found = [[[f64x8::splat(simd, 0.0); 2]; N]; 2];
        for (lane, sample) in eight.iter().enumerate() {
            for i in 0..N {
                let [x, y, u, v] = self.places(sample[i]);
                (found[0][i][0][lane], found[0][i][1][lane]) = (x, y);
                (found[1][i][0][lane], found[1][i][1][lane]) = (u, v);
            }
        }
        found
    }

    pub(in crate::geometry) fn a(&self, i: usize) -> [f64; 3] {
        [self.xa[i], self.ya[i], 1.0]
    }

    pub(in crate::geometry) fn b(&self, i: usize) -> [f64; 3] {
        [self.xb[i], self.yb[i], 1.0]
    }

    fn forth(&self, c: [f64; 2]) -> Mat3 {
        let s = self.scale;
        [[s, 0.0, -s * c[0]], [0.0, s, -s * c[1]], [0.0, 0.0, 1.0]]
    }

    fn back(&self, c: [f64; 2]) -> Mat3 {
        let s = 1.0 / self.scale;
        [[s, 0.0, c[0]], [0.0, s, c[1]], [0.0, 0.0, 1.0]]
    }

    pub(in crate::geometry) fn to_pixels(&self, kind: ModelKind, m: &Mat3) -> Mat3 {
        let [a, b] = self.centres;
        let left = if kind.is_epipolar() { transpose(&self.forth(b)) } else { self.back(b) };
        product(&product(&left, m), &self.forth(a))
    }

    pub(in crate::geometry) fn normalised(&self, kind: ModelKind, m: &Mat3) -> Mat3 {
        let [a, b] = self.centres;
        let left = if kind.is_epipolar() { transpose(&self.back(b)) } else { self.forth(b) };
        product(&product(&left, m), &self.back(a))
    }
}
