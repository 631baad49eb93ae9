//! Pairs that were matched and wait to be verified. GPUs take hundreds at a time, which is when they are fast; threads of the
//! CPU take one at a time, and only while GPUs are behind.

use super::verify::Candidate;
use super::work::Unit;
use super::workers::Stop;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A pair with its matches, and its place in a tile.
pub(super) type Matched<F> = (Unit<F>, Candidate);

/// What a GPU takes at a time at most: pairs, and matches of them. It holds some 200 bytes for each match meanwhile, and the
/// host as many.
const MOST: Amount = Amount { pairs: 1024, matches: 1 << 20 };

/// What it waits for as long as more is to come: a search takes some 14 ms however few its pairs are (H200, November 2026).
const ENOUGH: Amount = Amount { pairs: 256, matches: 1 << 19 };

/// What may wait; whoever has more to add stops. A match takes 16 bytes here.
const ROOM: Amount = Amount { pairs: 4096, matches: 1 << 22 };

/// From here on GPUs are behind.
const BEHIND: Amount = Amount { pairs: ROOM.pairs / 2, matches: ROOM.matches / 2 };

/// How often somebody who waits looks whether the work was stopped.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    pairs: usize,
    matches: usize,
}

impl Amount {
    /// Whether it reaches another in pairs or in matches.
    fn reaches(self, other: Self) -> bool {
        self.pairs >= other.pairs || self.matches >= other.matches
    }
}

/// The pairs that wait.
pub(super) struct Waiting<F> {
    queue: Mutex<Queue<F>>,
    /// Enough wait for a GPU.
    enough: Condvar,
    /// GPUs are behind.
    behind: Condvar,
    /// There is room again.
    room: Condvar,
}

struct Queue<F> {
    pairs: VecDeque<Matched<F>>,
    matches: usize,
    /// Those who may add pairs.
    sources: usize,
}

impl<F> Queue<F> {
    fn amount(&self) -> Amount {
        Amount { pairs: self.pairs.len(), matches: self.matches }
    }

    fn pop(&mut self) -> Option<Matched<F>> {
        let pair = self.pairs.pop_front()?;
        self.matches -= pair.1.matches.len();
        Some(pair)
    }
}

/// Somebody who adds pairs; dropped when there are no more of his.
pub(super) struct Source<'w, F>(&'w Waiting<F>);

impl<F> Waiting<F> {
    pub(super) fn new() -> Self {
        let queue = Queue { pairs: VecDeque::new(), matches: 0, sources: 0 };
        let (enough, behind, room) = Default::default();
        Self { queue: Mutex::new(queue), enough, behind, room }
    }

    /// All sources are made before anybody takes.
    pub(super) fn source(&self) -> Source<'_, F> {
        self.lock().sources += 1;
        Source(self)
    }

    /// Pairs for a GPU: hundreds, or the last ones. Empty at the end.
    pub(super) fn take_many(&self, stop: &Stop) -> Vec<Matched<F>> {
        let ready = |queue: &Queue<F>| queue.sources == 0 || queue.amount().reaches(ENOUGH);
        let Some(mut queue) = self.when(&self.enough, stop, ready) else { return Vec::new() };
        let (mut taken, mut amount) = (Vec::new(), Amount::default());
        while !amount.reaches(MOST)
            && let Some(pair) = queue.pop()
        {
            amount = Amount { pairs: amount.pairs + 1, matches: amount.matches + pair.1.matches.len() };
            taken.push(pair);
        }
        self.room.notify_all();
        taken
    }

    /// A pair for a thread of the CPU, when GPUs are behind. None at the end.
    pub(super) fn take_one(&self, stop: &Stop) -> Option<Matched<F>> {
        let ready = |queue: &Queue<F>| queue.sources == 0 || queue.amount().reaches(BEHIND);
        let mut queue = self.when(&self.behind, stop, ready)?;
        let pair = if queue.amount().reaches(BEHIND) { queue.pop() } else { None };
        self.room.notify_one();
        pair
    }

    /// The queue as soon as it is ready for what somebody wants, of which `changed` tells; none when the work was stopped.
    fn when(
        &self,
        changed: &Condvar,
        stop: &Stop,
        ready: impl Fn(&Queue<F>) -> bool,
    ) -> Option<MutexGuard<'_, Queue<F>>> {
        let mut queue = self.lock();
        while !stop.is_set() {
            if ready(&queue) {
                return Some(queue);
            }
            queue = changed.wait_timeout(queue, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Queue<F>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Source<'_, F> {
    /// Adds a pair as soon as there is room. When the work was stopped the pair is dropped.
    pub(super) fn add(&self, pair: Matched<F>, stop: &Stop) {
        let Some(mut queue) = self.0.when(&self.0.room, stop, |queue| !queue.amount().reaches(ROOM)) else {
            return;
        };
        queue.matches += pair.1.matches.len();
        queue.pairs.push_back(pair);
        if queue.amount().reaches(ENOUGH) {
            self.0.enough.notify_one();
        }
        if queue.amount().reaches(BEHIND) {
            self.0.behind.notify_one();
        }
    }
}

impl<F> Drop for Source<'_, F> {
    fn drop(&mut self) {
        self.0.lock().sources -= 1;
        self.0.enough.notify_all();
        self.0.behind.notify_all();
    }
}
