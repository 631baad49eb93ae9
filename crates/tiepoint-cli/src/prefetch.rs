//! Work on other threads, with results in order: images are read before they are needed, and results written while the
//! next are computed.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

/// Jobs whose results are returned in the order in which the jobs were added.
pub(crate) struct OrderedQueue<'scope, 'env, T> {
    scope: Option<&'scope Scope<'scope, 'env>>,
    jobs: VecDeque<Job<'scope, T>>,
}

enum Job<'scope, T> {
    /// Runs on a thread.
    Started(ScopedJoinHandle<'scope, T>),
    /// Runs when its result is taken.
    Deferred(Box<dyn FnOnce() -> T + 'scope>),
}

impl<T> Job<'_, T> {
    fn is_finished(&self) -> bool {
        matches!(self, Self::Started(thread) if thread.is_finished())
    }

    fn result(self) -> T {
        match self {
            Self::Started(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Deferred(job) => job(),
        }
    }
}

impl<'scope, 'env, T: Send + 'scope> OrderedQueue<'scope, 'env, T> {
    /// With a scope each job has a thread; without one, a job runs on the calling thread when its result is taken.
    pub(crate) fn new(scope: Option<&'scope Scope<'scope, 'env>>) -> Self {
        Self { scope, jobs: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, job: impl FnOnce() -> T + Send + 'scope) {
        self.jobs.push_back(match self.scope {
            Some(scope) => Job::Started(scope.spawn(job)),
            None => Job::Deferred(Box::new(job)),
        });
    }

    /// The number of jobs whose results have not been taken.
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Waits for the first result; `None` if there is no job.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.jobs.pop_front().map(Job::result)
    }

    /// The first result if its job has finished.
    pub(crate) fn pop_finished(&mut self) -> Option<T> {
        if self.jobs.front().is_some_and(Job::is_finished) { self.pop() } else { None }
    }
}

/// A value whose memory counts.
pub(crate) trait Weight {
    fn bytes(&self) -> usize;
}

/// How far to read ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most items that are being read or wait to be taken.
    pub(crate) items: usize,
    /// The most bytes of these items, estimated from the largest so far. Items that have been taken, and results that
    /// are not yet written, may take as much again each.
    pub(crate) bytes: usize,
    /// The number of items in a batch.
    pub(crate) batch: usize,
}

/// Reads numbered items ahead, while earlier ones are worked on.
pub(crate) struct Prefetcher<'scope, 'env, T, R> {
    /// Numbers of the items whose reading has not begun.
    unread: Range<usize>,
    read: &'env R,
    reading: OrderedQueue<'scope, 'env, T>,
    /// Items that have been read but not taken.
    ready: VecDeque<T>,
    /// Bytes of the largest item so far.
    largest: Arc<AtomicUsize>,
    limits: Limits,
}

