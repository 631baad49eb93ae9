//! Python packages, unpacked into separate folders below the target folder.

use crate::{Result, at, debian, remove, runs, succeed};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file in a folder of packages that records the requested packages.
const ASKED: &str = "asked-for.txt";

/// The full path of `home`, into which these packages are unpacked unless it already holds them. They are first
/// unpacked beside it, so that an interrupted fetch leaves nothing that looks complete.
pub(crate) fn unpack(packages: &[&str], options: &[&str], home: &Path) -> Result<PathBuf> {
    let asked = [options, packages].concat().join("\n");
    if std::fs::read_to_string(home.join(ASKED)).is_ok_and(|there| there == asked) {
        return home.canonicalize().map_err(at(home));
    }
    // Debian's Python comes without pip. `--target` is allowed where others manage the system's packages.
    if !runs("python3", &["-m", "pip", "--version"]) {
        debian::install(&["python3", "python3-pip"]).map_err(|e| format!("python3 has no pip: {e}"))?;
    }
    let names = packages.join(", ");
    println!("unpacking {names} into {}", home.display());
    let beside = home.with_extension("under-way");
    remove(&beside)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary=:all:"]).args(options).args(packages);
    succeed(pip.arg("--target").arg(&beside).env("PIP_ROOT_USER_ACTION", "ignore"))
        .map_err(|e| format!("pip could not fetch {names}: {e}"))?;
    std::fs::write(beside.join(ASKED), asked).map_err(at(&beside))?;
    remove(home)?;
    std::fs::rename(&beside, home).and_then(|()| home.canonicalize()).map_err(at(home))
}
