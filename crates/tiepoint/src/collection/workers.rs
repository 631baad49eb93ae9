//! Threads that share a stage's work and end together when one of them fails.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Whether the work is to end early, and why.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    error: Mutex<Option<Error>>,
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the work. Of several reasons the first counts.
    pub(super) fn because(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn into_result(self) -> Result<()> {
        self.error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A piece of work that runs beside others.
pub(super) type Job<'j> = Box<dyn FnOnce(&Stop) -> Result<()> + Send + 'j>;

/// The next thing that another thread sends; none at the end.
pub(super) fn next_of<T>(channel: &Mutex<Receiver<T>>) -> Option<T> {
    channel.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Does `work` for everything that other threads send. After a failure, here or elsewhere, the rest is taken and
/// dropped, so that nobody waits with a full channel.
pub(super) fn for_each_of<T>(
    channel: &Mutex<Receiver<T>>,
    stop: &Stop,
    mut work: impl FnMut(T) -> Result<()>,
) {
    while let Some(sent) = next_of(channel) {
        if !stop.is_set()
            && let Err(error) = work(sent)
        {
            stop.because(error);
        }
    }
}

/// Runs all `jobs` at the same time, each on a thread of its own. A job looks at `Stop` between units of its work; the
/// first error sets it and is returned when all have ended.
pub(super) fn side_by_side<'j>(jobs: Vec<Job<'j>>) -> Result<()> {
    let stop = Stop::default();
    thread::scope(|scope| {
        for job in jobs {
            let stop = &stop;
            scope.spawn(move || {
                if let Err(error) = job(stop) {
                    stop.because(error);
                }
            });
        }
    });
    stop.into_result()
}
