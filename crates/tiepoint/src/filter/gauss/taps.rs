//! The weights of a Gaussian filter, as the centre and one side.

use crate::{Error, Result, numeric::exp_f64};

/// Most taps of a filter.
pub const MAX_SIZE: usize = 4095;

/// The weights that smooth the image. All are normalised to a sum of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Taps {
    /// A sampled Gaussian of standard deviation σ, in pixels: 0.1 to 500. It reaches at least as far as OpenCV's:
    /// radius ⌈3σ⌉ for 8-bit images, whose rounding hides the rest, and ⌈4σ⌉ for others.
    Sigma(f64),
    /// A Gaussian of an odd number of taps, 1 to [`MAX_SIZE`], after OpenCV's rule: a fixed table for 1 to 9
    /// taps (3: 1 2 1, 5: 1 4 6 4 1, …), σ = 0.3·((size − 1)/2 − 1) + 0.8 above.
    Size(usize),
    /// A sampled Gaussian of the given σ, cut to an odd number of taps.
    SigmaAndSize(f64, usize),
    /// 1, 2, 4, … towards the centre and back: each tap a power of two before normalising. Odd sizes of 1 to
    /// 31; 3, 5, 9 and 15 are those of Schösau 2019.
    PowerOfTwo(usize),
}

impl Default for Taps {
    /// σ = 1.6, the first scale of SIFT.
    fn default() -> Self {
        Self::Sigma(1.6)
    }
}

