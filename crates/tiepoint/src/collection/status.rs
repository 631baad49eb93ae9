//! How far a collection has got.

use super::matches::Round;
use super::record::Found;
use super::{Collection, PairSet};
use crate::Result;
use crate::device::Cpu;

/// What is done and what is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Photographs in all.
    pub photographs: usize,
    /// Of these, those with features.
    pub searched: usize,
    /// Their features.
    pub features: u64,
    /// Photographs that cannot be read, and why.
    pub unreadable: Vec<(String, String)>,
    /// Pairs to match; none while they are not chosen.
    pub pairs: Option<u64>,
    /// Pairs that were tried.
    pub tried: u64,
    /// Pairs of tiles that are done that were not tried, as one of their photographs cannot be read.
    pub left_out: u64,
    /// Pairs that have something in common.
    pub verified: u64,
    /// Their matches that the geometry confirms.
    pub inliers: u64,
    /// Tiles in all, as far as pairs are chosen.
    pub tiles: usize,
    /// Tiles that are done.
    pub tiles_done: usize,
    /// Files that are damaged or of another run; they are made again.
    pub unfit: Vec<String>,
}

impl Status {
    /// Whether everything is done.
    pub fn is_complete(&self) -> bool {
        self.searched + self.unreadable.len() == self.photographs
            && self.pairs.is_some()
            && self.tiles_done == self.tiles
    }
}

impl Collection {
    /// Looks at every file.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) when a file cannot be read.
    pub fn status(&self, cpu: &Cpu) -> Result<Status> {
        let mut status = Status { photographs: self.photographs().len(), ..Status::default() };
        let stored = cpu.try_map(status.photographs, |i| {
            Ok(self.stored(i)?.map(|stored| stored.outcome.map(|features| features.len())))
        })?;
        for (i, stored) in stored.into_iter().enumerate() {
            match stored {
                Found::Whole(Ok(features)) => {
                    status.searched += 1;
                    status.features += features as u64;
                }
                Found::Whole(Err(reason)) => {
                    status.unreadable.push((self.photographs()[i].name.clone(), reason));
                }
                Found::Missing => {}
                Found::Unfit(reason) => {
                    status.unfit.push(format!("{} {reason}", self.features_path(i).display()));
                }
            }
        }
        let Found::Whole(pairs) = self.chosen()? else { return Ok(status) };
        let first = Round { folder: "matches", pairs };
        status.pairs = Some(first.pairs.count(status.photographs));
        self.look_at(&first, &mut status, cpu)?;
        if first.pairs != PairSet::All
            && status.tiles_done == status.tiles
            && let Some(closure) = self.closure_round()?
        {
            let more = closure.pairs.count(status.photographs);
            status.pairs = status.pairs.map(|pairs| pairs + more);
            self.look_at(&closure, &mut status, cpu)?;
        }
        Ok(status)
    }

    fn look_at(&self, round: &Round, status: &mut Status, cpu: &Cpu) -> Result<()> {
        let tiles = self.tiles_of(round);
        status.tiles += tiles.len();
        let found = cpu.try_map(tiles.len(), |i| {
            Ok(self.tile(round, tiles[i])?.map(|tile| {
                let inliers: usize = tile.verified.iter().map(|pair| pair.inliers().count()).sum();
                let planned = self.plan_of(round, tiles[i]).pairs.len() as u64;
                (tile.tried, planned.saturating_sub(tile.tried.into()), tile.verified.len(), inliers)
            }))
        })?;
        for (tile, found) in tiles.iter().zip(found) {
            match found {
                Found::Whole((tried, left_out, verified, inliers)) => {
                    status.tiles_done += 1;
                    status.tried += u64::from(tried);
                    status.left_out += left_out;
                    status.verified += verified as u64;
                    status.inliers += inliers as u64;
                }
                Found::Missing => {}
                Found::Unfit(reason) => {
                    status.unfit.push(format!("{} {reason}", self.tile_path(round.folder, *tile).display()));
                }
            }
        }
        Ok(())
    }
}
