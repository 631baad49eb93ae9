//! The `tiepoint` command: tie points between pictures, and what follows from them.

mod arguments;
mod commands;
mod context;
mod draw;
mod failure;
mod input;
mod output;
mod prefetch;

use clap::Parser;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return answer(&error),
    };
    match commands::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure);
            failure.code()
        }
    }
}

/// Says what went wrong on stderr, in the form of every message of this command.
fn complain(failure: &Failure) {
    let _ = writeln!(std::io::stderr(), "tiepoint: {failure}");
}

/// Help and version go to stdout; wrong usage to stderr with code 2.
fn answer(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let _ = write!(std::io::stderr(), "tiepoint: {}", text.strip_prefix("error: ").unwrap_or(&text));
    ExitCode::from(2)
}
