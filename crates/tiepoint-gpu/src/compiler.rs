//! Compiles programs in the background.
//!
//! So that other work is hardly slowed, there is one compiling thread for each core, of low priority (on Linux, where
//! threads have one): together they get about a tenth of a machine whose cores are all busy, and every core that is idle.
//! Finished programs are kept on disk for the next process.

use crate::background::{self, Background};
use crate::program::Program;
use crate::{Error, Gpu, KernelSource, Shared};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
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

impl Compiler {
    fn lock(&self) -> MutexGuard<'_, State> {
        crate::lock(&self.0)
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.lock().threads > 0
    }

    /// `None` if the program was not requested; an error if it does not compile; `Ok` until that is decided.
    pub(crate) fn state_of(&self, key: &str) -> Option<Result<(), Error>> {
        self.lock().known.get(key).cloned()
    }

    /// Adds a program to the queue, and a thread if there are too few.
    pub(crate) fn add(&self, device: &Arc<Shared>, key: String, source: KernelSource) {
        let mut state = self.lock();
        if background::is_stopped() || state.known.insert(key.clone(), Ok(())).is_some() {
            return;
        }
        state.waiting.push_back((key, source));
        if state.threads < thread::available_parallelism().map_or(1, usize::from) {
            let device = Arc::downgrade(device);
            let spawned = thread::Builder::new().name("compile".into()).spawn(move || {
                background::lower_priority();
                if let Some(_busy) = Background::begin() {
                    compile_all(&device);
                }
            });
            // If no thread can be started, the CPU does the work; the next program that is added tries again.
            state.threads += usize::from(spawned.is_ok());
        }
    }
}

/// Compiles programs until none wait or the device is no longer used.
fn compile_all(device: &Weak<Shared>) {
    while let Some(shared) = device.upgrade() {
        let mut state = shared.compiler.lock();
        let next = state.waiting.pop_front().filter(|_| !background::is_stopped());
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
            // The next request compiles it again.
            Err(Error::Cancelled) => drop(gpu.shared.compiler.lock().known.remove(&key)),
            Err(error) => drop(gpu.shared.compiler.lock().known.insert(key, Err(error))),
        }
    }
}
