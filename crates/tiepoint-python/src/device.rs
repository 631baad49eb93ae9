//! Devices, and how every call runs on one: without the interpreter's lock, and interruptible by Ctrl-C.
//!
//! **Ctrl-C.** Python handles signals only on its main thread. A call from there waits and checks for signals while
//! another thread computes. A signal cancels the work; when it has ended, the call raises the exception of the signal's
//! handler. Work of other threads on the same device may be cancelled with it; it starts again, with the same result.
//! Work that only reads and cannot be cancelled, such as reading a file, is left to finish in the background.
//!
//! **Locks.** No lock of Rust's is waited for while the interpreter's lock is held, because the thread that holds the
//! former may need the latter.
//!
//! **Fork.** Neither the threads of a pool nor CUDA survive in a child process. A device remembers the process in which
//! it was opened: in a child the CPU is opened anew, and the use of a GPU is an error that says so.

use crate::errors::{raised, wrong_option};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tiepoint::device::gpu::{self, Api, Devices};
use tiepoint::device::{Cancel, Cpu, Processor, Progress};
use tiepoint::options;

/// The interval at which a call checks for signals.
const LOOK: Duration = Duration::from_millis(20);
/// How long an interrupted call waits for what it has cancelled.
const PATIENCE: Duration = Duration::from_millis(100);

/// The process that opened a GPU first; 0 if none has.
static GPU_PROCESS: AtomicU32 = AtomicU32::new(0);

/// Whether `auto` is known to mean the CPU, which a forked process may use.
static AUTO_IS_CPU: AtomicBool = AtomicBool::new(false);

/// Work on fewer pixels, or pairs of descriptors of 32 values, takes less time than handing it to other threads.
const SMALL: usize = 128 * 128;

/// Whether this process was forked from one that had opened a GPU.
fn is_forked() -> bool {
    let opener = GPU_PROCESS.load(Ordering::Relaxed);
    opener != 0 && opener != std::process::id()
}

