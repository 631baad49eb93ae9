//! A round: a set of pairs with a file for each of its tiles. There are four: top-scale's comparison of all pairs, the
//! chosen pairs, those of the closure, and those that are tried by structure.

use super::features::State;
use super::pairs::{TilePairs, TiledPairs};
use super::record::{self, Found, Kind, fingerprint};
use super::tile::{Head, Outcome, Tile};
use super::work::Tiles;
use super::{Collection, Matched, PairSet, Shard};
use crate::device::Cpu;
use crate::feature::Features;
use crate::files::Disk;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tiles for each thread whose status is read together; if one of them is not done, no more are read.
const TILES_AT_ONCE: usize = 8;

const NO_PAIRS: &str = "holds no pairs of these blocks";

/// The files of the tiles of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileKind {
    pub(super) folder: &'static str,
    /// The name of the work, for progress.
    pub(super) task: &'static str,
    pub(super) kind: Kind,
    /// Bytes of the record of a pair that has a result.
    pub(super) record: usize,
    /// Bytes of a pair's part of the body, from its record.
    pub(super) body: fn(&[u8]) -> usize,
}

/// A set of pairs to work on, tile by tile.
#[derive(Debug)]
pub(super) struct Round<'c> {
    collection: &'c Collection,
    pub(super) states: Arc<Vec<State>>,
    pub(super) pairs: TiledPairs,
    tiles: TileKind,
    /// The fingerprint of the options and of the version of the stage.
    fingerprint: u64,
}

/// The status of a tile, from the head of its file.
#[derive(Debug, Default)]
pub(super) struct TileStatus {
    /// Pairs that are to be tried.
    pub(super) todo: Vec<[u32; 2]>,
    /// Pairs that were tried.
    pub(super) tried: u64,
    /// Pairs with a photograph that cannot be read.
    pub(super) left_out: u64,
    /// Pairs that have a result, each with its record.
    pub(super) found: Vec<([u32; 2], Vec<u8>)>,
    /// Why the file has to be made again, if it has to.
    pub(super) unfit: Option<String>,
    /// The first photograph in `todo` that has not been searched yet.
    missing: Option<u32>,
}

impl<'c> Round<'c> {
    pub(super) fn new(
        collection: &'c Collection,
        states: Arc<Vec<State>>,
        pairs: PairSet,
        tiles: TileKind,
        fingerprint: u64,
    ) -> Self {
        Self { collection, states, pairs: TiledPairs::new(pairs, collection), tiles, fingerprint }
    }

    pub(super) fn path(&self, tile: usize) -> PathBuf {
        self.path_of(self.pairs.blocks(tile))
    }

    fn path_of(&self, [row, column]: [usize; 2]) -> PathBuf {
        let folder = self.collection.folder().join(self.tiles.folder);
        folder.join(format!("{row:05}")).join(format!("{row:05}-{column:05}.tile"))
    }

    /// The fingerprint of everything on which the round's results depend.
    pub(super) fn fingerprint(&self) -> u64 {
        let pairs: Vec<u8> = match &self.pairs.set {
            PairSet::All => Vec::new(),
            PairSet::List(pairs) => pairs.iter().flatten().flat_map(|i| i.to_le_bytes()).collect(),
        };
        let keys: Vec<u8> = self.states.iter().flat_map(|s| s.key().unwrap_or(0).to_le_bytes()).collect();
        fingerprint([&self.fingerprint.to_le_bytes()[..], &pairs, &keys])
    }

    /// Row and column of a pair in its tile, and the keys of its photographs; `None` if one has no features.
    fn placed(&self, pair: [u32; 2]) -> Option<([usize; 2], [u64; 2])> {
        let side = |index: u32| Some((self.collection.place_of(index), self.states[index as usize].key()?));
        let (a, b) = (side(pair[0])?, side(pair[1])?);
        let (row, column) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        Some(([row.0[1], column.0[1]], [row.1, column.1]))
    }

