//! How fast a device works, by which CPU and GPUs share photographs and pairs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The time that pieces of work have taken.
#[derive(Debug, Default)]
pub(super) struct Pace {
    pieces: AtomicUsize,
    nanoseconds: AtomicU64,
}

impl Pace {
    pub(super) fn add(&self, pieces: usize, time: Duration) {
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        self.pieces.fetch_add(pieces, Ordering::Relaxed);
    }

    /// Seconds for one piece, on one thread or GPU; `None` before the first is done.
    pub(super) fn seconds(&self) -> Option<f64> {
        let pieces = self.pieces.load(Ordering::Relaxed);
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9;
        (pieces > 0).then(|| seconds / pieces as f64)
    }
}
