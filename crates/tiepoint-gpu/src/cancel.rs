//! Ending work that is under way.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends work that is under way: work that was given a clone returns [`Error::Cancelled`] at its next safe point after
/// [`cancel`](Self::cancel). It stays cancelled until [`reset`](Self::reset).
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the work of all clones.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Lets work begin again. Work that has not come to a safe point since [`cancel`](Self::cancel) goes on.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether work is to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A safe point: fails once the work is cancelled.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once it is cancelled.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

impl From<Arc<AtomicBool>> for Cancel {
    /// True means cancelled: a flag that a signal handler sets, say.
    fn from(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }
}
