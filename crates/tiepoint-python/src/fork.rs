//! What a process made before it was forked.
//!
//! Neither the threads of a pool nor CUDA survive in a child process. A device remembers the process in which
//! it was opened: in a child the CPU is opened anew, and the use of a GPU is an error that says so.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tiepoint::device::gpu;

/// The process that opened a GPU first; 0 if none has.
pub(crate) static GPU_PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether this process was forked from one that had opened a GPU.
pub(crate) fn is_forked() -> bool {
    let opener = GPU_PROCESS.load(Ordering::Relaxed);
    opener != 0 && opener != std::process::id()
}

/// How many threads are opening a device, or reading or making a value of the process ([`OfProcess`]). The child of a fork has none of
/// these threads, and would wait for them for ever; so a fork waits until there are none, and holds the lock until it ends.
static MAKING: Mutex<usize> = Mutex::new(0);
static MADE: Condvar = Condvar::new();

thread_local! {
    static FORKING: RefCell<Option<MutexGuard<'static, usize>>> = const { RefCell::new(None) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts this thread in [`MAKING`] while it lives.
pub(crate) struct Making;

impl Making {
    pub(crate) fn begin() -> Self {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            *MAKING.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Self
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if DEPTH.replace(DEPTH.get() - 1) == 1 {
            *MAKING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            MADE.notify_all();
        }
    }
}

/// Before a fork: waits for a device that is being opened, because the child could not go on with it.
#[pyfunction]
pub(crate) fn pause_opening(py: Python<'_>) {
    py.detach(|| {
        let making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let none = MADE.wait_while(making, |making| *making > 0).unwrap_or_else(PoisonError::into_inner);
        FORKING.set(Some(none));
        gpu::pause_opening();
    });
}

/// After a fork.
#[pyfunction]
pub(crate) fn resume_opening(in_child: bool) {
    gpu::resume_opening(in_child);
    FORKING.set(None);
}

/// A value that is made once in a process. After a fork it is made anew, and the old one is never dropped, because
/// its threads and memory belong to the other process.
pub(crate) struct OfProcess<T>(Mutex<Option<(u32, Arc<T>)>>);

impl<T> Default for OfProcess<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> OfProcess<T> {
    /// The value, made if necessary. It must not be called while the interpreter's lock is held.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> tiepoint::Result<T>) -> tiepoint::Result<Arc<T>> {
        let _making = Making::begin();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*held {
            Some((of, made)) if *of == process => return Ok(made.clone()),
            Some(_) => std::mem::forget(held.take()),
            None => {}
        }
        let made = Arc::new(make()?);
        *held = Some((process, made.clone()));
        Ok(made)
    }

    /// Whether it was made; false while it is being made.
    pub(crate) fn is_made(&self) -> bool {
        self.0.try_lock().is_ok_and(|held| held.is_some())
    }
}

/// A value that is dropped without the interpreter's lock, because dropping it may wait for a GPU, whose work may wait
/// for another thread that needs the lock.
pub(crate) struct Detached<T: Send>(ManuallyDrop<T>);

impl<T: Send> Detached<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Detached<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Detached<T> {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the value is dropped elsewhere")]
        // SAFETY: taken once, and not used afterwards.
        let mut value = Some(unsafe { ManuallyDrop::take(&mut self.0) });
        // If the interpreter has ended, there is no lock.
        let _ = Python::try_attach(|py| py.detach(|| drop(value.take())));
    }
}

/// The error of a device that was opened before a fork.
pub(crate) fn forked(device: &str) -> tiepoint::Error {
    tiepoint::Error::Device {
        device: device.to_owned(),
        reason: "this process was forked after a GPU was opened, and no driver survives that: start processes with \
                 multiprocessing.get_context(\"spawn\"), or use device=\"cpu\" in the child"
            .into(),
    }
}
