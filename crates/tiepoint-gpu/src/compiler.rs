//! Compiles programs in the background.
//!
//! So that other work is hardly slowed, there is one compiling thread for each core, of low priority (on Linux, where
//! threads have one): together they get about a tenth of a machine whose cores are all busy, and every core that is idle.
//!
//! A process may end while they compile. Finished programs are kept on disk for the next process. The exit handlers
//! that compilers' libraries register fail while a compilation runs, so the process either exits without running them
//! ([`compilers_are_busy`]) or [stops](stop_compilers) the threads before.

use crate::program::Program;
use crate::{Error, Gpu, KernelSource, Shared};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// Whether a request for a program waits until it is compiled.
#[derive(Clone, Debug)]
pub(crate) enum Patience {
    Waits,
    Leaves,
    /// The number of requests for programs that are still refused, for tests.
    LeavesUntil(Arc<AtomicUsize>),
}

impl Patience {
    pub(crate) fn refuses(&self) -> bool {
        match self {
            Self::Waits | Self::Leaves => false,
            Self::LeavesUntil(left) => {
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
            }
        }
    }
}

/// The programs of a device that are compiled in the background.
#[derive(Debug, Default)]
pub(crate) struct Compiler(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(String, KernelSource)>,
    /// The state of each requested program that is not in the device's list: `Ok` while it waits or is being compiled.
    known: HashMap<String, Result<(), Error>>,
    threads: usize,
}

/// Counts the compiling threads of this process.
struct Busy {
    count: Mutex<usize>,
    ended: Condvar,
    stopped: AtomicBool,
}

static BUSY: Busy = Busy { count: Mutex::new(0), ended: Condvar::new(), stopped: AtomicBool::new(false) };

/// Whether a thread of this process compiles programs in the background.
pub fn compilers_are_busy() -> bool {
    *BUSY.lock() > 0
}

/// Waits for the programs that are being compiled in the background, and starts no more in this process. For its end.
pub fn stop_compilers() {
    BUSY.stopped.store(true, Ordering::Relaxed);
    let mut count = BUSY.lock();
    while *count > 0 {
        count = BUSY.ended.wait(count).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Busy {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compiler {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.lock().threads > 0
    }

    /// `None` if the program was not requested; the error if it does not compile; `Ok` until that is known.
    pub(crate) fn state_of(&self, key: &str) -> Option<Result<(), Error>> {
        self.lock().known.get(key).cloned()
    }

    /// Adds a program to the queue, and a thread if there are too few.
    pub(crate) fn add(&self, device: &Arc<Shared>, key: String, source: KernelSource) {
        let mut state = self.lock();
        if BUSY.stopped.load(Ordering::Relaxed) || state.known.insert(key.clone(), Ok(())).is_some() {
            return;
        }
        state.waiting.push_back((key, source));
        if state.threads < thread::available_parallelism().map_or(1, usize::from) {
            let device = Arc::downgrade(device);
            *BUSY.lock() += 1;
            let spawned = thread::Builder::new().name("compile".into()).spawn(move || {
                lower_priority();
                compile_all(&device);
                *BUSY.lock() -= 1;
                BUSY.ended.notify_all();
            });
            match spawned {
                Ok(_) => state.threads += 1,
                // The CPU does the work; the next request tries again.
                Err(_) => *BUSY.lock() -= 1,
            }
        }
    }
}

/// Compiles programs until none wait or the device is no longer used.
fn compile_all(device: &Weak<Shared>) {
    while let Some(shared) = device.upgrade() {
        let mut state = shared.compiler.lock();
        let next = state.waiting.pop_front().filter(|_| !BUSY.stopped.load(Ordering::Relaxed));
        let Some((key, source)) = next else {
            state.threads -= 1;
            return;
        };
        drop(state);
        let gpu = Gpu { shared, patience: Patience::Waits };
        let compiled = gpu.check_cancel().and_then(|()| Program::compiled(&gpu, &source));
        match compiled {
            Ok(program) => {
                gpu.programs().entry(key.clone()).or_insert(program);
                gpu.shared.compiler.lock().known.remove(&key);
            }
            // A new request compiles it.
            Err(Error::Cancelled) => drop(gpu.shared.compiler.lock().known.remove(&key)),
            Err(error) => drop(gpu.shared.compiler.lock().known.insert(key, Err(error))),
        }
    }
}

/// Against a thread of normal priority on the same core, one of this `nice` value gets 1.25 to the power of −`nice` of
/// its time.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Lowers the priority of this thread. Other systems than Linux would lower that of the process, so it stays there.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // An error only leaves the priority as it is.
    let _ = rustix::process::nice(NICE);
}
