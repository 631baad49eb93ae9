//! The `tiepoint` command: tie points between pictures, registration, stereo and more.
//!
//! [`arguments`] turns a command line into checked options, [`commands`] does the work, and [`output`] and [`draw`]
//! write the results.

mod arguments;
mod commands;
mod context;
mod draw;
mod failure;
mod input;
mod interrupt;
mod output;
mod prefetch;

use clap::Parser;
use failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let variable = |name: &str| std::env::var(name).ok();
    let outcome =
        arguments::like::translated(std::env::args_os().collect(), variable).and_then(|(words, told)| {
            told.iter().for_each(|told| output::print_error(&format!("tiepoint: {told}")));
            let words = arguments::streams::named(words)?;
            output::keep_stdout_for_data(words.iter().any(|word| arguments::streams::is_stdout(word)));
            if words.iter().any(|word| arguments::streams::is_pipe(word)) {
                interrupt::end_stalled();
            }
            match arguments::Arguments::try_parse_from(&words) {
                Ok(arguments) => commands::run(&arguments),
                Err(error) if error.kind() == clap::error::ErrorKind::InvalidUtf8 => Err(no_text(&words)),
                Err(error) => refuse(&error),
            }
        });
    let outcome = outcome.and_then(|()| output::check_stdout());
    if let Err(failure) = &outcome {
        output::print_error(&format!("tiepoint: {failure}"));
    }
    interrupt::pass_on();
    let code = outcome.map_or_else(|failure| failure.code(), |()| 0);
    interrupt::leave_background(code);
    ExitCode::from(code)
}

/// An error that names the arguments that are not UTF-8; an option that takes a pattern needs UTF-8.
fn no_text(words: &[OsString]) -> Failure {
    let named: Vec<_> =
        words.iter().filter(|word| word.to_str().is_none()).map(|w| format!("{w:?}")).collect();
    Failure::usage(format!(
        "{}: not UTF-8, and an option that takes a pattern needs it: use another name",
        named.join(", ")
    ))
}

/// Prints help or version, or returns what is wrong with the command line.
fn refuse(error: &clap::Error) -> Result<(), Failure> {
    if error.use_stderr() {
        let text = error.render().to_string();
        return Err(Failure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end()));
    }
    // A reader such as `head` may close the pipe before all of the help is written.
    match error.print() {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        printed => output::note_printed(printed),
    }
    Ok(())
}
