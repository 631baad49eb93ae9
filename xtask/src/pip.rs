//! Packages of Python, unpacked into folders of their own below the target folder.

use crate::{Result, debian};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file in a folder of packages that says what was asked for.
const ASKED: &str = "asked-for.txt";

/// The whole path of `home`, with packages unpacked into it unless it holds what these words ask for. They come beside
/// their place first, so that a fetch that broke off leaves nothing that looks whole.
pub(crate) fn unpack(packages: &[&str], options: &[&str], home: &Path) -> Result<PathBuf> {
    let at_home = |e| format!("{}: {e}", home.display());
    let asked = [options, packages].concat().join("\n");
    if std::fs::read_to_string(home.join(ASKED)).is_ok_and(|there| there == asked) {
        return home.canonicalize().map_err(at_home);
    }
    // Debian's Python comes without pip. `--target` is allowed where the system's packages are managed by
    // others.
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !pip.status().is_ok_and(|s| s.success()) {
        debian::install(&["python3", "python3-pip"]).map_err(|e| format!("python3 has no pip: {e}"))?;
    }
    let names = packages.join(", ");
    println!("unpacking {names} into {}", home.display());
    let beside = home.with_extension("under-way");
    if beside.exists() {
        std::fs::remove_dir_all(&beside).map_err(|e| format!("{}: {e}", beside.display()))?;
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary=:all:"]).args(options).args(packages);
    let status = pip
        .arg("--target")
        .arg(&beside)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .status()
        .map_err(|e| format!("python3: {e}"))?;
    if !status.success() {
        return Err(format!("python3 -m pip could not fetch {names}"));
    }
    std::fs::write(beside.join(ASKED), asked).map_err(|e| format!("{}: {e}", beside.display()))?;
    if home.exists() {
        std::fs::remove_dir_all(home).map_err(at_home)?;
    }
    std::fs::rename(&beside, home).and_then(|()| home.canonicalize()).map_err(at_home)
}
