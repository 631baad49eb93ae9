//! Tiles at work: pairs are handed out in the order of tiles, photographs are read when they are first needed, and a
//! tile is written by whoever finishes its last pair. Nothing waits for a tile to end: the next one has begun by then.

use super::Collection;
use super::pairs::TilePlan;
use super::workers::Stop;
use crate::Result;
use crate::feature::Features;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often somebody who waits looks whether the work was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// How a photograph's features are read.
pub(super) type Load<'r> = &'r (dyn Fn(usize) -> Result<Arc<Features>> + Sync);

/// How a tile is written: its plan, and what was found for each of its pairs.
pub(super) type Write<'r, F> = &'r (dyn Fn(&TilePlan, Vec<F>) -> Result<()> + Sync);

/// Photographs of a block, each read when it is first asked for.
#[derive(Debug)]
struct Block {
    number: usize,
    photographs: Vec<Mutex<Option<Arc<Features>>>>,
}

/// A tile of which pairs are being worked on.
#[derive(Debug)]
struct Open<F> {
    plan: TilePlan,
    blocks: [Arc<Block>; 2],
    /// Its photographs in the order in which pairs need them, and how many of them are read or were read ahead.
    needed: Vec<u32>,
    ahead: AtomicUsize,
    found: Mutex<Vec<Option<F>>>,
    /// Pairs that are not done.
    left: AtomicUsize,
}

/// Pairs to work on, neighbours in one tile.
#[derive(Debug)]
pub(super) struct Unit<F> {
    tile: Arc<Open<F>>,
    range: Range<usize>,
}

impl<F> Unit<F> {
    pub(super) fn pairs(&self) -> &[[u32; 2]] {
        &self.tile.plan.pairs[self.range.clone()]
    }

    /// Its pairs one by one.
    pub(super) fn singles(self) -> impl Iterator<Item = Self> {
        let Self { tile, range } = self;
        range.map(move |i| Self { tile: tile.clone(), range: i..i + 1 })
    }
}

/// All tiles of a run.
pub(super) struct Tiles<'r, F> {
    collection: &'r Collection,
    load: Load<'r>,
    write: Write<'r, F>,
    state: Mutex<State<'r, F>>,
    /// Another tile is coming, or none.
    came: Condvar,
}

