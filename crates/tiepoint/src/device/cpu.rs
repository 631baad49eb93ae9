//! The CPU as a device: threads and SIMD level, with the profile, progress and cancelling of its work.

use super::progress::Watch;
use super::{Cancel, Level, Profile, Progress, SimdLevel, Stage};
use crate::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};
use std::cmp::Ordering;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tiepoint_gpu::lock;

/// An image with fewer pixels is left to one thread, except in unit tests, whose images are small.
const SMALL: usize = 128 * 128;

/// The CPU as a device: a thread pool, a SIMD level and, if asked for, a profile of stage times, an observer of its
/// progress and a [`Cancel`] that ends its work early.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Option<Arc<ThreadPool>>,
    level: Level,
    profile: Option<Arc<Profile>>,
    watch: Option<Watch>,
    cancel: Option<Cancel>,
    driver: Option<Arc<Driver>>,
}

/// A GPU's driver that starts while the work runs. Its many short waits take long if all cores are busy: with 12 of 16
/// busy it starts in 0.3 s, as fast as on an idle machine, with all 16 in 0.5 s (`docs/notebook/gpu.md`).
#[derive(Debug, Default)]
pub(super) struct Driver {
    /// Whether it is starting now.
    pub(super) starts: AtomicBool,
    /// The number of threads that get no work while the driver starts.
    left: usize,
}

impl Driver {
    /// On machines with fewer cores, no core is left idle; there the thread that opens a GPU has a low priority.
    pub(super) const MANY_CORES: usize = 8;

    /// A driver beside this many threads on a machine with this many cores, of which it needs a quarter.
    pub(super) fn beside(threads: usize, cores: usize) -> Self {
        let left = if cores < Self::MANY_CORES { 0 } else { threads.saturating_sub(cores - cores / 4) };
        Self { left, ..Self::default() }
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::sequential()
    }
}

impl Cpu {
    /// The calling thread only, at the best SIMD level present.
    pub fn sequential() -> Self {
        Self { pool: None, level: Level::best(), profile: None, watch: None, cancel: None, driver: None }
    }

