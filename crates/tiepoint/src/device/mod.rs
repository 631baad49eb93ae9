//! The devices that compute: the threads and SIMD level of the CPU, and a [`gpu`]; with the times of stages and the
//! progress of long work.
//!
//! Every call that computes takes a [`Cpu`] or a [`Processor`]. It uses the caller's thread pool; the library never
//! uses rayon's global one. Neither the number of threads nor the SIMD level changes a result.

#[cfg(test)]
mod cancel_tests;
mod cpu;
pub mod gpu;
#[cfg(test)]
mod handing_over_tests;
mod opening;
#[cfg(test)]
mod opening_tests;
mod profile;
pub(crate) mod progress;
mod scratch;
mod simd;

pub use cpu::Cpu;
pub use profile::{Profile, Stage, StageTime};
pub use progress::Progress;
pub(crate) use scratch::Scratch;
pub use simd::SimdLevel;
pub(crate) use simd::{Level, dispatch};
pub use tiepoint_gpu::Cancel;

use crate::{Error, Result};
use cpu::Driver;
use gpu::{Api, Gpu};
use opening::{Opening, Winner};
use std::sync::atomic::{self, AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use tiepoint_gpu::lock;

/// A device as the user names it: `auto`, `cpu`, `cuda[:N]`, `opencl[:N]`, `cpu+cuda[:N]` or `cpu+opencl[:N]`.
///
/// Where a GPU is named alone, a call waits until it is open, and the first use on a machine also for its kernels to be
/// compiled. With `auto` and the last two nothing waits: the CPU begins while the GPU is opened and its kernels are
/// compiled, and the GPU takes over what is left when they are ready. The results are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Device {
    /// The CPU, and the best GPU present as soon as it is open and its kernels are compiled.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The N-th CUDA device.
    Cuda(u32),
    /// The N-th OpenCL device.
    OpenCl(u32),
    /// The CPU, and the N-th device of a driver as soon as it is open and its kernels are compiled.
    CpuAnd(Api, u32),
}

/// The CPU, and a GPU if one was chosen. Stages without a GPU form run on the CPU. Work for which the GPU lacks memory
/// or 64-bit floats runs there too, with the same result and a note about it.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Threads and SIMD level.
    pub cpu: Cpu,
    gpu: Place,
    /// Shared by clones.
    notes: Notes,
    /// Why GPUs that were looked for cannot be used; shared by clones.
    passed_over: Notes,
    /// Whether the CPU and the GPU have computed work that has a GPU form; shared by clones.
    computed: Arc<[AtomicBool; 2]>,
    /// Whether the CPU works while the GPU is being opened and its kernels are being compiled.
    hands_over: bool,
    /// How often the CPU has done work because the GPU was not ready; shared by clones.
    not_ready: Arc<AtomicUsize>,
}

/// The GPU of a processor.
#[derive(Clone, Debug)]
enum Place {
    None,
    Open(Gpu),
    /// Opened by another thread.
    Beside(Arc<Opening>),
}

type Notes = Arc<Mutex<Vec<String>>>;

/// The number of pictures that a CPU can search for features in the time in which a GPU is opened.
const FEW: usize = 4;

fn push_note(notes: &Notes, note: String) {
    let mut notes = lock(notes);
    if !notes.contains(&note) {
        notes.push(note);
    }
}

