//! The grey of a colour image that corresponds to a grey image.
//!
//! Mutual information learns any mapping of values, but cannot learn one grey from another grey of the same colours:
//! Rec. 601 and Rec. 709 luma differ, and neither is a function of the other. If one image of a pair is colour and the
//! other is grey, the grey is therefore estimated from the pair itself:
//!
//! ```text
//! value = 255 (Σ w_c (c / 255)^p)^(1/p),   w ≥ 0,  Σ w_c = 1,  p = 1 or 2 (near light before gamma)
//! ```
//!
//! where w and p are those whose values have the greatest mutual information (of the smoothed histogram) with the other
//! image at the pixels that correspond by coarse disparities. The standards, which are luma, the mean and green, are
//! tried first, then hill climbing in steps of ⅛ to ¹⁄₆₄, in at most [`TRIES`] tries. Other weights must have 2 % more
//! information than the best standard, because in images with few colours many weights fit about equally well.
//!
//! [`gpu`] searches on a device, where the number of steps must be fixed before the start: it always makes [`TRIES`]
//! tries, and those after the end of the search change nothing.
//!
//! **Numbers.** Integers, except for a square root and the information, f64 in a stated order.

pub(super) mod gpu;

use super::information::information;
use crate::Result;
use crate::device::Cpu;
use crate::image::{Image, Size};
use crate::stereo::View;
use crate::stereo::pair::{Pair, Pictures};

/// The sum of the weights.
const UNIT: u32 = 10_000;
/// The approximate number of pixels that are sampled.
const SAMPLED: usize = 100_000;
/// The first and the last step of the weights in a search.
const STEPS: [u32; 2] = [UNIT / 8, UNIT / 64];
/// Tries of a search at most, after the standards: moves, and steps made half as large.
const TRIES: usize = 20;
/// Other weights must have this many times the information of the best standard.
const BETTER: f64 = 1.02;
/// Rec. 709, Rec. 601, the mean and green.
const STANDARDS: [[u32; 3]; 4] = [[2126, 7152, 722], [2990, 5870, 1140], [3334, 3333, 3333], [0, UNIT, 0]];
/// For each neighbour: from which channel weight is moved, and to which.
const WAYS: [(usize, usize); 6] = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];

/// How a colour becomes a grey value: the weights w of red, green and blue, and whether p = 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Projection {
    weights: [u32; 3],
    squares: bool,
}

impl Projection {
    /// Rec. 709 luma, the initial projection.
    pub(super) const LUMA: Self = Self { weights: STANDARDS[0], squares: false };

    /// The standards with p = 1, then with p = 2.
    fn standards() -> Vec<Self> {
        let with = |squares| STANDARDS.map(|weights| Self { weights, squares });
        with(false).into_iter().chain(with(true)).collect()
    }

    /// The same weights with the other power, and the weights after moving `step` from one channel to another.
    fn neighbours(self, step: u32) -> Vec<Self> {
        let moved = WAYS.map(|(from, to)| {
            let mut weights = self.weights;
            let step = step.min(weights[from]);
            weights[from] -= step;
            weights[to] += step;
            Self { weights, ..self }
        });
        std::iter::once(Self { squares: !self.squares, ..self }).chain(moved).collect()
    }

    #[inline(always)]
    fn value(self, colour: [u8; 3]) -> u8 {
        let sum = |power: u32| -> u32 {
            self.weights.iter().zip(colour).map(|(w, c)| w * u32::from(c).pow(power)).sum()
        };
        match self.squares {
            false => ((sum(1) + UNIT / 2) / UNIT) as u8,
            true => ((f64::from(sum(2)) / f64::from(UNIT)).sqrt() + 0.5) as u8,
        }
    }

    /// The projection with the greatest mutual information with the other image.
    fn best(samples: &[([u8; 3], u8)], cpu: &Cpu) -> Self {
        let information_of = |p: &Self| {
            let mut counts = vec![0_u64; 1 << 16];
            let values = samples.iter().map(|&(colour, other)| (p.value(colour), other));
            values.for_each(|(a, b)| counts[usize::from(a) << 8 | usize::from(b)] += 1);
            information(&counts, &Cpu::sequential())
        };
        // The first of the best.
        let most = |all: Vec<Self>| -> (f64, Self) {
            let found = cpu.map(all.len(), |i| information_of(&all[i])).into_iter().zip(all);
            found.reduce(|a, b| if b.0 > a.0 { b } else { a }).unwrap_or((0.0, Self::LUMA))
        };
        let standard = most(Self::standards());
        let (mut own, [mut step, last]) = (standard, STEPS);
        for _ in 0..TRIES {
            let next = most(own.1.neighbours(step));
            if next.0 > own.0 {
                own = next;
            } else if step == last {
                break;
            } else {
                step /= 2;
            }
        }
        if own.0 > BETTER * standard.0 { own.1 } else { standard.1 }
    }
}

