//! Pairs that were matched and wait to be verified. GPUs take hundreds at a time, which is when they are fast; threads
//! of the CPU take one at a time, and only while GPUs are behind.

use super::workers::Stop;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a queue of a GPU takes at a time at most: pairs, and matches of them. For each match the device holds 60 bytes
/// meanwhile and the host some 250. With 1024 pairs an H200 did 4600 pairs/s where it does 4970 (2026-11-22).
pub(super) const MOST: Amount = Amount { pairs: 512, matches: 1 << 19 };

/// What it waits for as long as more is to come: a search takes some 14 ms however few its pairs are (H200, November
/// 2026).
const ENOUGH: Amount = Amount { pairs: 256, matches: 1 << 19 };

/// What may wait; whoever has more to add stops. A match takes 16 bytes here.
const ROOM: Amount = Amount { pairs: 4096, matches: 1 << 22 };

/// From here on GPUs are behind.
const BEHIND: Amount = Amount { pairs: ROOM.pairs / 2, matches: ROOM.matches / 2 };

/// How often somebody who waits looks whether the work was stopped.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    pub(super) pairs: usize,
    pub(super) matches: usize,
}

impl Amount {
    /// Whether it reaches another in pairs or in matches.
    fn reaches(self, other: Self) -> bool {
        self.pairs >= other.pairs || self.matches >= other.matches
    }

    /// Whether it is more than another in pairs or in matches.
    fn exceeds(self, other: Self) -> bool {
        self.pairs > other.pairs || self.matches > other.matches
    }
}

/// The pairs that wait, each with the number of its matches.
pub(super) struct Waiting<P> {
    queue: Mutex<Queue<P>>,
    /// Enough wait for a GPU.
    enough: Condvar,
    /// GPUs are behind.
    behind: Condvar,
    /// There is room again.
    room: Condvar,
}

struct Queue<P> {
    pairs: VecDeque<(P, usize)>,
    matches: usize,
    /// Those who may add pairs.
    sources: usize,
}

impl<P> Queue<P> {
    fn amount(&self) -> Amount {
        Amount { pairs: self.pairs.len(), matches: self.matches }
    }

    fn pop(&mut self) -> Option<(P, usize)> {
        let (pair, matches) = self.pairs.pop_front()?;
        self.matches -= matches;
        Some((pair, matches))
    }
}

/// Somebody who adds pairs; dropped when there are no more of his.
pub(super) struct Source<'w, P>(&'w Waiting<P>);

impl<P> Waiting<P> {
    pub(super) fn new() -> Self {
        let queue = Queue { pairs: VecDeque::new(), matches: 0, sources: 0 };
        let (enough, behind, room) = Default::default();
        Self { queue: Mutex::new(queue), enough, behind, room }
    }

