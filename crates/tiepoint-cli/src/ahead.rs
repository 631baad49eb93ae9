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
        let is_ready = |piece: &Piece<'_, T>| matches!(piece, Piece::Beside(thread) if thread.is_finished());
        if self.pieces.front().is_some_and(is_ready) { self.wait() } else { None }
    }
}

/// What is read for each of some tasks, by number; the next while the last is worked on.
pub(crate) struct Ahead<'scope, 'env, T, R> {
    tasks: Range<usize>,
    read: &'env R,
    line: Line<'scope, 'env, T>,
    /// Was taken out of the line too early.
    held: Option<T>,
    /// Pieces that may be in the line.
    most: usize,
    /// Bytes of the largest piece so far.
    largest: Arc<AtomicUsize>,
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
    /// At most `most` threads read in the scope, if there is one.
    pub(crate) fn new(
        tasks: usize,
        read: &'env R,
        scope: Option<&'scope Scope<'scope, 'env>>,
        most: usize,
    ) -> Self {
        let line = Line::new(scope);
        Self { tasks: 0..tasks, read, line, held: None, most, largest: Arc::default() }
    }

    /// The next piece, and then those that are read already and go together with it; none at the end.
    pub(crate) fn next(&mut self, together: impl Fn(&T, &T) -> bool) -> Vec<T> {
        let first = self.held.take().or_else(|| {
            self.fill(1);
            self.line.wait()
        });
        let mut pieces = Vec::from_iter(first);
        while let (Some(first), None) = (pieces.first(), &self.held) {
            match self.line.ready() {
                Some(next) if together(first, &next) => pieces.push(next),
                Some(next) => self.held = Some(next),
                None => break,
            }
        }
        // Nothing is known of the memory before a first piece was read.
        if self.line.scope.is_some() {
            self.fill(self.most.min(BYTES / self.largest.load(Ordering::Relaxed).max(1)));
        }
        pieces
    }

    /// Has so many pieces in the line, if there are as many tasks.
    fn fill(&mut self, pieces: usize) {
        while self.line.len() < pieces {
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
            let mut ahead = Ahead::new(9, &read, Some(scope), 3);
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
        for (beside, bytes, most, bound) in
            [(true, 1, 5, 5), (true, BYTES / 3, 5, 3), (true, BYTES * 2, 5, 0), (false, 1, 5, 0)]
        {
            let alive = AtomicUsize::new(0);
            let read = |task| Counted::new(task, bytes, &alive);
            scope(|scope| {
                let mut ahead = Ahead::new(200, &read, Some(scope).filter(|_| beside), most);
                let mut seen = Vec::new();
                loop {
                    let pieces = ahead.next(|a, b| a.0 / 7 == b.0 / 7);
                    let (taken, alive) = (pieces.len(), alive.load(Ordering::Relaxed));
                    // One may have been held back from the pieces before, and one from these.
                    assert!(taken <= bound + 1 && alive <= taken + bound + 1, "{taken} of {alive}: {bound}");
                    assert!(pieces.iter().all(|p| p.0 / 7 == pieces[0].0 / 7), "together");
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