    /// The status of a tile. The body of its file is not read.
    pub(super) fn status(&self, tile: usize) -> Result<TileStatus> {
        let side = self.collection.block();
        let read = record::read_head(&self.path(tile), (self.tiles.kind, self.fingerprint))?;
        let (head, unfit) = match read.decoded(NO_PAIRS, |head| Head::decode(&head, side, self.tiles.record))
        {
            Found::Whole(head) => (Some(head), None),
            Found::Missing => (None, None),
            Found::Unfit(reason) => (None, Some(reason)),
        };
        let mut status = TileStatus { unfit, ..TileStatus::default() };
        for pair in self.pairs.tile(tile, self.collection).pairs {
            let Some((at, keys)) = self.placed(pair) else {
                let missing = |i: &u32| self.states[*i as usize].is_missing();
                match pair.into_iter().find(missing) {
                    Some(index) => {
                        status.missing = Some(status.missing.map_or(index, |first| first.min(index)));
                        status.todo.push(pair);
                    }
                    None => status.left_out += 1,
                }
                continue;
            };
            match head.as_ref().filter(|head| head.has(at, keys)) {
                None => status.todo.push(pair),
                Some(head) => {
                    status.tried += 1;
                    status.found.extend(head.record(at).map(|(_, record)| (pair, record.to_vec())));
                }
            }
        }
        Ok(status)
    }

    /// Applies `take` to the status of each of these tiles.
    pub(super) fn statuses<R: Send>(
        &self,
        tiles: &[usize],
        cpu: &Cpu,
        take: impl Fn(TileStatus) -> R + Sync,
    ) -> Result<Vec<R>> {
        cpu.try_map_task("look at tiles", tiles.len(), |i| self.status(tiles[i]).map(&take))
    }

    /// Applies `take` to the status of each tile; `None` as soon as a tile is found that is not done.
    pub(super) fn finished<R: Send>(
        &self,
        cpu: &Cpu,
        take: impl Fn(TileStatus) -> R + Sync,
    ) -> Result<Option<Vec<R>>> {
        let all: Vec<usize> = (0..self.pairs.tiles()).collect();
        // Tiles are read in groups, so that the rest need not be read if one in an early group is not done.
        let mut taken = Vec::with_capacity(all.len());
        let at_once = TILES_AT_ONCE * cpu.threads();
        let cpu = &cpu.begin_task("look at tiles", all.len());
        for tiles in all.chunks(at_once) {
            let found = cpu.try_map(tiles.len(), |i| {
                let status = self.status(tiles[i])?;
                cpu.advance(1);
                Ok(status.todo.is_empty().then(|| take(status)))
            })?;
            let Some(found) = found.into_iter().collect::<Option<Vec<R>>>() else { return Ok(None) };
            taken.extend(found);
        }
        Ok(Some(taken))
    }

    /// The verified pairs of all tiles; `None` if a tile is not done.
    pub(super) fn verified(&self, cpu: &Cpu) -> Result<Option<Vec<[u32; 2]>>> {
        let pairs = |status: TileStatus| status.found.into_iter().map(|(pair, _)| pair).collect::<Vec<_>>();
        Ok(self.finished(cpu, pairs)?.map(|of_tiles| of_tiles.concat()))
    }

    pub(super) fn load(&self, index: usize) -> Result<Arc<Features>> {
        self.collection.load(index, &self.states)
    }