    /// All sources are made before anybody takes.
    pub(super) fn source(&self) -> Source<'_, P> {
        self.lock().sources += 1;
        Source(self)
    }

    /// Pairs for a GPU: hundreds, or the last ones. Empty at the end.
    pub(super) fn take_many(&self, stop: &Stop) -> Vec<P> {
        let ready = |queue: &Queue<P>| queue.sources == 0 || queue.amount().reaches(ENOUGH);
        let Some(mut queue) = self.when(&self.enough, stop, ready) else { return Vec::new() };
        let (mut taken, mut amount) = (Vec::new(), Amount::default());
        while let Some((_, matches)) = queue.pairs.front() {
            let with_it = Amount { pairs: amount.pairs + 1, matches: amount.matches + matches };
            if !taken.is_empty() && with_it.exceeds(MOST) {
                break;
            }
            amount = with_it;
            taken.extend(queue.pop().map(|(pair, _)| pair));
        }
        self.room.notify_all();
        taken
    }

    /// A pair for a thread of the CPU, when GPUs are behind. None at the end.
    pub(super) fn take_one(&self, stop: &Stop) -> Option<P> {
        let ready = |queue: &Queue<P>| queue.sources == 0 || queue.amount().reaches(BEHIND);
        let mut queue = self.when(&self.behind, stop, ready)?;
        let pair = if queue.amount().reaches(BEHIND) { queue.pop() } else { None };
        self.room.notify_one();
        pair.map(|(pair, _)| pair)
    }

    /// The queue as soon as it is ready for what somebody wants, of which `changed` tells; none when the work was
    /// stopped.
    fn when(
        &self,
        changed: &Condvar,
        stop: &Stop,
        ready: impl Fn(&Queue<P>) -> bool,
    ) -> Option<MutexGuard<'_, Queue<P>>> {
        let mut queue = self.lock();
        while !stop.is_set() {
            if ready(&queue) {
                return Some(queue);
            }
            queue = changed.wait_timeout(queue, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> Source<'_, P> {
    /// Adds a pair as soon as there is room. When the work was stopped the pair is dropped.
    pub(super) fn add(&self, pair: P, matches: usize, stop: &Stop) {
        let Some(mut queue) = self.0.when(&self.0.room, stop, |queue| !queue.amount().reaches(ROOM)) else {
            return;
        };
        queue.matches += matches;
        queue.pairs.push_back((pair, matches));
        if queue.amount().reaches(ENOUGH) {
            self.0.enough.notify_one();
        }
        if queue.amount().reaches(BEHIND) {
            self.0.behind.notify_one();
        }
    }
}

impl<P> Drop for Source<'_, P> {
    fn drop(&mut self) {
        self.0.lock().sources -= 1;
        self.0.enough.notify_all();
        self.0.behind.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_gpu_takes_hundreds_and_the_last_ones() {
        let (waiting, stop) = (Waiting::new(), Stop::default());
        let source = waiting.source();
        let count = ENOUGH.pairs + 3;
        (0..count).for_each(|i| source.add(i, 20, &stop));
        assert_eq!(waiting.take_many(&stop), (0..count).collect::<Vec<_>>(), "all that wait, in their order");
        (0..7).for_each(|i| source.add(i, 20, &stop));
        drop(source);
        assert!(waiting.take_one(&stop).is_none(), "the GPU is not behind");
        assert_eq!(waiting.take_many(&stop), (0..7).collect::<Vec<_>>(), "the last ones");
        assert!(waiting.take_many(&stop).is_empty() && waiting.take_one(&stop).is_none(), "the end");
    }

    #[test]
    fn what_waits_is_bounded_in_pairs_and_in_matches() {
        for matches in [1, MOST.matches / 5] {
            let (waiting, stop) = (Waiting::new(), Stop::default());
            let source = waiting.source();
            let (total, mut taken) = (3 * ROOM.pairs, 0);
            std::thread::scope(|scope| {
                let stop = &stop;
                scope.spawn(move || (0..total).for_each(|i| source.add(i, matches, stop)));
                loop {
                    let found = waiting.take_many(stop);
                    let amount = Amount { pairs: found.len(), matches: found.len() * matches };
                    assert!(
                        amount.pairs <= MOST.pairs && amount.matches < MOST.matches + matches,
                        "{amount:?}"
                    );
                    let left = waiting.lock().amount();
                    assert!(left.pairs <= ROOM.pairs && left.matches < ROOM.matches + matches, "{left:?}");
                    if found.is_empty() {
                        break;
                    }
                    assert_eq!(found, (taken..taken + found.len()).collect::<Vec<_>>(), "in their order");
                    taken += found.len();
                }
            });
            assert_eq!(taken, total);
        }
    }

    #[test]
    fn the_cpu_helps_a_gpu_that_is_behind_until_it_is_not() {
        let (waiting, stop) = (Waiting::new(), Stop::default());
        let source = waiting.source();
        (0..BEHIND.pairs + 2).for_each(|i| source.add(i, 20, &stop));
        drop(source);
        let helped = std::iter::from_fn(|| waiting.take_one(&stop)).count();
        assert_eq!(helped, 3, "down to where the GPU is not behind");
        assert_eq!(waiting.take_many(&stop).len(), MOST.pairs, "the rest is the GPU's");
    }

    #[test]
    fn nobody_waits_when_the_work_was_stopped() {
        let (waiting, stop) = (Waiting::new(), Stop::default());
        let source = waiting.source();
        stop.because(Error::Image("a failure elsewhere".into()));
        (0..2 * ROOM.pairs).for_each(|i| source.add(i, 20, &stop));
        assert!(waiting.take_many(&stop).is_empty() && waiting.take_one(&stop).is_none());
    }
}
