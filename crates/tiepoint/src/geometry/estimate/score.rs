//! The score of a residual: MAGSAC++ (Barath, Noskova, Ivashechkin, Matas 2020), the noise σ marginalised.
//!
//! With σ uniform up to `σ_max` = T / 3.64 and 4 degrees of freedom, the weight of a residual r ≤ T is
//! w(r) ∝ Γ(3/2, r²/2σ²) − Γ(3/2, 3.64²/2) ∝ ∫ᵣᵀ x² exp(−x²/2σ²) dx (their equation 7), and its loss
//! ρ(r) = ∫₀ʳ x w(x) dx, constant beyond T. Both come from tables over r², scaled so that w(0) = 1 and
//! ρ(T) = 1. T is the threshold; a model's score is Σ (1 − ρ).

use crate::geometry::real::WIDTH;
use fearless_simd::{Simd, f64x8, prelude::*};
use std::sync::Arc;

/// T / `σ_max`: the 0.99 quantile of the χ distribution with 4 degrees of freedom.
const QUANTILE: f64 = 3.64;

/// Intervals of the tables.
const BINS: usize = 1024;

/// The loss and weight for one threshold.
#[derive(Clone, Debug)]
pub(super) struct Score {
    /// Bins per unit of r².
    per_unit: f64,
    tables: Arc<Tables>,
}

/// Gain 1 − ρ and weight, over r² / T² in [`BINS`] steps.
#[derive(Debug)]
struct Tables {
    gain: Vec<f64>,
    weight: Vec<f64>,
}

impl Score {
    /// For a threshold T on r, in the unit of the residuals.
    pub(super) fn new(threshold: f64) -> Self {
        Self { per_unit: BINS as f64 / (threshold * threshold), tables: Arc::new(Tables::new()) }
    }

    /// The same for a threshold so many times as large.
    pub(super) fn widened(&self, by: f64) -> Self {
        Self { per_unit: self.per_unit / (by * by), tables: self.tables.clone() }
    }

    /// The score of a squared residual, and its weight.
    #[inline(always)]
    fn at(&self, squared: f64) -> [f64; 2] {
        let position = (squared * self.per_unit).min(BINS as f64);
        let i = position as usize;
        let t = position - i as f64;
        let (gain, weight) = (&self.tables.gain, &self.tables.weight);
        [gain[i] + t * (gain[i + 1] - gain[i]), weight[i] + t * (weight[i + 1] - weight[i])]
    }

    /// The same for eight.
    #[inline(always)]
    pub(super) fn vector<S: Simd>(&self, simd: S, squared: f64x8<S>) -> [f64x8<S>; 2] {
        let mut found = [[0.0; WIDTH]; 2];
        if squared.simd_lt(f64x8::splat(simd, BINS as f64 / self.per_unit)).any_true() {
            for lane in 0..WIDTH {
                let [gain, weight] = self.at(squared[lane]);
                (found[0][lane], found[1][lane]) = (gain, weight);
            }
        }
        [f64x8::simd_from(simd, found[0]), f64x8::simd_from(simd, found[1])]
    }
}

impl Tables {
    fn new() -> Self {
        // In units of T, with z = r² from 0 to 1 and x dx = dz / 2.
        let density = |z: f64| {
            let e = crate::numeric::exp((-0.5 * QUANTILE * QUANTILE * z) as f32);
            z.sqrt() * f64::from(e)
        };
        let step = 1.0 / BINS as f64;
        let mut weight = vec![0.0; BINS + 2];
        for i in (0..BINS).rev() {
            let z = i as f64 * step;
            let area = density(z) + 4.0 * density(z + 0.5 * step) + density(z + step);
            weight[i] = weight[i + 1] + area;
        }
        let mut gain = vec![0.0; BINS + 2];
        for i in (0..BINS).rev() {
            gain[i] = gain[i + 1] + 0.5 * (weight[i] + weight[i + 1]);
        }
        let (w, g) = (weight[0], gain[0]);
        weight.iter_mut().for_each(|v| *v /= w);
        gain.iter_mut().for_each(|v| *v /= g);
        Self { gain, weight }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_from_one_to_zero() {
        let score = Score::new(2.0);
        let (gain, weight) = (|r: f64| score.at(r)[0], |r: f64| score.at(r)[1]);
        let gains: Vec<f64> = (0..=50).map(|i| gain(f64::from(i) * 0.1)).collect();
        assert!(gains.is_sorted_by(|a, b| a >= b), "gain falls");
        assert_eq!([gains[0], gains[40], gains[50]], [1.0, 0.0, 0.0], "one at 0, nothing from T on");
        assert_eq!([weight(0.0), weight(4.0), weight(f64::INFINITY)], [1.0, 0.0, 0.0], "weights");
        let slope = (gain(1.0) - gain(1.001)) / 0.001;
        let start = (gain(0.0) - gain(0.001)) / 0.001;
        assert!((slope / start / weight(1.0) - 1.0).abs() < 0.01, "the weight is the loss's slope over r²");
    }
}
