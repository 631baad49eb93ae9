//! Devices, and how every call runs on one: without the interpreter's lock, and interruptible by Ctrl-C (`call.rs`).

use crate::call::{listener, looking, on_main_thread, told_of, without_result};
use crate::errors::{raised, wrong_option};
use crate::fork::{GPU_PROCESS, Making, forked, is_forked};
use crate::options::bytes;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tiepoint::device::gpu::{self, Api, Devices};
use tiepoint::device::{Cancel, Cpu, Processor};

/// Whether `auto` is known to mean the CPU, which a forked process may use.
static AUTO_IS_CPU: AtomicBool = AtomicBool::new(false);

/// Work on fewer pixels, or pairs of descriptors of 32 values, takes less time than handing it to other threads.
const SMALL: usize = 128 * 128;

/// Waits for a GPU that is being opened and kernels that are being compiled in the background: at the interpreter's end,
/// where drivers and compilers that still run would crash.
#[pyfunction]
pub(crate) fn finish_background(py: Python<'_>) {
    py.detach(gpu::finish_background);
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
