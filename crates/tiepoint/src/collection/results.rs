//! The results of a finished collection, in the order in which a database takes them.

use super::round::Round;
use super::tile::PAIR;
use super::{Collection, PairSet, VerifiedPair};
use crate::device::Cpu;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The verified pairs of a finished collection.
#[derive(Debug)]
pub struct Results<'c> {
    collection: &'c Collection,
    rounds: [Round<'c>; 3],
    /// For each run of photographs, as long as a block: round and tile of the verified pairs whose first photograph it has.
    tiles: Vec<Vec<[usize; 2]>>,
}

impl Collection {
    /// The results of all stages.
    ///
    /// # Errors
    /// [`Error::Format`] when pairs have not been chosen; [`Error::Mismatch`] when pairs have not been matched;
    /// [`Error::Io`]; [`Error::Cancelled`].
    pub fn results(&self, cpu: &Cpu) -> Result<Results<'_>> {
        self.finished(cpu).map_err(|error| self.unless_overtaken(error))
    }

    fn finished(&self, cpu: &Cpu) -> Result<Results<'_>> {
        let states = Arc::new(self.states(cpu)?);
        let first = self.first_round(&states)?;
        let unfinished = || {
            let error = Error::Mismatch("not all pairs are matched; run the stage `match` first".into());
            self.unless_without_features(&states, error)
        };
        let closure = self.closure_round(&first, cpu)?.ok_or_else(unfinished)?;
        let structure = self.structure_round(&first, cpu)?.ok_or_else(unfinished)?;
        let rounds = [first, closure, structure];
        let mut tiles = vec![Vec::new(); self.photographs().len().div_ceil(self.block())];
        for (number, round) in rounds.iter().enumerate() {
            let of_block = |pair: [u32; 2]| pair[0] as usize / self.block();
            let blocks = round.finished(cpu, |status| {
                status.found.into_iter().map(|(pair, _)| of_block(pair)).collect::<BTreeSet<_>>()
            })?;
            for (tile, blocks) in blocks.ok_or_else(unfinished)?.into_iter().enumerate() {
                blocks.into_iter().for_each(|block| tiles[block].push([number, tile]));
            }
        }
        Ok(Results { collection: self, rounds, tiles })
    }
}

impl Results<'_> {
    /// The pairs that were tried: the chosen ones, of which some may have been tried by structure, too, and those of the
    /// closure.
    pub fn tried(&self) -> PairSet {
        let [chosen, closure, _] = self.rounds.each_ref().map(|round| &round.pairs.set);
        match [chosen, closure] {
            [PairSet::List(chosen), PairSet::List(closure)] => {
                PairSet::list(chosen.iter().chain(closure).copied())
            }
            [PairSet::All, _] | [_, PairSet::All] => PairSet::All,
        }
    }

    /// The number of runs of photographs, in the order of their numbers, for [`pairs_of`](Self::pairs_of).
    pub fn blocks(&self) -> usize {
        self.tiles.len()
    }

    /// The verified pairs whose first photograph is in this run, sorted by their photographs.
    ///
    /// # Errors
    /// [`Error::Format`] when a tile is damaged, [`Error::Io`] when it cannot be read.
    pub fn pairs_of(&self, block: usize) -> Result<Vec<VerifiedPair>> {
        let (mut pairs, size) = (Vec::new(), self.collection.block());
        for &[number, tile] in self.tiles.get(block).into_iter().flatten() {
            let round = &self.rounds[number];
            for (pair, bytes) in round.found(tile)? {
                let pair = pair.map(|i| i as usize);
                if pair[0] / size != block {
                    continue;
                }
                let (record, body) = bytes.split_at(PAIR);
                let features = pair.map(|i| round.states[i].count());
                pairs.push(VerifiedPair::decode(pair, features, record, body).ok_or_else(|| {
                    Error::format(round.path(tile), "holds matches of features that are not there")
                })?);
            }
        }
        pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        Ok(pairs)
    }
}
