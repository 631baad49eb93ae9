//! Interpolation weights for a fraction of a pixel.

use super::Interpolation;
use fearless_simd::{Simd, f32x8, f32x16, i32x16, prelude::*};
use std::f64::consts::PI;

/// Steps of the table across a pixel.
pub(super) const PHASES: usize = 1024;

/// Numbers of a row of the table; the first ones, one a tap, are used.
const ROW: usize = 8;

pub(super) struct Weights {
    /// Weights at 0, 1/1024, …, 1; empty for nearest and bilinear, which need no table. Each row begins with the weights of its taps.
    pub(super) table: Vec<[f32; ROW]>,
    pub(super) interpolation: Interpolation,
}

impl Weights {
    pub(super) fn new(interpolation: Interpolation) -> Self {
        let at = |i: usize| i as f64 / PHASES as f64;
        Self {
            interpolation,
            table: match interpolation {
                Interpolation::Nearest | Interpolation::Bilinear => vec![],
                Interpolation::Bicubic => (0..=PHASES).map(|i| row::<4>(at(i), keys)).collect(),
                Interpolation::Lanczos3 => (0..=PHASES).map(|i| row::<6>(at(i), lanczos3)).collect(),
            },
        }
    }

    /// The weights of the `TAPS` pixels around places at `fractions`, 0 to 1, past the middle-left one.
    #[inline(always)]
    pub(super) fn of<S: Simd, const TAPS: usize>(&self, simd: S, fractions: f32x16<S>) -> [f32x16<S>; TAPS] {
        let (3.., Some(table)) = (TAPS, self.table.first_chunk::<{ PHASES + 1 }>()) else {
            let first = if TAPS == 1 { f32x16::splat(simd, 1.0) } else { 1.0 - fractions };
            return std::array::from_fn(|i| if i == 0 { first } else { fractions });
        };
        let phases: i32x16<S> = (fractions * PHASES as f32).round_ties_even().to_int();
        let phases = phases.to_array().map(|p| &table[(p as usize).min(PHASES)]);
        // Vector k begins as the rows of lanes 2k and 2k + 1; three perfect shuffles bring together the
        // weights of each tap.
        let mut rows: [f32x16<S>; ROW] = std::array::from_fn(|k| {
            let [a, b] = [phases[2 * k], phases[2 * k + 1]].map(|row| f32x8::from_slice(simd, row));
            a.combine(b)
        });
        for _ in 0..3 {
            rows = std::array::from_fn(|k| match k {
                k if k < 4 => rows[2 * k].unzip_low(rows[2 * k + 1]),
                k => rows[2 * k - 8].unzip_high(rows[2 * k - 7]),
            });
        }
        std::array::from_fn(|tap| rows[tap])
    }

    /// One place's weights, for tests.
    #[cfg(test)]
    pub(super) fn at<const TAPS: usize>(&self, fraction: f32) -> [f32; TAPS] {
        let row = self.table[(fraction * PHASES as f32).round_ties_even() as usize];
        std::array::from_fn(|i| row[i])
    }
}

/// The kernel at the distances of `TAPS` pixels, scaled to sum 1.
fn row<const TAPS: usize>(fraction: f64, kernel: fn(f64) -> f64) -> [f32; ROW] {
    let distance = |i: usize| (i as f64 - (TAPS / 2 - 1) as f64 - fraction).abs();
    let sum: f64 = (0..TAPS).map(|i| kernel(distance(i))).sum();
    std::array::from_fn(|i| if i < TAPS { (kernel(distance(i)) / sum) as f32 } else { 0.0 })
}

/// Keys' cubic convolution with a = −½.
fn keys(x: f64) -> f64 {
    match x {
        x if x <= 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
        x if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
        _ => 0.0,
    }
}

/// sinc(x) sinc(x/3).
fn lanczos3(x: f64) -> f64 {
    match x {
        0.0 => 1.0,
        x if x < 3.0 => 3.0 * sine_of_pi(x) * sine_of_pi(x / 3.0) / (PI * PI * x * x),
        _ => 0.0,
    }
}

/// sin(π x) for 0 ≤ x ≤ 3 by its series, so that no library's rounding enters the table.
fn sine_of_pi(x: f64) -> f64 {
    let (turns, rest) = (x.round_ties_even(), x - x.round_ties_even());
    let (angle, mut term) = (PI * rest, PI * rest);
    let mut sum = term;
    for k in 1..12 {
        term *= -angle * angle / f64::from(2 * k * (2 * k + 1));
        sum += term;
    }
    if turns % 2.0 == 0.0 { sum } else { -sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_is_a_sine() {
        for i in 0..=3000 {
            let x = f64::from(i) * 1e-3;
            assert!((sine_of_pi(x) - (PI * x).sin()).abs() < 1e-14, "sin(π {x})");
        }
    }

    #[test]
    fn weights_sum_to_one_and_whole_places_take_one_pixel() {
        for kind in [Interpolation::Bicubic, Interpolation::Lanczos3] {
            let table = Weights::new(kind).table;
            for row in &table {
                assert!((row.iter().map(|&w| f64::from(w)).sum::<f64>() - 1.0).abs() < 1e-6, "{kind:?}");
            }
            let middle = kind.taps() / 2 - 1;
            assert_eq!(table[0], std::array::from_fn(|i| f32::from(u8::from(i == middle))), "{kind:?} at 0");
            let next = std::array::from_fn(|i| f32::from(u8::from(i == middle + 1)));
            assert_eq!(table[PHASES], next, "{kind:?} at 1");
        }
    }
}