fn take_notes(notes: &Notes) -> Vec<String> {
    std::mem::take(&mut *lock(notes))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computing {
    Gpu,
    Cpu,
}

impl Processor {
    /// A CPU with a GPU beside it.
    pub fn with_gpu(cpu: Cpu, gpu: Gpu) -> Self {
        Self { gpu: Place::Open(gpu), ..cpu.into() }
    }

    /// A CPU beside a GPU that `open` opens on another thread.
    fn opening(cpu: Cpu, device: String, open: impl FnOnce() -> Option<Gpu> + Send + 'static) -> Self {
        let driver = Arc::new(Driver::beside(cpu.threads(), opening::cores()));
        let opening = Opening::begin(device, driver.clone(), open);
        Self { gpu: Place::Beside(opening), hands_over: true, ..cpu.beside(driver).into() }
    }

    /// The GPU, if there is one. Waits until it is open.
    pub fn gpu(&self) -> Option<&Gpu> {
        match &self.gpu {
            Place::None => None,
            Place::Open(gpu) => Some(gpu),
            Place::Beside(opening) => opening.wait(),
        }
    }

    /// The GPU, if there is one; [`Error::NotReady`] while it is being opened.
    ///
    /// # Errors
    /// [`Error::NotReady`].
    pub fn gpu_now(&self) -> Result<Option<&Gpu>> {
        match &self.gpu {
            Place::None => Ok(None),
            Place::Open(gpu) => Ok(Some(gpu)),
            Place::Beside(opening) => opening.now(),
        }
    }

    /// Whether there is a GPU, or may be one: it is being opened.
    pub fn may_have_gpu(&self) -> bool {
        !matches!(self.gpu_now(), Ok(None))
    }

    /// Whether the GPU is or was opened by another thread while the work runs.
    pub fn opens_beside(&self) -> bool {
        matches!(self.gpu, Place::Beside(_))
    }

    /// Announces many pictures or pairs, for which a GPU saves much time. A GPU that is opened while the work runs is
    /// then opened at once; otherwise only after 0.7 s of work, because opening it takes a third of a second.
    pub fn expect_much_work(&self) {
        if let Place::Beside(opening) = &self.gpu {
            opening.hurry();
        }
    }

    /// [Expects much work](Self::expect_much_work) if a CPU searches fewer than `count` pictures before a GPU is open.
    pub fn expect_pictures(&self, count: usize) {
        if count > FEW {
            self.expect_much_work();
        }
    }

    /// Calls `told` with whether there is a GPU: at once if that is known, otherwise on the thread that opens it. `told` may
    /// use the processor.
    pub fn when_open(&self, told: impl FnOnce(bool) + Send + 'static) {
        match &self.gpu {
            Place::None => told(false),
            Place::Open(_) => told(true),
            Place::Beside(opening) => opening.when_open(|gpu| told(gpu.is_some())),
        }
    }

    /// Calls `prepare` with the GPU, if there is one, before anything else gets it. It must not use the processor.
    fn prepare_gpu(&self, prepare: impl FnOnce(Option<&Gpu>) + Send + 'static) {
        match &self.gpu {
            Place::None => prepare(None),
            Place::Open(gpu) => prepare(Some(gpu)),
            Place::Beside(opening) => opening.prepare(prepare),
        }
    }

    /// The same processor without its GPU.
    #[must_use]
    pub fn without_gpu(self) -> Self {
        Self { gpu: Place::None, ..self }
    }

    /// The same processor with a queue of its own on its GPU.
    pub(crate) fn with_own_queue(self) -> Result<Self> {
        let gpu = self.gpu().map(Gpu::beside).transpose()?.map_or(Place::None, Place::Open);
        Ok(Self { gpu, ..self })
    }

    /// Whether every stage is measured by the GPU's clock from now on.
    pub fn profile_gpu(&self, on: bool) {
        self.prepare_gpu(move |gpu| gpu.into_iter().for_each(|gpu| gpu.profile(on)));
    }

    /// The same processor, whose CPU works while kernels of the GPU are being compiled on a machine that has not compiled
    /// them before. Work that has a CPU form never waits for a compiler; work on images in the GPU's memory does.
    #[must_use]
    pub fn handing_over(self) -> Self {
        Self { hands_over: true, ..self }
    }

    /// Whether the CPU works while the GPU is not ready.
    pub(crate) fn hands_over(&self) -> bool {
        self.hands_over
    }

    /// The GPU, if there is one, for work that the CPU does instead if the GPU is not ready or lacks what it needs.
    ///
    /// # Errors
    /// [`Error::NotReady`] while it is being opened.
    pub(crate) fn joining_gpu(&self) -> Result<Option<Gpu>> {
        Ok(self.gpu_now()?.map(|gpu| self.joining(gpu)))
    }

    fn joining(&self, gpu: &Gpu) -> Gpu {
        if self.hands_over { gpu.handing_over() } else { gpu.clone() }
    }

    /// The same processor with another CPU: other threads, or an observer.
    #[must_use]
    pub fn with_cpu(self, cpu: Cpu) -> Self {
        Self { cpu, ..self }
    }

    /// The same processor, whose work on CPU and GPU ends with [`Error::Cancelled`] at its next safe point once
    /// `cancel` is set. This holds for all processors that share the GPU.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        let token = cancel.clone();
        self.prepare_gpu(move |gpu| gpu.into_iter().for_each(|gpu| gpu.cancelled_by(&token)));
        Self { cpu: self.cpu.cancelled_by(cancel), ..self }
    }

    /// Adds a note for the user: what was skipped, or done by the CPU instead, and why. A note that is there already is
    /// not repeated.
    pub fn note(&self, note: impl Into<String>) {
        push_note(&self.notes, note.into());
    }

    /// The notes added since the last call, oldest first.
    pub fn take_notes(&self) -> Vec<String> {
        take_notes(&self.notes)
    }

    /// Why GPUs that were looked for cannot be used, as far as it is known and was not taken before. Clones share one
    /// record.
    pub fn take_passed_over(&self) -> Vec<String> {
        take_notes(&self.passed_over)
    }

    /// The devices that have computed work with a GPU form since the last call: the GPU by its name, such as `cuda:0`,
    /// and `cpu` if there is no GPU or the CPU did its work. Empty if there was no such work. Clones share one record.
    pub fn take_computed(&self) -> Vec<String> {
        let did = |by: Computing| self.computed[by as usize].swap(false, atomic::Ordering::Relaxed);
        let gpu = self.gpu_now().ok().flatten().filter(|_| did(Computing::Gpu));
        let gpu = gpu.map(|gpu| format!("{}:{}", gpu.info().api, gpu.info().index));
        gpu.into_iter().chain(did(Computing::Cpu).then(|| "cpu".to_owned())).collect()
    }

    /// How many pieces of work the CPU has done since the last call because the GPU was still being opened or its kernels
    /// compiled. Clones share one record.
    pub fn take_not_ready(&self) -> usize {
        self.not_ready.swap(0, atomic::Ordering::Relaxed)
    }

    /// Records that the CPU does work in place of the GPU, and why.
    pub(crate) fn fall_back(&self, task: &str, error: &Error) {
        if matches!(error, Error::NotReady { .. }) {
            return self.fall_back_not_ready();
        }
        self.note(format!("{task} on the CPU: {error}"));
        self.count_computed(Computing::Cpu);
    }

    /// Records that the CPU works while the GPU is being opened or its kernels are being compiled.
    pub(crate) fn fall_back_not_ready(&self) {
        self.not_ready.fetch_add(1, atomic::Ordering::Relaxed);
        self.count_computed(Computing::Cpu);
    }

    pub(crate) fn count_computed(&self, by: Computing) {
        self.computed[by as usize].store(true, atomic::Ordering::Relaxed);
    }

    /// Computes on the GPU, or on the CPU if there is no GPU or if it lacks memory or a feature; in the latter case a
    /// note says which `task` the CPU did and why. Both must give the same bits.
    pub(crate) fn gpu_or_cpu<R: Send>(
        &self,
        task: &str,
        on_gpu: impl FnOnce(&Gpu) -> Result<R> + Send,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        let gpu = match self.joining_gpu() {
            Ok(Some(gpu)) => gpu,
            Ok(None) => {
                self.count_computed(Computing::Cpu);
                return on_cpu(&self.cpu);
            }
            Err(_) => return self.race(task, on_gpu, on_cpu),
        };
        let found = on_gpu(&gpu);
        self.collect_times();
        self.or_on_cpu(task, found, on_cpu)
    }

    /// Whether the GPU is still being opened.
    pub(crate) fn is_opening(&self) -> bool {
        self.gpu_now().is_err()
    }

    /// Computes on the CPU, and on the GPU from the moment when it is open; the first result counts.
    pub(crate) fn race<R: Send>(
        &self,
        task: &str,
        on_gpu: impl FnOnce(&Gpu) -> Result<R> + Send,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        let Place::Beside(opening) = &self.gpu else { return on_cpu(&self.cpu) };
        let (found, winner) = opening.race(&self.cpu, |gpu| on_gpu(&self.joining(gpu)), on_cpu);
        self.collect_times();
        match winner {
            Winner::Gpu => self.count_computed(Computing::Gpu),
            // The GPU's work was cancelled together with the CPU's; that is no failure of the GPU.
            Winner::Cpu(None | Some(Error::Cancelled)) => self.fall_back_not_ready(),
            Winner::Cpu(Some(error)) => self.fall_back(task, &error),
        }
        found
    }

    /// The GPU's result, or the CPU's if the GPU lacks memory or a feature.
    pub(crate) fn or_on_cpu<R>(
        &self,
        task: &str,
        found: Result<R>,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        match found {
            Err(error) if error.is_device_limit() => {
                self.fall_back(task, &error);
                on_cpu(&self.cpu)
            }
            other => {
                self.count_computed(Computing::Gpu);
                other
            }
        }
    }

    /// Adds the stage times of a profiled GPU, measured by its own clock, to the profile of the CPU.
    pub(crate) fn collect_times(&self) {
        if let (Ok(Some(gpu)), Some(profile)) = (self.gpu_now(), self.cpu.profile()) {
            profile.extend(&gpu.take_stages());
        }
    }
}

