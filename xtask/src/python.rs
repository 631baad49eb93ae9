//! The Python with OpenCV's wheel that the library is compared with.

use crate::{Result, workspace};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The wheel compared with.
const OPENCV: &str = "opencv-contrib-python-headless==5.0.0.93";

/// A Python that has OpenCV: the one named by `TIEPOINT_PYTHON`, or `.venv` in the workspace, made if missing.
pub(crate) fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("TIEPOINT_PYTHON") {
        return Ok(python.into());
    }
    let venv = workspace().join(".venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if has_opencv(&python) {
        return Ok(python);
    }
    eprintln!("installing {OPENCV} into {} …", venv.display());
    let wanted = format!(
        "a Python with OpenCV is needed: install python3 with venv and pip, or set TIEPOINT_PYTHON to one that has {OPENCV} and numpy"
    );
    step(Command::new("python3").args(["-m", "venv"]).arg(&venv), &wanted)?;
    step(Command::new(&python).args(["-m", "pip", "install", "--quiet", OPENCV, "numpy"]), &wanted)?;
    if has_opencv(&python) { Ok(python) } else { Err(wanted) }
}

fn has_opencv(python: &Path) -> bool {
    let check = Command::new(python).args(["-c", "import cv2, numpy"]).stderr(Stdio::null()).status();
    check.is_ok_and(|s| s.success())
}

fn step(command: &mut Command, wanted: &str) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}; {wanted}")),
        Err(e) => Err(format!("{command:?}: {e}; {wanted}")),
    }
}
