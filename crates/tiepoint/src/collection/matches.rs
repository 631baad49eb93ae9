//! The fourth stage: matches and geometry of every pair, a tile at a time.
//!
//! A pair is matched exactly and both ways; the geometry of two views says which matches are of one scene
//! ([`two_view`]).
//!
//! [`two_view`]: crate::geometry::two_view

use super::folder::text_of;
use super::pairs::TilePlan;
use super::record::{self, Found, Kind, fingerprint};
use super::search::Search;
use super::tile::{Outcome, Tile, head_of, verified_of};
use super::work::{Loaded, Tiles};
use super::{Collection, MatchDevices, PairSet, PhotographFeatures, Shard, closure};
use crate::device::Processor;
use crate::files::{Disk, remove_unfinished};
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a run of this stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matched {
    /// Tiles that were made now.
    pub tiles: usize,
    /// Tiles that were there.
    pub present: usize,
    /// Pairs of the tiles that were made now that were tried.
    pub pairs: u64,
    /// Pairs of these tiles that were not tried, as one of their photographs cannot be read.
    pub left_out: u64,
    /// Whether the pairs that the closure suggests wait for tiles of other parts of the work. Run the stage again when
    /// those are done.
    pub closure_waits: bool,
}

/// A set of pairs and the folder of its tiles.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) folder: &'static str,
    pub(super) pairs: PairSet,
}

impl Collection {
    /// Matches and verifies the pairs of a part of the work: those tiles that are not there. The work runs on the
    /// threads of the first processor and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Format`] when features are missing or damaged, or pairs were not chosen; [`Error::Io`];
    /// [`Error::Device`] when a GPU fails.
    pub fn match_pairs(&self, shard: Shard, processors: &[Processor]) -> Result<Matched> {
        self.match_pairs_on(shard, &self.match_devices(processors))
    }

    /// As [`match_pairs`](Self::match_pairs), on devices that may have been prepared.
    ///
    /// # Errors
    /// As [`match_pairs`](Self::match_pairs).
    pub fn match_pairs_on(&self, shard: Shard, devices: &MatchDevices) -> Result<Matched> {
        let mut matched = Matched::default();
        self.match_round(&self.first_round()?, shard, devices, &mut matched)?;
        match self.closure_round()? {
            Some(round) => self.match_round(&round, shard, devices, &mut matched)?,
            None => matched.closure_waits = true,
        }
        Ok(matched)
    }

    /// The pairs that were chosen.
    pub(super) fn first_round(&self) -> Result<Round> {
        let pairs = self.chosen()?.or_made_by("pairs", &self.pairs_path())?;
        Ok(Round { folder: "matches", pairs })
    }

    /// The pairs that those of the first round suggest; none while tiles of that are missing.
    pub(super) fn closure_round(&self) -> Result<Option<Round>> {
        let round = |pairs| Ok(Some(Round { folder: "closure", pairs }));
        let first = self.first_round()?;
        if first.pairs == PairSet::All || !self.options().pairs.closure {
            return round(PairSet::list([]));
        }
        let made_from = self.round_fingerprint(&first);
        if let Found::Whole(pairs) = self.read_pairs(&self.closure_path(), made_from)? {
            return round(pairs);
        }
        let mut verified = Vec::new();
        for blocks in self.tiles_of(&first) {
            match self.tile(&first, blocks)?.whole() {
                Some(tile) => verified.extend(tile.verified.iter().map(|p| [p.a as u32, p.b as u32])),
                None => return Ok(None),
            }
        }
        let pairs = closure::suggested(self.photographs().len(), &verified, &first.pairs);
        self.write_pairs(&self.closure_path(), made_from, &pairs)?;
        round(pairs)
    }

    pub(super) fn tiles_of(&self, round: &Round) -> Vec<[usize; 2]> {
        round.pairs.tiles(self.photographs().len(), self.block())
    }

    pub(super) fn plan_of(&self, round: &Round, blocks: [usize; 2]) -> TilePlan {
        round.pairs.plan(blocks, self.photographs().len(), self.block())
    }

