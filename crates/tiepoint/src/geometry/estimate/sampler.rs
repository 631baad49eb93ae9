//! Which matches to sample. Samples are drawn alternately from a growing set of the best matches, as in PROSAC (Chum,
//! Matas 2005), and from all matches; without qualities every sample is drawn from all.
//!
//! PROSAC alone would fail if the best matches agree on another model than most matches do, such as a caption on both
//! pictures: the search ends after a number of samples that assumes that they are drawn from all matches.
//!
//! A sample depends only on the sampler's key and the sample's number (`SplitMix64`, started anew for each), so that
//! any thread, and a GPU, can draw any of them.

use super::parts::{ONE, joined, parts_of};
use crate::device::Cpu;
use crate::numeric::{Random, finish};
use std::sync::Arc;

pub(in crate::geometry) const MAX_SAMPLE: usize = 7;

/// The number of its samples after which PROSAC has drawn from all sets as often as uniform sampling, `T_N` of the paper.
const UNIFORM_AFTER: f64 = 200_000.0;

#[derive(Clone, Debug)]
pub(in crate::geometry) struct Sampler {
    pub(in crate::geometry) key: u64,
    size: usize,
    /// Matches, best first, as many as the samples prepared so far need.
    order: Arc<Vec<u32>>,
    /// The matches after those, which are not yet in order.
    unordered: Option<Unordered>,
    growth: Growth,
}

impl Sampler {
    /// A sampler of `size` matches at a time; `quality` gives the quality of each (higher is better). Samples can be
    /// drawn up to the number that [`reach`](Self::reach) has prepared.
    pub(super) fn new(
        matches: usize,
        quality: impl Fn(usize) -> f64 + Sync,
        size: usize,
        seed: u64,
        cpu: &Cpu,
    ) -> Self {
        let alike = parts_of(cpu, matches, |mut part| part.all(|i| quality(i) == quality(0)));
        let graded = alike.contains(&false);
        let (order, unordered) = match graded {
            true => (Vec::new(), Some(Unordered::new(matches, quality, cpu))),
            false => ((0..matches as u32).collect(), None),
        };
        let growth = Growth::new(matches, graded, size, UNIFORM_AFTER);
        Self { key: finish(seed), size, order: Arc::new(order), unordered, growth }
    }

    /// A sampler of `size` of the matches in `order`, best first; without `graded` all are equally good. `uniform_after` is
    /// [`UNIFORM_AFTER`].
    pub(in crate::geometry) fn keyed(
        order: Arc<Vec<u32>>,
        graded: bool,
        size: usize,
        uniform_after: f64,
        key: u64,
    ) -> Self {
        let mut growth = Growth::new(order.len(), graded, size, uniform_after);
        growth.reach(u64::MAX);
        Self { key, size, order, unordered: None, growth }
    }

    /// Prepares all samples up to this number.
    pub(in crate::geometry) fn reach(&mut self, number: u64, cpu: &Cpu) {
        self.growth.reach(number / 2);
        let pool = self.growth.pool(number / 2).unwrap_or(self.growth.matches);
        if let Some(unordered) = &mut self.unordered {
            unordered.order(Arc::make_mut(&mut self.order), pool, cpu);
        }
    }

    /// The numbers up to which PROSAC's samples are drawn from the best `size`, `size` + 1, … matches.
    pub(in crate::geometry) fn until(&self) -> &[u64] {
        &self.growth.until
    }

    /// One of this many samples is drawn from all matches.
    pub(super) fn one_of_all_in(&self) -> u32 {
        if self.growth.sets > 0 { 2 } else { 1 }
    }

    /// The sample of this number, from 0; the first `size` entries count.
    pub(in crate::geometry) fn draw(&self, number: u64) -> [usize; MAX_SAMPLE] {
        let mut random = Random::new(finish(self.key ^ number));
        // PROSAC's samples contain the last match of their set, except those of the first set.
        let pool = self.growth.pool(number / 2).filter(|_| number.is_multiple_of(2));
        let newest = pool.filter(|pool| *pool > self.size);
        let free = self.size - usize::from(newest.is_some());
        let among = newest.map_or(pool.unwrap_or(self.growth.matches), |pool| pool - 1);
        let mut sample = [usize::MAX; MAX_SAMPLE];
        for i in 0..free {
            sample[i] = loop {
                // The upper half of the bits, scaled: the same with 64-bit integers on a GPU.
                let place = (((random.bits() >> 32) * among as u64) >> 32) as usize;
                let candidate = pool.map_or(place, |_| self.order[place] as usize);
                if !sample[..i].contains(&candidate) {
                    break candidate;
                }
            };
        }
        if let Some(pool) = newest {
            sample[self.size - 1] = self.order[pool - 1] as usize;
        }
        sample
    }
}

/// The growth of the set that samples are drawn from.
#[derive(Clone, Debug)]
struct Growth {
    matches: usize,
    size: usize,
    /// The numbers up to which samples are drawn from the best `size`, `size` + 1, … matches, as far as they were
    /// needed; later samples are drawn from all.
    until: Vec<u64>,
    /// The number of sets that do not yet contain all matches.
    sets: usize,
    /// `T_n` and `T'_n` of the paper, for the first set that was not needed yet.
    expected: f64,
    last: f64,
}

