//! Tiles at work: pairs are handed out in the order of tiles, photographs are read when they are first needed, and a
//! tile is written when its last pair is finished. Nothing waits for a tile to end: the next one has begun by then.

use super::Collection;
use super::pairs::TilePairs;
use super::tile::Outcome;
use super::workers::{Stop, lock, side_by_side};
use crate::Result;
use crate::device::Cpu;
use crate::feature::Features;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// How a photograph's features are read.
pub(super) type Load<'r> = &'r (dyn Fn(usize) -> Result<Arc<Features>> + Sync);

/// How a tile is written: its pairs, and the result of each.
pub(super) type Write<'r> = &'r (dyn Fn(&TilePairs, Vec<Outcome>) -> Result<()> + Sync);

/// Photographs of a block, each read when it is first asked for.
#[derive(Debug)]
struct Block {
    number: usize,
    photographs: Vec<Mutex<Option<Arc<Features>>>>,
}

/// A tile of which pairs are being worked on.
#[derive(Debug)]
struct OpenTile {
    tile: TilePairs,
    blocks: [Arc<Block>; 2],
    /// Its photographs in the order in which pairs need them, and how many of them are read or were read ahead.
    needed: Vec<u32>,
    ahead: AtomicUsize,
    outcomes: Mutex<Vec<Outcome>>,
    /// Pairs that are not done.
    left: AtomicUsize,
}

/// Pairs to work on, neighbours in one tile.
#[derive(Debug)]
pub(super) struct PairRun {
    open: Arc<OpenTile>,
    range: Range<usize>,
}

impl PairRun {
    pub(super) fn pairs(&self) -> &[[u32; 2]] {
        &self.open.tile.pairs[self.range.clone()]
    }

    /// Its pairs one by one.
    pub(super) fn singles(self) -> impl Iterator<Item = Self> {
        let Self { open, range } = self;
        range.map(move |i| Self { open: open.clone(), range: i..i + 1 })
    }
}

/// All tiles of a run.
pub(super) struct Tiles<'r> {
    collection: &'r Collection,
    load: Load<'r>,
    write: Write<'r>,
    /// Counts the pairs that are done.
    watched: &'r Cpu,
    state: Mutex<State<'r>>,
    /// Notified when the next tile is open, or there is none any more.
    opened: Condvar,
}

struct State<'r> {
    tiles: Box<dyn Iterator<Item = TilePairs> + Send + 'r>,
    /// The tile that pairs are handed out of, and how many were.
    current: Option<(Arc<OpenTile>, usize)>,
    /// The tile after it, whose photographs are read ahead.
    next: Option<Arc<OpenTile>>,
    /// The blocks of the tile that was opened last.
    blocks: Vec<Arc<Block>>,
}

impl<'r> Tiles<'r> {
    /// Every tile must have pairs.
    pub(super) fn new(
        collection: &'r Collection,
        tiles: impl Iterator<Item = TilePairs> + Send + 'r,
        load: Load<'r>,
        write: Write<'r>,
        watched: &'r Cpu,
    ) -> Self {
        let state = State { tiles: Box::new(tiles), current: None, next: None, blocks: Vec::new() };
        let (state, opened) = (Mutex::new(state), Condvar::new());
        let all = Self { collection, load, write, watched, state, opened };
        all.open_next(&mut lock(&all.state));
        all
    }

    /// Works on all pairs, `together` at a time, on so many threads; each makes a worker of its own, which gives
    /// the result of a pair.
    pub(super) fn work_on_threads<W>(
        &self,
        threads: usize,
        together: usize,
        worker: impl Fn() -> Result<W> + Sync,
    ) -> Result<()>
    where
        W: FnMut([u32; 2], [Arc<Features>; 2]) -> Result<Outcome>,
    {
        let job = |stop: &Stop| {
            let mut work = worker()?;
            while !stop.is_set()
                && let Some(run) = self.take(together)
            {
                let one = |&pair: &[u32; 2]| work(pair, self.load(&run, pair)?);
                let outcomes = run.pairs().iter().map(one).collect::<Result<_>>()?;
                self.finish(run, outcomes)?;
            }
            Ok(())
        };
        side_by_side(self.watched, (0..threads).map(|_| Box::new(job) as _).collect())
    }

