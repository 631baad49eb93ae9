//! Progress of long tasks.
//!
//! A caller observes it through [`Cpu::observed`](super::Cpu::observed). A stage that may take long begins a task with
//! a number of steps ([`Cpu::begin_task`](super::Cpu::begin_task)), and each thread reports the steps that it has done,
//! a band of rows at a time ([`Cpu::advance`](super::Cpu::advance)). A task inside a task is some of the outer one's
//! steps ([`Cpu::part`](super::Cpu::part)). No result depends on progress. Unobserved, a step costs one comparison.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tiepoint_gpu::lock;

/// The progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The name of the task: `compile kernels`, `SIFT`, `SURF`, `match`, `warp` or `stereo`; for a collection `wait for
    /// another scan`, `scan`, `read what was touched`, `features`, `look at tiles`, `top-scale`, `match`, `closure`, `export` or `page`.
    pub task: &'static str,
    /// Steps done; it never falls, and reaches `total` when the task ends, even by an error.
    pub done: u64,
    /// The total number of steps, at least 1. A step is a few rows, some images of a batch, or work of similar length.
    pub total: u64,
    /// For a collection: photographs that the task has left out so far.
    pub left_out: u64,
}

impl Progress {
    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        self.done as f64 / self.total as f64
    }
}

/// The receiver of reported steps.
#[derive(Clone)]
pub(super) enum Watch {
    /// The caller's observer, to which the next task reports.
    Observer(Arc<dyn Fn(Progress) + Send + Sync>),
    Task(Arc<Task>),
    /// The current task, in which the next task counts as this many steps.
    Part(Arc<Task>, u64),
}

pub(super) struct Task {
    name: &'static str,
    total: u64,
    done: Mutex<u64>,
    pub(super) left_out: AtomicU64,
    reports_to: Watch,
}

impl Watch {
    /// Begins a task of `total` steps. Inside another task it reports only if it is a part of it.
    pub(super) fn begin_task(&self, name: &'static str, total: u64) -> Option<Self> {
        let reports_to = match self {
            Self::Task(_) => return None,
            Self::Observer(_) | Self::Part(..) => self.clone(),
        };
        let (total, done, left_out) = (total.max(1), Mutex::new(0), AtomicU64::new(0));
        Some(Self::Task(Arc::new(Task { name, total, done, left_out, reports_to })))
    }
}

impl Task {
    /// Reports under the lock, so that the numbers that arrive never fall.
    pub(super) fn advance(&self, steps: u64) {
        let mut done = lock(&self.done);
        let before = *done;
        *done = before.saturating_add(steps).min(self.total);
        match &self.reports_to {
            Watch::Observer(observer) if *done > before => {
                let left_out = self.left_out.load(Ordering::Relaxed);
                observer(Progress { task: self.name, done: *done, total: self.total, left_out });
            }
            Watch::Part(whole, part) => {
                let of_part = |n: u64| (u128::from(n) * u128::from(*part) / u128::from(self.total)) as u64;
                whole.advance(of_part(*done) - of_part(before));
            }
            // No new step for the observer. (A task never reports to a `Task`, but to a `Part` of it.)
            Watch::Observer(_) | Watch::Task(_) => {}
        }
    }
}

impl Drop for Task {
    /// A task that ends early or fails is reported as done, too.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.advance(self.total);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observer(_) => f.write_str("Observer"),
            Self::Task(task) => write!(f, "Task({})", task.name),
            Self::Part(task, steps) => write!(f, "Part({}, {steps})", task.name),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;

    /// Runs `work` on an observed device and returns the reports to the observer, which must be at least `least` and
    /// rise to the total. The result must equal that without an observer.
    pub(crate) fn told<R: PartialEq>(cpu: &Cpu, least: usize, work: impl Fn(&Cpu) -> R) -> Vec<Progress> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = told.clone();
        let observed = cpu.clone().observed(move |p| to.lock().unwrap().push(p));
        assert!(work(&observed) == work(cpu), "an observer changes nothing");
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert!(told.len() >= least, "only {} reports: {told:?}", told.len());
        for (before, after) in told.iter().zip(&told[1..]) {
            assert!(before.done < after.done && before.total == after.total, "{before:?}, then {after:?}");
        }
        let last = told[told.len() - 1];
        assert_eq!((last.done, last.share()), (last.total, 1.0), "the end");
        told
    }

    #[test]
    fn steps_of_all_threads_and_of_parts_add_up() {
        for threads in [1, 2, 5] {
            let cpu = Cpu::with_threads(threads).unwrap();
            let told = told(&cpu, 100, |cpu| {
                let cpu = &cpu.begin_task("whole", 1000);
                cpu.map(100, |_| cpu.advance(3));
                let part = &cpu.part(500).begin_task("part", 7);
                (0..7).for_each(|_| part.advance(1));
                part.begin_task("within, no part", 3).advance(1);
                part.advance(10);
            });
            assert!(told.iter().all(|p| p.task == "whole" && p.total == 1000), "a report of a part");
            assert!(told.iter().any(|p| p.done == 300 + 500 / 7), "a seventh of the part");
            assert_eq!(told[told.len() - 2].done, 800, "before the end");
        }
    }

    #[test]
    fn work_that_fails_or_has_no_steps_ends() {
        let fails = |cpu: &Cpu| {
            let cpu = cpu.begin_task("fails", 10);
            cpu.advance(1);
            "failed"
        };
        assert_eq!(told(&Cpu::sequential(), 2, fails).len(), 2);
        told(&Cpu::sequential(), 1, |cpu| drop(cpu.begin_task("empty", 0)));
    }
}
