//! Choosing pairs by the largest features of each photograph (Wu, "Towards Linear-Time Incremental Structure from
//! Motion", 3DV 2013, section 4): the matches between a few hundred features of the largest scale suffice to tell which
//! photographs show the same thing.
//!
//! The largest [`top_features`](super::PairOptions::top_features) of every photograph are matched with those of every
//! other, exactly and in both directions. A pair is suggested if it has at least
//! [`top_matches`](super::PairOptions::top_matches) matches, and chosen if it is among the
//! [`top_partners`](super::PairOptions::top_partners) best pairs of either photograph.

use super::features::State;
use super::folder::text_of;
use super::record::{Kind, fingerprint};
use super::round::{Round, TileKind, TileStatus};
use super::{Collection, PairSet, Shard};
use crate::Result;
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::matching::match_features;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};
use tiepoint_gpu::lock;

/// The version of what this stage computes. When it changes, all photographs are compared again.
pub(super) const VERSION: u32 = 1;

/// The tiles of suggested pairs. The record of a pair is its number of matches, u16.
const SUGGESTIONS: TileKind =
    TileKind { folder: "top-scale", task: "top-scale", kind: Kind::Suggestions, record: 2, body: |_| 0 };

/// Pairs that a thread takes at a time.
const TOGETHER: usize = 64;

impl Collection {
    /// Compares a part of the pairs. Returns those whose largest features match; `None` while other parts are missing.
    pub(super) fn top_scale(
        &self,
        shard: Shard,
        states: &[State],
        cpu: &Cpu,
    ) -> Result<Option<Vec<[u32; 2]>>> {
        let round = &self.top_scale_round(Arc::new(states.to_vec()));
        let (least, options) = (self.options().pairs.top_matches, &self.options().matching);
        let most = self.options().pairs.top_features as usize;
        let load = |index| Ok(Arc::new(largest(&*round.load(index)?, most)?));
        round.work(shard, cpu, load, |tiles, _| {
            tiles.work_on_threads(cpu.threads(), TOGETHER, &|| true, || {
                let processor = Processor::from(Cpu::sequential());
                Ok(move |_, [a, b]: [Arc<Features>; 2]| {
                    let count = match_features(&a, &b, options, &processor)?.len() as u32;
                    let record = || u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes().to_vec();
                    Ok((count >= least).then(record))
                })
            })
        })?;
        let most = self.options().pairs.top_partners as usize;
        let best = Mutex::new(Best::new(self.photographs().len(), most));
        let add = |status: TileStatus| {
            let mut best = lock(&best);
            for (pair, record) in status.found {
                best.add(pair, u16::from_le_bytes([record[0], record[1]]));
            }
        };
        let finished = round.finished(cpu, add)?;
        Ok(finished.map(|_| best.into_inner().unwrap_or_else(PoisonError::into_inner).pairs()))
    }

    /// The round that compares all pairs.
    pub(super) fn top_scale_round(&self, states: Arc<Vec<State>>) -> Round<'_> {
        Round::new(self, states, PairSet::All, SUGGESTIONS, self.suggestions_fingerprint())
    }

    pub(super) fn suggestions_fingerprint(&self) -> u64 {
        let pairs = &self.options().pairs;
        let options = text_of(&(pairs.top_features, pairs.top_matches, &self.options().matching));
        fingerprint([&VERSION.to_le_bytes()[..], options.as_bytes()])
    }
}

/// The `most` features of the largest scale; the first if scales are equal.
fn largest(features: &Features, most: usize) -> Result<Features> {
    let mut order: Vec<usize> = (0..features.len()).collect();
    let scale = |i: usize| features.keypoints[i].scale;
    order.sort_by(|&i, &j| scale(j).total_cmp(&scale(i)).then(i.cmp(&j)));
    order.truncate(most);
    features.subset(&order)
}

/// The best partners of every photograph: those with the most matches; of equal ones the first pairs.
struct Best {
    most: usize,
    /// For each photograph a heap with the worst of its kept pairs on top.
    partners: Vec<BinaryHeap<(Reverse<u16>, [u32; 2])>>,
}

impl Best {
    fn new(photographs: usize, most: usize) -> Self {
        Self { most, partners: vec![BinaryHeap::new(); photographs] }
    }

    fn add(&mut self, pair: [u32; 2], count: u16) {
        for i in pair {
            let kept = &mut self.partners[i as usize];
            kept.push((Reverse(count), pair));
            if kept.len() > self.most {
                kept.pop();
            }
        }
    }

    /// The pairs that are among the best of one of their photographs.
    fn pairs(self) -> Vec<[u32; 2]> {
        self.partners.into_iter().flatten().map(|(_, pair)| pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_partners_of_either_are_kept() {
        let mut best = Best::new(4, 1);
        for (pair, count) in [([1, 3], 4), ([0, 3], 7), ([0, 1], 9), ([2, 3], 4), ([0, 2], 8)] {
            best.add(pair, count);
        }
        // 0-1 is the best pair of 0 and of 1, 0-2 that of 2, 0-3 that of 3; the others are second for both photographs.
        assert_eq!(PairSet::list(best.pairs()), PairSet::List(vec![[0, 1], [0, 2], [0, 3]]));
        let mut best = Best::new(3, 1);
        best.add([1, 2], 5);
        best.add([0, 2], 5);
        assert_eq!(PairSet::list(best.pairs()), PairSet::List(vec![[0, 2], [1, 2]]), "of equals the first");
    }
}
