//! `cargo xtask test`: every test that this machine can run, and a word on those that it cannot.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs unit, property, accuracy, command-line and documentation tests. `arguments` go to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let data = data_folder(&root);
    match data.is_dir() {
        true => println!("photographs with ground truth: {}", data.display()),
        false => println!(
            "no photographs at {}: accuracy is tested on synthetic scenes alone (TIEPOINT_DATA may name them)",
            data.display()
        ),
    }
    cargo(&root, &data, &["test", "--workspace"], arguments)?;
    println!("all tests passed");
    Ok(())
}

fn data_folder(root: &Path) -> PathBuf {
    std::env::var_os("TIEPOINT_DATA").map_or_else(|| root.join("../shared/data"), PathBuf::from)
}

fn cargo(root: &Path, data: &Path, command: &[&str], more: &[String]) -> Result<(), String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    cargo.current_dir(root).args(command).args(more);
    if let Ok(data) = data.canonicalize() {
        cargo.env("TIEPOINT_DATA", data);
    }
    let status = cargo.status().map_err(|e| format!("cargo cannot be started: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("cargo {} failed", command.join(" "))),
    }
}