impl<'scope, 'env: 'scope, T, R> Prefetcher<'scope, 'env, T, R>
where
    T: Weight + Send + 'scope,
    R: Fn(usize) -> T + Sync,
{
    /// Reads the items `0..count` by `read`. Without a scope for threads nothing is read ahead.
    pub(crate) fn new(
        count: usize,
        read: &'env R,
        scope: Option<&'scope Scope<'scope, 'env>>,
        limits: Limits,
    ) -> Self {
        let (reading, ready) = (OrderedQueue::new(scope), VecDeque::new());
        Self { unread: 0..count, read, reading, ready, largest: Arc::default(), limits }
    }

    /// The next items in order: a whole batch if enough items that go together with the first are ready, otherwise one
    /// item; none at the end.
    pub(crate) fn next_batch(&mut self, go_together: impl Fn(&T, &T) -> bool) -> Vec<T> {
        if self.ready.is_empty() {
            self.start_reading(1);
            self.ready.extend(self.reading.pop());
        }
        while let Some(item) = self.reading.pop_finished() {
            self.ready.push_back(item);
        }
        let Some(first) = self.ready.front() else { return Vec::new() };
        let alike = self.ready.iter().take_while(|item| go_together(first, item)).count();
        let taken = if alike >= self.limits.batch { self.limits.batch } else { 1 };
        let batch = self.ready.drain(..taken).collect();
        // The memory of the other items can be estimated only after the first.
        if self.reading.scope.is_some() {
            let fitting = self.limits.bytes / self.largest.load(Ordering::Relaxed).max(1);
            self.start_reading(self.limits.items.min(fitting));
        }
        batch
    }

    /// Starts to read more, until `items` items are being read or ready.
    fn start_reading(&mut self, items: usize) {
        while self.reading.len() + self.ready.len() < items {
            let Some(number) = self.unread.next() else { return };
            let (read, largest) = (self.read, self.largest.clone());
            self.reading.push(move || {
                let item = read(number);
                largest.fetch_max(item.bytes(), Ordering::Relaxed);
                item
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

    const BYTES: usize = 1 << 20;

    fn limits(items: usize, batch: usize) -> Limits {
        Limits { items, bytes: BYTES, batch }
    }

    /// A value that counts in `alive` how many of them exist.
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
    fn the_next_inputs_are_read_while_one_is_processed() {
        let (tell, told) = mpsc::channel();
        let alive = AtomicUsize::new(0);
        let read = |task| {
            tell.send(task).unwrap();
            Counted::new(task, 1, &alive)
        };
        scope(|scope| {
            let mut images = Prefetcher::new(9, &read, Some(scope), limits(3, 1));
            assert_eq!(images.next_batch(|_, _| false)[0].0, 0, "the first");
            let mut begun: Vec<_> =
                (0..4).map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
            begun.sort_unstable();
            assert_eq!(begun, [0, 1, 2, 3], "the first and three ahead");
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
                let mut images = Prefetcher::new(200, &read, Some(scope).filter(|_| beside), limits(5, 3));
                let mut seen = Vec::new();
                loop {
                    let items = images.next_batch(|a, b| a.0 / 7 == b.0 / 7);
                    let (taken, alive) = (items.len(), alive.load(Ordering::Relaxed));
                    assert!(alive <= taken + bound, "{alive} alive, {taken} taken, {bound} ahead");
                    assert!([0, 1, 3].contains(&taken), "{taken} together");
                    assert!(items.iter().all(|p| p.0 / 7 == items[0].0 / 7), "unlike values");
                    seen.extend(items.iter().map(|p| p.0));
                    if items.is_empty() {
                        break;
                    }
                }
                assert!(seen.into_iter().eq(0..200), "all, in order");
            });
            assert_eq!(alive.load(Ordering::Relaxed), 0, "all gone");
        }
    }

    #[test]
    fn inputs_that_wait_form_a_batch() {
        let alive = AtomicUsize::new(0);
        let read = |task| Counted::new(task, 1, &alive);
        scope(|scope| {
            let mut images = Prefetcher::new(9, &read, Some(scope), limits(8, 4));
            let mut next = || {
                while !images.reading.jobs.iter().all(Job::is_finished) {
                    std::thread::yield_now();
                }
                images.next_batch(|a, b| (a.0 < 5) == (b.0 < 5)).iter().map(|p| p.0).collect::<Vec<_>>()
            };
            assert_eq!(next(), [0], "the first alone");
            assert_eq!(next(), [1, 2, 3, 4], "four are waiting");
            assert_eq!(next(), [5, 6, 7, 8], "four others");
            assert!(next().is_empty(), "the end");
        });
    }

    #[test]
    fn without_threads_jobs_run_one_by_one_when_popped() {
        let (tell, told) = mpsc::channel();
        let mut queue = OrderedQueue::new(None);
        for i in 0..3 {
            let tell = tell.clone();
            queue.push(move || tell.send(i).unwrap());
        }
        assert!(queue.pop_finished().is_none() && told.try_recv().is_err(), "a job ran before it was popped");
        queue.pop().unwrap();
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [0], "the first alone");
    }
}