    /// A tile as it is on disk.
    pub(super) fn tile(&self, round: &Round, blocks: [usize; 2]) -> Result<Found<Tile>> {
        let plan = self.plan_of(round, blocks);
        let path = self.tile_path(round.folder, blocks);
        let found = record::read(&path, Kind::Tile, self.tile_fingerprint(&plan))?;
        Ok(match found.map(|bytes| Tile::decode(&bytes, self.photographs().len())) {
            Found::Whole(Some(tile)) => Found::Whole(tile),
            Found::Whole(None) => Found::Unfit("holds no pairs of these photographs".into()),
            Found::Missing => Found::Missing,
            Found::Unfit(reason) => Found::Unfit(reason),
        })
    }

    /// Of all tiles of a round.
    fn round_fingerprint(&self, round: &Round) -> u64 {
        let tiles = self.tiles_of(round);
        let prints: Vec<[u8; 8]> =
            tiles.iter().map(|t| self.tile_fingerprint(&self.plan_of(round, *t)).to_le_bytes()).collect();
        fingerprint(prints.iter().map(|p| &p[..]))
    }

    /// Of what a tile follows from: the options, its pairs, and what the features of its photographs follow from.
    fn tile_fingerprint(&self, plan: &TilePlan) -> u64 {
        let options = text_of(&(&self.options().matching, &self.options().two_view));
        let pairs: Vec<u8> = plan.pairs.iter().flatten().flat_map(|i| i.to_le_bytes()).collect();
        let photographs = plan.blocks.into_iter().flat_map(|block| self.block_range(block));
        let features: Vec<u8> = photographs
            .flat_map(|i| self.features_fingerprint(&self.photographs()[i]).to_le_bytes())
            .collect();
        fingerprint([options.as_bytes(), &pairs, &features])
    }

    fn match_round(
        &self,
        round: &Round,
        shard: Shard,
        devices: &MatchDevices,
        matched: &mut Matched,
    ) -> Result<()> {
        let cpu = &devices.cpu;
        let tiles = self.tiles_of(round);
        let mine: Vec<[usize; 2]> =
            (0..).zip(tiles).filter(|(i, _)| shard.has(*i)).map(|(_, tile)| tile).collect();
        let is_there = cpu.map(mine.len(), |i| Ok(self.tile(round, mine[i])?.whole().is_some()));
        let is_there = is_there.into_iter().collect::<Result<Vec<bool>>>()?;
        let todo: Vec<[usize; 2]> =
            mine.iter().zip(&is_there).filter(|(_, there)| !**there).map(|(tile, _)| *tile).collect();
        let pairs: u64 = todo.iter().map(|tile| self.plan_of(round, *tile).pairs.len() as u64).sum();
        matched.present += mine.len() - todo.len();
        matched.tiles += todo.len();
        remove_unfinished(self.folder().join(round.folder), 2)?;
        if todo.is_empty() {
            return Ok(());
        }
        let watched = &cpu.begin_task("match", usize::try_from(pairs).unwrap_or(usize::MAX));
        let (tried, disk) = (AtomicU64::new(0), Disk::meanwhile(self.syncs()));
        let write = |plan: &TilePlan, found: Vec<Outcome>| {
            let head = head_of(&found);
            tried.fetch_add(u32::from_le_bytes(head[0]).into(), Ordering::Relaxed);
            let path: PathBuf = self.tile_path(round.folder, plan.blocks);
            let payload: Vec<&[u8]> = head.iter().map(|n| &n[..]).chain(verified_of(&found)).collect();
            record::write(&disk, &path, Kind::Tile, self.tile_fingerprint(plan), &payload)
        };
        let load = |index| self.load(index);
        let plans = todo.iter().map(|tile| self.plan_of(round, *tile));
        let tiles = Tiles::new(self, plans, &load, &write);
        let search = Search { collection: self, tiles: &tiles, watched };
        match devices.gpus.is_empty() {
            true => search.on_cpu((cpu.threads() as u64).min(pairs) as usize)?,
            false => search.on_gpus(devices)?,
        }
        drop(tiles);
        disk.finish()?;
        let tried = tried.load(Ordering::Relaxed);
        matched.pairs += tried;
        matched.left_out += pairs - tried;
        Ok(())
    }

    /// Features that a stage needs.
    pub(super) fn load(&self, index: usize) -> Result<Loaded> {
        match self.features(index)? {
            PhotographFeatures::Found(features) => Ok(Some(Arc::new(features))),
            PhotographFeatures::Unreadable(_) => Ok(None),
            PhotographFeatures::Missing => {
                Err(Error::format(self.features_path(index), "is not there; run the stage `features` first"))
            }
        }
    }
}
