//! `cargo xtask deny`: licences, sources and duplicates of all dependencies, by cargo-deny.

use crate::{Result, succeed, workspace};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What `deny.toml` is written for; built without optimisation, as it runs for a second and builds for minutes.
const INSTALL: [&str; 6] = ["install", "--quiet", "--locked", "--debug", "cargo-deny@0.20.2", "--root"];

/// Runs cargo-deny: the installed one, or under CI the one in the target folder, built there if missing. Security
/// advisories are left out, since their database is fetched anew each time.
pub(crate) fn run() -> Result<()> {
    let tools = workspace().join("target/tools");
    let Some(program) = installed(&tools.join("bin")) else {
        if std::env::var_os("CI").is_none() {
            println!("cargo-deny is not installed (cargo install cargo-deny): licences were not checked");
            return Ok(());
        }
        println!("building cargo-deny into {}", tools.display());
        succeed(Command::new(env!("CARGO")).args(INSTALL).arg(&tools))?;
        return check(&tools.join("bin/cargo-deny"));
    };
    check(&program)
}

fn installed(tools: &std::path::Path) -> Option<PathBuf> {
    let programs = [PathBuf::from("cargo-deny"), tools.join("cargo-deny")];
    programs.into_iter().find(|program| {
        let mut asked = Command::new(program);
        asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        asked.status().is_ok_and(|s| s.success())
    })
}

fn check(program: &std::path::Path) -> Result<()> {
    let mut command = Command::new(program);
    succeed(command.args(["--locked", "check", "licenses", "bans", "sources"]).current_dir(workspace()))
}
