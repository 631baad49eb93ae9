//! `cargo xtask kernels`: the CUDA kernels of the packed program and the wheel, compiled by NVRTC for every kind of card.

use crate::{CHECKED, Result, built, cargo, nvrtc, prepare, profile, succeed, target};
use std::path::PathBuf;
use std::process::Command;

/// The environment variable that names their file for a build (`tiepoint-gpu/src/packaged.rs`).
pub(crate) const VARIABLE: &str = "TIEPOINT_CUDA_KERNELS";

/// Compiles the kernels and returns the path of the file that holds them.
pub(crate) fn compile() -> Result<PathBuf> {
    let libraries = prepare::before_others(&nvrtc::prepare()?, "LD_LIBRARY_PATH")?;
    let file = target().join("cuda.kernels");
    // The whole workspace, so that what the tests built is used again. NVRTC does the work.
    let build = ["build", "--quiet", "--locked", "--workspace", "--example", "cuda_kernels"];
    succeed(cargo(&build).args(profile(CHECKED)).env_remove(VARIABLE))?;
    let mut example = Command::new(built(CHECKED, "examples/cuda_kernels")?);
    succeed(example.arg(&file).env("LD_LIBRARY_PATH", libraries))?;
    file.canonicalize().map_err(crate::at(&file))
}