/// Waits for a GPU that is being opened and kernels that are being compiled in the background: at the interpreter's end,
/// where drivers and compilers that still run would crash.
#[pyfunction]
pub(crate) fn finish_background(py: Python<'_>) {
    py.detach(gpu::finish_background);
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
struct Making;

impl Making {
    fn begin() -> Self {
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

/// A Python function that progress is reported to, and the progress to report next.
type Told = (Py<PyAny>, Arc<Mutex<Option<Progress>>>);

thread_local! {
    static WATCH: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// From now on calls of this thread report their progress to `told`: task, steps done, steps in all, photographs left
/// out. Returns the function that they reported to before.
#[pyfunction]
pub(crate) fn watch(told: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    WATCH.replace(told)
}

/// Where to compute.
///
/// Parameters
/// ----------
/// name : str
///     ``"auto"`` (a GPU if there is one, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"opencl"`` or
///     ``"opencl:1"``. A call waits until the GPU is open and, in the first use on a machine, its kernels are compiled;
///     with ``"auto"`` and with ``"cpu+cuda"``, ``"cpu+opencl:1"`` and the like the CPU works meanwhile.
/// threads : int, optional
///     CPU threads, 1 to 1024; one for every core if not given. Results do not depend on it.
/// memory : int or str, optional
///     Bytes that `Stereo` may use on this device if its options give no limit: ``"2GiB"``, ``"300M"`` or a number.
///
/// Raises
/// ------
/// DeviceError
///     When the requested GPU does not exist. With ``"cpu+cuda:1"`` and the like only a missing driver is an error: if
///     the driver has no such GPU, the CPU computes, and `take_notes` says so.
#[pyclass(frozen, module = "tiepoint")]
pub(crate) struct Device {
    device: tiepoint::device::Device,
    threads: usize,
    memory: Option<u64>,
    opened: Mutex<Option<Opened>>,
    cancel: Cancel,
}

struct Opened {
    process: u32,
    processor: Processor,
    /// Only the calling thread.
    alone: Processor,
}

#[pymethods]
impl Device {
    #[new]
    #[pyo3(signature = (name = "auto", *, threads = None, memory = None))]
    fn new(
        py: Python<'_>,
        name: &str,
        threads: Option<i64>,
        memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let device: tiepoint::device::Device = name.parse().map_err(raised)?;
        let cores = || std::thread::available_parallelism().map_or(1, usize::from).min(1024);
        let given =
            threads.map(|given| usize::try_from(given).ok().filter(|n| (1..=1024).contains(n)).ok_or(given));
        let threads = given
            .unwrap_or_else(|| Ok(cores()))
            .map_err(|given| wrong_option(&format!("option threads is {given}: expected 1 to 1024")))?;
        let memory = memory.map(|given| bytes("memory", given)).transpose()?;
        let made = Self { device, threads, memory, opened: Mutex::default(), cancel: Cancel::new() };
        // A named GPU must exist; other devices are opened by the first call.
        if !matches!(device, tiepoint::device::Device::Auto | tiepoint::device::Device::Cpu) {
            py.detach(|| made.processor()).map_err(raised)?;
        }
        Ok(made)
    }

    /// The requested device: ``"auto"``, ``"cpu"``, ``"cuda:0"``, …
    #[getter]
    fn name(&self) -> String {
        self.device.to_string()
    }

    /// The device that computes: ``"cpu"``, ``"cuda:0"``, … ``"auto"`` is decided by the first call, or by reading
    /// this.
    #[getter]
    fn resolved(&self, py: Python<'_>) -> PyResult<String> {
        let processor = self.settled(py)?;
        Ok(processor.gpu().map_or("cpu".into(), crate::features::name_of))
    }

    /// CPU threads.
    #[getter]
    fn threads(&self) -> usize {
        self.threads
    }

    /// The limit of memory in bytes, if one was given.
    #[getter]
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Notes since the last call of this: devices that could not be used, and work that the CPU did instead of the GPU.
    fn take_notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let processor = self.opened(py)?;
        Ok([processor.take_passed_over(), processor.take_notes()].concat())
    }

    /// Returns GPU memory that is kept for the next call to the driver, for other programs such as PyTorch. By itself a
    /// device does so after half a minute without work.
    fn release_memory(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let opened = opened.as_ref().filter(|o| o.process == std::process::id());
            let gpu = opened.and_then(|o| o.processor.gpu_now().ok().flatten().cloned());
            gpu.map_or(Ok(()), |gpu| gpu.release_memory())
        })
        .map_err(raised)
    }

    fn __repr__(&self) -> String {
        let memory = self.memory.map_or(String::new(), |m| format!(", memory={m}"));
        format!("Device({:?}, threads={}{memory})", self.device.to_string(), self.threads)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        let same = |o: &Self| (o.device, o.threads, o.memory) == (self.device, self.threads, self.memory);
        other.cast::<Self>().is_ok_and(|other| same(other.get()))
    }

    fn __hash__(&self) -> usize {
        self.threads
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((String,), Bound<'py, PyDict>)> {
        let named = dict!(py, { "threads": self.threads, "memory": self.memory });
        Ok(((self.device.to_string(),), named))
    }
}

impl Device {
    pub(crate) fn processor(&self) -> tiepoint::Result<Processor> {
        let _making = Making::begin();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*opened {
            Some(o) if o.process == process => return Ok(o.processor.clone()),
            Some(o) if matches!(o.processor.gpu_now(), Ok(Some(_))) => {
                return Err(forked(&self.device.to_string()));
            }
            // The pool's threads belong to another process; this one cannot end them.
            Some(_) => std::mem::forget(opened.take()),
            None => {}
        }
        let (auto, cpu) = (tiepoint::device::Device::Auto, tiepoint::device::Device::Cpu);
        let is_forked = is_forked();
        let device = match self.device == auto && is_forked && AUTO_IS_CPU.load(Ordering::Relaxed) {
            true => cpu,
            false => self.device,
        };
        if device != cpu && is_forked {
            return Err(forked(&self.device.to_string()));
        }
        let processor = device.open(self.threads)?.cancelled_by(&self.cancel);
        processor.when_open(move |has_gpu| {
            if has_gpu {
                GPU_PROCESS.store(process, Ordering::Relaxed);
            }
            if device == auto {
                AUTO_IS_CPU.store(!has_gpu, Ordering::Relaxed);
            }
        });
        let alone = processor.clone().without_gpu().with_cpu(Cpu::sequential().cancelled_by(&self.cancel));
        Ok(opened.insert(Opened { process, processor, alone }).processor.clone())
    }

    /// The processor, opened if need be, without the interpreter's lock.
    pub(crate) fn opened(&self, py: Python<'_>) -> PyResult<Processor> {
        py.detach(|| self.processor()).map_err(raised)
    }

    /// The processor when it is known which GPU it has.
    pub(crate) fn settled(&self, py: Python<'_>) -> PyResult<Processor> {
        let settled = || -> tiepoint::Result<Processor> {
            let processor = self.processor()?;
            processor.gpu();
            Ok(processor)
        };
        py.detach(settled).map_err(raised)
    }

    /// Runs `work` as [`run`](Self::run) does, but on the calling thread and without checking for signals: for work
    /// that takes a GPU a millisecond or two, which starting another thread would double.
    pub(crate) fn run_here<R: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
    ) -> PyResult<R> {
        self.run_on(py, false, Self::processor, work)
    }

    /// Runs `work` without the interpreter's lock, interruptible by Ctrl-C. It may run more than once.
    pub(crate) fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
    ) -> PyResult<R> {
        self.run_on(py, on_main_thread(py)?, Self::processor, work)
    }

    /// As [`run`](Self::run), but work so small that other threads would not help is done by the calling thread alone.
    pub(crate) fn run_sized<R: Send>(
        &self,
        py: Python<'_>,
        pixels: usize,
        work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
    ) -> PyResult<R> {
        match pixels < SMALL {
            true => self.run_on(py, false, Self::alone, work),
            false => self.run(py, work),
        }
    }

    /// Runs `work` once, without the interpreter's lock, interruptible by Ctrl-C.
    pub(crate) fn run_once<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> tiepoint::Result<R> + Send,
    ) -> PyResult<R> {
        let looks = on_main_thread(py)?;
        py.detach(|| if looks { looking(&self.cancel, None, work) } else { Ok(work()) })?.map_err(raised)
    }

    /// The processor; if no GPU of it is open, only the calling thread.
    fn alone(&self) -> tiepoint::Result<Processor> {
        let whole = self.processor()?;
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let alone =
            opened.as_ref().filter(|_| !matches!(whole.gpu_now(), Ok(Some(_)))).map(|o| o.alone.clone());
        Ok(alone.unwrap_or(whole))
    }

    fn run_on<R: Send>(
        &self,
        py: Python<'_>,
        looks: bool,
        chosen: fn(&Self) -> tiepoint::Result<Processor>,
        work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
    ) -> PyResult<R> {
        let mut found = None;
        let mut work = |processor: &Processor| work(processor).map(|result| found = Some(result));
        self.repeated(py, looks, chosen, &mut work)?;
        found.ok_or_else(without_result)
    }

    /// Runs `work`, which keeps its result, and repeats it as long as another call cancels it.
    fn repeated(
        &self,
        py: Python<'_>,
        looks: bool,
        chosen: fn(&Self) -> tiepoint::Result<Processor>,
        work: &mut (dyn FnMut(&Processor) -> tiepoint::Result<()> + Send),
    ) -> PyResult<()> {
        let told = listener(py);
        let mut work = || {
            let mut processor = chosen(self)?;
            processor.cpu = told_of(processor.cpu, told.as_ref());
            work(&processor)
        };
        let looks = looks || told.is_some();
        loop {
            let found = py.detach(|| match looks {
                true => looking(&self.cancel, told.as_ref(), &mut work),
                false => Ok(work()),
            })?;
            let Err(tiepoint::Error::Cancelled) = found else { return found.map_err(raised) };
            // A call of the main thread was interrupted; this one starts again.
            py.detach(|| {
                while self.cancel.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
    }
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
fn listener(py: Python<'_>) -> Option<Told> {
    WATCH.with_borrow(|told| told.as_ref().map(|told| (told.clone_ref(py), Arc::default())))
}

/// The same CPU; its work stores its latest progress for the listener.
fn told_of(cpu: Cpu, told: Option<&Told>) -> Cpu {
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

fn without_result() -> PyErr {
    PyRuntimeError::new_err("the work has ended without a result")
}

/// Runs `work` on another thread, and meanwhile checks for signals and reports progress. An exception of a signal or of
/// the progress function cancels the work, and is raised when the work has ended.
fn looking<R: Send>(cancel: &Cancel, told: Option<&Told>, work: impl FnOnce() -> R + Send) -> PyResult<R> {
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

/// The error of a device that was opened before a fork.
pub(crate) fn forked(device: &str) -> tiepoint::Error {
    tiepoint::Error::Device {
        device: device.to_owned(),
        reason: "this process was forked after a GPU was opened, and no driver survives that: start processes with \
                 multiprocessing.get_context(\"spawn\"), or use device=\"cpu\" in the child"
            .into(),
    }
}

/// The exception of a signal that has arrived, on the main thread; `None` on others.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
fn pending() -> Option<PyErr> {
    Python::attach(|py| py.check_signals()).err()
}

/// Whether signals arrive on this thread.
fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?.getattr("ident")?;
    main.eq(threading.call_method0("get_ident")?)
}

/// The value of this option in bytes: a number, or text as [`options::bytes`] takes it.
pub(crate) fn bytes(option: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    amount(option, value, options::bytes, options::BYTES)
}

/// The value of this option as a count: a number, or text as [`options::count`] takes it.
pub(crate) fn count(option: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    amount(option, value, options::count, options::COUNT)
}

fn amount(
    option: &str,
    value: &Bound<'_, PyAny>,
    read: fn(&str) -> Option<u64>,
    expected: &str,
) -> PyResult<u64> {
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number);
    }
    let text = value.str()?.to_string();
    read(&text).ok_or_else(|| wrong_option(&format!("option {option} is {text}: expected {expected}")))
}

/// The device that an argument stands for: a device, one by its name, or the default. Devices by name are opened once.
pub(crate) fn device_of(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Device>> {
    static NAMED: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let name = match device {
        None => "auto".to_owned(),
        Some(object) => match object.cast::<Device>() {
            Ok(device) => return Ok(device.clone().unbind()),
            Err(_) => object.extract::<String>().map_err(|_| {
                wrong_option(&format!("option device is {object:?}: expected a Device or the name of one"))
            })?,
        },
    };
    let named = NAMED.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    let known = match named.get_item(&name)? {
        Some(known) => known,
        // If another thread was faster, its device is used.
        None => named.call_method1("setdefault", (&name, Device::new(py, &name, None, None)?))?,
    };
    Ok(known.cast_into::<Device>()?.unbind())
}

pub(crate) fn run_on<R: Send>(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
) -> PyResult<R> {
    device_of(py, device)?.get().run(py, work)
}

/// Runs `work` of this size on the device that an argument names, as [`Device::run_sized`].
pub(crate) fn run_sized_on<R: Send>(
    py: Python<'_>,
    device: Option<&Bound<'_, PyAny>>,
    pixels: usize,
    work: impl Fn(&Processor) -> tiepoint::Result<R> + Sync,
) -> PyResult<R> {
    device_of(py, device)?.get().run_sized(py, pixels, work)
}

/// The devices of this machine: a dictionary for the CPU and each GPU, and one with the reason for each missing driver.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let listed = |api| {
        let listed = gpu::devices(api);
        (api, listed.unwrap_or_else(|missing| Devices { refused: vec![missing], ..Devices::default() }))
    };
    let found = py.detach(|| [Api::Cuda, Api::OpenCl].map(listed));
    if found.iter().flat_map(|(_, listed)| &listed.found).all(|info| info.is_cpu) {
        AUTO_IS_CPU.store(true, Ordering::Relaxed);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = dict!(py, { "device": "cpu", "name": Cpu::sequential().level_name(), "units": cores });
    let list = PyList::new(py, [cpu])?;
    for (api, listed) in found {
        for info in listed.found {
            let device = format!("{}:{}", info.api, info.index);
            list.append(match is_forked() {
                true => dict!(py, { "missing": api.to_string(), "reason": forked(&device).to_string() }),
                false => dict!(py, {
                    "device": device,
                    "name": info.name,
                    "driver": info.driver,
                    "memory": info.memory,
                    "units": info.units,
                }),
            })?;
        }
        for reason in listed.refused {
            list.append(dict!(py, { "missing": api.to_string(), "reason": reason.to_string() }))?;
        }
    }
    Ok(list)
}