struct State<'r, F> {
    plans: Box<dyn Iterator<Item = TilePlan> + Send + 'r>,
    /// The tile that pairs are handed out of, and how many were.
    current: Option<(Arc<Open<F>>, usize)>,
    /// The tile after it, whose photographs are read ahead.
    coming: Option<Arc<Open<F>>>,
    /// Those of the tile that came last.
    blocks: Vec<Arc<Block>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'r, F> Tiles<'r, F> {
    /// No plan may be without pairs.
    pub(super) fn new(
        collection: &'r Collection,
        plans: impl Iterator<Item = TilePlan> + Send + 'r,
        load: Load<'r>,
        write: Write<'r, F>,
    ) -> Self {
        let state = State { plans: Box::new(plans), current: None, coming: None, blocks: Vec::new() };
        let tiles = Self { collection, load, write, state: Mutex::new(state), came: Condvar::new() };
        tiles.come(&mut lock(&tiles.state));
        tiles
    }

    /// The next pairs, at most so many; none at the end.
    pub(super) fn next(&self, most: usize) -> Option<Unit<F>> {
        let mut state = lock(&self.state);
        let (tile, start) = match state.current.take() {
            Some(current) => current,
            None => {
                let tile = state.coming.take()?;
                self.come(&mut state);
                (tile, 0)
            }
        };
        let end = (start + most).min(tile.plan.pairs.len());
        if end < tile.plan.pairs.len() {
            state.current = Some((tile.clone(), end));
        }
        Some(Unit { tile, range: start..end })
    }

    /// Has the next tile come.
    fn come(&self, state: &mut State<'r, F>) {
        state.coming = self.open(state);
        self.came.notify_all();
    }

    /// Reads photographs before they are needed, those of the current tile and of the next, until there are none any
    /// more or the work was stopped. Each is then given to `read`.
    pub(super) fn read_ahead(
        &self,
        stop: &Stop,
        mut read: impl FnMut(u32, &Arc<Features>) -> Result<()>,
    ) -> Result<()> {
        while let Some((tile, next)) = self.unread(stop) {
            let index = tile.needed[next];
            read(index, &self.features(&tile, index)?)?;
        }
        Ok(())
    }

    /// The next photograph to be read ahead; none at the end.
    fn unread(&self, stop: &Stop) -> Option<(Arc<Open<F>>, usize)> {
        let mut state = lock(&self.state);
        while !stop.is_set() {
            let current = state.current.as_ref().map(|(tile, _)| tile);
            for tile in current.into_iter().chain(&state.coming) {
                let next = tile.ahead.fetch_add(1, Ordering::Relaxed);
                if next < tile.needed.len() {
                    return Some((tile.clone(), next));
                }
            }
            state.coming.as_ref()?;
            state = self.came.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    fn open(&self, state: &mut State<'r, F>) -> Option<Arc<Open<F>>> {
        let plan = state.plans.next()?;
        let kept = |number: usize| state.blocks.iter().find(|block| block.number == number).cloned();
        let block = |number: usize| {
            kept(number).unwrap_or_else(|| {
                let photographs = (0..self.collection.block()).map(|_| Mutex::new(None)).collect();
                Arc::new(Block { number, photographs })
            })
        };
        let [row, column] = plan.blocks;
        let first = block(row);
        let blocks = [first.clone(), if column == row { first } else { block(column) }];
        state.blocks = blocks.to_vec();
        let needed = needed(&plan.pairs);
        let found = Mutex::new(plan.pairs.iter().map(|_| None).collect());
        let left = AtomicUsize::new(plan.pairs.len());
        Some(Arc::new(Open { plan, blocks, needed, ahead: AtomicUsize::new(0), found, left }))
    }

    /// The features of both photographs of a pair.
    pub(super) fn load(&self, unit: &Unit<F>, [a, b]: [u32; 2]) -> Result<[Arc<Features>; 2]> {
        Ok([self.features(&unit.tile, a)?, self.features(&unit.tile, b)?])
    }

    /// The features of a photograph of one of a tile's blocks.
    fn features(&self, tile: &Open<F>, index: u32) -> Result<Arc<Features>> {
        let [number, place] = self.collection.place_of(index);
        let [first, second] = &tile.blocks;
        let block = if first.number == number { first } else { second };
        let mut slot = lock(&block.photographs[place]);
        match &*slot {
            Some(loaded) => Ok(loaded.clone()),
            None => Ok(slot.insert((self.load)(index as usize)?).clone()),
        }
    }

    /// Takes what was found for the pairs of a unit, and writes the tile when it was the last.
    pub(super) fn finish(&self, unit: Unit<F>, found: Vec<F>) -> Result<()> {
        let Unit { tile, range } = unit;
        let count = range.len();
        lock(&tile.found)[range].iter_mut().zip(found).for_each(|(slot, found)| *slot = Some(found));
        if tile.left.fetch_sub(count, Ordering::AcqRel) == count {
            let found = std::mem::take(&mut *lock(&tile.found));
            (self.write)(&tile.plan, found.into_iter().flatten().collect())?;
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
    use crate::image::Size;
    use std::collections::HashMap;

    fn nothing() -> Features {
        let (keypoints, descriptors) = (Vec::new(), Descriptors::U8(Vec::new()));
        Features { keypoints, descriptors, dimension: 128, image: Size::new(1, 1) }
    }

    /// Whoever comes first reads a photograph, once as long as a tile or the next one needs it; and all is over at the
    /// end.
    #[test]
    fn photographs_are_read_once_ahead_or_by_who_needs_them() {
        let folder = std::env::temp_dir().join(format!("tiepoint-ahead-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("images")).unwrap();
        for i in 0..7 {
            std::fs::write(folder.join(format!("images/{i}.pgm")), b"P5 1 1 255\n\0").unwrap();
        }
        let options = CollectionOptions::default().with_block(Some(3));
        let images = [folder.join("images")];
        let (collection, _) =
            Collection::scan(folder.join("work"), &images, &options, &Cpu::sequential()).unwrap();
        for readers in [0, 1, 3] {
            let reads = Mutex::new(HashMap::<usize, usize>::new());
            let load = |index: usize| {
                *lock(&reads).entry(index).or_default() += 1;
                Ok(Arc::new(nothing()))
            };
            let written = Mutex::new(Vec::new());
            let write = |plan: &TilePlan, found: Vec<[u32; 2]>| {
                assert_eq!(plan.pairs, found, "what was found of each pair");
                lock(&written).push(plan.blocks);
                Ok(())
            };
            let all = TiledPairs::new(PairSet::All, &collection);
            let tiles: Vec<[usize; 2]> = (0..all.tiles()).map(|tile| all.blocks(tile)).collect();
            let plans = (0..tiles.len()).map(|tile| all.plan(tile, &collection));
            let work = Tiles::new(&collection, plans, &load, &write);
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
                while let Some(unit) = work.next(2) {
                    let pairs = unit.pairs().to_vec();
                    for pair in &pairs {
                        work.load(&unit, *pair).unwrap();
                    }
                    work.finish(unit, pairs).unwrap();
                }
            });
            assert_eq!(*lock(&written), tiles, "every tile, {readers} readers");
            // A block is kept while the tile that came last has it: at most once for each tile of its own.
            let reads = lock(&reads);
            assert!((0..7).all(|i| (1..=3).contains(&reads[&i])), "{readers} readers: {reads:?}");
            assert!(readers > 0 || ahead.load(Ordering::Relaxed) == 0);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn photographs_are_needed_in_the_order_of_pairs() {
        let needed = needed(&[[3, 5], [3, 6], [4, 5], [5, 6]]);
        assert_eq!(needed, [3, 5, 6, 4]);
    }
}
