//! The progress of a collection.

use super::features::State;
use super::record::Found;
use super::round::Round;
use super::scan::with_reasons;
use super::tile::counts;
use super::{Collection, PairChoice, PairSet};
use crate::Result;
use crate::assess::{CollectionEvidence, PairCounts};
use crate::device::Cpu;
use std::sync::Arc;

/// What is done and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Status {
    /// The number of photographs.
    pub photographs: usize,
    /// Photographs with features.
    pub searched: usize,
    /// The number of their features.
    pub features: u64,
    /// Photographs that cannot be read, and why.
    #[serde(serialize_with = "with_reasons")]
    pub unreadable: Vec<(String, String)>,
    /// Files that the last scan left out although they seem to be images, and folders that could not be read, and why.
    #[serde(serialize_with = "with_reasons")]
    pub refused: Vec<(String, String)>,
    /// The indices of the photographs that are still to be searched. [`Shard`](super::Shard) divides the work by them.
    #[serde(rename = "missing_features")]
    pub missing: Vec<usize>,
    /// Those of them that have changed since the scan or are gone, so that it has to be run again, and why; the folder alone
    /// if it is not there.
    #[serde(serialize_with = "with_reasons")]
    pub changed: Vec<(String, String)>,
    /// The numbers of the tiles that are still to be compared before pairs can be chosen; 0 alone where nothing is compared
    /// and pairs have not been chosen. [`Shard`](super::Shard) divides the work by them.
    pub missing_pairs: Vec<usize>,
    /// Pairs to match; `None` until they have been chosen.
    pub pairs: Option<u64>,
    /// Pairs that were tried.
    pub tried: u64,
    /// Pairs that are not tried because one of their photographs cannot be read.
    pub left_out: u64,
    /// Verified pairs.
    pub verified: u64,
    /// Matches of verified pairs that agree with their geometry.
    pub inliers: u64,
    /// Tiles of the pairs that have been chosen so far.
    pub tiles: usize,
    /// Tiles that are done.
    pub tiles_done: usize,
    /// The numbers of the tiles that are not done in the current round. [`Shard`](super::Shard) divides the work by
    /// them.
    #[serde(rename = "missing_match")]
    pub missing_tiles: Vec<usize>,
    /// Files that will be made again because they are damaged or belong to another run.
    pub unfit: Vec<String>,
}

impl Status {
    /// Whether everything is done.
    pub fn is_complete(&self) -> bool {
        self.searched + self.unreadable.len() == self.photographs
            && self.pairs.is_some()
            && self.tiles_done == self.tiles
    }

    fn add(&mut self, round: &Round<'_>, cpu: &Cpu) -> Result<()> {
        let tiles = round.pairs.tiles();
        self.tiles += tiles;
        let all: Vec<usize> = (0..tiles).collect();
        let found = round.statuses(&all, cpu, |found| {
            let inliers: u64 = found.found.iter().map(|(_, record)| u64::from(counts(record)[1])).sum();
            (found.todo.len(), found.tried, found.left_out, found.found.len() as u64, inliers, found.unfit)
        })?;
        for (tile, (todo, tried, left_out, verified, inliers, unfit)) in found.into_iter().enumerate() {
            match todo {
                0 => self.tiles_done += 1,
                _ => self.missing_tiles.push(round.pairs.number(tile)),
            }
            self.tried += tried;
            self.left_out += left_out;
            self.verified += verified;
            self.inliers += inliers;
            let damaged = unfit.filter(|_| todo > 0);
            self.unfit.extend(damaged.map(|why| format!("{} {why}", round.path(tile).display())));
        }
        self.missing_tiles.sort_unstable();
        Ok(())
    }
}

impl Collection {
    /// The evidence for the verdict on the collection: `unreadable` is the number of its photographs that cannot be read,
    /// `pairs` are its verified pairs. Files that the scan left out count as photographs that cannot be read.
    pub fn evidence(&self, unreadable: usize, pairs: &[PairCounts]) -> CollectionEvidence {
        let refused = self.refused().len();
        CollectionEvidence::of(self.photographs().len() + refused, unreadable + refused, pairs)
    }

    /// The status of the collection, from the heads of all files.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when a file cannot be read.
    pub fn status(&self, cpu: &Cpu) -> Result<Status> {
        let refused = self.refused().to_vec();
        let mut status = Status { photographs: self.photographs().len(), refused, ..Status::default() };
        let states = Arc::new(self.states(cpu)?);
        for (i, state) in states.iter().enumerate() {
            match state {
                State::Found { known, .. } => {
                    status.searched += 1;
                    status.features += known.count as u64;
                }
                State::Unreadable(reason) => {
                    status.unreadable.push((self.photographs()[i].name.clone(), reason.clone()));
                }
                State::Missing(reason) => {
                    status.missing.push(i);
                    let damaged =
                        reason.iter().map(|why| format!("{} {why}", self.features_path(i).display()));
                    status.unfit.extend(damaged);
                }
            }
        }
        status.changed = self.changed(&status.missing, cpu)?;
        let Found::Whole(pairs) = self.chosen(&states)? else {
            if self.resolved() == PairChoice::TopScale {
                let round = self.top_scale_round(states);
                let all: Vec<usize> = (0..round.pairs.tiles()).collect();
                let todo = round.statuses(&all, cpu, |found| !found.todo.is_empty())?;
                let missing = all.into_iter().filter(|tile| todo[*tile]);
                status.missing_pairs = missing.map(|tile| round.pairs.number(tile)).collect();
                status.missing_pairs.sort_unstable();
            }
            if status.missing_pairs.is_empty() {
                status.missing_pairs.push(0);
            }
            return Ok(status);
        };
        status.pairs = Some(pairs.count(status.photographs));
        let first = self.first_round(&states)?;
        status.add(&first, cpu)?;
        if first.pairs.set != PairSet::All
            && status.missing_tiles.is_empty()
            && let Some(closure) = self.closure_round(&first, cpu)?
        {
            let more = closure.pairs.set.count(status.photographs);
            status.pairs = status.pairs.map(|pairs| pairs + more);
            status.add(&closure, cpu)?;
        }
        if status.missing_tiles.is_empty()
            && let Some(structure) = self.structure_round(&first, cpu)?
        {
            // Its pairs were counted when their features were matched.
            let (tried, left_out) = (status.tried, status.left_out);
            status.add(&structure, cpu)?;
            (status.tried, status.left_out) = (tried, left_out);
        }
        Ok(status)
    }
}
