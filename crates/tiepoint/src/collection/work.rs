//! Work on tiles: pairs are handed out in the order of tiles, photographs are read when they are first needed, and a
//! tile is written when its last pair is finished. No thread waits for that: pairs of the next tile are handed out.

use super::Collection;
use super::pairs::TilePairs;
use super::tile::Outcome;
use super::workers::{Stop, side_by_side};
use crate::Result;
use crate::device::Cpu;
use crate::feature::Features;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use tiepoint_gpu::lock;

/// Reads the features of a photograph.
pub(super) type Load<'r> = &'r (dyn Fn(usize) -> Result<Arc<Features>> + Sync);

/// Writes a tile: its pairs, and the result of each.
pub(super) type Write<'r> = &'r (dyn Fn(&TilePairs, Vec<Outcome>) -> Result<()> + Sync);

/// The photographs of a block, each read when it is first needed.
#[derive(Debug)]
struct Block {
    number: usize,
    photographs: Vec<Mutex<Option<Arc<Features>>>>,
}

/// A tile whose pairs are being worked on, or are next.
#[derive(Debug)]
struct OpenTile {
    tile: TilePairs,
    blocks: [Arc<Block>; 2],
    /// Its photographs in the order in which pairs need them, and how many of them readers have taken.
    needed: Vec<u32>,
    ahead: AtomicUsize,
    outcomes: Mutex<Vec<Outcome>>,
    /// The number of pairs that are not done.
    left: AtomicUsize,
}

/// Consecutive pairs of one tile to work on.
#[derive(Debug)]
pub(super) struct PairRun {
    open: Arc<OpenTile>,
    range: Range<usize>,
}

impl PairRun {
    pub(super) fn pairs(&self) -> &[[u32; 2]] {
        &self.open.tile.pairs[self.range.clone()]
    }

    /// The same pairs, each as a run of its own.
    pub(super) fn singles(self) -> impl Iterator<Item = Self> {
        let Self { open, range } = self;
        range.map(move |i| Self { open: open.clone(), range: i..i + 1 })
    }
}

/// The tiles that are to be worked on.
pub(super) struct Tiles<'r> {
    collection: &'r Collection,
    load: Load<'r>,
    write: Write<'r>,
    /// Counts the pairs that are done.
    watched: &'r Cpu,
    state: Mutex<State<'r>>,
    /// Notified when the next tile is open, or when there are no more.
    opened: Condvar,
}

struct State<'r> {
    tiles: Box<dyn Iterator<Item = TilePairs> + Send + 'r>,
    /// The tile whose pairs are handed out, and how many have been.
    current: Option<(Arc<OpenTile>, usize)>,
    /// Pairs that have been handed out.
    taken: u64,
    /// The tile after it, whose photographs are read ahead, too.
    next: Option<Arc<OpenTile>>,
    /// The blocks of the tile that was opened last, which the next one may share.
    blocks: Vec<Arc<Block>>,
}

impl<'r> Tiles<'r> {
    /// Every one of `tiles` must have pairs.
    pub(super) fn new(
        collection: &'r Collection,
        tiles: impl Iterator<Item = TilePairs> + Send + 'r,
        load: Load<'r>,
        write: Write<'r>,
        watched: &'r Cpu,
    ) -> Self {
        let state = State { tiles: Box::new(tiles), current: None, taken: 0, next: None, blocks: Vec::new() };
        let (state, opened) = (Mutex::new(state), Condvar::new());
        let all = Self { collection, load, write, watched, state, opened };
        all.open_next(&mut lock(&all.state));
        all
    }

    /// Works on pairs as long as `goes_on` says so, on `threads` threads, each of which takes `together` pairs at a time
    /// and computes their results with a worker of its own.
    pub(super) fn work_on_threads<W>(
        &self,
        threads: usize,
        together: usize,
        goes_on: &(dyn Fn() -> bool + Sync),
        worker: impl Fn() -> Result<W> + Sync,
    ) -> Result<()>
    where
        W: FnMut([u32; 2], [Arc<Features>; 2]) -> Result<Outcome>,
    {
        let job = |stop: &Stop| {
            let mut work = worker()?;
            while !stop.is_set()
                && goes_on()
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

    /// Whether there are pairs to be taken.
    pub(super) fn are_left(&self) -> bool {
        let state = lock(&self.state);
        state.current.is_some() || state.next.is_some()
    }

    pub(super) fn taken(&self) -> u64 {
        lock(&self.state).taken
    }

    /// The next pairs, at most `most`; `None` at the end.
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
        state.taken += (end - start) as u64;
        if end < open.tile.pairs.len() {
            state.current = Some((open.clone(), end));
        }
        Some(PairRun { open, range: start..end })
    }

    fn open_next(&self, state: &mut State<'r>) {
        state.next = self.open(state);
        self.opened.notify_all();
    }

    /// Reads the photographs of the current tile and the next before they are needed, and calls `read` with each.
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

    /// The next photograph to be read ahead, and its tile; `None` at the end.
    fn unread(&self, stop: &Stop) -> Option<(Arc<OpenTile>, u32)> {
        let unread = stop.wait_for(&self.state, &self.opened, |state| {
            let mut tiles = state.current.iter().map(|(tile, _)| tile).chain(&state.next);
            let next = |tile: &OpenTile| tile.needed.get(tile.ahead.fetch_add(1, Ordering::Relaxed)).copied();
            let found = tiles.find_map(|tile| Some((tile.clone(), next(tile)?)));
            // Without a next tile this is the end; otherwise another tile will be opened.
            (found.is_some() || state.next.is_none()).then_some(found)
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

    /// The features of a photograph in one of a tile's blocks.
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

    /// Stores the results of the pairs of a run, and writes the tile if these were its last pairs.
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

/// The photographs of `pairs`, in the order in which the pairs need them.
fn needed(pairs: &[[u32; 2]]) -> Vec<u32> {
    let mut seen = HashSet::new();
    pairs.iter().flatten().copied().filter(|index| seen.insert(*index)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::pairs::TiledPairs;
    use super::super::{CollectionOptions, PairSet};
    use super::*;
    use crate::feature::Descriptors;
    use crate::files::tests::Folder;
    use crate::image::Size;
    use std::collections::HashMap;
    use std::path::PathBuf;

    /// A folder for the test of this name, and in it a folder of images of one pixel.
    pub(in crate::collection) fn tiny_images(name: &str, count: usize) -> (Folder, [PathBuf; 1]) {
        let folder = Folder::new(name);
        let images = folder.join("images");
        std::fs::create_dir_all(&images).unwrap();
        for i in 0..count {
            std::fs::write(images.join(format!("{i}.pgm")), b"P5 1 1 255\n\0").unwrap();
        }
        (folder, [images])
    }

    fn nothing() -> Features {
        let (keypoints, descriptors) = (Vec::new(), Descriptors::U8(Vec::new()));
        Features { keypoints, descriptors, dimension: 128, image: Size::new(1, 1) }
    }

    /// A photograph is read by the first thread that needs it and kept while this tile or the next does; all threads end.
    #[test]
    fn photographs_are_read_at_most_once_for_each_tile() {
        let (folder, images) = tiny_images("ahead", 7);
        let (cpu, options) = (Cpu::sequential(), CollectionOptions::default().with_block(Some(3)));
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
                work.work_on_threads(1, 2, &|| true, || Ok(|pair: [u32; 2], _| Ok(outcome(&pair)))).unwrap();
            });
            assert_eq!(*lock(&written), tiles, "every tile, {readers} readers");
            // A block is kept until a tile without it is opened: it is read at most once for each of three tiles.
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
