//! `cargo xtask parity`: how near the command's SIFT is to OpenCV's on photographs, and whose matches fit the
//! true homographies better, as Markdown tables. It fails when a bar is missed.

use crate::{Result, data_folder, opencv_python::python, workspace};
use std::process::Command;

/// Builds the command, optimised, and compares.
pub(crate) fn run() -> Result<()> {
    let data = data_folder();
    if !data.is_dir() {
        return Err(format!(
            "no photographs at {}: fetch the shared data, or name their folder in TIEPOINT_DATA",
            data.display()
        ));
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--release", "--package", "tiepoint-cli"]).current_dir(workspace());
    succeed(&mut build, "the build of the command failed")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace().join("target"), Into::into);
    let tiepoint = target.join("release").join(format!("tiepoint{}", std::env::consts::EXE_SUFFIX));
    let mut compare = Command::new(python()?);
    compare.args(["-c", include_str!("parity.py")]).arg(tiepoint).arg(data);
    succeed(&mut compare, "a bar was missed, or the comparison failed")
}

fn succeed(command: &mut Command, otherwise: &str) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(otherwise.into()),
        Err(e) => Err(format!("{}: {e}", command.get_program().display())),
    }
}