impl From<Cpu> for Processor {
    fn from(cpu: Cpu) -> Self {
        let (notes, passed_over, computed, not_ready) = Default::default();
        Self { cpu, gpu: Place::None, notes, passed_over, computed, hands_over: false, not_ready }
    }
}

impl Device {
    /// Opens the device, with `threads` CPU threads. `Auto` is the first GPU of CUDA, or else of OpenCL, or else the
    /// CPU. OpenCL on the CPU is chosen only by its number.
    ///
    /// With [`Auto`](Self::Auto) and [`CpuAnd`](Self::CpuAnd) the GPU is opened by another thread, and only if the
    /// processor is used for longer than a fraction of a second. If the GPU of `CpuAnd` then cannot be opened, the CPU
    /// does all of the work, and a [note](Processor::take_notes) says why.
    ///
    /// # Errors
    /// [`Error::Device`] when a GPU that was asked for alone does not exist or cannot be used, or the driver of one is
    /// missing, and as [`Cpu::with_threads`].
    pub fn open(self, threads: usize) -> Result<Processor> {
        let cpu = Cpu::with_threads(threads)?;
        let unavailable =
            move |e: tiepoint_gpu::Error| Error::Device { device: self.to_string(), reason: e.to_string() };
        let alone = |api, index| Gpu::open(api, index).map_err(unavailable);
        match self {
            Self::Cpu => Ok(cpu.into()),
            Self::Cuda(index) => Ok(Processor::with_gpu(cpu, alone(Api::Cuda, index)?)),
            Self::OpenCl(index) => Ok(Processor::with_gpu(cpu, alone(Api::OpenCl, index)?)),
            Self::CpuAnd(api, index) => {
                gpu::has_driver(api).map_err(unavailable)?;
                let notes = Notes::default();
                let told = notes.clone();
                let refused = move |error| {
                    push_note(&told, format!("{}; the CPU does all of the work", unavailable(error)));
                };
                let open = move || Gpu::open(api, index).map_err(refused).ok();
                Ok(Processor { notes, ..Processor::opening(cpu, format!("{api}:{index}"), open) })
            }
            Self::Auto => {
                let passed_over = Notes::default();
                let there = |api: &Api| {
                    let missing = gpu::has_driver(*api).map_err(|e| push_note(&passed_over, e.to_string()));
                    missing.is_ok()
                };
                let apis: Vec<Api> = [Api::Cuda, Api::OpenCl].into_iter().filter(there).collect();
                let told = passed_over.clone();
                let processor = match apis.is_empty() {
                    true => cpu.into(),
                    false => Processor::opening(cpu, "the GPU".into(), move || {
                        apis.into_iter().find_map(|api| first_gpu(api, &told))
                    }),
                };
                Ok(Processor { passed_over, ..processor })
            }
        }
    }

