//! The queue of matched pairs that are to be verified: on GPUs hundreds at a time, because smaller batches are slow, and on
//! threads of the CPU one at a time, only while the queue is at least half full.

use super::workers::Stop;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use tiepoint_gpu::lock;

/// The most that a GPU takes at a time. During verification each match takes 60 bytes on the device and some 250 on the
/// host. With more pairs at a time, the device verifies fewer of them a second (`docs/notebook/collection.md`).
pub(super) const MOST: Amount = Amount { pairs: 512, matches: 1 << 19 };

/// As long as more pairs may come, a GPU waits for this much work, because few pairs take as long as hundreds.
const ENOUGH: Amount = Amount { pairs: 256, matches: 1 << 19 };

/// The capacity of the queue: an `add` beyond it waits. A match takes 16 bytes here.
const ROOM: Amount = Amount { pairs: 4096, matches: 1 << 22 };

/// Half of the queue. When it holds this much, the GPUs are behind, and the CPU helps.
const BEHIND: Amount = Amount { pairs: ROOM.pairs / 2, matches: ROOM.matches / 2 };

/// A number of pairs, and of their matches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    pub(super) pairs: usize,
    pub(super) matches: usize,
}

impl Amount {
    /// Whether pairs or matches reach those of `other`.
    fn reaches(self, other: Self) -> bool {
        self.pairs >= other.pairs || self.matches >= other.matches
    }
}

/// The queue. Each pair is stored with the number of its matches.
pub(super) struct Waiting<P> {
    queue: Mutex<Queue<P>>,
    /// Notified when the queue holds enough pairs for a GPU.
    enough: Condvar,
    /// Notified when the GPUs are behind.
    behind: Condvar,
    /// Notified when there is room again.
    room: Condvar,
}

struct Queue<P> {
    pairs: VecDeque<(P, usize)>,
    matches: usize,
    /// The number of [`Source`]s.
    sources: usize,
}

impl<P> Queue<P> {
    fn amount(&self) -> Amount {
        Amount { pairs: self.pairs.len(), matches: self.matches }
    }

    fn pop(&mut self) -> Option<P> {
        let (pair, matches) = self.pairs.pop_front()?;
        self.matches -= matches;
        Some(pair)
    }

    /// Removes the first pairs, as many as a GPU takes at a time, but at least one.
    fn pop_many(&mut self) -> Vec<P> {
        let (mut taken, mut amount) = (Vec::new(), Amount::default());
        while let Some((_, matches)) = self.pairs.front() {
            amount = Amount { pairs: amount.pairs + 1, matches: amount.matches + matches };
            if !taken.is_empty() && (amount.pairs > MOST.pairs || amount.matches > MOST.matches) {
                break;
            }
            taken.extend(self.pop());
        }
        taken
    }
}

/// What a thread of the CPU does beside the GPUs.
#[derive(Debug)]
pub(super) enum Help<P> {
    /// Verifies this pair.
    Verify(P),
    /// Matches and verifies a pair that no GPU has taken.
    Match,
}

/// Adds pairs to the queue. When the last source is dropped, the queue ends.
pub(super) struct Source<'w, P>(&'w Waiting<P>);

impl<P> Waiting<P> {
    pub(super) fn new() -> Self {
        let queue = Queue { pairs: VecDeque::new(), matches: 0, sources: 0 };
        let (enough, behind, room) = Default::default();
        Self { queue: Mutex::new(queue), enough, behind, room }
    }

