//! What a finished collection holds, in the order in which a database takes it.

use super::features::State;
use super::round::Round;
use super::tile::PAIR;
use super::{Collection, PairSet, VerifiedPair};
use crate::device::Cpu;
use crate::{Error, Result};
use std::sync::Arc;

/// The verified pairs of a finished collection.
#[derive(Debug)]
pub struct Results<'c> {
    collection: &'c Collection,
    states: Arc<Vec<State>>,
    rounds: [Round<'c>; 2],
    /// Of each block of photographs, the tiles that hold verified pairs whose first photograph it has: round and tile.
    tiles: Vec<Vec<[usize; 2]>>,
}

impl Collection {
    /// The results of all stages.
    ///
    /// # Errors
    /// [`Error::Format`] when pairs were not chosen; [`Error::Mismatch`] when pairs are not matched; [`Error::Io`].
    pub fn results(&self) -> Result<Results<'_>> {
        let cpu = &Cpu::sequential();
        let states = Arc::new(self.states(cpu)?);
        let first = self.first_round(&states)?;
        let unfinished = || Error::Mismatch("not all pairs are matched; run the stage `match` first".into());
        let closure = self.closure_round(&first, &states, cpu)?.ok_or_else(unfinished)?;
        let rounds = [first, closure];
        let mut tiles = vec![Vec::new(); self.photographs().len().div_ceil(self.block())];
        for (number, round) in rounds.iter().enumerate() {
            for tile in 0..round.pairs.tiles() {
                let found = round.status(tile)?;
                if !found.todo.is_empty() {
                    return Err(unfinished());
                }
                for (pair, _) in found.found {
                    let of_block: &mut Vec<[usize; 2]> = &mut tiles[pair[0] as usize / self.block()];
                    if of_block.last() != Some(&[number, tile]) {
                        of_block.push([number, tile]);
                    }
                }
            }
        }
        tiles.iter_mut().for_each(Vec::dedup);
        Ok(Results { collection: self, states, rounds, tiles })
    }
}

impl Results<'_> {
    /// The pairs that were tried: those that were chosen, and those of the closure.
    pub fn tried(&self) -> PairSet {
        match self.rounds.each_ref().map(|round| &round.pairs.set) {
            [PairSet::List(chosen), PairSet::List(closure)] => {
                PairSet::list(chosen.iter().chain(closure).copied())
            }
            [PairSet::All, _] | [_, PairSet::All] => PairSet::All,
        }
    }

    /// Blocks of photographs, for [`pairs_of`](Self::pairs_of).
    pub fn blocks(&self) -> usize {
        self.tiles.len()
    }

    /// The verified pairs whose first photograph is in this block, by their photographs.
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
                let features = pair.map(|i| match &self.states[i] {
                    State::Found { known, .. } => known.count,
                    State::Unreadable(_) | State::Missing(_) => 0,
                });
                pairs.push(VerifiedPair::decode(pair, features, record, body).ok_or_else(|| {
                    Error::format(round.path(tile), "holds matches of features that are not there")
                })?);
            }
        }
        pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        Ok(pairs)
    }
}
