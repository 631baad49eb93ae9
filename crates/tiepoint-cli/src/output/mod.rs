//! What the command prints, and the names of its results.

mod files;
mod json;
mod paths;
mod picture;
mod progress;
mod timing;

pub(crate) use files::Files;
pub(crate) use json::joined;
pub(crate) use paths::{check_image, fill, output_paths};
pub(crate) use picture::{note_world_file, place_of, write_picture};
pub(crate) use progress::{Log, ProgressLine, size, span};
pub(crate) use timing::{Clock, Part, Spent, profile_table};

use crate::failure::{Failure, Outcome};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static DATA_ON_STDOUT: AtomicBool = AtomicBool::new(false);

/// With `wanted`, lines go to stderr from now on, because a result is written to stdout.
pub(crate) fn keep_stdout_for_data(wanted: bool) {
    DATA_ON_STDOUT.fetch_or(wanted, Relaxed);
}

/// Prints a line on stdout, or on stderr if a result is written to stdout.
pub(crate) fn print_line(line: &str) {
    if DATA_ON_STDOUT.load(Relaxed) {
        return print_error(line);
    }
    print_bytes(format!("{line}\n").as_bytes());
}

/// The first error of printing on stdout.
static UNSAID: OnceLock<std::io::Error> = OnceLock::new();

/// Prints on stdout. If it is closed or full, the command goes on without output and fails at its end (`check_stdout`).
pub(crate) fn print_bytes(bytes: &[u8]) {
    if UNSAID.get().is_none() {
        let mut out = std::io::stdout().lock();
        note_printed(out.write_all(bytes).and_then(|()| out.flush()));
    }
}

/// Records an error of printing on stdout.
pub(crate) fn note_printed(printed: std::io::Result<()>) {
    if let Err(e) = printed {
        // Only the first is kept.
        let _ = UNSAID.set(e);
    }
}

/// Fails if printing on stdout has failed.
pub(crate) fn check_stdout() -> Outcome {
    match UNSAID.get() {
        None => Ok(()),
        Some(e) => Err(Failure::work(format!(
            "stdout: {e}; the work is done and its files are written, but not everything could be printed"
        ))),
    }
}

static VERBOSE: AtomicBool = AtomicBool::new(false);

/// With `wanted`, [`explain_early`] prints.
pub(crate) fn be_verbose(wanted: bool) {
    VERBOSE.fetch_or(wanted, Relaxed);
}

/// Prints a line on stderr with --verbose, also before there is a [`Context`](crate::context::Context).
pub(crate) fn explain_early(line: &str) {
    if VERBOSE.load(Relaxed) {
        print_error(line);
    }
}

/// Prints a line on stderr. A failure to do so cannot be reported anywhere.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