    /// A new source. All must be made before pairs are taken, because a queue without sources has ended.
    pub(super) fn source(&self) -> Source<'_, P> {
        lock(&self.queue).sources += 1;
        Source(self)
    }

    /// Waits for pairs for a GPU: hundreds, or the last ones. Empty at the end.
    pub(super) fn take_many(&self, stop: &Stop) -> Vec<P> {
        let taken = stop.wait_for(&self.queue, &self.enough, |queue| {
            (queue.sources == 0 || queue.amount().reaches(ENOUGH)).then(|| queue.pop_many())
        });
        self.room.notify_all();
        taken.unwrap_or_default()
    }

    /// Waits for work on the CPU: a pair to verify while GPUs are behind, or to match where that pays. `None` at the end.
    pub(super) fn take_one(&self, stop: &Stop, matching_pays: impl Fn() -> bool) -> Option<Help<P>> {
        let taken = stop.wait_for(&self.queue, &self.behind, |queue| {
            if queue.amount().reaches(BEHIND) {
                return Some(queue.pop().map(Help::Verify));
            }
            match queue.sources {
                0 => Some(None),
                _ => matching_pays().then_some(Some(Help::Match)),
            }
        });
        self.room.notify_one();
        taken.flatten()
    }
}

impl<P> Source<'_, P> {
    /// Waits until there is room, and adds a pair. If the work is stopped, the pair is dropped.
    pub(super) fn add(&self, pair: P, matches: usize, stop: &Stop) {
        let Waiting { queue, room, enough, behind } = self.0;
        let mut pair = Some(pair);
        let added = stop.wait_for(queue, room, |queue| {
            let pair = pair.take_if(|_| !queue.amount().reaches(ROOM))?;
            queue.matches += matches;
            queue.pairs.push_back((pair, matches));
            Some(queue.amount())
        });
        for (amount, changed) in [(ENOUGH, enough), (BEHIND, behind)] {
            if added.is_some_and(|now| now.reaches(amount)) {
                changed.notify_one();
            }
        }
    }
}

impl<P> Drop for Source<'_, P> {
    fn drop(&mut self) {
        lock(&self.0.queue).sources -= 1;
        self.0.enough.notify_all();
        self.0.behind.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_gpu_takes_pairs_by_the_hundred_and_finally_the_rest() {
        let (waiting, stop) = (Waiting::new(), Stop::default());
        let source = waiting.source();
        let count = ENOUGH.pairs + 3;
        (0..count).for_each(|i| source.add(i, 20, &stop));
        assert_eq!(waiting.take_many(&stop), (0..count).collect::<Vec<_>>(), "all that wait, in their order");
        (0..7).for_each(|i| source.add(i, 20, &stop));
        drop(source);
        assert!(waiting.take_one(&stop, || false).is_none(), "the GPU is not behind");
        assert_eq!(waiting.take_many(&stop), (0..7).collect::<Vec<_>>(), "the last ones");
        assert!(waiting.take_many(&stop).is_empty() && waiting.take_one(&stop, || true).is_none(), "the end");
    }

    #[test]
    fn the_queue_is_bounded_in_pairs_and_in_matches() {
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
                    let fits = amount.pairs <= MOST.pairs && amount.matches < MOST.matches + matches;
                    assert!(fits, "{amount:?}");
                    let left = lock(&waiting.queue).amount();
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
        let verifies = || matches!(waiting.take_one(&stop, || true), Some(Help::Verify(_)));
        assert_eq!((0..9).take_while(|_| verifies()).count(), 3, "until the GPU is no longer behind");
        assert!(matches!(waiting.take_one(&stop, || true), Some(Help::Match)), "then it matches");
        drop(source);
        assert!(waiting.take_one(&stop, || true).is_none(), "there are no pairs to be matched");
        assert_eq!(waiting.take_many(&stop).len(), MOST.pairs, "the rest is the GPU's");
    }

    #[test]
    fn a_stopped_queue_takes_and_gives_nothing() {
        let (waiting, stop) = (Waiting::new(), Stop::default());
        let source = waiting.source();
        stop.because(Error::Image("a failure elsewhere".into()));
        (0..2 * ROOM.pairs).for_each(|i| source.add(i, 20, &stop));
        assert!(waiting.take_many(&stop).is_empty() && waiting.take_one(&stop, || true).is_none());
    }
}
