//! The direction of a keypoint: that of the longest sum of wavelets in a window of 60°.
//!
//! Bay et al. 2008, section 4.1. Haar wavelets of side 4s are taken on a disc of radius 6s, s apart, and
//! weighted by a Gaussian. A window of 60° is turned around the circle; the wavelets whose own direction lies
//! in it are summed as vectors. The longest sum gives the direction, the first of equal ones.
//!
//! The window moves in whole bins: 42 windows of 7 bins of 1/42 turn (OpenCV: 72 of 12), so that a wavelet is
//! put into one bin and a window is a sum of bins. Weights are integers, ⌊g·2¹⁴⌉, and the sums exact in 64
//! bits: any order gives the same. Only these are computed in f32: the bin of a wavelet, ⌊atan2(dy, dx) ·
//! bins/2π⌋, the squared length fma(X, X, Y·Y) of a window's sum, and the direction of the best, atan2(Y, X)
//! and (X, Y)/√length.

pub(super) mod gpu;

use crate::feature::surf::SurfPreset;
use crate::feature::surf::integral::{Integral, Total};
use crate::{feature::Keypoint, numeric};
use std::f32::consts::TAU;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Direction {
    pub angle: f32,
    pub cos: f32,
    pub sin: f32,
}

impl Direction {
    /// The direction of keypoints that are not oriented.
    pub(super) fn upright(preset: SurfPreset) -> Self {
        match preset {
            SurfPreset::Paper | SurfPreset::OpenSurf => Self { angle: 0.0, cos: 1.0, sin: 0.0 },
            SurfPreset::OpenCv => Self { angle: 0.75 * TAU, cos: 0.0, sin: -1.0 },
        }
    }
}

/// The most bins that any convention has.
const BINS: usize = 72;

/// Room for the samples of the disc; those beyond the last repeat its centre with no weight.
pub(super) const SAMPLES: usize = 128;

#[derive(Debug)]
pub(super) struct Disc {
    /// Offsets of the samples, in units of s.
    pub x: [f32; SAMPLES],
    pub y: [f32; SAMPLES],
    pub weights: [i64; SAMPLES],
    pub bins: usize,
    /// Whether samples lie whole pixels apart.
    whole: bool,
}

impl Disc {
    pub(super) fn new(preset: SurfPreset) -> Self {
        let (radius2, sigma, bins) = match preset {
            SurfPreset::Paper => (36, 2.0, 42),
            SurfPreset::OpenSurf => (35, 2.5, 42),
            SurfPreset::OpenCv => (36, 2.5, 72),
        };
        let whole = preset == SurfPreset::OpenSurf;
        let mut disc = Self { x: [0.0; SAMPLES], y: [0.0; SAMPLES], weights: [0; SAMPLES], bins, whole };
        let square = (-6_i32..=6).flat_map(|j| (-6_i32..=6).map(move |i| (i, j)));
        for (n, (i, j)) in square.filter(|(i, j)| i * i + j * j <= radius2).enumerate() {
            let weight = numeric::exp_f64(-f64::from(i * i + j * j) / (2.0 * sigma * sigma));
            (disc.x[n], disc.y[n]) = (i as f32, j as f32);
            disc.weights[n] = (weight * 16384.0).round_ties_even() as i64;
        }
        disc
    }

    #[inline(always)]
    pub(super) fn direction<A: Total>(&self, integral: &Integral<A>, k: &Keypoint) -> Direction {
        // The corner of four pixels that is nearest to a sample; OpenSURF takes the one left and above.
        let (x, y, s, half) = if self.whole {
            let s = k.scale.round_ties_even().max(1.0);
            (k.x.round_ties_even(), k.y.round_ties_even(), s, 2 * s as i32)
        } else {
            let half = ((2.0 * k.scale).round_ties_even() as i32).max(1);
            (k.x + 0.5, k.y + 0.5, k.scale, half)
        };
        let (mut cx, mut cy) = ([0; SAMPLES], [0; SAMPLES]);
        for n in 0..SAMPLES {
            cx[n] = self.x[n].mul_add(s, x).round_ties_even() as i32;
            cy[n] = self.y[n].mul_add(s, y).round_ties_even() as i32;
        }
        let (mut dx, mut dy) = ([A::default(); SAMPLES], [A::default(); SAMPLES]);
        integral.haar(&cx, &cy, half, &mut dx, &mut dy);
        let mut index = [0; SAMPLES];
        let per_turn = self.bins as f32 / TAU;
        for n in 0..SAMPLES {
            let angle = numeric::atan2(dy[n].signed_f32(), dx[n].signed_f32());
            index[n] = ((angle * per_turn) as i32).min(self.bins as i32 - 1);
        }
        let mut bins = [[0_i64; 2]; BINS];
        for n in 0..SAMPLES {
            let bin = &mut bins[index[n] as usize % BINS];
            bin[0] += self.weights[n] * dx[n].signed();
            bin[1] += self.weights[n] * dy[n].signed();
        }
        longest(&bins[..self.bins])
    }
}

/// The direction of the longest sum of a sixth of the turn.
#[inline(always)]
fn longest(bins: &[[i64; 2]]) -> Direction {
    let span = bins.len() / 6;
    let (mut x, mut y) = (0, 0);
    for [dx, dy] in &bins[..span] {
        (x, y) = (x + dx, y + dy);
    }
    let (mut best, mut longest) = (0.0, (1.0, 0.0));
    for first in 0..bins.len() {
        let sum = (x as f32, y as f32);
        let length2 = sum.0.mul_add(sum.0, sum.1 * sum.1);
        if length2 > best {
            (best, longest) = (length2, sum);
        }
        // The window advances by one bin.
        let next = bins[(first + span) % bins.len()];
        (x, y) = (x + next[0] - bins[first][0], y + next[1] - bins[first][1]);
    }
    let ((x, y), length) = (longest, if best > 0.0 { best.sqrt() } else { 1.0 });
    Direction { angle: numeric::atan2(y, x), cos: x / length, sin: y / length }
}
