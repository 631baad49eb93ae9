//! The page of reports: its types, and all kinds of it in a browser.

use crate::{CHECKED, Result, built, cargo, data_folder, debian, profile, succeed, workspace};
use std::path::Path;
use std::process::Command;

/// Makes sure that Node, its package manager, Chromium and the packages of the tests are there.
pub(crate) fn prepare() -> Result<()> {
    debian::need("node", &["nodejs", "npm"])?;
    debian::need("npm", &["npm"])?;
    if std::env::var_os("CHROMIUM").is_none() && !Path::new("/usr/bin/chromium").exists() {
        debian::install(&["chromium"])?;
    }
    npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])
}

/// Checks the types of the script, then opens every kind of page in a browser, with the command of the other tests.
pub(crate) fn test() -> Result<()> {
    npm(&["run", "--silent", "types"])?;
    let build = ["build", "--quiet", "--workspace", "--bin", "tiepoint", "--example", "collection"];
    succeed(cargo(&build).args(profile(CHECKED)))?;
    let mut browser = command(&["run", "--silent", "test"]);
    browser.env("TIEPOINT", built(CHECKED, "tiepoint")?);
    browser.env("COLLECTIONS", built(&format!("{CHECKED}/examples"), "collection")?);
    if let Ok(data) = data_folder().canonicalize() {
        browser.env("TIEPOINT_DATA", data);
    }
    succeed(&mut browser)
}

fn npm(arguments: &[&str]) -> Result<()> {
    succeed(&mut command(arguments))
}

fn command(arguments: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(arguments).current_dir(workspace().join("report/test"));
    npm
}
