//! A set of pairs, a file for each of its tiles, and what is done of them: top-scale's comparison of all pairs, the
//! chosen pairs, and those of the closure.

use super::features::State;
use super::pairs::{TilePlan, TiledPairs};
use super::record::{self, Found, Kind, fingerprint};
use super::tile::{Head, Outcome, Tile};
use super::work::{Tiles, Write};
use super::{Collection, PairSet, Shard};
use crate::device::Cpu;
use crate::feature::Features;
use crate::files::Disk;
use crate::{Error, Result};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the tiles of a round hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub(super) folder: &'static str,
    pub(super) kind: Kind,
    /// Bytes of the record of a pair that something came of.
    pub(super) record: usize,
    /// Bytes of its body.
    pub(super) body: fn(&[u8]) -> usize,
}

/// Pairs that are worked on, in tiles.
#[derive(Debug)]
pub(super) struct Round<'c> {
    collection: &'c Collection,
    states: Arc<Vec<State>>,
    pub(super) pairs: TiledPairs,
    layer: Layer,
    /// Of options and of the version of what is computed.
    fingerprint: u64,
}

/// A tile as it is.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Pairs that are to be tried.
    pub(super) todo: Vec<[u32; 2]>,
    /// Pairs that were tried.
    pub(super) tried: u64,
    /// Pairs of photographs that cannot be read.
    pub(super) left_out: u64,
    /// Pairs that something came of, each with its record.
    pub(super) found: Vec<([u32; 2], Vec<u8>)>,
    /// Why its file is to be made again.
    pub(super) unfit: Option<String>,
    /// The first photograph of `todo` that was not searched yet.
    missing: Option<u32>,
}

/// The tiles of a part of the work that are not done.
#[derive(Debug, Default)]
pub(super) struct Todo {
    tiles: Vec<usize>,
    pub(super) pairs: u64,
    pub(super) present: usize,
    pub(super) left_out: u64,
}

impl Todo {
    pub(super) fn tiles(&self) -> usize {
        self.tiles.len()
    }
}

impl<'c> Round<'c> {
    pub(super) fn new(
        collection: &'c Collection,
        states: Arc<Vec<State>>,
        pairs: PairSet,
        layer: Layer,
        fingerprint: u64,
    ) -> Self {
        Self { collection, states, pairs: TiledPairs::new(pairs, collection), layer, fingerprint }
    }

    pub(super) fn path(&self, tile: usize) -> PathBuf {
        self.path_of(self.pairs.blocks(tile))
    }

    fn path_of(&self, [row, column]: [usize; 2]) -> PathBuf {
        let folder = self.collection.folder().join(self.layer.folder);
        folder.join(format!("{row:05}")).join(format!("{row:05}-{column:05}.tile"))
    }

