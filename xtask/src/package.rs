//! `cargo xtask package` and `cargo xtask dist`: the packages and the program as they are published.

use crate::{Result, instruction_sets, succeed, workspace};
use std::fs;
use std::path::Path;
use std::process::Command;

const PACKAGES: [&str; 5] =
    ["tiepoint-gpu", "tiepoint", "tiepoint-colmap", "tiepoint-report", "tiepoint-cli"];

/// Shells and the file in which each looks for its script.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "tiepoint"),
    ("zsh", "_tiepoint"),
    ("fish", "tiepoint.fish"),
    ("elvish", "tiepoint.elv"),
    ("powershell", "tiepoint.ps1"),
];

/// Packs the crates as they would be published and, unless told `--no-verify`, builds each from its own
/// files.
pub(crate) fn package(arguments: &[String]) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args(["package", "--quiet", "--locked"]).args(arguments);
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    succeed(&mut cargo)?;
    println!("packed: {}", PACKAGES.join(", "));
    Ok(())
}

/// Puts the command, its completions, manual pages, readme and licences into `target/dist`, and checks that its SIMD
/// code is compiled with its instruction sets.
pub(crate) fn dist() -> Result<()> {
    let workspace = workspace();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--release", "--locked", "--package", "tiepoint-cli"]).current_dir(&workspace);
    succeed(&mut build)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), Into::into);
    let program = format!("tiepoint{}", std::env::consts::EXE_SUFFIX);
    let built = target.join("release").join(&program);
    instruction_sets::check(&built)?;
    let folder = target.join("dist");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    copy(&built, &folder.join("bin").join(&program))?;
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&workspace.join(name), &folder.join(name))?;
    }
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).map_err(|e| format!("{}: {e}", completions.display()))?;
    for (shell, name) in SHELLS {
        let script = Command::new(&built).args(["completions", shell]).output();
        let script = script.map_err(|e| format!("{}: {e}", built.display()))?;
        if !script.status.success() || script.stdout.is_empty() {
            return Err(format!("tiepoint completions {shell}: {}", script.status));
        }
        fs::write(completions.join(name), script.stdout).map_err(|e| format!("{name}: {e}"))?;
    }
    succeed(Command::new(&built).arg("man").arg(folder.join("man/man1")))?;
    println!("{}", folder.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}
