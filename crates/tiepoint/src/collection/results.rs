//! What a finished collection holds, in the order in which a database takes it.

use super::matches::Round;
use super::{Collection, PairSet, VerifiedPair};
use crate::{Error, Result};

/// The verified pairs of a finished collection.
#[derive(Debug)]
pub struct Results<'c> {
    collection: &'c Collection,
    rounds: [(Round, Vec<[usize; 2]>); 2],
}

impl Collection {
    /// The results of all stages.
    ///
    /// # Errors
    /// [`Error::Format`] when pairs were not chosen; [`Error::Mismatch`] when tiles are missing; [`Error::Io`].
    pub fn results(&self) -> Result<Results<'_>> {
        let first = self.first_round()?;
        let unfinished = || Error::Mismatch("not all pairs are matched; run the stage `match` first".into());
        let closure = self.closure_round()?.ok_or_else(unfinished)?;
        let rounds = [first, closure].map(|round| {
            let tiles = self.tiles_of(&round);
            (round, tiles)
        });
        let missing = rounds
            .iter()
            .any(|(round, tiles)| tiles.iter().any(|tile| !self.tile_path(round.folder, *tile).exists()));
        if missing { Err(unfinished()) } else { Ok(Results { collection: self, rounds }) }
    }
}

impl Results<'_> {
    /// The pairs that were tried: those that were chosen, and those of the closure.
    pub fn tried(&self) -> PairSet {
        match self.rounds.each_ref().map(|(round, _)| &round.pairs) {
            [PairSet::List(chosen), PairSet::List(closure)] => {
                PairSet::list(chosen.iter().chain(closure).copied())
            }
            [PairSet::All, _] | [_, PairSet::All] => PairSet::All,
        }
    }

    /// Blocks of photographs, for [`pairs_of`](Self::pairs_of).
    pub fn blocks(&self) -> usize {
        self.collection.photographs().len().div_ceil(self.collection.block())
    }

    /// The verified pairs whose first photograph is in this block, by their photographs.
    ///
    /// # Errors
    /// [`Error::Format`] when a tile is damaged, [`Error::Io`] when it cannot be read.
    pub fn pairs_of(&self, block: usize) -> Result<Vec<VerifiedPair>> {
        let mut pairs = Vec::new();
        for (round, tiles) in &self.rounds {
            for &tile in tiles.iter().filter(|tile| tile[0] == block) {
                let path = self.collection.tile_path(round.folder, tile);
                pairs.extend(self.collection.tile(round, tile)?.or_made_by("match", &path)?.verified);
            }
        }
        pairs.sort_unstable_by_key(|pair| (pair.a, pair.b));
        Ok(pairs)
    }
}