    /// Opens the CPU for work that has no GPU form. A GPU that was asked for must be present even though it is not
    /// used; with [`CpuAnd`](Self::CpuAnd) only its driver.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_cpu(self, threads: usize) -> Result<Cpu> {
        match self {
            Self::Auto | Self::Cpu => Cpu::with_threads(threads),
            Self::Cuda(_) | Self::OpenCl(_) | Self::CpuAnd(..) => {
                self.open(threads).map(|processor| processor.cpu)
            }
        }
    }
}

/// The first GPU of a driver that can be used. Adds to `notes` why the driver, or a GPU before it, cannot be used.
fn first_gpu(api: Api, notes: &Notes) -> Option<Gpu> {
    let listed =
        gpu::devices(api).unwrap_or_else(|e| gpu::Devices { refused: vec![e], ..Default::default() });
    listed.refused.iter().for_each(|reason| push_note(notes, reason.to_string()));
    let mut gpus = listed.found.iter().filter(|device| !device.is_cpu);
    gpus.find_map(|device| Gpu::open(api, device.index).map_err(|e| push_note(notes, e.to_string())).ok())
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::OpenCl(n) => write!(f, "opencl:{n}"),
            Self::CpuAnd(api, n) => write!(f, "cpu+{api}:{n}"),
        }
    }
}

