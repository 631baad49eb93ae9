//! Calls of drivers and compilers beside the work, and the end of a process while they run.
//!
//! The exit handlers that drivers and compilers register fail while their libraries are in use on another thread. So
//! a process either exits without running them ([`stop_background`] says whether it must) or
//! [waits](finish_background) before.

use crate::lock;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The number of threads of this process that are in such calls.
struct Threads {
    busy: usize,
    /// How many of the busy threads are opening a device.
    opening: usize,
    stopped: bool,
    /// Whether opening devices is paused.
    paused: bool,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads { busy: 0, opening: 0, stopped: false, paused: false });
static CHANGED: Condvar = Condvar::new();

fn wait_while(is_so: impl Fn(&Threads) -> bool) -> MutexGuard<'static, Threads> {
    let waited = CHANGED.wait_while(lock(&THREADS), |threads| is_so(threads));
    waited.unwrap_or_else(PoisonError::into_inner)
}

/// Counts the calling thread as busy until it is dropped.
#[derive(Debug)]
pub struct Background {
    opens: bool,
}

impl Background {
    /// For compiling. `None` if the process is about to end and nothing may begin.
    pub fn begin() -> Option<Self> {
        Self::among(lock(&THREADS), false)
    }

    /// For opening a device; waits while that is [paused](pause_opening). `None` as from [`begin`](Self::begin).
    pub fn begin_opening() -> Option<Self> {
        Self::among(wait_while(|threads| threads.paused), true)
    }

    fn among(mut threads: MutexGuard<'_, Threads>, opens: bool) -> Option<Self> {
        if threads.stopped {
            return None;
        }
        threads.busy += 1;
        threads.opening += usize::from(opens);
        Some(Self { opens })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let mut threads = lock(&THREADS);
        // Both are 0 in a process that was forked meanwhile.
        threads.busy = threads.busy.saturating_sub(1);
        threads.opening = threads.opening.saturating_sub(usize::from(self.opens));
        CHANGED.notify_all();
    }
}

/// Before a fork: waits for devices that are being opened, and lets no other begin until [`resume_opening`].
pub fn pause_opening() {
    wait_while(|threads| threads.opening > 0).paused = true;
}

/// After a fork. The child has none of the threads.
pub fn resume_opening(in_child: bool) {
    let mut threads = lock(&THREADS);
    threads.paused = false;
    if in_child {
        (threads.busy, threads.opening) = (0, 0);
    }
    CHANGED.notify_all();
}

pub(crate) fn is_stopped() -> bool {
    lock(&THREADS).stopped
}

/// Starts nothing more in the background of this process. Returns whether something still runs there (a device is being
/// opened, or programs are being compiled): then the process must end without its exit handlers.
pub fn stop_background() -> bool {
    let mut threads = lock(&THREADS);
    threads.stopped = true;
    threads.busy > 0
}

/// Starts nothing more in the background of this process, and waits for what has begun.
pub fn finish_background() {
    stop_background();
    drop(wait_while(|threads| threads.busy > 0));
}

/// Competing for a core with a thread of normal priority, a thread of this `nice` value gets 1.25 to the power of
/// −`nice` of that thread's time: about a tenth.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of this thread. Does nothing on other systems, where it would lower that of the process.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    // On an error the priority stays as it is.
    let _ = rustix::process::nice(NICE);
}
