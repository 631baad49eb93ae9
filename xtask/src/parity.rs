//! `cargo xtask parity`: how near the command's SIFT is to OpenCV's on photographs, and whose matches fit the
//! true homographies better, as Markdown tables. It fails when a bar is missed.

use crate::{Result, built, cargo, data_folder, opencv_python::python, succeed};
use std::process::Command;

pub(crate) fn run() -> Result<()> {
    let data = data_folder();
    if !data.is_dir() {
        return Err(format!(
            "no photographs at {}: fetch the shared data, or name their folder in TIEPOINT_DATA",
            data.display()
        ));
    }
    succeed(&mut cargo(&["build", "--quiet", "--release", "--package", "tiepoint-cli"]))?;
    let mut compare = Command::new(python()?);
    compare.args(["-c", include_str!("parity.py")]).arg(built("release", "tiepoint")?).arg(data);
    succeed(&mut compare).map_err(|e| format!("a bar was missed, or the comparison failed: {e}"))
}
