//! CUDA and OpenCL behind one small interface.
//!
//! A [`Gpu`] is one device with one queue: work runs in the order in which it was given. A [`KernelSource`] is a
//! program in the [`dialect`] that both drivers compile; its [`Kernel`]s, whose arguments [`kernel!`] declares, are put
//! into a list of [`Commands`] over [`Buffer`]s, which is [run](Gpu::run) once or kept as a [`Graph`]. Nothing here
//! is specific to images.
//!
//! Both drivers are loaded at run time. If there is none, [`devices`] and [`Gpu::open`] return [`Error::Absent`].
//!
//! ```no_run
//! use tiepoint_gpu::{Api, Commands, Gpu, KernelSource, kernel};
//! kernel! {
//!     /// Doubles numbers.
//!     unsafe kernel twice(groups) = Twice {
//!         write data: f32 [n],
//!     } {
//!         n: i32,
//!     }
//! }
//! let source = KernelSource::new("double").kernel::<Twice>([64, 1]).text(
//!     "KERNEL(twice) {
//!          i32 i = GROUP_X * 64 + LANE_X;
//!          if (i < args.n) data[i] = data[i] * 2.0f;
//!      }",
//! );
//! let gpu = Gpu::open(Api::OpenCl, 0)?;
//! let twice = gpu.program(&source)?.kernel::<Twice>()?;
//! let data = gpu.upload(&[1.0_f32, 2.0, 3.0])?;
//! let mut commands = Commands::new();
//! commands.launch(&twice, [1, 1, 1], Twice { data: &data, n: 3 })?;
//! gpu.run(&commands)?;
//! assert_eq!(data.to_vec()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), tiepoint_gpu::Error>(())
//! ```

#[cfg(test)]
extern crate self as tiepoint_gpu;

mod arguments;
mod background;
mod buffer;
mod cache;
mod cancel;
mod commands;
mod compiler;
mod cuda;
mod devices;
pub mod dialect;
mod driver;
mod dry;
mod element;
mod error;
mod foreign;
mod idle;
mod ieee;
#[cfg(test)]
#[path = "../tests/listed/mod.rs"]
mod listed;
mod opencl;
mod packaged;
mod pinned;
mod program;
mod queue;
mod source;
mod transfer;
mod trial;

pub use arguments::{
    Access, Bound, Definitions, Given, KernelArguments, Laid, Layout, Member, Value, alignment,
    parameter_list, structure,
};
pub use background::{
    Background, finish_background, lower_priority, pause_opening, resume_opening, stop_background,
};
pub use buffer::Buffer;
pub use cancel::Cancel;
pub use commands::{Commands, Graph};
pub use devices::{Api, Devices, Info, devices, has_driver};
pub use element::Element;
pub use error::{Error, Result};
pub use foreign::ForeignStream;
pub use packaged::packaged;
pub use pinned::Pinned;
pub use program::{Kernel, Program};
pub use source::KernelSource;
pub use transfer::Transfer;

use commands::Command;
use compiler::{Compiler, Patience};
use driver::{Driver, DriverMark};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use trial::Trial;

/// Compiles a program for a CUDA architecture such as `sm_90`, without any device, and returns the binary.
///
/// # Errors
/// [`Error::Absent`] without NVRTC, [`Error::Compile`] with its log, [`Error::Driver`].
pub fn compile_for_cuda(source: &KernelSource, architecture: &str) -> Result<Vec<u8>> {
    cuda::compile(source.name, &source.for_api(Api::Cuda), architecture)
}

/// As [`compile_for_cuda`], for a source in the form that [`Gpu::dry`] gives; for `compute_90` and the like the result
/// is PTX.
///
/// # Errors
/// As [`compile_for_cuda`].
#[doc(hidden)]
pub fn compile_text_for_cuda(name: &str, source: &str, architecture: &str) -> Result<Vec<u8>> {
    cuda::compile(name, source, architecture)
}

