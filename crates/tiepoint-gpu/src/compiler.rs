//! Programs that are compiled beside other work, by threads of their own.
//!
//! The work must hardly notice them: they are a quarter as many as there are cores and have a low priority (on Linux,
//! where threads have one), so that all together get about a twelfth of a machine whose cores are all busy, and more as
//! soon as one is idle.
//!
//! A process may end while they compile. What is compiled by then is kept on disk, and the next process goes on from
//! there. The compilers' libraries do not survive the end of the process below them, so that it either leaves without
//! running what these libraries have registered for it ([`compilers_are_busy`]) or [stops](stop_compilers) the threads.

use crate::program::Program;
use crate::{Error, Gpu, KernelSource, Shared};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// Whether a device waits for the compiler.
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

/// The programs of a device that are or were to be compiled beside its work.
#[derive(Debug, Default)]
pub(crate) struct Compiler(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<(String, KernelSource)>,
    /// What is known of each program that was asked for and is not in the device's list: `Ok` while it waits or is
    /// compiled.
    known: HashMap<String, Result<(), Error>>,
    threads: usize,
}

/// The threads of this process that compile.
struct Busy {
    count: Mutex<usize>,
    ended: Condvar,
    stopped: AtomicBool,
}

static BUSY: Busy = Busy { count: Mutex::new(0), ended: Condvar::new(), stopped: AtomicBool::new(false) };

/// Whether a thread of this process compiles programs beside other work.
pub fn compilers_are_busy() -> bool {
    *BUSY.lock() > 0
}

/// Waits for the programs that are just being compiled beside other work, and compiles no more in this process: for its
/// end.
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

    /// `None` if the program was not asked for; otherwise why it does not compile, or `Ok` while that is not known.
    pub(crate) fn state_of(&self, key: &str) -> Option<Result<(), Error>> {
        self.lock().known.get(key).cloned()
    }

    /// Takes a program to be compiled.
    pub(crate) fn add(&self, device: &Arc<Shared>, key: String, source: KernelSource) {
        let mut state = self.lock();
        if BUSY.stopped.load(Ordering::Relaxed) || state.known.insert(key.clone(), Ok(())).is_some() {
            return;
        }
        state.waiting.push_back((key, source));
        let (most, nice) = share(thread::available_parallelism().map_or(1, usize::from));
        if state.threads < most {
            let device = Arc::downgrade(device);
            *BUSY.lock() += 1;
            let spawned = thread::Builder::new().name("compile".into()).spawn(move || {
                lower_priority(nice);
                compile_all(device);
                *BUSY.lock() -= 1;
                BUSY.ended.notify_all();
            });
            match spawned {
                Ok(_) => state.threads += 1,
                // The CPU goes on; the next program that is asked for tries again.
                Err(_) => *BUSY.lock() -= 1,
            }
        }
    }
}

/// Compiles programs until none wait or the device is no longer used.
fn compile_all(device: Weak<Shared>) {
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
            // Asked for again, it is compiled then.
            Err(Error::Cancelled) => drop(gpu.shared.compiler.lock().known.remove(&key)),
            Err(error) => drop(gpu.shared.compiler.lock().known.insert(key, Err(error))),
        }
    }
}

/// How many threads compile on a machine with this many cores, and how much lower their priority is than that of other
/// threads: of a core for which a thread of each competes, they get 1.25 to the power of −`nice`.
fn share(cores: usize) -> (usize, i32) {
    let nice = match cores {
        1 => 11,
        2..4 => 8,
        _ => 5,
    };
    (cores.div_ceil(4), nice)
}

/// Lowers the priority of this thread. Elsewhere than on Linux it would be that of the process, which stays.
fn lower_priority(nice: i32) {
    #[cfg(target_os = "linux")]
    // At another priority the results are the same.
    let _ = rustix::process::setpriority_process(None, nice);
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}
