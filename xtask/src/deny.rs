//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, by cargo-deny where it is
//! installed.

use crate::{Result, succeed, workspace};
use std::process::{Command, Stdio};

/// Runs cargo-deny, or says that it is missing. Security advisories are left out, since their database is
/// fetched anew each time.
pub(crate) fn run() -> Result<()> {
    let mut asked = Command::new("cargo-deny");
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !asked.status().is_ok_and(|s| s.success()) {
        println!("cargo-deny is not installed (cargo install cargo-deny): licences were not checked");
        return Ok(());
    }
    let mut command = Command::new("cargo-deny");
    succeed(command.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(workspace()))
}
