//! The context of a command: the devices that compute, and what is printed.

use crate::arguments::GlobalArguments;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Log, ProgressLine, print_error, print_line, profile_table};
use serde_json::Value;
use tiepoint::ErrorKind;
use tiepoint::device::{Cancel, Cpu, Device, Processor, StageTime};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) processor: Processor,
    /// Further devices.
    others: Vec<Processor>,
    pub(crate) progress: ProgressLine,
    global: GlobalArguments,
}

impl Context {
    /// Opens the device. A command that has no GPU form gets the CPU, with the same result.
    pub(crate) fn open(global: &GlobalArguments, has_gpu_form: bool) -> Outcome<Self> {
        let (threads, cancel) = (threads(global), interrupt::cancel());
        let device = global.device.one()?;
        let opened = match has_gpu_form {
            true => device.open(threads),
            false => device.open_cpu(threads).map(Processor::from),
        };
        let processor = opened.map_err(|error| unavailable(error, &cancel))?;
        let context = Self::with(processor, Vec::new(), &cancel, global, Log::None)?;
        if !has_gpu_form && !matches!(device, Device::Auto | Device::Cpu) {
            context.note(&format!("this command has no GPU form: the CPU computes in place of {device}"));
        }
        Ok(context)
    }

    /// Opens several devices, for a command that uses them all and logs its progress, as it may take hours.
    pub(crate) fn open_several(global: &GlobalArguments) -> Outcome<Self> {
        let (threads, cancel) = (threads(global), interrupt::cancel());
        let open = |device: Device| device.open(threads).map_err(|error| unavailable(error, &cancel));
        let mut opened = global.device.each()?.into_iter().map(open).collect::<Outcome<Vec<_>>>()?;
        let others = opened.split_off(1);
        let log = match (global.json, global.quiet) {
            (true, _) => Log::Objects,
            (false, true) => Log::None,
            (false, false) => Log::Lines,
        };
        Self::with(opened.remove(0), others, &cancel, global, log)
    }

    fn with(
        mut processor: Processor,
        others: Vec<Processor>,
        cancel: &Cancel,
        global: &GlobalArguments,
        log: Log,
    ) -> Outcome<Self> {
        let progress = ProgressLine::new(!global.quiet && !global.json)?;
        processor = processor.cancelled_by(cancel);
        processor.cpu = progress.watch(processor.cpu.profiled(), log);
        let others: Vec<_> = others.into_iter().map(|other| other.cancelled_by(cancel)).collect();
        std::iter::once(&processor).chain(&others).for_each(|p| p.profile_gpu(global.profile));
        let context = Self { processor, others, progress, global: global.clone() };
        let cpu = &context.processor.cpu;
        context.explain(&format!("{} threads, {}", cpu.threads(), cpu.level_name()));
        let named = context.all().filter(|p| !p.opens_beside()).filter_map(Processor::gpu);
        named.for_each(|gpu| context.explain(&gpu.info().to_string()));
        Ok(context)
    }

    /// All devices; the threads belong to the first.
    pub(crate) fn processors(&self) -> Vec<Processor> {
        self.all().cloned().collect()
    }

    /// A CPU for reading an image. If several are read at the same time, each has one thread and its own profile.
    pub(crate) fn reader(&self, at_once: bool) -> Cpu {
        let cpu = &self.processor.cpu;
        if at_once { Cpu::sequential().cancelled_by(&interrupt::cancel()) } else { cpu.clone() }.profiled()
    }

    fn all(&self) -> impl Iterator<Item = &Processor> {
        std::iter::once(&self.processor).chain(&self.others)
    }

    /// The devices that have computed since the last call, for reports. Work that has no GPU form counts for the CPU.
    pub(crate) fn take_device(&self) -> String {
        let mut names: Vec<String> = Vec::new();
        for name in self.all().flat_map(Processor::take_computed) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() { "cpu".to_owned() } else { names.join(",") }
    }

    /// Prints a line on stdout, unless --json or --quiet is given.
    pub(crate) fn say(&self, line: &str) {
        if !self.global.json && !self.global.quiet {
            self.progress.suspend(|| print_line(line));
        }
    }

    /// Prints a JSON object on stdout, with --json.
    pub(crate) fn report(&self, object: impl FnOnce() -> Value) {
        if self.global.json {
            print_line(&object().to_string());
        }
    }

    /// Prints a failure that does not end the command on stderr.
    pub(crate) fn complain(&self, failure: &Failure) {
        self.progress.suspend(|| print_error(&format!("tiepoint: {failure}")));
    }

    /// Whether neither results nor notes are printed.
    pub(crate) fn is_silent(&self) -> bool {
        self.global.quiet && !self.global.json
    }

    /// Prints a note on stderr, unless --quiet is given.
    pub(crate) fn note(&self, line: &str) {
        if !self.global.quiet {
            self.progress.suspend(|| print_error(&format!("tiepoint: {line}")));
        }
    }

    /// Prints the library's notes about work that the CPU did in place of a GPU, and why.
    pub(crate) fn print_notes(&self) {
        self.all().flat_map(Processor::take_notes).for_each(|note| self.note(&note));
    }

    /// Prints a line on stderr, with --verbose.
    pub(crate) fn explain(&self, line: &str) {
        if self.global.verbose {
            self.progress.suspend(|| print_error(line));
        }
    }

    /// Prints what became of the GPUs that were opened beside the work, and what the CPU did meanwhile, with --verbose.
    fn explain_opened(&self) {
        for processor in self.all() {
            processor.take_passed_over().iter().for_each(|reason| self.explain(reason));
            let gpu = match processor.gpu_now() {
                Ok(None) => continue,
                Err(_) => {
                    self.explain("the work was done before a GPU was open");
                    continue;
                }
                Ok(Some(gpu)) => gpu.info(),
            };
            if processor.opens_beside() {
                self.explain(&gpu.to_string());
            }
            let pieces = processor.take_not_ready();
            if pieces > 0 {
                let device = format!("{}:{}", gpu.api, gpu.index);
                self.explain(&format!(
                    "the CPU did {pieces} pieces of work while {device} was being opened or its kernels compiled; \
                     --device {device} waits for them"
                ));
            }
        }
    }

    /// Adds the times of stages that were measured by another profile.
    pub(crate) fn add_stages(&self, stages: &[StageTime]) {
        if let Some(profile) = self.processor.cpu.profile() {
            profile.extend(stages);
        }
    }

    /// Ends the command: prints the remaining notes, and with --profile the times of the stages.
    pub(crate) fn close(&self) {
        self.print_notes();
        self.explain_opened();
        if self.global.profile {
            self.progress.suspend(|| print_error(profile_table(&self.processor.cpu).trim_end()));
        }
    }
}

/// The number of threads asked for, at most 1024; by default one for every core.
fn threads(global: &GlobalArguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    global.threads.map_or_else(cores, usize::from).min(1024)
}

/// An error of opening a device; a device that does not exist is a wrong argument. A signal breaks what the device
/// compiles to be tried: that is an interruption.
fn unavailable(error: tiepoint::Error, cancel: &Cancel) -> Failure {
    match error.kind() {
        _ if cancel.is_cancelled() => tiepoint::Error::Cancelled.into(),
        ErrorKind::Device => Failure::usage(format!("{error}; `tiepoint devices` lists what there is")),
        _ => error.into(),
    }
}
