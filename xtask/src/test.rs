//! `cargo xtask test`: every test that this machine can run, and a word on those that it cannot.

use crate::{data_folder, gpu, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs unit, property, accuracy, command-line and documentation tests. `arguments` go to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let data = data_folder();
    match data.is_dir() {
        true => println!("photographs with ground truth: {}", data.display()),
        false => println!(
            "no photographs at {}: accuracy is tested on synthetic scenes alone (TIEPOINT_DATA may name them)",
            data.display()
        ),
    }
    let variables = gpu::prepare()?;
    cargo(&workspace(), &data, &variables, &["test", "--workspace"], arguments)?;
    println!("all tests passed");
    Ok(())
}

fn cargo(
    root: &Path,
    data: &Path,
    variables: &[(&str, PathBuf)],
    command: &[&str],
    more: &[String],
) -> Result<(), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo.current_dir(root).args(command).args(more).envs(variables.iter().cloned());
    if let Ok(data) = data.canonicalize() {
        cargo.env("TIEPOINT_DATA", data);
    }
    let status = cargo.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("cargo {} failed", command.join(" "))),
    }
}
