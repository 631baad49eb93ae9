//! `cargo xtask bench`: the library's times beside OpenCV's, row by row in one run, as a Markdown table.
//!
//! OpenCV's wheel is put into `.venv` in the workspace when it is missing. Both sides work on the same pixels
//! with the same number of threads, and keep their memory from run to run where their interface allows it; of
//! many runs the shortest counts.

mod features;
mod filters;
mod matching;
mod opencv;
mod stereo;

use crate::Result;
use filters::Scene;
use opencv::OpenCv;
use std::time::{Duration, Instant};
use tiepoint::device::Cpu;

/// One run of something; returns the number of features it found, or `None` if it does not look for any.
type Run<'a> = dyn FnMut(&Cpu) -> tiepoint::Result<Option<usize>> + 'a;

struct Row<'a> {
    name: String,
    ours: Box<Run<'a>>,
    /// The command for the other side.
    opencv: String,
}

impl<'a> Row<'a> {
    fn new(
        name: impl Into<String>,
        opencv: impl Into<String>,
        ours: impl FnMut(&Cpu) -> tiepoint::Result<Option<usize>> + 'a,
    ) -> Self {
        Self { name: name.into(), ours: Box::new(ours), opencv: opencv.into() }
    }

    fn measure(&mut self, cpu: &Cpu, opencv: &mut OpenCv) -> Result<String> {
        let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
        let mut features = String::new();
        // Two rounds, so that other load on the machine affects both sides.
        for _ in 0..2 {
            let (ms, count) = best(&mut || (self.ours)(cpu)).map_err(|e| e.to_string())?;
            let (their_ms, their_count) = opencv.time(&self.opencv)?;
            (ours, theirs) = (ours.min(ms), theirs.min(their_ms));
            if let (Some(n), Some(m)) = (count, their_count) {
                features = format!("{n} / {m}");
            }
        }
        Ok(format!("| {} | {ours:.2} | {theirs:.2} | {:.2} | {features} |", self.name, ours / theirs))
    }
}

/// Prints the tables of all rows whose name contains the first argument.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let filter = arguments.first().map_or("", String::as_str);
    let mut opencv = OpenCv::start()?;
    let scene = Scene::new()?;
    scene.load(&mut opencv)?;
    let photos = features::photos(&mut opencv)?;
    let sets = matching::Sets::new();
    sets.load(&mut opencv)?;

    let pair = stereo::Pair::new(&mut opencv)?;
    let mut rows = scene.rows()?;
    for photo in &photos {
        rows.extend(photo.rows(filter, &mut opencv)?);
    }
    rows.extend(sets.rows());
    rows.extend(pair.rows()?);
    rows.retain(|row| row.name.contains(filter));
    for threads in [1, 2] {
        let cpu = Cpu::with_threads(threads).map_err(|e| e.to_string())?;
        let version = opencv.ask(&format!("threads {threads}"))?;
        let plural = if threads == 1 { "" } else { "s" };
        println!("\n{threads} thread{plural}, {}, OpenCV {version}\n", cpu.level_name());
        println!("| | tiepoint ms | OpenCV ms | ratio | features |\n|---|---:|---:|---:|---:|");
        for row in &mut rows {
            println!("{}", row.measure(&cpu, &mut opencv)?);
        }
    }
    Ok(())
}

/// The shortest of at least three runs and about 0.4 s in all, in milliseconds, and what the runs return.
fn best<T>(run: &mut dyn FnMut() -> tiepoint::Result<T>) -> tiepoint::Result<(f64, T)> {
    let result = run()?;
    let begin = Instant::now();
    let (mut shortest, mut runs) = (Duration::MAX, 0);
    while runs < 3 || begin.elapsed() < Duration::from_millis(400) {
        let start = Instant::now();
        run()?;
        shortest = shortest.min(start.elapsed());
        runs += 1;
    }
    Ok((shortest.as_secs_f64() * 1e3, result))
}
