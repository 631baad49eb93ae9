//! How far long work has got, for people who wait.
//!
//! A caller watches by [`Cpu::observed`](super::Cpu::observed). A stage that may take long says at its start of how many
//! steps it consists ([`Cpu::work`](super::Cpu::work)), and each thread says when it has done some
//! ([`Cpu::advance`](super::Cpu::advance)), a band of rows at a time; what it calls can be told to fill a part of its own
//! steps ([`Cpu::part`](super::Cpu::part)). Nothing waits for it and no result depends on it. Unobserved, a step costs
//! one comparison.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// How far a piece of work has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done: `SIFT`, `SURF`, `match`, `warp` or `stereo`.
    pub work: &'static str,
    /// Steps done; it never falls, and reaches `total` when the work ends, however it ends.
    pub done: u64,
    /// Steps in all, at least 1. A step is a few rows, some images of a batch, or what takes as long.
    pub total: u64,
}

impl Progress {
    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        self.done as f64 / self.total as f64
    }
}

/// Who is told.
#[derive(Clone)]
pub(super) enum Watch {
    /// The caller, of the work that is begun next.
    Observer(Arc<dyn Fn(Progress) + Send + Sync>),
    /// The work under way.
    Work(Arc<Work>),
    /// The work under way; the work that is begun next is so many of its steps.
    Part(Arc<Work>, u64),
}

/// Work under way.
pub(super) struct Work {
    name: &'static str,
    total: u64,
    done: Mutex<u64>,
    told: Watch,
}

impl Watch {
    /// Begins work of `total` steps. Work within work is told of only as its part.
    pub(super) fn work(&self, name: &'static str, total: u64) -> Option<Self> {
        let told = match self {
            Self::Work(_) => return None,
            told => told.clone(),
        };
        Some(Self::Work(Arc::new(Work { name, total: total.max(1), done: Mutex::new(0), told })))
    }

    pub(super) fn part(&self, steps: u64) -> Option<Self> {
        match self {
            Self::Work(work) => Some(Self::Part(work.clone(), steps)),
            _ => None,
        }
    }

    pub(super) fn advance(&self, steps: u64) {
        if let Self::Work(work) = self {
            work.advance(steps);
        }
    }
}

impl Work {
    /// Under the lock, so that what is told never falls.
    fn advance(&self, steps: u64) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *done;
        *done = before.saturating_add(steps).min(self.total);
        match &self.told {
            Watch::Observer(observer) if *done > before => {
                observer(Progress { work: self.name, done: *done, total: self.total });
            }
            Watch::Part(whole, part) => {
                let of_part = |n: u64| (u128::from(n) * u128::from(*part) / u128::from(self.total)) as u64;
                whole.advance(of_part(*done) - of_part(before));
            }
            _ => {}
        }
    }
}

impl Drop for Work {
    /// Work that took a short cut, or failed, is done too.
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
            Self::Work(work) => write!(f, "Work({})", work.name),
            Self::Part(work, steps) => write!(f, "Part({}, {steps})", work.name),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;

    /// Runs `work` on an observed device and gives what was told, which must rise to the total in at least `least`
    /// calls; the results must be those of the device unobserved.
    pub(crate) fn told<R: PartialEq>(cpu: &Cpu, least: usize, work: impl Fn(&Cpu) -> R) -> Vec<Progress> {
        let told = Arc::new(Mutex::new(Vec::new()));
        let to = told.clone();
        let observed = cpu.clone().observed(move |p| to.lock().unwrap().push(p));
        assert!(work(&observed) == work(cpu), "an observer changes nothing");
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert!(told.len() >= least, "told {} times only: {told:?}", told.len());
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
                let cpu = &cpu.work("whole", 1000);
                cpu.map(100, |_| cpu.advance(3));
                let part = &cpu.part(500).work("part", 7);
                (0..7).for_each(|_| part.advance(1));
                part.work("within, no part", 3).advance(1);
                part.advance(10);
            });
            assert!(told.iter().all(|p| p.work == "whole" && p.total == 1000), "the whole is told of");
            assert!(told.iter().any(|p| p.done == 300 + 500 / 7), "a seventh of the part");
            assert_eq!(told[told.len() - 2].done, 800, "before the end");
        }
    }

    #[test]
    fn work_that_fails_or_has_no_steps_ends() {
        let fails = |cpu: &Cpu| {
            let cpu = cpu.work("fails", 10);
            cpu.advance(1);
            "failed"
        };
        assert_eq!(told(&Cpu::sequential(), 2, fails).len(), 2);
        told(&Cpu::sequential(), 1, |cpu| drop(cpu.work("empty", 0)));
    }
}
