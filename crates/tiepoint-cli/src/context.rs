//! One run of the command: its device, and how it speaks.

use crate::arguments::GlobalArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{Object, Progress, profile_table};
use std::io::Write;
use tiepoint::device::{Device, Processor, StageTime};

/// The device, and what the user wants to hear.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) processor: Processor,
    pub(crate) json: bool,
    pub(crate) progress: Progress,
    profile: bool,
    verbose: bool,
    quiet: bool,
}

impl Context {
    /// Opens the devices; a command without a GPU form takes the CPU, with the same result.
    pub(crate) fn open(global: &GlobalArguments, has_gpu_form: bool) -> Outcome<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = global.threads.map_or_else(cores, usize::from).min(1024);
        let processor = match has_gpu_form {
            true => global.device.open(threads),
            false => global.device.open_cpu(threads).map(Processor::from),
        };
        let mut processor = processor.map_err(unavailable)?;
        let progress = Progress::new(!global.quiet && !global.json);
        processor.cpu = progress.watch(processor.cpu.profiled());
        if let Some(gpu) = &processor.gpu {
            gpu.profile(global.profile);
        }
        let context = Self {
            processor,
            json: global.json,
            progress,
            profile: global.profile,
            verbose: global.verbose,
            quiet: global.quiet,
        };
        if !has_gpu_form && matches!(global.device, Device::Cuda(_) | Device::OpenCl(_)) {
            context.note(&format!(
                "this command has no GPU form: the CPU computes in place of {}",
                global.device
            ));
        }
        let Processor { cpu, gpu, .. } = &context.processor;
        context.processor.take_notes().iter().for_each(|note| context.explain(note));
        context.explain(&format!("{} threads, {}", cpu.threads(), cpu.level_name()));
        if let Some(gpu) = gpu {
            context.explain(&gpu.info().to_string());
        }
        Ok(context)
    }

    /// The device's name for reports.
    pub(crate) fn device(&self) -> String {
        self.processor
            .gpu
            .as_ref()
            .map_or_else(|| "cpu".into(), |g| format!("{}:{}", g.info().api, g.info().index))
    }

    /// A line for people on stdout; not with --json or --quiet.
    pub(crate) fn say(&self, line: &str) -> Outcome {
        if self.json || self.quiet {
            return Ok(());
        }
        self.progress.wipe();
        print(line)
    }

    /// A line on stderr that changes nothing about the result; not with --quiet.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            self.progress.wipe();
            let _ = writeln!(std::io::stderr(), "tiepoint: {line}");
        }
    }

    /// A JSON object on stdout, with --json.
    pub(crate) fn report(&self, object: impl FnOnce() -> Object) -> Outcome {
        if self.json { print(&object().to_string()) } else { Ok(()) }
    }

    /// A line on stderr, with --verbose.
    pub(crate) fn explain(&self, line: &str) {
        if self.verbose {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// Brings in the times of stages that ran beside.
    pub(crate) fn add_stages(&self, stages: &[StageTime]) {
        if let Some(profile) = self.processor.cpu.profile() {
            profile.extend(stages);
        }
    }

    /// The stage times, with --profile.
    pub(crate) fn close(&self) {
        if self.profile {
            self.progress.wipe();
            let _ = write!(std::io::stderr(), "{}", profile_table(&self.processor.cpu));
        }
    }
}

/// A device that is not there is a wrong argument, not failed work.
fn unavailable(error: tiepoint::Error) -> Failure {
    match error {
        tiepoint::Error::Device { .. } => Failure::usage(error.to_string()),
        other => other.into(),
    }
}

fn print(line: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|e| match e.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Quiet,
        _ => Failure::work(format!("stdout: {e}")),
    })
}
