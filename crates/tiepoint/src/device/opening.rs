//! A GPU that is opened on another thread while the work runs.
//!
//! A driver takes a third of a second to start on a machine with one H200, in which a CPU of 16 cores matches two
//! photographs. So the CPU begins, and another thread opens the GPU: at once if [much work](Opening::hurry) is known to
//! come, otherwise not before the work has taken [`PAYS`]. A process may end before that thread does, but the system
//! finishes a call of the driver that is in progress: 0.07 s on that machine, too long an addition to short work.
//!
//! A single piece of work that is under way when the GPU opens would gain nothing from it. So the GPU then starts the
//! same piece from the beginning, and the faster device gives the result, which is the same: [`Opening::race`].

use super::cpu::Driver;
use super::gpu::{Gpu, lower_priority};
use super::{Cancel, Cpu};
use crate::{Error, Result};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tiepoint_gpu::{Background, lock};

/// A processor's GPU is opened when the processor has existed for this long, or as soon as something wants the GPU. At
/// the end of a process the system may wait for the driver, for a tenth of this.
const PAYS: Duration = Duration::from_millis(700);

/// The cores of this machine.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A GPU that is being opened or has been.
#[derive(Debug)]
pub(super) struct Opening {
    /// The device's name, as the user gives it.
    device: String,
    gpu: OnceLock<Option<Gpu>>,
    state: Mutex<State>,
    changed: Condvar,
    driver: Arc<Driver>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether something waits for the GPU, or much work is expected.
    is_wanted: bool,
    /// Called before anything else gets the GPU.
    prepare: Vec<Told>,
    /// Called when it is known whether there is a GPU.
    told: Vec<Told>,
}

/// Is called with the GPU, or with `None` where there is none.
type Call = dyn FnOnce(Option<&Gpu>) + Send;