    pub(super) fn folder(&self) -> &'static str {
        self.layer.folder
    }

    /// Of all that its results follow from.
    pub(super) fn fingerprint(&self) -> u64 {
        let pairs: Vec<u8> = match &self.pairs.set {
            PairSet::All => Vec::new(),
            PairSet::List(pairs) => pairs.iter().flatten().flat_map(|i| i.to_le_bytes()).collect(),
        };
        let keys: Vec<u8> = self.states.iter().flat_map(|s| s.key().unwrap_or(0).to_le_bytes()).collect();
        fingerprint([&self.fingerprint.to_le_bytes()[..], &pairs, &keys])
    }

    /// The key of the photograph at a place of a block: what its pairs are made from.
    fn key_at(&self, block: usize, place: usize) -> Option<u64> {
        self.states[self.collection.at_place(block, place)? as usize].key()
    }

    /// Row and column of a pair in its tile, and the keys of its photographs; none where one cannot be read.
    fn placed(&self, pair: [u32; 2]) -> Option<([usize; 2], [u64; 2])> {
        let side = |index: u32| Some((self.collection.place_of(index), self.states[index as usize].key()?));
        let (a, b) = (side(pair[0])?, side(pair[1])?);
        let (row, column) = if a.0 <= b.0 { (a, b) } else { (b, a) };
        Some(([row.0[1], column.0[1]], [row.1, column.1]))
    }

    /// What there is of a tile. Its file's body is not read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn look(&self, tile: usize) -> Result<Look> {
        let side = self.collection.block();
        let read = record::read_head(&self.path(tile), self.layer.kind, self.fingerprint)?;
        let decoded = read.map(|head| Head::decode(&head, side, self.layer.record));
        let mut look = Look::default();
        let head = match decoded.or_unfit("holds no pairs of these blocks") {
            Found::Whole(head) => Some(head),
            Found::Missing => None,
            Found::Unfit(reason) => {
                look.unfit = Some(reason);
                None
            }
        };
        for pair in self.pairs.plan(tile, self.collection).pairs {
            let Some((at, keys)) = self.placed(pair) else {
                let missing = |i: &u32| matches!(self.states[*i as usize], State::Missing(_));
                match pair.into_iter().find(missing) {
                    Some(index) => {
                        look.missing = Some(look.missing.map_or(index, |first| first.min(index)));
                        look.todo.push(pair);
                    }
                    None => look.left_out += 1,
                }
                continue;
            };
            match head.as_ref().filter(|head| head.has(at, keys)) {
                None => look.todo.push(pair),
                Some(head) => {
                    look.tried += 1;
                    let record = head.record(at, self.layer.record);
                    look.found.extend(record.map(|(_, record)| (pair, record.to_vec())));
                }
            }
        }
        Ok(look)
    }

    /// What is left of a part of the work.
    ///
    /// # Errors
    /// [`Error::Format`] where a photograph was not searched yet; [`Error::Io`].
    pub(super) fn todo(&self, shard: Shard, cpu: &Cpu) -> Result<Todo> {
        let mine: Vec<usize> = (0..self.pairs.tiles()).filter(|tile| shard.has(*tile)).collect();
        let looks = cpu.map(mine.len(), |i| {
            self.look(mine[i]).map(|look| (mine[i], look.todo.len() as u64, look.left_out, look.missing))
        });
        let looks = looks.into_iter().collect::<Result<Vec<_>>>()?;
        if let Some(first) = looks.iter().filter_map(|(_, _, _, missing)| *missing).min() {
            let name = &self.collection.photographs()[first as usize].name;
            return Err(Error::format(name, "has no features; run the stage `features` first"));
        }
        let mut todo = Todo::default();
        for (tile, pairs, left_out, _) in looks {
            todo.left_out += left_out;
            todo.pairs += pairs;
            match pairs {
                0 => todo.present += 1,
                _ => todo.tiles.push(tile),
            }
        }
        Ok(todo)
    }

    /// Works on what is left: `load` reads the features of a photograph, and `run` takes pairs from tiles until there
    /// are none any more. Returns how many pairs were tried.
    pub(super) fn work(
        &self,
        todo: &Todo,
        load: impl Fn(usize, &[State]) -> Result<Arc<Features>> + Sync,
        run: impl FnOnce(&Tiles<'_, Outcome>) -> Result<()>,
    ) -> Result<u64> {
        let (tried, disk) = (AtomicU64::new(0), Disk::meanwhile(self.collection.syncs()));
        let write = |plan: &TilePlan, found: Vec<Outcome>| {
            tried.fetch_add(found.len() as u64, Ordering::Relaxed);
            self.write(&disk, plan, &found)
        };
        let load = |index| load(index, &self.states);
        let plans = todo.tiles.iter().filter_map(|tile| {
            // What cannot be read here is read by the one who writes, or made again.
            let pairs = match self.look(*tile) {
                Ok(look) => look.todo,
                Err(_) => self.pairs.plan(*tile, self.collection).pairs,
            };
            // Another process may have been faster.
            (!pairs.is_empty()).then(|| TilePlan { blocks: self.pairs.blocks(*tile), pairs })
        });
        let write: Write<'_, Outcome> = &write;
        run(&Tiles::new(self.collection, plans, &load, write))?;
        disk.finish()?;
        Ok(tried.load(Ordering::Relaxed))
    }

    /// Writes a tile: what was found of the pairs of a plan, and what is still valid of what was there.
    fn write(&self, disk: &Disk, plan: &TilePlan, found: &[Outcome]) -> Result<()> {
        let side = self.collection.block();
        let path = self.path_of(plan.blocks);
        let old = record::read(&path, self.layer.kind, self.fingerprint)?.whole();
        let old = old.and_then(|(head, body)| Some((Head::decode(&head, side, self.layer.record)?, body)));
        let mut tile = Tile::new(side);
        if let Some((head, body)) = &old
            && let Some(bodies) = head.bodies(body, self.layer.record, self.layer.body)
        {
            tile.add_valid(head, &bodies, |of, place| self.key_at(plan.blocks[of], place));
        }
        for (pair, found) in plan.pairs.iter().zip(found) {
            let Some((at, keys)) = self.placed(*pair) else { continue };
            let parts = found.as_ref().map(|found| {
                let (record, body) = found.split_at(self.layer.record);
                [record, body]
            });
            tile.add(at, keys, parts);
        }
        let (head, body) = tile.encode();
        record::write(disk, &path, self.layer.kind, self.fingerprint, &head, &body)
    }

    /// The pairs of a tile that something came of, each with its record and its body.
    pub(super) fn found(&self, tile: usize) -> Result<Vec<([u32; 2], Vec<u8>)>> {
        let path = self.path(tile);
        let side = self.collection.block();
        let read = record::read(&path, self.layer.kind, self.fingerprint)?;
        let decoded = read.map(|(head, body)| Some((Head::decode(&head, side, self.layer.record)?, body)));
        let (head, body) = decoded.or_unfit("holds no pairs of these blocks").or_made_by("match", &path)?;
        let bodies = head.bodies(&body, self.layer.record, self.layer.body);
        let bodies = bodies.ok_or_else(|| Error::format(&path, "is damaged; run the stage `match` again"))?;
        let mut found = Vec::new();
        for pair in self.pairs.plan(tile, self.collection).pairs {
            let Some((at, keys)) = self.placed(pair) else { continue };
            if !head.has(at, keys) {
                return Err(Error::format(&path, "has changed meanwhile; run the stage `match` again"));
            }
            if let Some((number, record)) = head.record(at, self.layer.record) {
                found.push((pair, [record, bodies[number]].concat()));
            }
        }
        Ok(found)
    }
}
