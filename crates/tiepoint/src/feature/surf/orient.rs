//! The direction of a keypoint: that of the longest sum of wavelets in a window of 60°.
//!
//! Bay et al. 2008, section 4.1. Haar wavelets of side 4s are taken on a disc of radius 6s, s apart, and
//! weighted by a Gaussian. A window of 60° is turned about; the wavelets whose own direction falls into it
//! are summed as vectors, and the longest sum wins, the first of equals.
//!
//! The window moves in whole bins: 42 windows of 7 bins of 1/42 turn (OpenCV: 72 of 12), so that a wavelet
//! is put into one bin and a window is a sum of bins. Weights are integers, ⌊g·2¹⁴⌉, and the sums exact in 64
//! bits: any order gives the same. In f32 are computed only the bin of a wavelet, ⌊atan2(dy, dx) · bins/2π⌋,
//! the squared length fma(X, X, Y·Y) of a window's sum, and the direction of the best, atan2(Y, X) and
//! (X, Y)/√length.

use super::{
    Convention,
    integral::{Integral, Total},
};
use crate::{feature::Keypoint, numeric};
use std::f32::consts::TAU;

/// A direction: its angle, cosine and sine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Direction {
    pub angle: f32,
    pub cos: f32,
    pub sin: f32,
}

impl Direction {
    /// What a keypoint has that is not to be oriented.
    pub(super) fn upright(convention: Convention) -> Self {
        match convention {
            Convention::Paper | Convention::OpenSurf => Self { angle: 0.0, cos: 1.0, sin: 0.0 },
            Convention::OpenCv => Self { angle: 0.75 * TAU, cos: 0.0, sin: -1.0 },
        }
    }
}

/// The most bins that any convention has.
const BINS: usize = 72;

/// The samples of the disc and their weights.
#[derive(Debug)]
pub(super) struct Disc {
    /// Offset in x, in y, and weight.
    samples: Vec<(f32, f32, i64)>,
    bins: usize,
    /// Samples lie whole pixels apart.
    whole: bool,
}

impl Disc {
    pub(super) fn new(convention: Convention) -> Self {
        let (radius2, sigma, bins) = match convention {
            Convention::Paper => (36, 2.0, 42),
            Convention::OpenSurf => (35, 2.5, 42),
            Convention::OpenCv => (36, 2.5, 72),
        };
        let weight = |r2: i32| {
            (numeric::exp_f64(-f64::from(r2) / (2.0 * sigma * sigma)) * 16384.0).round_ties_even() as i64
        };
        let square = (-6_i32..=6).flat_map(|j| (-6_i32..=6).map(move |i| (i, j)));
        let samples = square.filter(|(i, j)| i * i + j * j <= radius2);
        Self {
            samples: samples.map(|(i, j)| (i as f32, j as f32, weight(i * i + j * j))).collect(),
            bins,
            whole: convention == Convention::OpenSurf,
        }
    }

    /// The direction of a keypoint.
    #[inline(always)]
    pub(super) fn direction<A: Total>(&self, integral: &Integral<A>, k: &Keypoint) -> Direction {
        let half = ((2.0 * k.scale).round_ties_even() as i32).max(1);
        // The corner of four pixels that is nearest to a sample; OpenSURF takes the one left and above.
        let (x, y, s, half) = if self.whole {
            let s = k.scale.round_ties_even().max(1.0);
            (k.x.round_ties_even(), k.y.round_ties_even(), s, 2 * s as i32)
        } else {
            (k.x + 0.5, k.y + 0.5, k.scale, half)
        };
        let mut bins = [[0_i64; 2]; BINS];
        let mut wavelets = [(0.0_f32, 0.0_f32); 128];
        let mut sums = [[0_i64; 2]; 128];
        for (&(i, j, weight), (wavelet, sum)) in self.samples.iter().zip(wavelets.iter_mut().zip(&mut sums)) {
            let cx = i.mul_add(s, x).round_ties_even() as i32;
            let cy = j.mul_add(s, y).round_ties_even() as i32;
            let [dx, dy] = integral.haar(cx, cy, half);
            *wavelet = (dx.signed_f32(), dy.signed_f32());
            *sum = [weight * dx.signed(), weight * dy.signed()];
        }
        let per_turn = self.bins as f32 / TAU;
        let mut index = [0_u32; 128];
        for (index, (dx, dy)) in index.iter_mut().zip(&wavelets) {
            *index = (numeric::atan2(*dy, *dx) * per_turn) as u32;
        }
        for (index, sum) in index.iter().zip(&sums).take(self.samples.len()) {
            let bin = &mut bins[(*index as usize).min(self.bins - 1)];
            *bin = [bin[0] + sum[0], bin[1] + sum[1]];
        }
        longest(&bins[..self.bins])
    }
}

/// The direction of the longest sum of a sixth of the turn.
#[inline(always)]
fn longest(bins: &[[i64; 2]]) -> Direction {
    let (mut best, mut sum_of_best) = (0.0, [1.0, 0.0]);
    let span = bins.len() / 6;
    for first in 0..bins.len() {
        let window = bins[first..].iter().chain(bins).take(span);
        let [x, y] = window.fold([0, 0], |s, b| [s[0] + b[0], s[1] + b[1]]).map(|v| v as f32);
        let length2 = x.mul_add(x, y * y);
        if length2 > best {
            (best, sum_of_best) = (length2, [x, y]);
        }
    }
    let ([x, y], length) = (sum_of_best, if best > 0.0 { best.sqrt() } else { 1.0 });
    Direction { angle: numeric::atan2(y, x), cos: x / length, sin: y / length }
}
