//! `cargo xtask package` and `cargo xtask dist`: the packages and the program as they are published.
//!
//! On Linux the program is linked by zig against the glibc of manylinux2014, as the wheel is, so that it runs on any
//! distribution of the last ten years; which versions of glibc's functions it asks for is checked.

use crate::{Result, at, cargo, instruction_sets, kernels, pip, remove, succeed, target, told, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages that link against an old glibc.
const LINKER: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.1"];
/// The newest version of glibc's functions that the program may ask for.
const GLIBC: [u32; 2] = [2, 17];

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

/// Packs the crates as they would be published and builds each from its own files, unless told `--no-verify`.
pub(crate) fn package(arguments: &[String]) -> Result<()> {
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    succeed(cargo(&["package", "--quiet", "--locked"]).args(arguments).args(packages))?;
    println!("packed: {}", PACKAGES.join(", "));
    Ok(())
}

/// Puts the command, its completions, manual pages, readme and licences into `target/dist`, and checks that its SIMD
/// code is compiled with its instruction sets.
pub(crate) fn dist() -> Result<()> {
    let program = format!("tiepoint{}", std::env::consts::EXE_SUFFIX);
    let built = build(&target(), &kernels::compile()?)?.join(&program);
    instruction_sets::check(&built)?;
    let folder = target().join("dist");
    remove(&folder)?;
    let packed = folder.join("bin").join(&program);
    copy(&built, &packed)?;
    if cfg!(target_os = "linux") {
        succeed(Command::new("strip").arg("--strip-debug").arg(&packed))?;
    }
    for name in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&workspace().join(name), &folder.join(name))?;
    }
    let completions = folder.join("completions");
    fs::create_dir_all(&completions).map_err(at(&completions))?;
    for (shell, name) in SHELLS {
        let script = told(Command::new(&built).args(["completions", shell]))?;
        if script.is_empty() {
            return Err(format!("tiepoint completions {shell} printed nothing"));
        }
        fs::write(completions.join(name), script).map_err(|e| format!("{name}: {e}"))?;
    }
    succeed(Command::new(&built).arg("man").arg(folder.join("man/man1")))?;
    println!("{}", folder.display());
    Ok(())
}

/// Builds the program with these kernels; the folder that holds it.
fn build(target: &Path, kernels: &Path) -> Result<PathBuf> {
    let arguments = ["--release", "--locked", "--package", "tiepoint-cli"];
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        succeed(cargo(&["build"]).args(arguments).env(kernels::VARIABLE, kernels))?;
        return Ok(target.join("release"));
    }
    let tools = pip::unpack(&LINKER, &[], &workspace().join("target/python/linker"))?;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let [major, minor] = GLIBC;
    // cargo-zigbuild runs zig as a Python module.
    let mut zigbuild = Command::new(tools.join("bin/cargo-zigbuild"));
    zigbuild.arg("zigbuild").args(arguments).arg("--target").arg(format!("{triple}.{major}.{minor}"));
    // Cargo's own stripping would go through zig's linker, which then drops the names of functions too.
    zigbuild.env("CARGO_PROFILE_RELEASE_STRIP", "none").env(kernels::VARIABLE, kernels);
    succeed(zigbuild.env("CARGO", env!("CARGO")).env("PYTHONPATH", &tools).current_dir(workspace()))?;
    let folder = target.join(triple).join("release");
    let program = folder.join("tiepoint");
    let bytes = fs::read(&program).map_err(at(&program))?;
    match newest_glibc(&bytes) {
        None => Err(format!("{} asks for no version of glibc: is it linked statically?", program.display())),
        Some(newest) if newest > GLIBC => {
            let program = program.display();
            Err(format!("{program} needs glibc {}.{}, more than {major}.{minor}", newest[0], newest[1]))
        }
        Some(_) => Ok(folder),
    }
}

/// The newest version of glibc that a program names: `GLIBC_2.17` and the like, as they stand in its table of strings.
fn newest_glibc(program: &[u8]) -> Option<[u32; 2]> {
    const NAME: &[u8] = b"GLIBC_";
    let named = program.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let versions = named.filter_map(|(at, _)| {
        let text = program[at + NAME.len()..].split(|b| !b.is_ascii_digit() && *b != b'.').next()?;
        let mut numbers = std::str::from_utf8(text).ok()?.split('.').map(str::parse);
        Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
    });
    versions.max()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_version_is_found() {
        let strings = b"\0libc.so.6\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_";
        assert_eq!(newest_glibc(strings), Some([2, 17]));
        assert_eq!(newest_glibc(b"GLIBC_3.0"), Some([3, 0]));
        assert_eq!(newest_glibc(b"no version"), None);
    }
}