impl Growth {
    fn new(matches: usize, graded: bool, size: usize, uniform_after: f64) -> Self {
        let shares = (0..size).map(|i| (size - i) as f64 / (matches - i.min(matches)) as f64);
        let expected = uniform_after * shares.product::<f64>();
        let sets = if graded { matches.saturating_sub(size) } else { 0 };
        Self { matches, size, until: Vec::new(), sets, expected, last: 1.0 }
    }

    /// Continues to the set of this sample.
    fn reach(&mut self, number: u64) {
        while self.until.len() < self.sets && self.until.last().is_none_or(|until| *until <= number) {
            self.until.push(self.last as u64);
            let grown = (self.size + self.until.len()) as f64;
            let next = self.expected * grown / (grown - self.size as f64);
            self.last += (next - self.expected).ceil();
            self.expected = next;
        }
    }

    /// The number of best matches that a sample of PROSAC is drawn from; `None` for all.
    fn pool(&self, number: u64) -> Option<usize> {
        let reached = self.until.partition_point(|&until| until <= number);
        (reached < self.sets).then_some(self.size + reached)
    }
}

/// Matches that are sorted, better ones first, only as far as samples need them.
#[derive(Clone, Debug)]
struct Unordered {
    /// Inverted qualities, with the index of the match in the low bits.
    ranks: Vec<u128>,
    /// The ends of the parts that are sorted as a whole. The first parts are small, because most searches end there.
    ends: std::vec::IntoIter<u128>,
    start: u128,
}

impl Unordered {
    /// The number of ranks from which the ends of the parts are chosen.
    const SEEN: usize = 1024;

    fn new(matches: usize, quality: impl Fn(usize) -> f64 + Sync, cpu: &Cpu) -> Self {
        let rank = |i: usize| u128::from(!ascending(quality(i))) << 32 | i as u128;
        let ranks = joined(cpu, matches, |part| part.map(rank).collect());
        let mut seen: Vec<u128> = ranks.iter().step_by(matches.div_ceil(Self::SEEN)).copied().collect();
        seen.sort_unstable();
        let part = |share: usize| seen[seen.len() / share];
        let mut ends =
            if matches > ONE { vec![part(64), part(16), part(8), part(4), part(2)] } else { vec![] };
        ends.push(u128::MAX);
        Self { ranks, ends: ends.into_iter(), start: 0 }
    }

    /// Extends `order` to at least `least` matches.
    fn order(&mut self, order: &mut Vec<u32>, least: usize, cpu: &Cpu) {
        while order.len() < least
            && let Some(end) = self.ends.next()
        {
            let (ranks, own) = (&self.ranks, self.start..end);
            let in_part = |i: usize| Some(ranks[i]).filter(|rank| own.contains(rank));
            let mut part = joined(cpu, ranks.len(), |numbers| numbers.filter_map(in_part).collect());
            cpu.sort_by(&mut part, u128::cmp);
            order.extend(part.iter().map(|rank| *rank as u32));
            self.start = end;
        }
    }
}

/// An integer that orders qualities as [`f64::total_cmp`] does.
fn ascending(quality: f64) -> u64 {
    let bits = quality.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_distinct_and_the_first_are_of_the_best_matches() {
        let qualities: Vec<f64> = (0..100).map(|i| f64::from(i % 50)).collect();
        let mut sampler = Sampler::new(100, |i| qualities[i], 4, 1, &Cpu::sequential());
        sampler.reach(250_000, &Cpu::sequential());
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
        let worst = |number: u64| sampler.draw(number)[..4].iter().filter(|i| **i % 50 < 25).count();
        let share = (0..2000).filter(|n| n % 2 == 1).map(worst).sum::<usize>() as f64 / 4000.0;
        assert!((share - 0.5).abs() < 0.03, "every other sample is drawn from all: {share}");
    }

    #[test]
    fn uniform_without_qualities() {
        let mut sampler = Sampler::new(10, |_| 0.0, 2, 7, &Cpu::sequential());
        sampler.reach(50_000, &Cpu::sequential());
        let mut counts = [0_i32; 10];
        (0..50_000).for_each(|number| sampler.draw(number)[..2].iter().for_each(|&i| counts[i] += 1));
        assert!(counts.iter().all(|c| (c - 10_000).abs() < 500), "{counts:?}");
    }

    /// The sampler sorts matches in steps; its samples equal those of matches sorted all at once, for any steps and
    /// threads.
    #[test]
    fn matches_sorted_in_steps_give_the_same_samples() {
        let mut random = Random::new(3);
        let qualities: Vec<f64> = (0..2 * ONE + 5)
            .map(|i| match i % 100 {
                0 => f64::NAN,
                1 => f64::NEG_INFINITY,
                2 => -0.0,
                _ => (random.unit() * 300.0).round() - 150.0,
            })
            .collect();
        let mut order: Vec<u32> = (0..qualities.len() as u32).collect();
        order.sort_by(|&i, &j| qualities[j as usize].total_cmp(&qualities[i as usize]));
        let all = Sampler::keyed(Arc::new(order), true, 4, UNIFORM_AFTER, finish(5));
        for threads in [1, 3] {
            let cpu = Cpu::with_threads(threads).unwrap();
            let mut sampler = Sampler::new(qualities.len(), |i| qualities[i], 4, 5, &cpu);
            for end in [100, 1000, 50_000, 300_000] {
                sampler.reach(end, &cpu);
                for number in (end - 100..=end).chain([0, 7]) {
                    assert_eq!(sampler.draw(number), all.draw(number), "sample {number}, {threads} threads");
                }
            }
        }
    }
}
