//! Reading, computing, writing and reporting of many images or pairs, in order.

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::output::Spent;
use crate::prefetch::{OrderedQueue, Weight};
use std::thread::Scope;

/// The most threads that read, and the most results that wait to be written; more would not keep a GPU busier.
pub(super) const MOST_BESIDE: usize = 32;

/// The most bytes that are read ahead.
pub(super) const AHEAD: usize = 512 << 20;

/// A job with its result so far, or why it failed, and the time that it has taken.
pub(super) struct Item<'a, J, T> {
    pub(super) job: &'a J,
    pub(super) result: Outcome<T>,
    pub(super) spent: Spent,
}

impl<'a, J, T> Item<'a, J, T> {
    /// Does the next step, unless one has failed before.
    pub(super) fn then<U>(self, step: impl FnOnce(T) -> Outcome<(U, Spent)>) -> Item<'a, J, U> {
        let Self { job, result, mut spent } = self;
        let result = result.and_then(step).map(|(made, more)| {
            spent.add(&more);
            made
        });
        Item { job, result, spent }
    }
}

impl<J, T: Weight> Weight for Item<'_, J, T> {
    fn bytes(&self) -> usize {
        self.result.as_ref().map_or(0, Weight::bytes)
    }
}

/// Results that are written, and then reported in order.
pub(super) struct Results<'scope, 'env, 'a, J, T> {
    writing: OrderedQueue<'scope, 'env, Item<'a, J, T>>,
    /// The number of all jobs, and of those that have failed.
    jobs: usize,
    pub(super) failed: usize,
    context: &'a Context,
}

impl<'scope, 'env, 'a: 'scope, J: Sync, T: Send + 'scope> Results<'scope, 'env, 'a, J, T> {
    /// With a scope, results are written on its threads.
    pub(super) fn new(jobs: usize, scope: Option<&'scope Scope<'scope, 'env>>, context: &'a Context) -> Self {
        Self { writing: OrderedQueue::new(scope), jobs, failed: 0, context }
    }

    /// Starts to write a result.
    pub(super) fn push(&mut self, write: impl FnOnce() -> Item<'a, J, T> + Send + 'scope) {
        self.writing.push(write);
    }

    /// Reports results that are written, and waits until at most `unwritten` are still being written. A job that fails
    /// does not stop the others.
    pub(super) fn report(&mut self, unwritten: usize, mut report: impl FnMut(&'a J, T, &Spent)) -> Outcome {
        loop {
            let waits = self.writing.len() > unwritten;
            let Some(item) = (if waits { self.writing.pop() } else { self.writing.pop_finished() }) else {
                return Ok(());
            };
            match item.result {
                Ok(made) => report(item.job, made, &item.spent),
                Err(failure @ Failure::Work(_)) if self.jobs > 1 => {
                    self.context.complain(&failure);
                    self.failed += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}
