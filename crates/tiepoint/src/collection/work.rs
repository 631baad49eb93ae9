//! Tiles at work: pairs are handed out in the order of tiles, photographs are read when they are first needed, and a tile is
//! written by whoever finishes its last pair. Nothing waits for a tile to end: the next one has begun by then.

use super::Collection;
use super::pairs::TilePlan;
use crate::Result;
use crate::feature::Features;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A photograph's features, or nothing where it cannot be read.
pub(super) type Loaded = Option<Arc<Features>>;

/// How a photograph is read.
pub(super) type Load<'r> = &'r (dyn Fn(usize) -> Result<Loaded> + Sync);

/// How a tile is written: its plan, and what was found for each of its pairs.
pub(super) type Write<'r, F> = &'r (dyn Fn(&TilePlan, Vec<F>) -> Result<()> + Sync);

/// Photographs of a block, each read when it is first asked for.
#[derive(Debug)]
struct Block {
    number: usize,
    first: usize,
    photographs: Vec<Mutex<Option<Loaded>>>,
}

/// A tile of which pairs are being worked on.
#[derive(Debug)]
struct Open<F> {
    plan: TilePlan,
    blocks: [Arc<Block>; 2],
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
}

struct State<'r, F> {
    plans: Box<dyn Iterator<Item = TilePlan> + Send + 'r>,
    /// The tile that pairs are handed out of, and how many were.
    current: Option<(Arc<Open<F>>, usize)>,
    /// Those of the current tile and of the one before.
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
        let state = State { plans: Box::new(plans), current: None, blocks: Vec::new() };
        Self { collection, load, write, state: Mutex::new(state) }
    }

    /// The next pairs, at most so many; none at the end.
    pub(super) fn next(&self, most: usize) -> Option<Unit<F>> {
        let mut state = lock(&self.state);
        let (tile, start) = match state.current.take() {
            Some(current) => current,
            None => (self.open(&mut state)?, 0),
        };
        let end = (start + most).min(tile.plan.pairs.len());
        if end < tile.plan.pairs.len() {
            state.current = Some((tile.clone(), end));
        }
        Some(Unit { tile, range: start..end })
    }

    fn open(&self, state: &mut State<'r, F>) -> Option<Arc<Open<F>>> {
        let plan = state.plans.next()?;
        let blocks = plan.blocks.map(|number| {
            let kept = state.blocks.iter().find(|block| block.number == number);
            kept.cloned().unwrap_or_else(|| {
                let range = self.collection.block_range(number);
                let photographs = range.clone().map(|_| Mutex::new(None)).collect();
                Arc::new(Block { number, first: range.start, photographs })
            })
        });
        state.blocks = blocks.to_vec();
        let found = Mutex::new(plan.pairs.iter().map(|_| None).collect());
        let left = AtomicUsize::new(plan.pairs.len());
        Some(Arc::new(Open { plan, blocks, found, left }))
    }

    /// The features of both photographs of a pair.
    pub(super) fn load(&self, unit: &Unit<F>, pair: [u32; 2]) -> Result<[Loaded; 2]> {
        let side = |side: usize| -> Result<Loaded> {
            let (block, index) = (&unit.tile.blocks[side], pair[side] as usize);
            let mut slot = lock(&block.photographs[index - block.first]);
            match &*slot {
                Some(loaded) => Ok(loaded.clone()),
                None => Ok(slot.insert((self.load)(index)?).clone()),
            }
        };
        Ok([side(0)?, side(1)?])
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
