//! Runs work without the interpreter's lock, interruptible by Ctrl-C.
//!
//! Python handles signals only on its main thread. A call from there waits and checks for signals while
//! another thread computes. A signal cancels the work; when it has ended, the call raises the exception of the signal's
//! handler. Work of other threads on the same device may be cancelled with it; it starts again, with the same result.
//! Work that only reads and cannot be cancelled, such as reading a file, is left to finish in the background.
//!
//! **Locks.** No lock of Rust's is waited for while the interpreter's lock is held, because the thread that holds the
//! former may need the latter.

use crate::errors::raised;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tiepoint::device::{Cancel, Cpu, Progress};

/// The interval at which a call checks for signals.
const LOOK: Duration = Duration::from_millis(20);
/// How long an interrupted call waits for what it has cancelled.
const PATIENCE: Duration = Duration::from_millis(100);

/// A Python function that progress is reported to, and the progress to report next.
pub(crate) type Told = (Py<PyAny>, Arc<Mutex<Option<Progress>>>);

thread_local! {
    static WATCH: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// From now on calls of this thread report their progress to `told`: task, steps done, steps in all, photographs left
/// out. Returns the function that they reported to before.
#[pyfunction]
pub(crate) fn watch(told: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    WATCH.replace(told)
}

/// Runs work that needs no device, such as writing a file, interruptible by Ctrl-C.
pub(crate) fn interruptible<R: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Cpu) -> tiepoint::Result<R> + Send,
) -> PyResult<R> {
    let (cancel, told) = (Cancel::new(), listener(py));
    let cpu = told_of(Cpu::sequential().cancelled_by(&cancel), told.as_ref());
    let looks = on_main_thread(py)? || told.is_some();
    py.detach(|| if looks { looking(&cancel, told.as_ref(), || work(&cpu)) } else { Ok(work(&cpu)) })?
        .map_err(raised)
}

/// The function to which this thread's work reports its progress.
pub(crate) fn listener(py: Python<'_>) -> Option<Told> {
    WATCH.with_borrow(|told| told.as_ref().map(|told| (told.clone_ref(py), Arc::default())))
}

/// The same CPU; its work stores its latest progress for the listener.
pub(crate) fn told_of(cpu: Cpu, told: Option<&Told>) -> Cpu {
    let Some((_, latest)) = told else { return cpu };
    let latest = latest.clone();
    cpu.observed(move |progress| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress))
}

/// Runs work that has no side effects and cannot be cancelled, such as reading a file. Ctrl-C ends the call at once,
/// even if a network disk has stopped answering; the work then continues in the background, and its result is dropped.
pub(crate) fn abandonable<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    abandonable_after(py, || (), work)
}

/// Writes a file. Ctrl-C ends the call and what it writes: the file at the path stays as it was. If the disk does not
/// answer, the call ends nevertheless, and the unfinished file is removed later.
pub(crate) fn writing<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    let cancel = Cancel::new();
    let of_work = cancel.clone();
    let work = move || tiepoint::files::cancelled_by(&of_work, work);
    abandonable_after(py, || cancel.cancel(), work)
}

/// Runs `work`. Ctrl-C calls `end` and ends the call when the work has ended, after [`PATIENCE`] at the latest.
fn abandonable_after<R: Send + 'static>(
    py: Python<'_>,
    end: impl Fn() + Sync,
    work: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    if !on_main_thread(py)? {
        return Ok(py.detach(work));
    }
    let found = Arc::new(Mutex::new(None));
    let kept = found.clone();
    let work = move || *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(work());
    py.detach(|| finished(&end, Box::new(work)))?;
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    found.take().ok_or_else(without_result)
}

/// Waits until `work`, which keeps its result, has run on another thread. Not generic, so that it is compiled once.
fn finished(end: &(dyn Fn() + Sync), work: Box<dyn FnOnce() + Send>) -> PyResult<()> {
    let (done, wait) = channel();
    let worker = std::thread::Builder::new().spawn(move || {
        work();
        // The receiver is gone if the call was interrupted.
        let _ = done.send(());
    });
    let worker = worker.map_err(|e| PyRuntimeError::new_err(format!("no thread can be started: {e}")))?;
    loop {
        match wait.recv_timeout(LOOK) {
            Ok(()) => return pending().map_or(Ok(()), Err),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(signal) = pending() {
                    end();
                    let _ = wait.recv_timeout(PATIENCE);
                    return Err(signal);
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    worker.join().map_or_else(|panic| resume_unwind(panic), |()| Err(without_result()))
}

pub(crate) fn without_result() -> PyErr {
    PyRuntimeError::new_err("the work has ended without a result")
}

/// Runs `work` on another thread, and meanwhile checks for signals and reports progress. An exception of a signal or of
/// the progress function cancels the work, and is raised when the work has ended.
pub(crate) fn looking<R: Send>(
    cancel: &Cancel,
    told: Option<&Told>,
    work: impl FnOnce() -> R + Send,
) -> PyResult<R> {
    let (mut work, mut found) = (Some(work), None);
    watched(cancel, told, &mut || found = work.take().map(|work| work()))?;
    found.ok_or_else(without_result)
}

/// [`looking`] for work that keeps its result. Not generic, so that it is compiled only once.
fn watched(cancel: &Cancel, told: Option<&Told>, work: &mut (dyn FnMut() + Send)) -> PyResult<()> {
    std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let worker = scope.spawn(move || {
            // Dropped at the end, also by a panic.
            let _done = done;
            work();
        });
        let mut signal = None;
        while wait.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            signal = signal.or_else(pending).or_else(|| told.and_then(tell));
            if signal.is_some() {
                cancel.cancel();
            }
        }
        let ended = worker.join();
        // Work that a signal has cancelled may have failed before the signal was noticed.
        if let Some(signal) = signal.or_else(pending) {
            cancel.reset();
            return Err(signal);
        }
        if let Some(error) = told.and_then(tell) {
            return Err(error);
        }
        ended.unwrap_or_else(|panic| resume_unwind(panic));
        Ok(())
    })
}

/// Reports new progress, if any, to a Python function; returns the exception that it raises.
fn tell((told, latest): &Told) -> Option<PyErr> {
    let news = latest.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    Python::attach(|py| told.call1(py, (news.task, news.done, news.total, news.left_out))).err()
}

/// The exception of a signal that has arrived, on the main thread; `None` on others.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
fn pending() -> Option<PyErr> {
    Python::attach(|py| py.check_signals()).err()
}

/// Whether signals arrive on this thread.
pub(crate) fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}
