//! Which work of a device's queue is known to be finished, without a call of the driver.

use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of the work that the queue was given.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    given: AtomicU64,
    done: AtomicU64,
}

impl Queue {
    /// The number of work that the queue has just been given.
    pub(crate) fn given(&self) -> u64 {
        self.given.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Calls `wait`, which waits for all work, and records that all work given before is done.
    pub(crate) fn waiting<R>(&self, wait: impl FnOnce() -> Result<R>) -> Result<R> {
        // Work gets its number after it was enqueued, so the wait covers all work up to this number.
        let given = self.given.load(Ordering::Acquire);
        let waited = wait()?;
        self.done.fetch_max(given, Ordering::AcqRel);
        Ok(waited)
    }

    /// Whether work of this number is known to be done.
    pub(crate) fn has_done(&self, number: u64) -> bool {
        number <= self.done.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;
    use crate::Error;

    #[test]
    fn work_given_before_a_wait_is_done_after_it() {
        let queue = Queue::default();
        assert!(queue.has_done(0), "no work");
        let first = queue.given();
        assert!(!queue.has_done(first), "nothing was waited for");
        let second = queue.waiting(|| Ok(queue.given())).unwrap();
        assert!(queue.has_done(first) && !queue.has_done(second), "the second came during the wait");
        let failed = queue.waiting(|| Err::<(), _>(Error::Usage("it failed".into())));
        assert!(failed.is_err() && !queue.has_done(second), "a failed wait proves nothing done");
    }
}