    /// The next pairs, at most so many; none at the end.
    pub(super) fn take(&self, most: usize) -> Option<PairRun> {
        let mut state = lock(&self.state);
        let (open, start) = match state.current.take() {
            Some(current) => current,
            None => {
                let open = state.next.take()?;
                self.open_next(&mut state);
                (open, 0)
            }
        };
        let end = (start + most).min(open.tile.pairs.len());
        if end < open.tile.pairs.len() {
            state.current = Some((open.clone(), end));
        }
        Some(PairRun { open, range: start..end })
    }

    fn open_next(&self, state: &mut State<'r>) {
        state.next = self.open(state);
        self.opened.notify_all();
    }

    /// Reads photographs before they are needed, those of the current tile and of the next, until there are none any
    /// more or the work was stopped. Each is then given to `read`.
    pub(super) fn read_ahead(
        &self,
        stop: &Stop,
        mut read: impl FnMut(u32, &Arc<Features>) -> Result<()>,
    ) -> Result<()> {
        while let Some((tile, index)) = self.unread(stop) {
            read(index, &self.features(&tile, index)?)?;
        }
        Ok(())
    }

    /// The next photograph to be read ahead, and its tile; none at the end.
    fn unread(&self, stop: &Stop) -> Option<(Arc<OpenTile>, u32)> {
        let unread = stop.wait_for(&self.state, &self.opened, |state| {
            let current = state.current.as_ref().map(|(tile, _)| tile);
            for tile in current.into_iter().chain(&state.next) {
                if let Some(index) = tile.needed.get(tile.ahead.fetch_add(1, Ordering::Relaxed)) {
                    return Some(Some((tile.clone(), *index)));
                }
            }
            // At the end nothing comes; otherwise the next tile will.
            if state.next.is_none() { Some(None) } else { None }
        });
        unread.flatten()
    }

    fn open(&self, state: &mut State<'r>) -> Option<Arc<OpenTile>> {
        let tile = state.tiles.next()?;
        let block = |number: usize| {
            let kept = state.blocks.iter().find(|block| block.number == number).cloned();
            kept.unwrap_or_else(|| {
                let photographs = (0..self.collection.block()).map(|_| Mutex::new(None)).collect();
                Arc::new(Block { number, photographs })
            })
        };
        let [row, column] = tile.blocks;
        let first = block(row);
        let blocks = [first.clone(), if column == row { first } else { block(column) }];
        state.blocks = blocks.to_vec();
        let needed = needed(&tile.pairs);
        let outcomes = Mutex::new(vec![None; tile.pairs.len()]);
        let left = AtomicUsize::new(tile.pairs.len());
        Some(Arc::new(OpenTile { tile, blocks, needed, ahead: AtomicUsize::new(0), outcomes, left }))
    }

    /// The features of both photographs of a pair.
    pub(super) fn load(&self, run: &PairRun, [a, b]: [u32; 2]) -> Result<[Arc<Features>; 2]> {
        Ok([self.features(&run.open, a)?, self.features(&run.open, b)?])
    }

    /// The features of a photograph of one of a tile's blocks.
    fn features(&self, tile: &OpenTile, index: u32) -> Result<Arc<Features>> {
        let [number, place] = self.collection.place_of(index);
        let [first, second] = &tile.blocks;
        let block = if first.number == number { first } else { second };
        let mut slot = lock(&block.photographs[place]);
        match &*slot {
            Some(loaded) => Ok(loaded.clone()),
            None => Ok(slot.insert((self.load)(index as usize)?).clone()),
        }
    }