    /// Does what is left of a part. `load` reads a photograph's features; `run` takes pairs until none are left.
    pub(super) fn work(
        &self,
        shard: Shard,
        cpu: &Cpu,
        load: impl Fn(usize) -> Result<Arc<Features>> + Sync,
        run: impl FnOnce(&Tiles<'_>, u64) -> Result<()>,
    ) -> Result<Matched> {
        let mine = self.pairs.part(shard);
        let statuses =
            self.statuses(&mine, cpu, |status| (status.todo.len() as u64, status.left_out, status.missing))?;
        if let Some(first) = statuses.iter().filter_map(|(.., missing)| *missing).min() {
            return Err(self.collection.without_features(first as usize));
        }
        let todo = mine.iter().zip(&statuses).filter(|(_, (pairs, ..))| *pairs > 0);
        let todo: Vec<usize> = todo.map(|(tile, _)| *tile).collect();
        let files = todo.iter().map(|tile| self.path(*tile));
        self.collection.remove_unfinished(shard, self.tiles.folder, files)?;
        let mut done = Matched { tiles: todo.len(), present: mine.len() - todo.len(), ..Matched::default() };
        done.left_out = statuses.iter().map(|(_, left_out, _)| left_out).sum();
        if todo.is_empty() {
            return Ok(done);
        }
        let pairs = statuses.iter().map(|(pairs, ..)| pairs).sum();
        let watched = cpu.begin_task(self.tiles.task, usize::try_from(pairs).unwrap_or(usize::MAX));
        let (tried, disk) = (AtomicU64::new(0), Disk::meanwhile(self.collection.syncs()));
        let write = |tile: &TilePairs, outcomes: Vec<Outcome>| {
            tried.fetch_add(outcomes.len() as u64, Ordering::Relaxed);
            self.write(&disk, tile, &outcomes)
        };
        let tiles = todo.iter().filter_map(|tile| {
            // If the file cannot be read, all its pairs are tried; an error that persists shows when it is written.
            let pairs = match self.status(*tile) {
                Ok(status) => status.todo,
                Err(_) => self.pairs.tile(*tile, self.collection).pairs,
            };
            // Another process may have finished the tile in the meantime.
            (!pairs.is_empty()).then(|| TilePairs { blocks: self.pairs.blocks(*tile), pairs })
        });
        run(&Tiles::new(self.collection, tiles, &load, &write, &watched), pairs)?;
        disk.finish()?;
        Ok(Matched { pairs: tried.into_inner(), ..done })
    }

    /// The head and the body of a tile's file.
    fn read(&self, path: &Path) -> Result<Found<(Head, Vec<u8>)>> {
        let (side, record) = (self.collection.block(), self.tiles.record);
        let read = record::read(path, (self.tiles.kind, self.fingerprint))?;
        Ok(read.decoded(NO_PAIRS, |(head, body)| Some((Head::decode(&head, side, record)?, body))))
    }

    /// Writes a tile: the results of these pairs, and those of an older file that are still valid.
    fn write(&self, disk: &Disk, now: &TilePairs, outcomes: &[Outcome]) -> Result<()> {
        let path = self.path_of(now.blocks);
        let old = self.read(&path)?.whole();
        let mut tile = Tile::new(self.collection.block());
        if let Some((head, body)) = &old
            && let Some(bodies) = head.bodies(body, self.tiles.body)
        {
            let at = |of: usize, place| self.collection.at_place(now.blocks[of], place);
            tile.add_valid(head, &bodies, |of, place| self.states[at(of, place)? as usize].key());
        }
        for (pair, outcome) in now.pairs.iter().zip(outcomes) {
            let Some((at, keys)) = self.placed(*pair) else { continue };
            tile.add(at, keys, outcome.as_ref().map(|bytes| bytes.split_at(self.tiles.record).into()));
        }
        let (head, body) = tile.encode();
        record::write(disk, &path, (self.tiles.kind, self.fingerprint), &head, &body)
    }

    /// The pairs of a tile that have a result, each with its record followed by its part of the body.
    pub(super) fn found(&self, tile: usize) -> Result<Vec<([u32; 2], Vec<u8>)>> {
        let path = self.path(tile);
        let (head, body) = self.read(&path)?.or_made_by("match", &path)?;
        let bodies = head.bodies(&body, self.tiles.body);
        let bodies = bodies.ok_or_else(|| Error::format(&path, "is damaged; run the stage `match` again"))?;
        let mut found = Vec::new();
        for pair in self.pairs.tile(tile, self.collection).pairs {
            let Some((at, keys)) = self.placed(pair) else { continue };
            if !head.has(at, keys) {
                return Err(Error::format(&path, "has changed meanwhile; run the stage `match` again"));
            }
            if let Some((number, record)) = head.record(at) {
                found.push((pair, [record, bodies[number]].concat()));
            }
        }
        Ok(found)
    }
}
