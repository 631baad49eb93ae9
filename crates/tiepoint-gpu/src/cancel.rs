//! Cancelling running work.

use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cancels running work: work that was given a clone returns [`Error::Cancelled`] at its next safe point after
/// [`cancel`](Self::cancel). It stays cancelled until [`reset`](Self::reset).
#[derive(Clone, Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// A flag that also cancels this token.
    outer: Option<Arc<AtomicBool>>,
}

impl Cancel {
    /// Not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that can be cancelled alone and is cancelled with this one; `None` if this is such a token already.
    pub fn inner(&self) -> Option<Self> {
        let outer = Some(self.flag.clone());
        self.outer.is_none().then(|| Self { flag: Arc::default(), outer })
    }

    /// Cancels the work of all clones.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Allows work again. Work that has not reached a safe point since [`cancel`](Self::cancel) continues.
    pub fn reset(&self) {
        self.flag.store(false, Ordering::Relaxed);
    }

    /// Whether work is cancelled.
    pub fn is_cancelled(&self) -> bool {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        is_set(&self.flag) || self.outer.as_ref().is_some_and(is_set)
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
        Self { flag, outer: None }
    }
}
