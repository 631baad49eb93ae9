//! One of many images or pairs on its way through reading, computing and writing.

use crate::failure::Outcome;
use crate::output::Spent;
use crate::prefetch::Weight;

/// What was made for a job so far, or why it failed, and the time that this took.
pub(super) struct Item<'a, J, T> {
    pub(super) job: &'a J,
    pub(super) result: Outcome<T>,
    pub(super) spent: Spent,
}

impl<'a, J, T> Item<'a, J, T> {
    /// The next step, unless one has failed before.
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
