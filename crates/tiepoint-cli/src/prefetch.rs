//! Work beside the main thread, whose results come in its order: files read ahead of what is done with them, and
//! written behind it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Pieces of work in a line: each on a thread of its own, or each in its turn on the thread that asks for it.
pub(crate) struct Line<'scope, 'env, T> {
    scope: Option<&'scope Scope<'scope, 'env>>,
    pieces: VecDeque<Piece<'scope, T>>,
}

enum Piece<'scope, T> {
    Beside(ScopedJoinHandle<'scope, T>),
    Later(Box<dyn FnOnce() -> T + 'scope>),
}

impl<T> Piece<'_, T> {
    fn is_ready(&self) -> bool {
        matches!(self, Self::Beside(thread) if thread.is_finished())
    }

    fn finish(self) -> T {
        match self {
            Self::Beside(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Later(work) => work(),
        }
    }
}

impl<'scope, 'env, T: Send + 'scope> Line<'scope, 'env, T> {
    /// Without a scope for threads, work is put off until its result is asked for.
    pub(crate) fn new(scope: Option<&'scope Scope<'scope, 'env>>) -> Self {
        Self { scope, pieces: VecDeque::new() }
    }

    pub(crate) fn put(&mut self, work: impl FnOnce() -> T + Send + 'scope) {
        self.pieces.push_back(match self.scope {
            Some(scope) => Piece::Beside(scope.spawn(work)),
            None => Piece::Later(Box::new(work)),
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The first result, when it is there.
    pub(crate) fn wait(&mut self) -> Option<T> {
        self.pieces.pop_front().map(Piece::finish)
    }

    /// The first result, if it is there already.
    pub(crate) fn ready(&mut self) -> Option<T> {
        if self.pieces.front().is_some_and(Piece::is_ready) { self.wait() } else { None }
    }
}

/// What is read for each of some tasks, by number; the next while the last is worked on.
pub(crate) struct Ahead<'scope, 'env, T, R> {
    tasks: Range<usize>,
    read: &'env R,
    line: Line<'scope, 'env, T>,
    /// Read, and the next to be worked on.
    waiting: VecDeque<T>,
    /// Bytes of the largest piece so far.
    largest: Arc<AtomicUsize>,
    reach: Reach,
}

/// How far to read ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Pieces at most that are being read or waiting.
    pub(crate) pieces: usize,
    /// Pieces that are worked on together, when so many are waiting that go together; otherwise one is.
    pub(crate) together: usize,
}

/// Bytes that what is read ahead may take, judged by its largest piece so far; what is worked on may take as much again,
/// and so may what is yet to be written.
const BYTES: usize = 512 << 20;

/// What takes memory.
pub(crate) trait Weight {
    fn bytes(&self) -> usize;
}

impl<'scope, 'env: 'scope, T, R> Ahead<'scope, 'env, T, R>
where
    T: Weight + Send + 'scope,
    R: Fn(usize) -> T + Sync,
{
    /// Without a scope for threads nothing is read ahead.
    pub(crate) fn new(
        tasks: usize,
        read: &'env R,
        scope: Option<&'scope Scope<'scope, 'env>>,
        reach: Reach,
    ) -> Self {
        let (line, waiting) = (Line::new(scope), VecDeque::new());
        Self { tasks: 0..tasks, read, line, waiting, largest: Arc::default(), reach }
    }

    /// The next piece, or pieces that go together; none at the end.
    pub(crate) fn next(&mut self, alike: impl Fn(&T, &T) -> bool) -> Vec<T> {
        if self.waiting.is_empty() {
            self.fill(1);
            self.waiting.extend(self.line.wait());
        }
        while let Some(next) = self.line.ready() {
            self.waiting.push_back(next);
        }
        let first = self.waiting.front();
        let alike =
            first.map_or(0, |first| self.waiting.iter().take_while(|next| alike(first, next)).count());
        let taken = if alike >= self.reach.together { self.reach.together } else { 1 };
        let pieces = self.waiting.drain(..taken.min(self.waiting.len())).collect();
        // Nothing is known of the memory before a first piece was read.
        if self.line.scope.is_some() {
            self.fill(self.reach.pieces.min(BYTES / self.largest.load(Ordering::Relaxed).max(1)));
        }
        pieces
    }

    /// Has so many pieces being read or waiting, if there are as many tasks.
    fn fill(&mut self, pieces: usize) {
        while self.line.len() + self.waiting.len() < pieces {
            let Some(task) = self.tasks.next() else { return };
            let (read, largest) = (self.read, self.largest.clone());
            self.line.put(move || {
                let piece = read(task);
                largest.fetch_max(piece.bytes(), Ordering::Relaxed);
                piece
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread::scope;
    use std::time::Duration;

    /// Counts those of its kind that live.
    struct Counted<'a>(usize, usize, &'a AtomicUsize);

    impl<'a> Counted<'a> {
        fn new(task: usize, bytes: usize, alive: &'a AtomicUsize) -> Self {
            alive.fetch_add(1, Ordering::Relaxed);
            Self(task, bytes, alive)
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.2.fetch_sub(1, Ordering::Relaxed);
        }
    }

    impl Weight for Counted<'_> {
        fn bytes(&self) -> usize {
            self.1
        }
    }

    #[test]
    fn the_next_are_read_while_one_is_worked_on() {
        let (tell, told) = mpsc::channel();
        let alive = AtomicUsize::new(0);
        let read = |task| {
            tell.send(task).unwrap();
            Counted::new(task, 1, &alive)
        };
        scope(|scope| {
            let mut ahead = Ahead::new(9, &read, Some(scope), Reach { pieces: 3, together: 1 });
            assert_eq!(ahead.next(|_, _| false)[0].0, 0, "the first");
            // The main thread is at work, and does not ask for more.
            let mut begun: Vec<_> =
                (0..4).map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
            begun.sort_unstable();
            assert_eq!(begun, [0, 1, 2, 3], "three ahead");
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "and no more");
        });
    }

    #[test]
    fn memory_is_bounded_and_the_order_kept() {
        for (beside, bytes, bound) in
            [(true, 1, 5), (true, BYTES / 3, 3), (true, BYTES * 2, 0), (false, 1, 0)]
        {
            let alive = AtomicUsize::new(0);
            let read = |task| Counted::new(task, bytes, &alive);
            scope(|scope| {
                let reach = Reach { pieces: 5, together: 3 };
                let mut ahead = Ahead::new(200, &read, Some(scope).filter(|_| beside), reach);
                let mut seen = Vec::new();
                loop {
                    let pieces = ahead.next(|a, b| a.0 / 7 == b.0 / 7);
                    let (taken, alive) = (pieces.len(), alive.load(Ordering::Relaxed));
                    assert!(alive <= taken + bound, "{alive} of {bound} beside {taken}");
                    assert!([0, 1, 3].contains(&taken), "{taken} together");
                    assert!(pieces.iter().all(|p| p.0 / 7 == pieces[0].0 / 7), "alike");
                    seen.extend(pieces.iter().map(|p| p.0));
                    if pieces.is_empty() {
                        break;
                    }
                }
                assert!(seen.into_iter().eq(0..200), "all, in order");
            });
            assert_eq!(alive.load(Ordering::Relaxed), 0, "all gone");
        }
    }

    #[test]
    fn those_that_wait_go_together() {
        let alive = AtomicUsize::new(0);
        let read = |task| Counted::new(task, 1, &alive);
        scope(|scope| {
            let mut ahead = Ahead::new(9, &read, Some(scope), Reach { pieces: 8, together: 4 });
            let mut next = || {
                while !ahead.line.pieces.iter().all(Piece::is_ready) {
                    std::thread::yield_now();
                }
                ahead.next(|a, b| (a.0 < 5) == (b.0 < 5)).iter().map(|p| p.0).collect::<Vec<_>>()
            };
            assert_eq!(next(), [0], "the first alone");
            assert_eq!(next(), [1, 2, 3, 4], "four are waiting");
            assert_eq!(next(), [5, 6, 7, 8], "four others");
            assert!(next().is_empty(), "the end");
        });
    }

    #[test]
    fn without_threads_each_is_done_in_its_turn() {
        let (tell, told) = mpsc::channel();
        let mut line = Line::new(None);
        for i in 0..3 {
            let tell = tell.clone();
            line.put(move || tell.send(i).unwrap());
        }
        assert!(line.ready().is_none() && told.try_recv().is_err(), "put off");
        line.wait().unwrap();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [0], "the first alone");
    }
}
