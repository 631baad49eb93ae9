//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, by cargo-deny.
//!
//! Security advisories are left out, since their database is fetched anew each time.

use crate::{Result, succeed, workspace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const VERSION: &str = "0.20.2";

/// Runs cargo-deny: the one on the path, else the one below the target folder, which is built there if it is missing.
pub(crate) fn run() -> Result<()> {
    let mut command = Command::new(installed()?);
    succeed(command.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(workspace()))
}

fn installed() -> Result<PathBuf> {
    if runs(Path::new("cargo-deny")) {
        return Ok("cargo-deny".into());
    }
    let tools = workspace().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !runs(&program) {
        println!("cargo-deny {VERSION} is built once into {} (some minutes)", tools.display());
        let mut install = Command::new(env!("CARGO"));
        install.args(["install", "--quiet", "--debug", "--locked", "--root"]).arg(&tools);
        succeed(install.args(["cargo-deny", "--version", VERSION]))?;
    }
    Ok(program)
}

fn runs(program: &Path) -> bool {
    let mut asked = Command::new(program);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|s| s.success())
}
