//! `cargo xtask kernels`: the kernels for CUDA that the packed program and the wheel hold, compiled by NVRTC for every
//! generation of cards.

use crate::{Result, cargo, nvrtc, prepare, succeed, target};
use std::path::PathBuf;

/// The variable by which a build takes them (`tiepoint-gpu/src/packaged.rs`).
pub(crate) const VARIABLE: &str = "TIEPOINT_CUDA_KERNELS";

/// Compiles them; the file that holds them.
pub(crate) fn compile() -> Result<PathBuf> {
    let libraries = prepare::before_others(&nvrtc::prepare()?)?;
    let file = target().join("cuda.kernels");
    let example = [
        "run",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "tiepoint",
        "--example",
        "cuda_kernels",
        "--",
    ];
    succeed(cargo(&example).arg(&file).env("LD_LIBRARY_PATH", libraries).env(VARIABLE, ""))?;
    file.canonicalize().map_err(crate::at(&file))
}