/// Locks data that stays valid where a thread panics while it has the lock.
#[doc(hidden)]
pub fn lock<T: ?Sized>(data: &Mutex<T>) -> MutexGuard<'_, T> {
    data.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A point in a device's queue.
#[derive(Clone, Debug)]
pub struct Mark {
    mark: Arc<DriverMark>,
    device: DeviceId,
}

/// The identity of an opened device. Buffers, kernels and marks carry it, because they are valid only with the
/// [`Gpu::open`] that made them: two of them are different even where both opened the same device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceId(Arc<str>);

impl DeviceId {
    /// Fails unless both are the same.
    fn check(&self, other: &Self) -> Result<()> {
        match Arc::ptr_eq(&self.0, &other.0) {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "memory, kernels and marks belong to the device object that made them: {} and another of {} cannot \
                 be used together",
                self.0, other.0
            ))),
        }
    }
}

/// One device and its queue. A clone is the same device and queue.
#[derive(Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
    patience: Patience,
}

struct Shared {
    // Declared before the driver, because fields are dropped in this order: programs first.
    programs: Mutex<HashMap<String, Program>>,
    compiler: Compiler,
    pool: buffer::Pool,
    pinned: pinned::PinnedPool,
    idle: idle::Idle,
    queue: queue::Queue,
    profiled: AtomicBool,
    cancel: Mutex<Option<Cancel>>,
    stages: Mutex<Vec<StageTime>>,
    trial: OnceLock<Trial>,
    id: DeviceId,
    driver: Box<dyn Driver>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.clear(self.driver.as_ref());
        self.pinned.clear(self.driver.as_ref());
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({}:{} {})", self.info().api, self.info().index, self.info().name)
    }
}

/// The time of a stage; for a stage of [`Commands`], by the device's own clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageTime {
    /// The stage's name.
    pub name: &'static str,
    /// Seconds, all runs together.
    pub seconds: f64,
    /// The number of runs.
    pub calls: u64,
}

