//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, by cargo-deny.
//!
//! Security advisories are left out, since their database is fetched anew each time.

use crate::{Result, cargo, runs, succeed, workspace};
use std::path::PathBuf;
use std::process::Command;

const VERSION: &str = "0.20.2";

/// Runs cargo-deny: the one on the path, else the one below the target folder, which is built there if it is missing.
pub(crate) fn run() -> Result<()> {
    let mut command = Command::new(installed()?);
    succeed(command.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(workspace()))
}

fn installed() -> Result<PathBuf> {
    if runs("cargo-deny", &["--version"]) {
        return Ok("cargo-deny".into());
    }
    let tools = workspace().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !runs(&program, &["--version"]) {
        println!("cargo-deny {VERSION} is built once into {} (some minutes)", tools.display());
        let mut install = cargo(&["install", "--quiet", "--debug", "--locked", "--root"]);
        install.env("CARGO_PROFILE_DEV_DEBUG", "0").arg(&tools).args(["cargo-deny", "--version", VERSION]);
        succeed(&mut install)?;
    }
    Ok(program)
}
