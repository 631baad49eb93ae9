//! Which matches to sample: PROSAC (Chum, Matas 2005). Samples come from a set of the best matches that grows, and turn
//! into uniform ones when it has reached them all; without qualities they are uniform from the start.
//!
//! A sample follows from the key of the sampler and its own number alone (`SplitMix64`, started anew for each), so that any
//! thread, and a GPU, can draw any of them.

use crate::device::Cpu;
use crate::synth::{Random, finish};
use std::sync::Arc;

/// Largest sample.
pub(in crate::geometry) const MAX_SAMPLE: usize = 7;

/// Samples after which PROSAC and uniform sampling have drawn the same, `T_N` of the paper.
const UNIFORM_AFTER: f64 = 200_000.0;

/// Draws samples of indices into the matches.
#[derive(Clone, Debug)]
pub(in crate::geometry) struct Sampler {
    key: u64,
    /// Matches, best first.
    order: Arc<[u32]>,
    size: usize,
    /// Up to which number samples come from the best `size`, `size` + 1, … matches; later ones from all.
    until: Vec<u64>,
}

impl Sampler {
    /// A sampler of `size` of the matches, whose qualities are given (higher is better).
    pub(super) fn new(qualities: &[f64], size: usize, seed: u64, cpu: &Cpu) -> Self {
        let mut graded: Vec<(f64, u32)> = qualities.iter().copied().zip(0..).collect();
        cpu.sort_by(&mut graded, |p, q| q.0.total_cmp(&p.0).then(p.1.cmp(&q.1)));
        let alike = graded.first().zip(graded.last()).is_none_or(|(p, q)| p.0 == q.0);
        let order = graded.iter().map(|(_, i)| *i).collect();
        Self::keyed(order, !alike, size, UNIFORM_AFTER, finish(seed))
    }

    /// A sampler of `size` of the matches, given best first; all are alike unless `graded`. Of `uniform_after` samples as
    /// many hold the same matches as if all were drawn from all.
    pub(in crate::geometry) fn keyed(
        order: Arc<[u32]>,
        graded: bool,
        size: usize,
        uniform_after: f64,
        key: u64,
    ) -> Self {
        let n = order.len();
        let mut until = Vec::new();
        if graded && n > size {
            // T_n and T'_n of the paper.
            let shares = (0..size).map(|i| (size - i) as f64 / (n - i) as f64);
            let mut expected = uniform_after * shares.product::<f64>();
            let mut last = 1.0;
            for pool in size..n {
                until.push(last as u64);
                let grown = (pool + 1) as f64;
                let next = expected * grown / (grown - size as f64);
                last += (next - expected).ceil();
                expected = next;
            }
        }
        Self { key, order, size, until }
    }

    /// The key.
    pub(in crate::geometry) fn key(&self) -> u64 {
        self.key
    }

    /// Up to which number samples come from the best `size`, `size` + 1, … matches.
    pub(in crate::geometry) fn until(&self) -> &[u64] {
        &self.until
    }

    /// The sample of this number, from 0; the first `size` entries count.
    pub(in crate::geometry) fn draw(&self, number: u64) -> [usize; MAX_SAMPLE] {
        let mut random = Random::new(finish(self.key ^ number));
        let reached = self.until.partition_point(|&until| until <= number);
        let newest = reached < self.until.len() && reached > 0;
        let pool = if reached < self.until.len() { self.size + reached } else { self.order.len() };
        let (free, among) = if newest { (self.size - 1, pool - 1) } else { (self.size, pool) };
        let mut sample = [usize::MAX; MAX_SAMPLE];
        for i in 0..free {
            sample[i] = loop {
                // The upper half of the bits, scaled: the same with 64-bit integers on a GPU.
                let place = ((random.bits() >> 32) * among as u64) >> 32;
                let candidate = self.order[place as usize] as usize;
                if !sample[..i].contains(&candidate) {
                    break candidate;
                }
            };
        }
        if newest {
            sample[self.size - 1] = self.order[pool - 1] as usize;
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
        let sampler = Sampler::new(&qualities, 4, 1, &Cpu::sequential());
        let first = sampler.draw(0);
        assert!(first[..4].iter().all(|&i| [49, 99, 48, 98].contains(&i)), "the best four: {first:?}");
        let mut seen = [false; 100];
        for number in 0..250_000 {
            let s = sampler.draw(number);
            (0..4).for_each(|i| {
                assert!(!s[..i].contains(&s[i]), "distinct: {s:?}");
                seen[s[i]] = true;
            });
        }
        assert!(seen.iter().all(|&s| s), "every match comes up in the end");
    }

    #[test]
    fn uniform_without_qualities() {
        let sampler = Sampler::new(&[0.0; 10], 2, 7, &Cpu::sequential());
        let mut counts = [0_i32; 10];
        (0..50_000).for_each(|number| sampler.draw(number)[..2].iter().for_each(|&i| counts[i] += 1));
        assert!(counts.iter().all(|c| (c - 10_000).abs() < 500), "{counts:?}");
    }
}
