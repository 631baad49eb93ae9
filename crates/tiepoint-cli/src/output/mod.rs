//! What the command says about its work, and where its results go.

mod json;
mod paths;
mod progress;
mod timing;

pub(crate) use json::joined;
pub(crate) use paths::{check_folder, check_image, fill, output_paths};
pub(crate) use progress::Progress;
pub(crate) use timing::{Clock, Part, Spent, profile_table};

use std::io::Write;

/// Prints a line on stderr. There is no place left to tell of a failure to do so.
pub(crate) fn print_error(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
