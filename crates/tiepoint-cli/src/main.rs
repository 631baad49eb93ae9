//! The `tiepoint` command: tie points between pictures, and what follows from them.

mod arguments;
mod commands;
mod detector;
mod draw;
mod failure;
mod formats;
mod input;
mod report;
mod session;

use clap::Parser;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match arguments::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return answer(&error),
    };
    match commands::run(arguments) {
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
    let text = error.render();
    if error.use_stderr() {
        let text = text.to_string();
        let _ = write!(std::io::stderr(), "tiepoint: {}", text.strip_prefix("error: ").unwrap_or(&text));
        return ExitCode::from(2);
    }
    let _ = if anstream_is_terminal() {
        write!(std::io::stdout(), "{}", text.ansi())
    } else {
        write!(std::io::stdout(), "{text}")
    };
    ExitCode::SUCCESS
}

fn anstream_is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout()) && std::env::var_os("NO_COLOR").is_none()
}
