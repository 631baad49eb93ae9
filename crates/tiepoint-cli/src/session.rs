//! One run of the command: its device, and how it speaks.

use crate::arguments::Common;
use crate::failure::{Failure, Outcome};
use crate::report::{Object, Progress, profile_table};
use std::io::Write;
use tiepoint::device::{Cpu, Device};

/// The device, and what the user wants to hear.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) cpu: Cpu,
    pub(crate) json: bool,
    pub(crate) progress: Progress,
    profile: bool,
    verbose: bool,
    quiet: bool,
}

impl Session {
    pub(crate) fn open(common: &Common) -> Outcome<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = common.threads.map_or_else(cores, usize::from);
        let cpu = common.device.open(threads.min(1024)).map_err(unavailable)?.profiled();
        let session = Self {
            cpu,
            json: common.json,
            progress: Progress::new(!common.quiet && !common.json),
            profile: common.profile,
            verbose: common.verbose,
            quiet: common.quiet,
        };
        session.explain(&format!("{} threads, {}", session.cpu.threads(), session.cpu.level_name()));
        Ok(session)
    }

    /// The device's name for reports.
    pub(crate) fn device(&self) -> String {
        Device::Cpu.to_string()
    }

    /// A line for people on stdout; not with --json or --quiet.
    pub(crate) fn say(&self, line: &str) -> Outcome {
        if self.json || self.quiet {
            return Ok(());
        }
        self.progress.say("");
        print(line)
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

    /// The stage times, with --profile.
    pub(crate) fn close(&self) {
        if self.profile {
            self.progress.say("");
            let _ = write!(std::io::stderr(), "{}", profile_table(&self.cpu));
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
