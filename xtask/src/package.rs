//! `cargo xtask package` and `cargo xtask dist`: what others get.

use crate::{Result, succeed, workspace};
use std::process::Command;

const PACKAGES: [&str; 3] = ["tiepoint-gpu", "tiepoint", "tiepoint-cli"];

/// Packs the crates as they would be published and, unless told `--no-verify`, builds each from its own files.
pub(crate) fn package(arguments: &[String]) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args(["package", "--quiet"]).args(arguments);
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    succeed(&mut cargo)?;
    println!("target/package: {}", PACKAGES.join(", "));
    Ok(())
}
