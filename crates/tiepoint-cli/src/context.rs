//! What a command runs in: the device that computes, and the ways to tell the user.

use crate::arguments::GlobalArguments;
use crate::failure::{Failure, Outcome};
use crate::output::{ProgressLine, print_error, print_line, profile_table};
use serde_json::Value;
use tiepoint::ErrorKind;
use tiepoint::device::{Device, Processor, StageTime};

/// The device, and what the user wants to hear.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) processor: Processor,
    pub(crate) json: bool,
    pub(crate) progress: ProgressLine,
    profile: bool,
    verbose: bool,
    quiet: bool,
}

impl Context {
    /// Opens the devices; a command without a GPU form computes on the CPU, with the same result.
    pub(crate) fn open(global: &GlobalArguments, has_gpu_form: bool) -> Outcome<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = global.threads.map_or_else(cores, usize::from).min(1024);
        let processor = match has_gpu_form {
            true => global.device.open(threads),
            false => global.device.open_cpu(threads).map(Processor::from),
        };
        let mut processor = processor.map_err(unavailable)?;
        let progress = ProgressLine::new(!global.quiet && !global.json)?;
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
        // Devices that were looked for and not found.
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
        let gpu = self.processor.gpu.as_ref().map(|gpu| format!("{}:{}", gpu.info().api, gpu.info().index));
        gpu.unwrap_or_else(|| "cpu".to_owned())
    }

    /// Prints a line for people on stdout; not with --json or --quiet.
    pub(crate) fn say(&self, line: &str) -> Outcome {
        if self.json || self.quiet { Ok(()) } else { self.progress.suspend(|| print_line(line)) }
    }

    /// Prints a JSON object on stdout, with --json.
    pub(crate) fn report(&self, object: impl FnOnce() -> Value) -> Outcome {
        if self.json { print_line(&object().to_string()) } else { Ok(()) }
    }

    /// Prints a failure on stderr that does not end the command.
    pub(crate) fn complain(&self, failure: &Failure) {
        self.progress.suspend(|| print_error(&format!("tiepoint: {failure}")));
    }

    /// Prints a line on stderr that changes nothing about the result; not with --quiet.
    pub(crate) fn note(&self, line: &str) {
        if !self.quiet {
            self.progress.suspend(|| print_error(&format!("tiepoint: {line}")));
        }
    }

    /// Prints what the library noted: work of the GPU that the CPU did instead, and why.
    pub(crate) fn print_notes(&self) {
        self.processor.take_notes().iter().for_each(|note| self.note(note));
    }

    /// Prints a line on stderr, with --verbose.
    pub(crate) fn explain(&self, line: &str) {
        if self.verbose {
            self.progress.suspend(|| print_error(line));
        }
    }

    /// Adds the times of stages that were measured by another profile.
    pub(crate) fn add_stages(&self, stages: &[StageTime]) {
        if let Some(profile) = self.processor.cpu.profile() {
            profile.extend(stages);
        }
    }

    /// Ends the command: prints what is left of the notes, and with --profile the times of the stages.
    pub(crate) fn close(&self) {
        self.print_notes();
        if self.profile {
            self.progress.suspend(|| print_error(profile_table(&self.processor.cpu).trim_end()));
        }
    }
}

/// A device that is not there is a wrong argument, not failed work.
fn unavailable(error: tiepoint::Error) -> Failure {
    match error.kind() {
        ErrorKind::Device => Failure::usage(format!("{error}; `tiepoint devices` lists what there is")),
        _ => error.into(),
    }
}
