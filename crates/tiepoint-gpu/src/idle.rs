//! Memory that is kept for reuse goes back to the driver, for other programs, once the device is idle for a while.

use crate::background::Background;
use crate::compiler::Patience;
use crate::{Gpu, Shared, lock};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How long a device keeps memory that nothing uses. Taking it from the driver again costs a call some milliseconds.
const IDLE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Idle(Mutex<State>);

#[derive(Debug)]
struct State {
    /// When memory was last freed.
    used: Instant,
    /// Whether a thread waits for the device to be idle.
    is_watched: bool,
    after: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Self(Mutex::new(State { used: Instant::now(), is_watched: false, after: IDLE }))
    }
}

impl Idle {
    pub(crate) fn after(&self, after: Duration) {
        self.with(|state| state.after = after);
    }

    /// Records that memory was freed and is kept.
    pub(crate) fn freed(&self, device: &Arc<Shared>) {
        let begins = self.with(|state| {
            state.used = Instant::now();
            !std::mem::replace(&mut state.is_watched, true)
        });
        if begins {
            let device = Arc::downgrade(device);
            let spawned = thread::Builder::new().name("idle".into()).spawn(move || watch(&device));
            if spawned.is_err() {
                // The next call tries again.
                self.with(|state| state.is_watched = false);
            }
        }
    }

    /// How long the device has still to be idle; if it has been for long enough, it is no longer watched.
    fn left(&self) -> Option<Duration> {
        self.with(|state| {
            let left = state.after.checked_sub(state.used.elapsed());
            state.is_watched = left.is_some();
            left
        })
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut lock(&self.0))
    }
}

/// Waits until the device is idle, then returns its memory; ends earlier when the device is closed.
fn watch(device: &Weak<Shared>) {
    while let Some(shared) = device.upgrade() {
        if let Some(left) = shared.idle.left() {
            drop(shared);
            thread::sleep(left);
            continue;
        }
        let Some(_busy) = Background::begin() else { return };
        // An error here is reported by the next call of the device.
        let _ = Gpu { shared, patience: Patience::Waits }.release_memory();
        return;
    }
}