impl std::str::FromStr for Device {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        let expected = "auto, cpu, cuda[:N], opencl[:N], cpu+cuda[:N] or cpu+opencl[:N]";
        let wrong = || Error::option("device", s, expected);
        let (kind, index) = match s.split_once(':') {
            Some((kind, n)) => (kind, Some(n.parse::<u32>().map_err(|_| wrong())?)),
            None => (s, None),
        };
        match (kind, index) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", n) => Ok(Self::Cuda(n.unwrap_or(0))),
            ("opencl", n) => Ok(Self::OpenCl(n.unwrap_or(0))),
            ("cpu+cuda", n) => Ok(Self::CpuAnd(Api::Cuda, n.unwrap_or(0))),
            ("cpu+opencl", n) => Ok(Self::CpuAnd(Api::OpenCl, n.unwrap_or(0))),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Shortage;

    /// 1, 2 and 5 threads at the best level, one thread at every level.
    pub(crate) fn cpus() -> Vec<Cpu> {
        let levels = Cpu::levels().into_iter().map(|l| Cpu::sequential().at_level(l).unwrap());
        levels.chain([2, 5].map(|n| Cpu::with_threads(n).unwrap())).collect()
    }

    /// 1, 2 and 5 threads at every level, each with its name.
    pub(crate) fn every_cpu() -> impl Iterator<Item = (Cpu, String)> {
        let all = Cpu::levels().into_iter().flat_map(|level| [1, 2, 5].map(|threads| (level, threads)));
        all.map(|(level, threads)| {
            let cpu = Cpu::with_threads(threads).unwrap().at_level(level).unwrap();
            (cpu, format!("{level:?}, {threads} threads"))
        })
    }

    pub(crate) fn processors(cpu: &Cpu) -> impl Iterator<Item = Processor> {
        let gpus = gpu::all().iter().map(|gpu| Processor::with_gpu(cpu.clone(), gpu.clone()));
        gpus.chain([cpu.clone().into()])
    }

    #[test]
    fn work_too_large_for_a_gpu_is_done_by_the_cpu_with_a_note() {
        let processor = Processor::from(Cpu::sequential());
        let shortage = Shortage::Device { name: "card".into(), free: Some(3) };
        let small = Err(Error::Memory { what: "a test", needed: 9, shortage });
        assert_eq!(processor.or_on_cpu("adding", small, |_| Ok(7)).unwrap(), 7, "the CPU's result");
        let simple = Err(Error::Unsupported { device: "card".into(), feature: "64-bit floats".into() });
        assert_eq!(processor.or_on_cpu("adding", simple, |_| Ok(7)).unwrap(), 7, "the CPU's result");
        let notes = processor.take_notes();
        assert_eq!(notes[1], "adding on the CPU: card lacks 64-bit floats", "{notes:?}");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert_eq!(processor.or_on_cpu("adding", Ok(5), |_| Ok(7)).unwrap(), 5, "the GPU's result");
    }

    #[test]
    fn a_device_that_fails_is_an_error() {
        let processor = Processor::from(Cpu::sequential());
        let failed = Err(Error::Device { device: "card".into(), reason: "it fell off the bus".into() });
        let found = processor.or_on_cpu("adding", failed, |_| Ok(7));
        assert!(matches!(found, Err(Error::Device { .. })), "{found:?}");
        assert!(processor.take_notes().is_empty(), "the CPU did the work instead");
    }

    #[test]
    fn the_device_that_computed_is_reported_once() {
        let alone = Processor::from(Cpu::sequential());
        assert!(alone.take_computed().is_empty(), "no work yet");
        alone.clone().gpu_or_cpu("adding", |_| Ok(1), |_| Ok(2)).unwrap();
        assert_eq!(alone.take_computed(), ["cpu"], "there is no GPU");
        assert!(alone.take_computed().is_empty(), "reported twice");
        for gpu in gpu::all() {
            let processor = Processor::with_gpu(Cpu::sequential(), gpu.clone());
            let name = format!("{}:{}", gpu.info().api, gpu.info().index);
            processor.gpu_or_cpu("adding", |_| Ok(1), |_| Ok(2)).unwrap();
            assert_eq!(processor.take_computed(), std::slice::from_ref(&name), "the GPU");
            let simple = || Error::Unsupported { device: "card".into(), feature: "64-bit floats".into() };
            processor.gpu_or_cpu("adding", |_| Err(simple()), |_| Ok(2)).unwrap();
            assert_eq!(processor.take_computed(), ["cpu"], "in place of the GPU");
            processor.gpu_or_cpu("adding", |_| Ok(1), |_| Ok(2)).unwrap();
            processor.gpu_or_cpu("adding", |_| Err(simple()), |_| Ok(2)).unwrap();
            assert_eq!(processor.take_computed(), [name, "cpu".to_owned()], "both");
        }
    }
}
