//! The project's own commands: `cargo xtask test`, `bench`, `parity` and `bisect`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command talks to people")]

mod bench;
mod bisect;
mod gpu;
mod parity;
mod python;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("bench") => bench::run(&arguments.collect::<Vec<_>>()),
        Some("bisect") => bisect::run(&arguments.collect::<Vec<_>>()),
        Some("parity") => parity::run(),
        Some("has-opencl") => gpu::has_opencl(),
        Some("test") => test::run(&arguments.collect::<Vec<_>>()),
        _ => {
            Err("usage: cargo xtask test [ARGUMENTS OF cargo test] | bench [FILTER] | parity | bisect IMAGE"
                .into())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Photographs with ground truth: `TIEPOINT_DATA`, or `../shared/data` beside the workspace.
fn data_folder() -> PathBuf {
    std::env::var_os("TIEPOINT_DATA").map_or_else(|| workspace().join("../shared/data"), PathBuf::from)
}
