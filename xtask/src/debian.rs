//! Packages of Debian and Ubuntu, installed if this process is permitted to.

use crate::{Result, runs, told};
use std::path::Path;
use std::process::{Command, Stdio};

/// Installs packages. Without permission the error gives the command to do it by hand.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    let by_hand = format!("install {names} (sudo apt-get install {names})");
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!("this is no Debian or Ubuntu: install what its packages {names} hold"));
    }
    if !is_root() {
        return Err(format!("only root installs packages: {by_hand}"));
    }
    println!("apt-get install {names}");
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    // A fresh machine has no lists of packages.
    let Err(first) = apt(&install) else { return Ok(()) };
    apt(&["update"]).and_then(|()| apt(&install)).map_err(|e| format!("{first}; {e}; {by_hand}"))
}

/// Whether this process may install and mount.
pub(crate) fn is_root() -> bool {
    told(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    told(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null())).map(drop)
}

/// Makes sure that a program can be started, installing packages if necessary.
pub(crate) fn need(program: &str, packages: &[&str]) -> Result<()> {
    if runs(program, &["--version"]) {
        return Ok(());
    }
    install(packages)?;
    if runs(program, &["--version"]) {
        Ok(())
    } else {
        Err(format!("{program} is not in the packages {}", packages.join(" ")))
    }
}