/// The distance between the rows of a picture that are sampled.
fn rows_apart(size: Size) -> usize {
    size.area().div_ceil(SAMPLED).max(1)
}

/// The colour image of a pair whose other image is grey.
pub(super) struct ColourImage {
    /// Red, green and blue in 8 bits, pixel by pixel.
    pub(super) channels: Image<u8>,
    /// Which view of the pair it is.
    pub(super) view: View,
}

impl ColourImage {
    /// `None` unless one image is colour and the other is not.
    pub(super) fn of(pictures: &Pictures<'_>, cpu: &Cpu) -> Result<Option<Self>> {
        let view = match pictures.are_colour() {
            [true, false] => View::Left,
            [false, true] => View::Right,
            [true, true] | [false, false] => return Ok(None),
        };
        let [channels] = pictures.channels([view], &[0, 1, 2], cpu)?;
        Ok(Some(Self { channels, view }))
    }

    /// The best projection by corresponding pixels, given disparities at half the size.
    pub(super) fn projection(&self, pair: &Pair, disparity: &Image<f32>, cpu: &Cpu) -> Projection {
        let Size { width, height } = pair.size();
        let mut samples = Vec::new();
        for y in (0..height).step_by(rows_apart(pair.size())) {
            let colours = self.channels.row(y).as_chunks::<3>().0;
            let grey = pair.compared(self.view.other()).row(y);
            let seen = pair.mask(View::Right).map(|m| m.row(y));
            for (x, d) in (0..width).map(|x| (x, 2.0 * disparity.row(y / 2)[x / 2])) {
                let other = ((x as f32 - d + 0.5).max(0.0) as usize).min(width - 1);
                if d.is_finite() && seen.is_none_or(|m| m[other] != 0) {
                    let [at, there] = if self.view == View::Left { [x, other] } else { [other, x] };
                    samples.push((colours[at], grey[there]));
                }
            }
        }
        Projection::best(&samples, cpu)
    }

    /// The grey values that a projection gives for the image.
    pub(super) fn values(&self, projection: Projection, cpu: &Cpu) -> Image<u8> {
        let Size { width, height } = self.channels.size();
        let mut values = Image::new(Size::new(width, height));
        cpu.for_chunks(values.data_mut(), width, |y, out| {
            let colours = self.channels.row(y).as_chunks::<3>().0;
            out.iter_mut().zip(colours).for_each(|(out, colour)| *out = projection.value(*colour));
        });
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;
    use crate::stereo::testing::cpus;

    fn samples(f: impl Fn([f64; 3]) -> f64) -> Vec<([u8; 3], u8)> {
        let mut random = Random::new(3);
        let colour = |bits: u64| [bits as u8, (bits >> 8) as u8, (bits >> 16) as u8];
        let all = (0..40_000).map(|_| colour(random.bits()));
        all.map(|c| (c, f(c.map(|v| f64::from(v) / 255.0)).mul_add(255.0, 0.5) as u8)).collect()
    }

    fn weigh(w: [f64; 3], c: [f64; 3]) -> f64 {
        w.iter().zip(c).map(|(w, c)| w * c).sum()
    }

    #[test]
    fn the_grey_that_was_made_is_found() {
        let cpu = Cpu::with_threads(2).unwrap();
        let best = |f: &dyn Fn([f64; 3]) -> f64| Projection::best(&samples(f), &cpu);
        let rec_601 = [0.299, 0.587, 0.114];
        assert_eq!(best(&|c| weigh([0.2126, 0.7152, 0.0722], c).powf(1.8)), Projection::LUMA, "gamma after");
        let expected = Projection { weights: [2990, 5870, 1140], squares: false };
        assert_eq!(best(&|c| 1.0 - weigh(rec_601, c)), expected, "inverted");
        let expected = Projection { squares: true, ..expected };
        assert_eq!(best(&|c| weigh(rec_601, c.map(|v| v * v))), expected, "gamma before");
        let found = best(&|c| weigh([0.7, 0.1, 0.2], c));
        assert!(!found.squares, "{found:?}");
        for (found, expected) in found.weights.iter().zip([7000_u32, 1000, 2000]) {
            assert!(found.abs_diff(expected) < 350, "a filter of one's own: {found} for {expected}");
        }
    }

    #[test]
    fn one_answer_for_threads_and_levels() {
        let samples = samples(|[r, g, b]| 0.5 * r + 0.4 * g * g + 0.1 * b);
        let expected = Projection::best(&samples, &Cpu::sequential());
        for cpu in cpus() {
            assert_eq!(Projection::best(&samples, &cpu), expected, "{} threads", cpu.threads());
        }
        assert_eq!(Projection::best(&[], &Cpu::sequential()), Projection::LUMA, "nothing to choose by");
    }
}
