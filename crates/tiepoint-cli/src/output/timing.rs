//! The time spent on an image or pair: reading, computing, writing, and every stage.

use serde_json::Value;
use std::time::Instant;
use tiepoint::device::{Cpu, Profile, StageTime};

/// Measures the wall-clock times of one image or pair.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Instant,
    before: Vec<StageTime>,
    spent: Spent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Read,
    Compute,
    Write,
}

impl Clock {
    /// Starts now. Stage times recorded before do not count.
    pub(crate) fn start(cpu: &Cpu) -> Self {
        let before = cpu.profile().map(Profile::stages).unwrap_or_default();
        Self { start: Instant::now(), before, spent: Spent::default() }
    }

    pub(crate) fn time<R>(&mut self, part: Part, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.spent.parts[part as usize] += start.elapsed().as_secs_f64();
        result
    }

    pub(crate) fn compute(&self) -> f64 {
        self.spent.compute()
    }

    /// The seconds until now, and those of the stages that the CPU has recorded.
    pub(crate) fn spent(&self, cpu: &Cpu) -> Spent {
        let mut stages = cpu.profile().map(Profile::stages).unwrap_or_default();
        for stage in &mut stages {
            if let Some(before) = self.before.iter().find(|b| b.name == stage.name) {
                stage.seconds -= before.seconds;
                stage.calls -= before.calls;
            }
        }
        Spent { total: self.start.elapsed().as_secs_f64(), stages, ..self.spent.clone() }
    }

    pub(crate) fn seconds(&self, cpu: &Cpu) -> Value {
        self.spent(cpu).seconds()
    }
}

/// Seconds spent on one image or pair: in total, on each [`Part`], and on the stages of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    total: f64,
    parts: [f64; 3],
    pub(crate) stages: Vec<StageTime>,
}

impl Spent {
    pub(crate) fn compute(&self) -> f64 {
        self.parts[Part::Compute as usize]
    }

    pub(crate) fn add(&mut self, more: &Self) {
        more.stages.iter().for_each(|stage| stage.add_to(&mut self.stages));
        self.total += more.total;
        self.parts.iter_mut().zip(more.parts).for_each(|(own, more)| *own += more);
    }

    /// The share of one image, when several were worked on together.
    pub(crate) fn share(mut self, images: usize) -> Self {
        let share = 1.0 / images.max(1) as f64;
        self.stages.iter_mut().for_each(|s| s.seconds *= share);
        Self { total: self.total * share, parts: self.parts.map(|v| v * share), ..self }
    }

    /// The `seconds` of a JSON object.
    pub(crate) fn seconds(&self) -> Value {
        let [read, compute, write] = self.parts;
        let whole = [("total", self.total), ("read", read), ("compute", compute), ("write", write)];
        let stages = self.stages.iter().map(|s| (s.name, s.seconds));
        let stages = stages.filter(|(name, _)| whole.iter().all(|(taken, _)| taken != name));
        let all = whole.into_iter().chain(stages);
        Value::Object(all.map(|(name, seconds)| (name.to_owned(), seconds.into())).collect())
    }
}

pub(crate) fn profile_table(cpu: &Cpu) -> String {
    let stages = cpu.profile().map(Profile::stages).unwrap_or_default();
    let width = stages.iter().map(|s| s.name.len()).max().unwrap_or(0).max(5);
    let sum: f64 = stages.iter().map(|s| s.seconds).sum();
    let head = format!("{:width$}  {:>10}  {:>6}  {:>7}\n", "stage", "ms", "share", "calls");
    let row = |s: &StageTime| {
        let (ms, share) = (s.seconds * 1e3, 100.0 * s.seconds / sum.max(1e-12));
        format!("{:width$}  {ms:>10.2}  {share:>5.1}%  {:>7}\n", s.name, s.calls)
    };
    head + &stages.iter().map(row).collect::<String>()
}
