//! Threads that share the work of a stage. All end when one of them fails or panics, or when the caller cancels.

use crate::device::Cpu;
use crate::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tiepoint_gpu::lock;

/// How often a waiting thread checks whether the work is stopped.
const CHECK: Duration = Duration::from_millis(50);

/// Whether the work is stopped, and why.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: AtomicBool,
    /// The first error, or what a thread panicked with.
    reason: Mutex<Option<thread::Result<Error>>>,
    /// Tells whether the caller has cancelled.
    cpu: Cpu,
}

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        if let Err(cancelled) = self.cpu.check() {
            self.because(cancelled);
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Stops the work. The first of several reasons is kept.
    pub(super) fn because(&self, error: Error) {
        self.set(Ok(error));
    }

    fn set(&self, reason: thread::Result<Error>) {
        lock(&self.reason).get_or_insert(reason);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Waits until `ready`, asked again whenever `changed` is notified, returns something; `None` if the work is stopped.
    pub(super) fn wait_for<T, R>(
        &self,
        mutex: &Mutex<T>,
        changed: &Condvar,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> Option<R> {
        let mut held = lock(mutex);
        while !self.is_set() {
            if let Some(found) = ready(&mut held) {
                return Some(found);
            }
            held = changed.wait_timeout(held, CHECK).unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// A piece of work that runs on a thread of its own.
pub(super) type Job<'j> = Box<dyn FnOnce(&Stop) -> Result<()> + Send + 'j>;

/// Does `work` for everything that other threads send, until they have ended or the work is stopped. Only the receiving
/// jobs hold the receiver: after the last has ended, sending fails.
pub(super) fn for_each_of<T>(
    channel: &Mutex<Receiver<T>>,
    stop: &Stop,
    mut work: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let next = || lock(channel).recv().ok();
    while !stop.is_set()
        && let Some(sent) = next()
    {
        work(sent)?;
    }
    Ok(())
}

/// Runs all `jobs` at the same time, each on a thread of its own. A job checks `Stop` between units of its work. The
/// first error or panic sets it; when all jobs have ended, the error is returned or the panic resumed.
pub(super) fn side_by_side<'j>(cpu: &Cpu, jobs: Vec<Job<'j>>) -> Result<()> {
    let stop = Stop { cpu: Cpu::sequential().ending_with(cpu), ..Stop::default() };
    thread::scope(|scope| {
        for job in jobs {
            let stop = &stop;
            // Only jobs that are about to end can see the state that a panicking job leaves half changed.
            scope.spawn(move || match catch_unwind(AssertUnwindSafe(|| job(stop))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => stop.because(error),
                Err(panic) => stop.set(Err(panic)),
            });
        }
    });
    match stop.reason.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(Err(panic)) => resume_unwind(panic),
        Some(Ok(error)) => Err(error),
        None => Ok(()),
    }
}

/// The time that pieces of work have taken, by which CPU and GPUs share photographs and pairs.
#[derive(Debug, Default)]
pub(super) struct Pace {
    pieces: AtomicUsize,
    nanoseconds: AtomicU64,
}

impl Pace {
    pub(super) fn add(&self, pieces: usize, time: Duration) {
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        self.pieces.fetch_add(pieces, Ordering::Relaxed);
    }

    /// Seconds for one piece, on one thread or GPU; `None` before the first is done.
    pub(super) fn seconds(&self) -> Option<f64> {
        let pieces = self.pieces.load(Ordering::Relaxed);
        let seconds = self.nanoseconds.load(Ordering::Relaxed) as f64 * 1e-9;
        (pieces > 0).then(|| seconds / pieces as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cancel;
    use std::sync::mpsc::{SyncSender, channel, sync_channel};

    fn within_seconds<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let (done, wait) = channel();
        thread::spawn(move || done.send(work()));
        wait.recv_timeout(Duration::from_secs(60)).expect("threads wait for each other without end")
    }

    /// Runs two jobs that send more than the channel holds, and one that receives and finally calls `end`.
    fn run(cpu: &Cpu, end: impl Fn() -> Result<()> + Send) -> Result<()> {
        let (to, from) = sync_channel(2);
        let send = |to: SyncSender<u32>| -> Job<'static> {
            Box::new(move |stop| {
                while !stop.is_set() && to.send(1).is_ok() {}
                Ok(())
            })
        };
        let from = Mutex::new(from);
        let mut left = 100;
        let receive = move |_: u32| {
            left -= 1;
            if left == 0 { end() } else { Ok(()) }
        };
        let receive: Job<'_> = Box::new(move |stop| for_each_of(&from, stop, receive));
        side_by_side(cpu, vec![send(to.clone()), send(to), receive])
    }

    #[test]
    fn an_error_a_panic_and_cancelling_end_all_jobs() {
        let failed = within_seconds(|| run(&Cpu::sequential(), || Err(Error::Image("it failed".into()))));
        assert!(matches!(failed, Err(Error::Image(_))), "{failed:?}");
        let panicked = within_seconds(|| {
            let unwinds = || -> Result<()> { resume_unwind(Box::new("a panic")) };
            catch_unwind(|| run(&Cpu::sequential(), unwinds))
                .map_err(|panic| *panic.downcast::<&str>().unwrap())
        });
        assert_eq!(panicked.unwrap_err(), "a panic", "goes on when all threads have ended");
        let cancelled = within_seconds(|| {
            let cancel = Cancel::new();
            let cpu = Cpu::sequential().cancelled_by(&cancel);
            run(&cpu, move || {
                cancel.cancel();
                Ok(())
            })
        });
        assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
    }

    #[test]
    fn a_panic_of_an_observer_ends_a_collection_on_a_gpu() {
        use crate::collection::work::tests::tiny_images;
        use crate::collection::{Collection, CollectionOptions, Shard};
        use crate::device::{Processor, gpu};
        let (folder, images) = tiny_images("observer", 40);
        for (i, gpu) in gpu::all().iter().enumerate() {
            let (work, images, gpu) = (folder.join(format!("work{i}")), images.clone(), gpu.clone());
            let panicked = within_seconds(move || {
                let quiet = Cpu::with_threads(2).unwrap();
                let (collection, _) =
                    Collection::scan(work, &images, &CollectionOptions::default(), &quiet).unwrap();
                let panics = |done: u64| {
                    if done == 3 {
                        resume_unwind(Box::new("a panic"))
                    }
                };
                let observed = quiet.observed(move |progress| panics(progress.done));
                let processor = Processor::with_gpu(observed, gpu);
                catch_unwind(AssertUnwindSafe(|| collection.extract(Shard::ALL, &[processor]))).map(drop)
            });
            assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "a panic");
        }
    }
}
