//! The Python with OpenCV's wheel that the library is compared with.

use crate::{Result, succeed, told, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

const OPENCV: &str = "opencv-contrib-python-headless==5.0.0.93";

/// A Python that has OpenCV: that of `TIEPOINT_PYTHON`, or `.venv` in the workspace, made if missing.
pub(crate) fn python() -> Result<PathBuf> {
    if let Some(python) = std::env::var_os("TIEPOINT_PYTHON") {
        return Ok(python.into());
    }
    let venv = workspace().join(".venv");
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if import_opencv(&python).is_ok() {
        return Ok(python);
    }
    eprintln!("installing {OPENCV} into {} …", venv.display());
    let wanted = format!(
        "a Python with OpenCV is needed: install python3 with venv and pip, or set TIEPOINT_PYTHON to one that has {OPENCV} and numpy"
    );
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&venv))
        .and_then(|()| {
            succeed(Command::new(&python).args(["-m", "pip", "install", "--quiet", OPENCV, "numpy"]))
        })
        .and_then(|()| import_opencv(&python))
        .map_err(|e| format!("{e}; {wanted}"))?;
    Ok(python)
}

fn import_opencv(python: &Path) -> Result<()> {
    told(Command::new(python).args(["-c", "import cv2, numpy"])).map(drop)
}