impl Taps {
    /// The taps for the given σ and size; the default if neither is given. `power_of_two` counts for a size alone.
    pub fn of(sigma: Option<f64>, size: Option<usize>, power_of_two: bool) -> Self {
        match (sigma, size) {
            (None, Some(size)) if power_of_two => Self::PowerOfTwo(size),
            (Some(sigma), Some(size)) => Self::SigmaAndSize(sigma, size),
            (None, Some(size)) => Self::Size(size),
            (Some(sigma), None) => Self::Sigma(sigma),
            (None, None) => Self::default(),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`Error::Option`] for a σ or size that is not allowed.
    pub fn check(self) -> Result<()> {
        let sigma = |s: f64| match s {
            0.1..=500.0 => Ok(()),
            _ => Err(Error::option("sigma", s, "0.1 to 500 pixels")),
        };
        let size = |n: usize, most: usize, expected| match n % 2 == 1 && n <= most {
            true => Ok(()),
            false => Err(Error::option("size", n, expected)),
        };
        match self {
            Self::Sigma(s) => sigma(s),
            Self::Size(n) => size(n, MAX_SIZE, "an odd number from 1 to 4095"),
            Self::SigmaAndSize(s, n) => sigma(s).and(size(n, MAX_SIZE, "an odd number from 1 to 4095")),
            Self::PowerOfTwo(n) => size(n, 31, "an odd number from 1 to 31"),
        }
    }

    /// Taps on one side of the centre; `eight_bit` shortens [`Taps::Sigma`] as stated there.
    pub fn radius(self, eight_bit: bool) -> usize {
        match self {
            Self::Sigma(s) => (s * if eight_bit { 3.0 } else { 4.0 }).ceil().max(1.0) as usize,
            Self::Size(n) | Self::SigmaAndSize(_, n) | Self::PowerOfTwo(n) => n / 2,
        }
    }

    /// The centre and one side, normalised in f64.
    fn weights(self, eight_bit: bool) -> Vec<f64> {
        let radius = self.radius(eight_bit);
        let gauss = |s: f64| (0..=radius).map(|k| exp_f64(-((k * k) as f64) / (2.0 * s * s))).collect();
        let mut taps: Vec<f64> = match self {
            Self::Sigma(s) | Self::SigmaAndSize(s, _) => gauss(s),
            Self::PowerOfTwo(_) => (0..=radius).map(|k| (1_u64 << (radius - k)) as f64).collect(),
            Self::Size(1) => vec![1.0],
            Self::Size(3) => vec![2.0, 1.0],
            Self::Size(5) => vec![6.0, 4.0, 1.0],
            Self::Size(7) => vec![18.0, 14.0, 7.0, 2.0],
            Self::Size(9) => vec![60.0, 51.0, 30.0, 13.0, 4.0],
            Self::Size(_) => gauss(0.3 * (radius as f64 - 1.0) + 0.8),
        };
        let sum = taps[0] + 2.0 * taps[1..].iter().sum::<f64>();
        taps.iter_mut().for_each(|t| *t /= sum);
        taps
    }

    /// The centre and one side in f32, each rounded to nearest from f64.
    pub fn to_f32(self, eight_bit: bool) -> Vec<f32> {
        self.weights(eight_bit).iter().map(|&t| t as f32).collect()
    }

    /// The centre and one side in units of 1/256; the whole kernel sums to exactly 256. Running sums from the outermost
    /// tap inwards are rounded instead of the taps, so that the response to an edge anywhere in the window is off by at
    /// most half a unit.
    pub fn to_q8(self) -> Vec<u16> {
        let weights = self.weights(true);
        let (mut sum, mut rounded) = (0.0, 0);
        let mut taps: Vec<u16> = weights[1..]
            .iter()
            .rev()
            .map(|&w| {
                sum += w * 256.0;
                let before = std::mem::replace(&mut rounded, sum.round_ties_even() as u16);
                rounded - before
            })
            .collect();
        taps.push(256 - 2 * rounded);
        taps.reverse();
        taps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_of_two_taps_are_those_of_the_source() {
        // The source's 2-D normalisers, the squares of the 1-D sums.
        for (size, square) in [(3, 16.0), (5, 100.0), (9, 2116.0), (15, 145_924.0)] {
            let taps = Taps::PowerOfTwo(size).weights(true);
            let outermost = taps[size / 2];
            assert!((outermost * outermost * square - 1.0).abs() < 1e-12, "{size} taps end in {outermost}");
            assert!(taps.windows(2).all(|t| t[0] == 2.0 * t[1]), "each tap is twice the next: {taps:?}");
        }
    }

    #[test]
    fn taps_sum_to_one() {
        let kinds = [1.6, 0.1, 3.0, 10.0, 500.0].map(Taps::Sigma);
        let sizes = [1, 3, 5, 7, 9, 11, 15, 31, 4095].map(Taps::Size);
        let powers = [1, 3, 5, 9, 15, 31].map(Taps::PowerOfTwo);
        for taps in kinds.into_iter().chain(sizes).chain(powers) {
            taps.check().unwrap();
            let q8 = taps.to_q8();
            assert_eq!(
                u32::from(q8[0]) + 2 * q8[1..].iter().map(|&t| u32::from(t)).sum::<u32>(),
                256,
                "{taps:?}"
            );
            let exact: f32 = taps.to_f32(false)[1..].iter().sum::<f32>() * 2.0 + taps.to_f32(false)[0];
            assert!((exact - 1.0).abs() < 1e-5, "{taps:?} sum to {exact}");
        }
        assert_eq!(Taps::Size(5).to_q8(), [96, 64, 16], "the binomial table");
        assert_eq!(Taps::Sigma(1.6).radius(false), 7, "four sigma");
    }

    #[test]
    fn wrong_options_are_refused() {
        for taps in [
            Taps::Sigma(0.0),
            Taps::Sigma(f64::NAN),
            Taps::Sigma(1e9),
            Taps::Size(0),
            Taps::Size(4),
            Taps::Size(4097),
            Taps::PowerOfTwo(33),
            Taps::SigmaAndSize(1.0, 2),
            Taps::SigmaAndSize(-1.0, 3),
        ] {
            assert!(taps.check().is_err(), "{taps:?} passed");
        }
    }
}