impl StageTime {
    /// Adds this time to that of the stage of the same name in a list, or appends it.
    #[doc(hidden)]
    pub fn add_to(self, stages: &mut Vec<Self>) {
        match stages.iter_mut().find(|stage| stage.name == self.name) {
            Some(stage) => {
                stage.seconds += self.seconds;
                stage.calls += self.calls;
            }
            None => stages.push(self),
        }
    }
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::Absent`], [`Error::Index`], [`Error::Driver`] also when the device computes wrongly.
    pub fn open(api: Api, index: u32) -> Result<Self> {
        let gpu = Self::open_for_short_loops(api, index)?;
        match gpu.shared.trial.get() {
            Some(Trial::CutsLoops) => Err(Error::Driver {
                api,
                reason: format!(
                    "{} ends a kernel's loops early and says nothing, so that its results would be wrong; use another device",
                    gpu.info().name
                ),
            }),
            _ => Ok(gpu),
        }
    }

    /// As [`open`](Self::open), but also opens a device that ends loops early: for tests of kernels whose loops are
    /// short.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_for_short_loops(api: Api, index: u32) -> Result<Self> {
        Self::open_tried(api, index, |gpu| match gpu.driver().promises_progress() {
            true => Ok(Trial::Passed),
            false => trial::check(gpu, 0),
        })
    }

    /// A stand-in for a card of this capability, and the sources of all programs that it is asked for, with their names.
    /// It runs nothing and reads zeros.
    ///
    /// # Errors
    /// None that is known.
    #[doc(hidden)]
    pub fn dry(capability: u32) -> Result<(Self, dry::Asked)> {
        let asked = dry::Asked::default();
        let driver = Box::new(dry::Dry::new(capability, asked.clone()));
        Ok((Self::of_driver(driver, |_| Ok(Trial::Passed))?, asked))
    }

    /// As [`open`](Self::open), but in the trial of waiting, the group for which all others wait never begins. The
    /// device then counts as one that does not promise progress, for tests of what is done without.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_without_progress(api: Api, index: u32) -> Result<Self> {
        Self::open_tried(api, index, |gpu| trial::check(gpu, 1))
    }

    fn open_tried(api: Api, index: u32, tried: impl FnOnce(&Self) -> Result<Trial>) -> Result<Self> {
        let driver: Box<dyn Driver> = match api {
            Api::Cuda => Box::new(cuda::Cuda::open(index)?),
            Api::OpenCl => Box::new(opencl::OpenCl::open(index)?),
        };
        Self::of_driver(driver, tried)
    }

    fn of_driver(driver: Box<dyn Driver>, tried: impl FnOnce(&Self) -> Result<Trial>) -> Result<Self> {
        let Info { api, index, name, .. } = driver.info();
        let id = DeviceId(format!("{api}:{index} ({name})").into());
        let shared = Shared {
            id,
            programs: Mutex::default(),
            compiler: Compiler::default(),
            pool: buffer::Pool::default(),
            pinned: pinned::PinnedPool::default(),
            idle: idle::Idle::default(),
            queue: queue::Queue::default(),
            profiled: AtomicBool::new(false),
            cancel: Mutex::default(),
            stages: Mutex::default(),
            trial: OnceLock::new(),
            driver,
        };
        let gpu = Self { shared: Arc::new(shared), patience: Patience::Waits };
        if !gpu.driver().promises_ieee() {
            ieee::check(&gpu)?;
        }
        let _ = gpu.shared.trial.set(tried(&gpu)?);
        Ok(gpu)
    }

    /// Opens the same device again with its own queue, whose work runs beside that of this one. Like two devices they
    /// share no memory, programs or times. The new one is profiled if this one is, and is cancelled with it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn beside(&self) -> Result<Self> {
        let opened = Self::open_for_short_loops(self.info().api, self.info().index)?;
        let beside = Self { patience: self.patience.clone(), ..opened };
        beside.profile(self.is_profiled());
        *lock(&beside.shared.cancel) = lock(&self.shared.cancel).clone();
        Ok(beside)
    }

    /// From now on work on this device ends with [`Error::Cancelled`] once `cancel` says so: between lists of commands
    /// and before a program is compiled. A CPU under OpenCL takes seconds for what a GPU does in milliseconds: the host
    /// then waits for every launch, and the work ends between two of them.
    pub fn cancelled_by(&self, cancel: &Cancel) {
        *lock(&self.shared.cancel) = Some(cancel.clone());
    }

    pub(crate) fn check_cancel(&self) -> Result<()> {
        lock(&self.shared.cancel).as_ref().map_or(Ok(()), Cancel::check)
    }

    /// Whether the host waits for every launch.
    pub(crate) fn is_stepwise(&self) -> bool {
        self.info().is_cpu && lock(&self.shared.cancel).is_some()
    }

    fn driver(&self) -> &dyn Driver {
        self.shared.driver.as_ref()
    }

    pub(crate) fn id(&self) -> &DeviceId {
        &self.shared.id
    }

    /// Fails when kernels may not use `f64` here.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn require_f64(&self) -> Result<()> {
        let Info { has_f64, name, .. } = self.info();
        let lacks = || Error::Unsupported { device: name.clone(), feature: "64-bit floats" };
        has_f64.then_some(()).ok_or_else(lacks)
    }

    /// Fails if groups of a launch cannot wait for 64-bit words of groups that began before them: because such a group
    /// may make no progress meanwhile (tested when the device was opened), or because half of a word may be read.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn require_waiting(&self) -> Result<()> {
        let lacks = |feature| Error::Unsupported { device: self.info().name.clone(), feature };
        match self.shared.trial.get() {
            _ if !self.info().has_whole_words => Err(lacks("64-bit atomics")),
            Some(Trial::Passed) => Ok(()),
            _ => Err(lacks("work groups that go on while others wait for them")),
        }
    }

    /// Whether both are the same device and queue, so that each can use the objects of the other.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The device's properties.
    pub fn info(&self) -> &Info {
        self.driver().info()
    }

    /// The bytes of free memory, if the driver reports them; memory kept for reuse counts as taken.
    pub fn free_memory(&self) -> Option<u64> {
        self.driver().free_bytes()
    }

    /// Returns memory that is kept for reuse to the driver. By itself a device does so after half a minute without work.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn release_memory(&self) -> Result<()> {
        self.finish()?;
        self.shared.pool.clear(self.driver());
        self.shared.pinned.clear(self.driver());
        Ok(())
    }

    /// How long the device keeps memory that nothing uses, for tests.
    #[doc(hidden)]
    pub fn keep_memory_for(&self, idle: Duration) {
        self.shared.idle.after(idle);
    }

    /// The bytes of device memory that are kept for reuse.
    pub fn kept_memory(&self) -> u64 {
        self.shared.pool.kept()
    }

    /// Memory with these numbers.
    ///
    /// # Errors
    /// As [`buffer`](Self::buffer).
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let buffer = self.buffer(data.len())?;
        buffer.write(0, data)?;
        Ok(buffer)
    }

    /// The same device and queue for work that does not wait for compilers because the CPU can do it meanwhile:
    /// [`program`](Self::program) then fails with [`Error::NotReady`] instead of compiling, and the program is compiled
    /// by other threads beside the work, of a lower priority where the system has such. When the last handle of the
    /// device is dropped, these threads finish the program that they are compiling and discard the others.
    #[must_use]
    pub fn handing_over(&self) -> Self {
        Self { patience: Patience::Leaves, ..self.clone() }
    }

    /// As [`handing_over`](Self::handing_over), where the first `requests` requests for programs fail, whatever is
    /// compiled: for tests that hand work over at a moment of their choice.
    #[doc(hidden)]
    #[must_use]
    pub fn handing_over_after(&self, requests: usize) -> Self {
        Self { patience: Patience::LeavesUntil(Arc::new(requests.into())), ..self.clone() }
    }

    /// A program, compiled if neither this device object nor the cache on disk has it.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Driver`], [`Error::Cancelled`]; [`Error::NotReady`] from a device that is
    /// [handing over](Self::handing_over).
    pub fn program(&self, source: &KernelSource) -> Result<Program> {
        if self.patience.refuses() {
            return Err(self.not_ready());
        }
        if let Some(program) = self.programs().get(&source.text) {
            return Ok(program.clone());
        }
        self.check_cancel()?;
        let key = source.text.clone();
        let stored = match self.shared.compiler.state_of(&key) {
            Some(Ok(())) => return Err(self.not_ready()),
            Some(Err(error)) => return Err(error),
            None => Program::stored(self, source),
        };
        // Without the lock, so that other threads can compile meanwhile.
        let program = match (stored, &self.patience) {
            (Some(stored), _) => stored,
            (None, Patience::Waits) => Program::compiled(self, source)?,
            (None, Patience::Leaves | Patience::LeavesUntil(_)) => {
                self.shared.compiler.add(&self.shared, key, source.clone());
                return Err(self.not_ready());
            }
        };
        Ok(self.programs().entry(key).or_insert(program).clone())
    }

    /// Whether programs are being compiled beside its work: see [`handing_over`](Self::handing_over).
    pub fn is_compiling(&self) -> bool {
        self.shared.compiler.is_busy()
    }

    fn not_ready(&self) -> Error {
        Error::NotReady { device: self.info().name.clone() }
    }

    fn programs(&self) -> MutexGuard<'_, HashMap<String, Program>> {
        lock(&self.shared.programs)
    }

    /// Those of `sources` that [`program`](Self::program) has not compiled or loaded yet, each once.
    pub fn unknown(&self, sources: Vec<KernelSource>) -> Vec<KernelSource> {
        if self.patience.refuses() {
            return sources;
        }
        let (programs, mut seen) = (self.programs(), HashSet::new());
        let mut is_new = |text: &str| !programs.contains_key(text) && seen.insert(text.to_owned());
        sources.into_iter().filter(|source| is_new(&source.text)).collect()
    }

    /// Queues work. Only a profiled device waits for it.
    ///
    /// # Errors
    /// [`Error::Usage`] when the work belongs to another device, [`Error::Driver`], [`Error::Cancelled`].
    pub fn run(&self, commands: &Commands) -> Result<()> {
        commands.run_on(self.id())?;
        let run = self.enqueue(commands);
        // Also after an error: some of the commands may be in the queue.
        commands.read_by(self.shared.queue.given());
        run
    }

    fn enqueue(&self, commands: &Commands) -> Result<()> {
        self.check_cancel()?;
        if !self.is_profiled() {
            return self.enqueue_all(&commands.list);
        }
        let mut marks: Vec<(&'static str, Arc<DriverMark>)> = Vec::new();
        let mut stages = commands.stages.iter().peekable();
        marks.push(("other", self.driver().mark()?));
        for (at, command) in commands.list.iter().enumerate() {
            while let Some((_, name)) = stages.next_if(|s| s.0 <= at) {
                marks.push((name, self.driver().mark()?));
            }
            self.enqueue_all(std::slice::from_ref(command))?;
        }
        marks.push(("", self.driver().mark()?));
        self.finish()?;
        for pair in marks.windows(2) {
            let seconds = self.driver().seconds_between(pair[0].1.as_ref(), pair[1].1.as_ref())?;
            StageTime { name: pair[0].0, seconds, calls: 1 }.add_to(&mut lock(&self.shared.stages));
        }
        Ok(())
    }

    fn enqueue_all(&self, commands: &[Command]) -> Result<()> {
        if !self.is_stepwise() {
            return commands.iter().try_for_each(|command| self.driver().enqueue(command));
        }
        for command in commands {
            match command {
                Command::Together(lists) => lists.iter().try_for_each(|list| self.enqueue_all(list))?,
                command => self.driver().enqueue(command)?,
            }
            self.driver().finish()?;
            self.check_cancel()?;
        }
        Ok(())
    }

    /// The point in the queue after all work so far.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn mark(&self) -> Result<Mark> {
        Ok(Mark { mark: self.driver().mark()?, device: self.id().clone() })
    }

    /// Waits until the queue has reached a mark.
    ///
    /// # Errors
    /// [`Error::Usage`] for another device's mark, [`Error::Driver`] when the work before it failed.
    pub fn wait(&self, mark: &Mark) -> Result<()> {
        self.id().check(&mark.device)?;
        self.driver().wait(mark.mark.as_ref())
    }

    /// The seconds that some work takes on the device, from its own clock.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn seconds(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let start = self.driver().mark()?;
        work()?;
        let end = self.driver().mark()?;
        self.finish()?;
        self.driver().seconds_between(start.as_ref(), end.as_ref())
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// [`Error::Driver`].
    pub fn finish(&self) -> Result<()> {
        self.shared.queue.waiting(|| self.driver().finish())
    }

    /// Whether the device's time of every stage is measured from now on. [`run`](Self::run) then waits for the work.
    pub fn profile(&self, on: bool) {
        self.shared.profiled.store(on, Ordering::Relaxed);
    }

    pub(crate) fn is_profiled(&self) -> bool {
        self.shared.profiled.load(Ordering::Relaxed)
    }

    /// The times recorded so far; recording then starts anew.
    pub fn take_stages(&self) -> Vec<StageTime> {
        std::mem::take(&mut *lock(&self.shared.stages))
    }
}