struct Told(Box<Call>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Opening {
    /// Calls `open` on another thread. `open` returns `None` if no GPU can be used, after it has recorded why.
    pub(super) fn begin(
        device: String,
        driver: Arc<Driver>,
        open: impl FnOnce() -> Option<Gpu> + Send + 'static,
    ) -> Arc<Self> {
        let (gpu, state) = (OnceLock::new(), Mutex::default());
        let opening = Arc::new(Self { device, gpu, state, changed: Condvar::new(), driver });
        let mine = opening.clone();
        let spawned = thread::Builder::new().name("open".into()).spawn(move || mine.run(open));
        if spawned.is_err() {
            opening.settle(None);
        }
        opening
    }

    fn run(self: Arc<Self>, open: impl FnOnce() -> Option<Gpu>) {
        if cores() < Driver::MANY_CORES {
            lower_priority();
        }
        let pays = Instant::now() + PAYS;
        let mut state = lock(&self.state);
        while !state.is_wanted
            && let Some(left) = pays.checked_duration_since(Instant::now())
        {
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // No GPU is opened if every processor that could use it is gone, or if the process is about to end.
        let busy = Background::begin_opening().filter(|_| Arc::strong_count(&self) > 1);
        self.driver.starts.store(busy.is_some(), Ordering::Relaxed);
        // The panic hook has already reported a panic.
        let gpu = busy.as_ref().and_then(|_| catch_unwind(AssertUnwindSafe(open)).ok().flatten());
        self.settle(gpu);
        // This may be the last reference; the GPU must then be closed before the thread counts as ended.
        drop(self);
        drop(busy);
    }

    fn settle(&self, gpu: Option<Gpu>) {
        self.driver.starts.store(false, Ordering::Relaxed);
        let mut state = lock(&self.state);
        state.prepare.drain(..).for_each(|Told(prepare)| prepare(gpu.as_ref()));
        let told = std::mem::take(&mut state.told);
        // It is set here alone, once.
        let _ = self.gpu.set(gpu);
        self.changed.notify_all();
        // What is called may use the processor, so nothing is locked now. The panic hook reports a panic.
        drop(state);
        for Told(told) in told {
            let _ = catch_unwind(AssertUnwindSafe(|| told(self.gpu.get().and_then(Option::as_ref))));
        }
    }

    /// The GPU, or `None` where there is none that can be used; [`Error::NotReady`] while it is being opened.
    pub(super) fn now(&self) -> Result<Option<&Gpu>> {
        let not_ready = || Error::NotReady { device: self.device.clone() };
        self.gpu.get().map(Option::as_ref).ok_or_else(not_ready)
    }

    /// Makes the other thread open the GPU at once.
    pub(super) fn hurry(&self) {
        lock(&self.state).is_wanted = true;
        self.changed.notify_all();
    }

    /// Has the GPU opened at once and waits for it; then as [`now`](Self::now).
    pub(super) fn wait(&self) -> Option<&Gpu> {
        self.hurry();
        self.wait_unless(&AtomicBool::new(false))
    }

    /// Waits for the GPU, or until `over` is set and [`changed`](Self::changed) is notified.
    fn wait_unless(&self, over: &AtomicBool) -> Option<&Gpu> {
        let mut state = lock(&self.state);
        loop {
            match self.gpu.get() {
                Some(gpu) => return gpu.as_ref(),
                None if over.load(Ordering::Relaxed) => return None,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Calls `prepare` with the GPU, or with `None` where there is none, before anything else gets it; at once if it has been
    /// opened. The state is locked meanwhile.
    pub(super) fn prepare(&self, prepare: impl FnOnce(Option<&Gpu>) + Send + 'static) {
        let mut state = lock(&self.state);
        match self.gpu.get() {
            Some(gpu) => prepare(gpu.as_ref()),
            None => state.prepare.push(Told(Box::new(prepare))),
        }
    }

    /// Calls `told` with the GPU, or with `None` where there is none: at once if that is known, otherwise when it is. It may
    /// use this opening.
    pub(super) fn when_open(&self, told: impl FnOnce(Option<&Gpu>) + Send + 'static) {
        let mut state = lock(&self.state);
        match self.gpu.get() {
            Some(gpu) => {
                drop(state);
                told(gpu.as_ref());
            }
            None => state.told.push(Told(Box::new(told))),
        }
    }

    /// Does a piece of work on the CPU and, as soon as the GPU is open, on the GPU, too. Returns the first result and
    /// which device gave it. After an error of the GPU the CPU's result is returned together with that error.
    pub(super) fn race<R: Send>(
        &self,
        cpu: &Cpu,
        on_gpu: impl FnOnce(&Gpu) -> Result<R> + Send,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> (Result<R>, Winner) {
        let Some(lost) = cpu.inner_cancel() else { return (on_cpu(cpu), Winner::Cpu(None)) };
        let (mut on_gpu, mut on_cpu) = (Some(on_gpu), Some(on_cpu));
        let (mut there, mut here) = (None, None);
        let winner = self.run_both(
            &cpu.clone().cancelled_by(&lost),
            &lost,
            &mut |gpu| {
                there = on_gpu.take().map(|work| work(gpu)).transpose()?;
                Ok(())
            },
            &mut |cpu| {
                here = on_cpu.take().map(|work| work(cpu));
                matches!(here, Some(Err(Error::Cancelled)))
            },
        );
        let found = if matches!(winner, Winner::Gpu) { there.map(Ok) } else { here };
        (found.unwrap_or_else(|| unreachable!("the winner has kept its result")), winner)
    }

    /// [`race`](Self::race) for work that keeps its results and, on the CPU, tells whether it was cancelled; compiled once.
    fn run_both(
        &self,
        cpu: &Cpu,
        lost: &Cancel,
        on_gpu: &mut (dyn FnMut(&Gpu) -> Result<()> + Send),
        on_cpu: &mut dyn FnMut(&Cpu) -> bool,
    ) -> Winner {
        let over = &AtomicBool::new(false);
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                let gpu = self.wait_unless(over).filter(|_| !over.load(Ordering::Relaxed))?;
                let found = on_gpu(gpu);
                if found.is_ok() {
                    lost.cancel();
                }
                Some(found)
            });
            let is_cancelled = catch_unwind(AssertUnwindSafe(|| on_cpu(cpu)));
            over.store(true, Ordering::Relaxed);
            // Under the lock, so that the other thread is either waiting or sees the flag.
            drop(lock(&self.state));
            self.changed.notify_all();
            let there = there.join().unwrap_or_else(|panic| resume_unwind(panic));
            match (is_cancelled.unwrap_or_else(|panic| resume_unwind(panic)), there) {
                (true, Some(Ok(()))) => Winner::Gpu,
                (_, Some(Err(error))) => Winner::Cpu(Some(error)),
                _ => Winner::Cpu(None),
            }
        })
    }
}

/// Which device gave the result, and the GPU's error if the CPU did.
pub(super) enum Winner {
    Cpu(Option<Error>),
    Gpu,
}
