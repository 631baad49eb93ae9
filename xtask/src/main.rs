//! The project's own commands: `cargo xtask test`, `cargo xtask bench`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to people")]

mod bench;
mod test;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("bench") => bench::run(&arguments.collect::<Vec<_>>()),
        Some("test") => test::run(&arguments.collect::<Vec<_>>()),
        _ => Err("usage: cargo xtask test [ARGUMENTS OF cargo test] | bench [FILTER]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