    /// A pool of `threads` threads made for this `Cpu`; one thread means the calling thread.
    ///
    /// # Errors
    /// [`Error::Option`] when `threads` is 0 or above 1024, [`Error::Device`] when threads cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self> {
        match threads {
            0 | 1025.. => Err(Error::option("threads", threads, "1 to 1024")),
            1 => Ok(Self::sequential()),
            _ => {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build();
                let pool = pool.map_err(|e| Error::Device {
                    device: "cpu".into(),
                    reason: format!("cannot start {threads} threads: {e}"),
                })?;
                Ok(Self::with_pool(Arc::new(pool)))
            }
        }
    }

    /// The caller's own pool.
    pub fn with_pool(pool: Arc<ThreadPool>) -> Self {
        Self { pool: Some(pool), ..Self::sequential() }
    }

    /// The same threads, limited to a lower SIMD level. Results do not change; tests use this to show it.
    ///
    /// # Errors
    /// [`Error::Device`] when this machine lacks the level.
    pub fn at_level(self, level: SimdLevel) -> Result<Self> {
        match Level::of(level) {
            Some(level) => Ok(Self { level, ..self }),
            None => {
                Err(Error::Device { device: "cpu".into(), reason: format!("this machine has no {level:?}") })
            }
        }
    }

    /// The SIMD levels of this machine, lowest first; for tests that run one body at each.
    pub fn levels() -> Vec<SimdLevel> {
        let all = [SimdLevel::Baseline, SimdLevel::Avx2, SimdLevel::Avx512];
        all.into_iter().filter(|&l| Self::sequential().at_level(l).is_ok()).collect()
    }

    /// The same device, which from now on records the time of every stage.
    #[must_use]
    pub fn profiled(self) -> Self {
        Self { profile: Some(Arc::default()), ..self }
    }

    /// The times recorded so far, if this device is [`profiled`](Self::profiled).
    pub fn profile(&self) -> Option<&Profile> {
        self.profile.as_deref()
    }

    /// The same device, which from now on reports the progress of long work to `observer`, from any of its
    /// threads. Calls for one task come one after the other, and the work waits for them: the observer should
    /// be quick, and not use the device.
    ///
    /// ```
    /// use tiepoint::{device::Cpu, feature::sift, image::Image};
    /// let cpu = Cpu::sequential().observed(|p| eprintln!("{}: {:.0} %", p.task, 100.0 * p.share()));
    /// let image = Image::<u8>::new(tiepoint::image::Size::new(300, 200));
    /// assert!(sift::detect(image.view(), &Default::default(), None, &cpu)?.is_empty());
    /// # Ok::<(), tiepoint::Error>(())
    /// ```
    #[must_use]
    pub fn observed(self, observer: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { watch: Some(Watch::Observer(Arc::new(observer))), ..self }
    }

    /// The same device, whose work ends with [`Error::Cancelled`] at its next safe point once `cancel` is set: after
    /// some rows of an image, a run of descriptors, a few samples of an estimation, a photograph of a collection. For
    /// work on a GPU use [`Processor::cancelled_by`](super::Processor::cancelled_by).
    ///
    /// ```
    /// use tiepoint::{Error, device::{Cancel, Cpu}, feature::sift, image::{Image, Size}};
    /// let cancel = Cancel::new();
    /// let cpu = Cpu::sequential().cancelled_by(&cancel);
    /// cancel.cancel(); // on another thread, or by a signal handler
    /// let found = sift::detect(Image::<u8>::new(Size::new(300, 200)).view(), &Default::default(), None, &cpu);
    /// assert!(matches!(found, Err(Error::Cancelled)));
    /// ```
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self }
    }

    /// Fails once the work is cancelled. For work of the caller that is to stop together with the library's.
    ///
    /// # Errors
    /// [`Error::Cancelled`] once the work is cancelled.
    pub fn check(&self) -> Result<()> {
        Ok(self.cancel.as_ref().map_or(Ok(()), Cancel::check)?)
    }

    /// A token that cancels only a part of this device's work; `None` if this device already does such a part.
    pub(crate) fn inner_cancel(&self) -> Option<Cancel> {
        self.cancel.clone().unwrap_or_default().inner()
    }

    /// The same device, cancelled together with another.
    pub(crate) fn ending_with(self, other: &Self) -> Self {
        Self { cancel: other.cancel.clone(), ..self }
    }

    /// The same device, on which a task of `total` steps has begun. Its progress is reported to the
    /// [observer](Self::observed). The task ends when the returned device and its clones are dropped.
    pub fn begin_task(&self, name: &'static str, total: usize) -> Self {
        let watch = self.watch.as_ref().and_then(|w| w.begin_task(name, total as u64));
        Self { watch, ..self.clone() }
    }

    /// The same device, on which the next task counts as `steps` steps of the current one.
    pub(crate) fn part(&self, steps: usize) -> Self {
        let watch = match &self.watch {
            Some(Watch::Task(task)) => Some(Watch::Part(task.clone(), steps as u64)),
            Some(Watch::Observer(_) | Watch::Part(..)) | None => None,
        };
        Self { watch, ..self.clone() }
    }

    /// Reports that steps of the current [task](Self::begin_task) are done.
    pub fn advance(&self, steps: usize) {
        if let Some(Watch::Task(task)) = &self.watch {
            task.advance(steps as u64);
        }
    }

    pub(crate) fn leave_out(&self, photographs: usize) {
        if let Some(Watch::Task(task)) = &self.watch {
            task.left_out.fetch_add(photographs as u64, atomic::Ordering::Relaxed);
        }
    }

    /// The calling thread only, at the same SIMD level, for a piece of work that is already divided among threads.
    pub(crate) fn alone(&self) -> Self {
        Self { level: self.level, ..Self::sequential() }
    }

    /// The same device, but with only the calling thread if there are so few pixels (or similar units of work) that
    /// handing them to other threads takes longer than the work.
    pub(crate) fn for_pixels(&self, pixels: usize) -> Self {
        if !cfg!(test) && pixels < SMALL { Self { pool: None, ..self.clone() } } else { self.clone() }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |p| p.current_num_threads())
    }

    /// The same device, which leaves some threads without work while a driver starts.
    pub(super) fn beside(self, driver: Arc<Driver>) -> Self {
        Self { driver: Some(driver), ..self }
    }

    /// The number of threads that may work now.
    pub(crate) fn threads_at_work(&self) -> usize {
        if self.is_beside_start() { self.threads_beside_start() } else { self.threads() }
    }

    /// Whether a driver starts now.
    pub(crate) fn is_beside_start(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.starts.load(atomic::Ordering::Relaxed))
    }

    /// The number of threads that may work while a driver starts.
    pub(crate) fn threads_beside_start(&self) -> usize {
        self.threads() - self.driver.as_ref().map_or(0, |driver| driver.left)
    }

    /// The name of the SIMD level in use, for messages.
    pub fn level_name(&self) -> &'static str {
        self.level.name()
    }

    pub(crate) fn level(&self) -> Level {
        self.level
    }

    /// Times a stage from this call until the guard is dropped. Costs nothing when not profiled.
    pub fn stage(&self, name: &'static str) -> Stage<'_> {
        Stage { running: self.profile().map(|profile| (profile, name, Instant::now())) }
    }

    /// Runs `f` on a thread of the pool. Code of many short parallel and serial steps should run inside as a whole: from
    /// outside, every parallel step would wake the pool's threads again, which takes longer than the step.
    pub(crate) fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        let Some(pool) = &self.pool else { return f() };
        let (mut f, mut result) = (Some(f), None);
        install(pool, &mut || result = f.take().map(|f| f()));
        result.unwrap_or_else(|| unreachable!("the pool runs what it is given"))
    }

    /// The results of `f(0)` to `f(n − 1)` in the order of the index, whatever the order of execution.
    pub(crate) fn map<R: Send>(&self, n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
        let mut results: Vec<Option<R>> = (0..n).map(|_| None).collect();
        self.for_chunks(&mut results, 1, |i, result| result[0] = Some(f(i)));
        results.into_iter().flatten().collect()
    }

    /// [`map`](Self::map) for work that may fail or take long. Returns the error of the smallest index; after
    /// [`Error::Cancelled`] the rest is left undone.
    pub(crate) fn try_map<R: Send>(&self, n: usize, f: impl Fn(usize) -> Result<R> + Sync) -> Result<Vec<R>> {
        self.map(n, |i| self.check().and_then(|()| f(i))).into_iter().collect()
    }

    /// [`try_map`](Self::try_map) as a [task](Self::begin_task) of `n` steps.
    pub(crate) fn try_map_task<R: Send>(
        &self,
        name: &'static str,
        n: usize,
        f: impl Fn(usize) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let cpu = &self.begin_task(name, n);
        cpu.try_map(n, |i| {
            let result = f(i);
            cpu.advance(1);
            result
        })
    }

    /// The results of two pieces of work, done at the same time where there are threads; the first's error where both fail.
    pub(crate) fn join<A: Send, B: Send>(
        &self,
        a: impl FnOnce() -> Result<A> + Send,
        b: impl FnOnce() -> Result<B> + Send,
    ) -> Result<(A, B)> {
        let (a, b) = match &self.pool {
            Some(pool) => pool.install(|| rayon::join(a, b)),
            None => (a(), b()),
        };
        Ok((a?, b?))
    }

    /// [`map`](Self::map) for results that can be copied. Each thread writes its own part of the new memory, which
    /// spreads the page faults over the threads. All of rayon's code for it is compiled for each `f`.
    pub(crate) fn collect<R: Copy + Send>(&self, n: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
        match &self.pool {
            Some(pool) => pool.install(|| (0..n).into_par_iter().map(f).collect()),
            None => (0..n).map(f).collect(),
        }
    }

    /// Sorts stably, so that the order does not depend on the number of threads.
    pub(crate) fn sort_by<T: Send>(&self, data: &mut [T], order: impl Fn(&T, &T) -> Ordering + Sync + Send) {
        match &self.pool {
            Some(pool) => pool.install(|| data.par_sort_by(order)),
            None => data.sort_by(order),
        }
    }

    /// Cuts `data` into chunks of `len` elements (the last may be shorter) and runs `f(chunk number, chunk)`.
    ///
    /// Every thread begins with its own part of the chunks, the same in every call, so that what it wrote before is in
    /// its cache. Then it takes chunks from the ends of other threads' parts. A thread takes a quarter of the rest of a
    /// part at a time, so that all finish at about the same time. Rayon's own splitting would be compiled for each `f`,
    /// with `f` inlined several times; its code that is used here is compiled once.
    pub(crate) fn for_chunks<T: Send>(&self, data: &mut [T], len: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        let len = len.max(1);
        let count = data.len().div_ceil(len);
        let workers = self.threads_at_work().min(count).max(1);
        let each = count.div_ceil(workers).max(1);
        let parts = data.chunks_mut(each * len).zip((0..).step_by(each));
        let parts: Vec<_> = parts.map(|(data, first)| Mutex::new(Chunks { first, data })).collect();
        self.on_threads(workers, &|own| {
            for helped in 0..parts.len() {
                let part = &parts[(own + helped) % parts.len()];
                while let Some((first, chunks)) = Chunks::take(part, len, workers, helped > 0) {
                    chunks.chunks_mut(len).enumerate().for_each(|(i, chunk)| f(first + i, chunk));
                }
            }
        });
    }

    /// [`for_chunks`](Self::for_chunks) for work that takes long, such as all rows of an image; after
    /// [`Error::Cancelled`] the remaining chunks are left undone.
    pub(crate) fn try_for_chunks<T: Send>(
        &self,
        data: &mut [T],
        len: usize,
        f: impl Fn(usize, &mut [T]) + Sync,
    ) -> Result<()> {
        // `check` is not called again at the end: the caller may have reset the token for other work by then.
        let cancelled = AtomicBool::new(false);
        self.for_chunks(data, len, |i, chunk| match self.check() {
            Ok(()) => f(i, chunk),
            Err(_) => cancelled.store(true, atomic::Ordering::Relaxed),
        });
        if cancelled.into_inner() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Calls `work` on threads of the pool, with the number of the thread.
    fn on_threads(&self, workers: usize, work: &(dyn Fn(usize) + Sync)) {
        match &self.pool {
            Some(pool) if workers > 1 => {
                install(pool, &mut || {
                    let numbered = |_| work(rayon::current_thread_index().unwrap_or(0));
                    (0..workers).into_par_iter().with_max_len(1).for_each(numbered);
                });
            }
            _ => work(0),
        }
    }
}

fn install(pool: &ThreadPool, f: &mut (dyn FnMut() + Send)) {
    pool.install(f);
}

/// Chunks that no thread has taken yet.
struct Chunks<'d, T> {
    first: usize,
    data: &'d mut [T],
}

impl<'d, T> Chunks<'d, T> {
    /// Takes a run of neighbouring chunks, from the end or from the front. Returns it with the number of its first chunk.
    fn take(part: &Mutex<Self>, len: usize, workers: usize, from_end: bool) -> Option<(usize, &'d mut [T])> {
        let mut part = lock(part);
        let chunks = part.data.len().div_ceil(len);
        let count = if workers == 1 { chunks } else { chunks.div_ceil(4) };
        let (first, taken) = if from_end {
            let before = chunks - count;
            (part.first + before, part.data.split_off_mut(before * len..))
        } else {
            let first = part.first;
            part.first += count;
            let end = (count * len).min(part.data.len());
            (first, part.data.split_off_mut(..end))
        };
        taken.filter(|taken| !taken.is_empty()).map(|taken| (first, taken))
    }
}
