//! Ctrl-C and SIGTERM: the first ends the work, which removes its unfinished files; the second ends the process at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tiepoint::device::Cancel;

/// The signals that were caught. They concern the whole process.
static CAUGHT: OnceLock<Caught> = OnceLock::new();

struct Caught {
    any: Arc<AtomicBool>,
    /// The number of the last; 0: none came.
    signal: Arc<AtomicUsize>,
}

/// What ends the work when a signal comes. From now on signals end the process no longer by themselves. To be called
/// before a device is opened: LLVM within PoCL catches signals too, and hands them on to what caught them before it. Where
/// nothing did, the process would end at once and leave its unfinished files.
pub(crate) fn cancel() -> Cancel {
    let caught = CAUGHT.get_or_init(|| {
        let caught = Caught { any: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // In this order: the flag that the first signal sets lets the second through. Where the system lets
            // nothing be registered, the signal goes on to end the process.
            let _ = flag::register_conditional_default(signal, caught.any.clone())
                .and_then(|_| flag::register_usize(signal, caught.signal.clone(), signal as usize))
                .and_then(|_| flag::register(signal, caught.any.clone()));
        }
        caught
    });
    Cancel::from(caught.any.clone())
}

/// Ends the process by the signal that has come, so that shells and `make` see it. Returns when no signal has come.
pub(crate) fn pass_on() {
    let signal = CAUGHT.get().map_or(0, |caught| caught.signal.load(Ordering::Relaxed));
    if signal != 0 {
        let _ = low_level::emulate_default_handler(signal as c_int);
    }
}
