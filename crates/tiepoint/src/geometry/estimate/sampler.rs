//! Which matches to sample next: PROSAC (Chum, Matas 2005). Samples come from a set of the best matches that
//! grows, and turn into uniform ones when it has reached them all; without qualities they are uniform from
//! the start. The generator is `SplitMix64` with the seed of the options.

use crate::synth::Random;

/// Largest sample.
pub(super) const MAX_SAMPLE: usize = 7;

/// Samples after which PROSAC and uniform sampling have drawn the same, `T_N` of the paper.
const UNIFORM_AFTER: f64 = 200_000.0;

/// Draws samples of indices into the matches.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    random: Random,
    /// Matches, best first.
    order: Vec<usize>,
    size: usize,
    /// Matches in the growing set.
    pool: usize,
    drawn: f64,
    /// `T_n` and `T'_n` of the paper for the set.
    expected: f64,
    until: f64,
}

impl Sampler {
    /// A sampler of `size` of the matches, whose qualities are given (higher is better).
    pub(super) fn new(qualities: &[f64], size: usize, seed: u64) -> Self {
        let n = qualities.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&i, &j| qualities[j].total_cmp(&qualities[i]).then(i.cmp(&j)));
        let alike = order.first().zip(order.last()).is_none_or(|(&i, &j)| qualities[i] == qualities[j]);
        let expected = UNIFORM_AFTER
            * (0..size).map(|i| (size as f64 - i as f64) / (n as f64 - i as f64)).product::<f64>();
        let pool = if alike { n } else { size };
        Self { random: Random::new(seed), order, size, pool, drawn: 0.0, expected, until: 1.0 }
    }

    /// The next sample; the first `size` entries count.
    pub(super) fn draw(&mut self) -> [usize; MAX_SAMPLE] {
        self.drawn += 1.0;
        let all = self.order.len();
        while self.drawn > self.until && self.pool < all {
            let grown = (self.pool + 1) as f64;
            let next = self.expected * grown / (grown - self.size as f64);
            self.until += (next - self.expected).ceil();
            (self.expected, self.pool) = (next, self.pool + 1);
        }
        let mut sample = [usize::MAX; MAX_SAMPLE];
        let newest = self.pool < all && self.pool > self.size;
        let (free, among) = if newest { (self.size - 1, self.pool - 1) } else { (self.size, self.pool) };
        for i in 0..free {
            sample[i] = loop {
                let candidate = self.order[self.random.below(among)];
                if !sample[..i].contains(&candidate) {
                    break candidate;
                }
            };
        }
        if newest {
            sample[self.size - 1] = self.order[self.pool - 1];
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_distinct_and_grow_from_the_best() {
        let qualities: Vec<f64> = (0..100).map(|i| f64::from(i % 50)).collect();
        let mut sampler = Sampler::new(&qualities, 4, 1);
        let first = sampler.draw();
        assert!(first[..4].iter().all(|&i| [49, 99, 48, 98].contains(&i)), "the best four: {first:?}");
        let mut seen = [false; 100];
        for _ in 0..250_000 {
            let s = sampler.draw();
            (0..4).for_each(|i| {
                assert!(!s[..i].contains(&s[i]), "distinct: {s:?}");
                seen[s[i]] = true;
            });
        }
        assert!(seen.iter().all(|&s| s), "every match comes up in the end");
    }

    #[test]
    fn uniform_without_qualities() {
        let mut sampler = Sampler::new(&[0.0; 10], 2, 7);
        let mut counts = [0_i32; 10];
        (0..50_000).for_each(|_| sampler.draw()[..2].iter().for_each(|&i| counts[i] += 1));
        assert!(counts.iter().all(|c| (c - 10_000).abs() < 500), "{counts:?}");
    }
}
