//! The fourth stage: matches and geometry of every pair, a tile at a time.
//!
//! A pair is matched exactly and both ways; the geometry of two views says which matches are of one scene ([`two_view`]).
//!
//! [`two_view`]: crate::geometry::two_view

use super::folder::text_of;
use super::pairs::TilePlan;
use super::record::{self, Found, Kind, fingerprint};
use super::tile::{Tile, VerifiedPair};
use super::verify::Candidate;
use super::work::{Loaded, Tiles, Unit};
use super::workers::{Job, Stop, for_each_of, side_by_side};
use super::{Collection, PairSet, PhotographFeatures, Shard, closure};
use crate::device::gpu::Gpu;
use crate::device::{Computing, Cpu, Processor};
use crate::feature::Features;
use crate::feature::gpu::GpuFeatures;
use crate::matching::{GpuMatcher, Match, MatchOptions, match_features};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// What a run of this stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Matched {
    /// Tiles that were made now.
    pub tiles: usize,
    /// Tiles that were there.
    pub present: usize,
    /// Pairs of the tiles that were made now.
    pub pairs: u64,
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
    /// Matches and verifies the pairs of a part of the work: those tiles that are not there. The work runs on the threads of
    /// the first processor and on the GPUs of all.
    ///
    /// # Errors
    /// [`Error::Format`] when features are missing or damaged, or pairs were not chosen; [`Error::Io`];
    /// [`Error::Device`] when a GPU fails.
    pub fn match_pairs(&self, shard: Shard, processors: &[Processor]) -> Result<Matched> {
        let mut matched = Matched::default();
        self.match_round(&self.first_round()?, shard, processors, &mut matched)?;
        match self.closure_round()? {
            Some(round) => self.match_round(&round, shard, processors, &mut matched)?,
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
        processors: &[Processor],
        matched: &mut Matched,
    ) -> Result<()> {
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
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
        matched.pairs += pairs;
        if todo.is_empty() {
            return Ok(());
        }
        let watched = &cpu.begin_task("match", usize::try_from(pairs).unwrap_or(usize::MAX));
        let write = |plan: &TilePlan, found: Vec<Option<VerifiedPair>>| {
            let tile =
                Tile { tried: plan.pairs.len() as u32, verified: found.into_iter().flatten().collect() };
            let path: PathBuf = self.tile_path(round.folder, plan.blocks);
            record::write(&path, Kind::Tile, self.tile_fingerprint(plan), &tile.encode())
        };
        let load = |index| self.load(index);
        let plans = todo.iter().map(|tile| self.plan_of(round, *tile));
        let tiles = Tiles::new(self, plans, &load, &write);
        let gpus: Vec<&Processor> = processors.iter().filter(|p| p.gpu.is_some()).collect();
        let search = Search { collection: self, tiles: &tiles, watched };
        match gpus.is_empty() {
            true => search.on_cpu((cpu.threads() as u64).min(pairs) as usize),
            false => search.on_gpus(cpu.threads(), &gpus),
        }
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

/// Pairs that a GPU matches at a time.
const BATCH: usize = 32;

/// Threads that feed a GPU: while it searches for one, the others take what it found and prepare what is next.
const FEEDERS: usize = 4;

/// Pairs of which matches were found.
type Searched = (Unit<Option<VerifiedPair>>, Vec<Option<Candidate>>);

/// A round under way.
struct Search<'s, 't> {
    collection: &'s Collection,
    tiles: &'s Tiles<'t, Option<VerifiedPair>>,
    /// Is told of every pair that is done.
    watched: &'s Cpu,
}

impl Search<'_, '_> {
    /// Every thread matches and verifies pairs of its own.
    fn on_cpu(&self, threads: usize) -> Result<()> {
        let options = &self.collection.options().matching;
        let work = |stop: &Stop| {
            let processor = Processor::from(Cpu::sequential());
            while !stop.is_set()
                && let Some(unit) = self.tiles.next(1)
            {
                let mut candidates = Vec::new();
                for &pair in unit.pairs() {
                    candidates.push(match self.tiles.load(&unit, pair)? {
                        [Some(a), Some(b)] => {
                            let matches = match_features(&a, &b, options, &processor)?;
                            Some(Candidate { pair, features: [a, b], matches })
                        }
                        _ => None,
                    });
                }
                self.finish(unit, &candidates, &processor)?;
            }
            Ok(())
        };
        side_by_side((0..threads).map(|_| Box::new(work) as _).collect())
    }

    /// GPUs match; threads verify and write beside them.
    ///
    /// Verifying on the GPU whatever waited, 42 pairs at a time on average, was slower: 1070 pairs/s against 1430 by 16
    /// threads (H200, 2026-11-22). A search takes some 14 ms there however few its pairs are: hundreds have to be gathered.
    fn on_gpus(&self, threads: usize, gpus: &[&Processor]) -> Result<()> {
        let (to_verify, searched) = sync_channel::<Searched>(2 * threads);
        let searched = &Mutex::new(searched);
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for processor in gpus.iter().copied() {
            for _ in 0..FEEDERS {
                let to_verify = to_verify.clone();
                jobs.push(Box::new(move |stop| self.search_all(stop, processor, &to_verify)));
            }
        }
        drop(to_verify);
        for _ in 0..threads {
            jobs.push(Box::new(move |stop| {
                let processor = Processor::from(Cpu::sequential());
                for_each_of(searched, stop, |(unit, candidates)| self.finish(unit, &candidates, &processor));
                Ok(())
            }));
        }
        side_by_side(jobs)
    }

    /// Matches on one GPU what is next, until nothing is left.
    fn search_all(&self, stop: &Stop, processor: &Processor, to_verify: &SyncSender<Searched>) -> Result<()> {
        let Some(gpu) = &processor.gpu else { return Ok(()) };
        let (options, block) = (&self.collection.options().matching, self.collection.block());
        let mut device =
            OnDevice { gpu, matcher: GpuMatcher::new(gpu), uploaded: HashMap::new(), most: 3 * block };
        let on_cpu = Processor::from(Cpu::sequential());
        while !stop.is_set()
            && let Some(unit) = self.tiles.next(BATCH)
        {
            let loaded = unit.pairs().iter().map(|pair| Ok((*pair, self.tiles.load(&unit, *pair)?)));
            let loaded = loaded.collect::<Result<Vec<_>>>()?;
            let both = loaded.iter().filter_map(|(pair, [a, b])| Some((*pair, [a.as_ref()?, b.as_ref()?])));
            let both: Vec<([u32; 2], [&Arc<Features>; 2])> = both.collect();
            let found = match device.matches(&both, options) {
                Err(error) if error.is_device_limit() => {
                    processor.note(format!("matching on the CPU: {error}"));
                    processor.count_computed(Computing::Cpu);
                    let alone = |(_, [a, b]): &([u32; 2], [&Arc<Features>; 2])| {
                        match_features(a, b, options, &on_cpu)
                    };
                    both.iter().map(alone).collect()
                }
                found => {
                    processor.count_computed(Computing::Gpu);
                    found
                }
            }?;
            let mut found = both.iter().zip(found).map(|((pair, features), matches)| Candidate {
                pair: *pair,
                features: features.map(Clone::clone),
                matches,
            });
            let is_whole = |sides: &[Loaded; 2]| sides.iter().all(Option::is_some);
            let candidates =
                loaded.iter().map(|(_, sides)| if is_whole(sides) { found.next() } else { None }).collect();
            if to_verify.send((unit, candidates)).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn finish(
        &self,
        unit: Unit<Option<VerifiedPair>>,
        candidates: &[Option<Candidate>],
        processor: &Processor,
    ) -> Result<()> {
        let verified = self.collection.verify(candidates, processor)?;
        self.watched.advance(verified.len());
        self.tiles.finish(unit, verified)
    }
}

/// Features in the memory of a device.
struct OnDevice<'g> {
    gpu: &'g Gpu,
    matcher: GpuMatcher,
    uploaded: HashMap<u32, GpuFeatures>,
    /// Photographs that are kept there.
    most: usize,
}

impl OnDevice<'_> {
    fn matches(
        &mut self,
        pairs: &[([u32; 2], [&Arc<Features>; 2])],
        options: &MatchOptions,
    ) -> Result<Vec<Vec<Match>>> {
        if self.uploaded.len() > self.most {
            let needed: HashSet<u32> = pairs.iter().flat_map(|(pair, _)| *pair).collect();
            self.uploaded.retain(|index, _| needed.contains(index));
        }
        for (pair, features) in pairs {
            for (index, features) in pair.iter().zip(features) {
                if !self.uploaded.contains_key(index) {
                    self.uploaded.insert(*index, GpuFeatures::upload(self.gpu, features)?);
                }
            }
        }
        let sides: Vec<[&GpuFeatures; 2]> =
            pairs.iter().map(|(pair, _)| pair.map(|index| &self.uploaded[&index])).collect();
        self.matcher.match_batch(&sides, options)
    }
}
