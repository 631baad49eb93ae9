//! Ctrl-C and SIGTERM. The first cancels the work, which then removes its unfinished files; the second ends the process
//! at once.

#[cfg(unix)]
use signal_hook::consts::SIGXFSZ;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;
use tiepoint::device::Cancel;
use tiepoint::device::gpu::stop_background;

/// The signals that were caught; global, because signals belong to the process.
static CAUGHT: OnceLock<Caught> = OnceLock::new();

struct Caught {
    any: Arc<AtomicBool>,
    /// The number of the last signal, or 0.
    signal: Arc<AtomicUsize>,
}

/// A `Cancel` that is set when a signal comes. From this call on, the first signal no longer ends the process. It must
/// be made before a device is opened: LLVM within PoCL also catches signals, and passes them on to the handler that it
/// finds. If it found none, the process would end at once and leave its unfinished files.
pub(crate) fn cancel() -> Cancel {
    let caught = CAUGHT.get_or_init(|| {
        let caught = Caught { any: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the flag set by the first signal makes the second one end the process. If the system
            // refuses to register a handler, signals end the process as before.
            let _ = flag::register_conditional_default(signal, caught.any.clone())
                .and_then(|_| flag::register_usize(signal, caught.signal.clone(), signal as usize))
                .and_then(|_| flag::register(signal, caught.any.clone()));
        }
        // With a handler, writing beyond the limit of a file's size is an error, and the process goes on.
        #[cfg(unix)]
        let _ = flag::register(SIGXFSZ, Arc::default());
        caught
    });
    Cancel::from(caught.any.clone())
}

/// How often [`end_stalled`] looks for a signal, and how long the work then has to end by itself.
const LOOK: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(1);

/// From now on a signal ends the process after a second in any case: for a process that reads a pipe, because a read that
/// waits for data does not see a [`Cancel`].
pub(crate) fn end_stalled() {
    let any = cancel();
    let ends = move || {
        while any.check().is_ok() {
            thread::sleep(LOOK);
        }
        thread::sleep(GRACE);
        pass_on();
    };
    // Without the thread a second signal ends the process.
    let _ = thread::Builder::new().name("signals".into()).spawn(ends);
}

/// Ends the process at once if a GPU is still being opened or kernels are compiled in the background after its work: the
/// exit handlers of drivers and compilers fail while these are in use, and a compilation may take seconds. Compiled
/// kernels are on disk.
pub(crate) fn leave_background(code: u8) {
    if stop_background() {
        low_level::exit(c_int::from(code));
    }
}

/// Ends the process by the signal that was caught, so that shells and `make` see it; does nothing if none was.
pub(crate) fn pass_on() {
    let signal = CAUGHT.get().map_or(0, |caught| caught.signal.load(Ordering::Relaxed));
    if signal != 0 {
        let _ = low_level::emulate_default_handler(signal as c_int);
    }
}
