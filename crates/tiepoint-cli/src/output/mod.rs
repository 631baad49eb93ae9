//! What the command says about its work, and where its results go.

mod files;
mod json;
mod paths;
mod progress;
mod timing;

pub(crate) use files::Files;
pub(crate) use json::joined;
pub(crate) use paths::{check_folder, check_image, fill, output_paths};
pub(crate) use progress::{Log, ProgressLine, span};
pub(crate) use timing::{Clock, Part, Spent, profile_table};

use crate::failure::{Failure, Outcome};
use std::io::Write;

/// Prints a line on stdout.
pub(crate) fn print_line(line: &str) -> Outcome {
    print_bytes(format!("{line}\n").as_bytes())
}

/// Prints on stdout.
pub(crate) fn print_bytes(bytes: &[u8]) -> Outcome {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|e| stdout_failure(&e))
}

/// Why nothing more can be printed on stdout.
pub(crate) fn stdout_failure(error: &std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::StdoutClosed,
        _ => Failure::work(format!("stdout: {error}")),
    }
}

/// Prints a line on stderr. There is no place left to tell of a failure to do so.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