    /// Takes the results of the pairs of a run, and writes the tile when these were its last.
    pub(super) fn finish(&self, run: PairRun, outcomes: Vec<Outcome>) -> Result<()> {
        self.watched.advance(outcomes.len());
        let PairRun { open, range } = run;
        let count = range.len();
        lock(&open.outcomes)[range].iter_mut().zip(outcomes).for_each(|(slot, outcome)| *slot = outcome);
        if open.left.fetch_sub(count, Ordering::AcqRel) == count {
            (self.write)(&open.tile, std::mem::take(&mut *lock(&open.outcomes)))?;
        }
        Ok(())
    }
}

/// The photographs of pairs in the order in which these need them.
fn needed(pairs: &[[u32; 2]]) -> Vec<u32> {
    let mut seen = HashSet::new();
    pairs.iter().flatten().copied().filter(|index| seen.insert(*index)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::pairs::TiledPairs;
    use super::super::{CollectionOptions, PairSet};
    use super::*;
    use crate::device::Cpu;
    use crate::feature::Descriptors;
    use crate::files::tests::Folder;
    use crate::image::Size;
    use std::collections::HashMap;

    fn nothing() -> Features {
        let (keypoints, descriptors) = (Vec::new(), Descriptors::U8(Vec::new()));
        Features { keypoints, descriptors, dimension: 128, image: Size::new(1, 1) }
    }

    /// A photograph is read once as long as a tile or the next one needs it, by the first thread that asks for it; and
    /// all threads end.
    #[test]
    fn photographs_are_read_once_ahead_or_when_needed() {
        let folder = Folder::new("ahead");
        std::fs::create_dir_all(folder.join("images")).unwrap();
        for i in 0..7 {
            std::fs::write(folder.join(format!("images/{i}.pgm")), b"P5 1 1 255\n\0").unwrap();
        }
        let options = CollectionOptions::default().with_block(Some(3));
        let (cpu, images) = (Cpu::sequential(), [folder.join("images")]);
        let (collection, _) = Collection::scan(folder.join("work"), &images, &options, &cpu).unwrap();
        for readers in [0, 1, 3] {
            let reads = Mutex::new(HashMap::<usize, usize>::new());
            let load = |index: usize| {
                *lock(&reads).entry(index).or_default() += 1;
                Ok(Arc::new(nothing()))
            };
            let written = Mutex::new(Vec::new());
            let outcome = |pair: &[u32; 2]| Some(pair.map(|index| index as u8).to_vec());
            let write = |tile: &TilePairs, outcomes: Vec<Outcome>| {
                assert!(tile.pairs.iter().map(outcome).eq(outcomes), "what came of each pair");
                lock(&written).push(tile.blocks);
                Ok(())
            };
            let all = TiledPairs::new(PairSet::All, &collection);
            let tiles: Vec<[usize; 2]> = (0..all.tiles()).map(|tile| all.blocks(tile)).collect();
            let planned = (0..tiles.len()).map(|tile| all.tile(tile, &collection));
            let work = Tiles::new(&collection, planned, &load, &write, &cpu);
            let (stop, ahead) = (Stop::default(), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..readers {
                    scope.spawn(|| {
                        let read = |_: u32, _: &Arc<Features>| {
                            ahead.fetch_add(1, Ordering::Relaxed);
                            Ok(())
                        };
                        work.read_ahead(&stop, read).unwrap();
                    });
                }
                work.work_on_threads(1, 2, || Ok(|pair: [u32; 2], _| Ok(outcome(&pair)))).unwrap();
            });
            assert_eq!(*lock(&written), tiles, "every tile, {readers} readers");
            // A block is kept while the tile that was opened last has it: at most once for each tile of its own.
            let reads = lock(&reads);
            assert!((0..7).all(|i| (1..=3).contains(&reads[&i])), "{readers} readers: {reads:?}");
            assert!(readers > 0 || ahead.load(Ordering::Relaxed) == 0);
        }
    }

    #[test]
    fn photographs_are_needed_in_the_order_of_pairs() {
        let needed = needed(&[[3, 5], [3, 6], [4, 5], [5, 6]]);
        assert_eq!(needed, [3, 5, 6, 4]);
    }
}
