//! What GPU tests need: an OpenCL device (PoCL makes one of the CPU) and NVRTC, which compiles for CUDA without a card.

use crate::{Result, workspace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tiepoint::device::gpu::{Api, devices};

/// NVRTC as a Python wheel, and where its libraries lie in it.
const NVRTC: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";
const NVRTC_LIBRARIES: &str = "nvidia/cuda_nvrtc/lib";

/// The variables under which tests find both; from then on a test may not skip. What cannot be had is said, and is a
/// failure under CI.
pub(crate) fn prepare() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut variables = vec![("TIEPOINT_CACHE", workspace().join("target/kernels"))];
    match opencl() {
        Ok(()) => variables.push(("TIEPOINT_REQUIRE_GPU", "1".into())),
        Err(missing) => without("GPU tests will be skipped", &missing)?,
    }
    match nvrtc() {
        Ok(folder) => {
            variables.push(("LD_LIBRARY_PATH", before_others(folder)));
            variables.push(("TIEPOINT_REQUIRE_NVRTC", "1".into()));
        }
        Err(missing) => without("kernels will not be compiled for CUDA", &missing)?,
    }
    Ok(variables)
}

fn without(loss: &str, missing: &str) -> Result<()> {
    match std::env::var_os("CI") {
        Some(_) => Err(missing.into()),
        None => {
            println!("{missing}; {loss}");
            Ok(())
        }
    }
}

/// An OpenCL device, installed where that is possible.
fn opencl() -> Result<()> {
    let found = || matches!(devices(Api::OpenCl), Ok(d) if !d.is_empty());
    if found() {
        return Ok(());
    }
    let wanted = "no OpenCL device: install PoCL (Debian, Ubuntu: sudo apt-get install pocl-opencl-icd; \
                  macOS: brew install pocl) or a vendor's driver";
    let install = ["install", "--yes", "--no-install-recommends", "pocl-opencl-icd"];
    if !is_root() || !(apt(&install) || apt(&["update"]) && apt(&install)) {
        return Err(wanted.into());
    }
    // Looked up in a new process: a loader that found nothing remembers that.
    match Command::new(std::env::current_exe().unwrap_or_default()).arg("has-opencl").status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(wanted.into()),
    }
}

/// What `cargo xtask has-opencl` answers.
pub(crate) fn has_opencl() -> Result<()> {
    devices(Api::OpenCl).map(drop).map_err(|e| e.to_string())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|o| o.stdout.trim_ascii() == b"0")
}

fn apt(arguments: &[&str]) -> bool {
    println!("apt-get {}", arguments.join(" "));
    let mut command = Command::new("apt-get");
    let status =
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()).status();
    status.is_ok_and(|s| s.success())
}

/// The folder with NVRTC: `TIEPOINT_NVRTC`, or a wheel unpacked below the target folder.
fn nvrtc() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TIEPOINT_NVRTC") {
        return Ok(folder.into());
    }
    let home = workspace().join("target/nvrtc");
    let folder = home.join(NVRTC_LIBRARIES);
    if folder.is_dir() {
        return folder.canonicalize().map_err(|e| e.to_string());
    }
    println!("unpacking {NVRTC} into {}", home.display());
    let wanted = format!(
        "no NVRTC: python3 with pip is needed to fetch {NVRTC}, or TIEPOINT_NVRTC naming the folder of libnvrtc.so"
    );
    let beside = workspace().join("target/nvrtc-under-way");
    let fetched = pip(&beside);
    if fetched && std::fs::rename(&beside, &home).is_ok() {
        return folder.canonicalize().map_err(|e| e.to_string());
    }
    let _ = std::fs::remove_dir_all(&beside);
    Err(wanted)
}

fn pip(folder: &Path) -> bool {
    let _ = std::fs::remove_dir_all(folder);
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", NVRTC, "--target"]);
    command.arg(folder).status().is_ok_and(|s| s.success())
}

/// A search path with this folder first.
fn before_others(folder: PathBuf) -> PathBuf {
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let all = std::iter::once(folder.clone()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).map_or(folder, PathBuf::from)
}
