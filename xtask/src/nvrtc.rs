//! NVRTC, which compiles kernels for CUDA without a card: NVIDIA's wheel, unpacked below the target folder.

use crate::{Result, debian, workspace};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The wheel, and where its libraries lie in it.
const WHEEL: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";
const LIBRARIES: &str = "nvidia/cuda_nvrtc/lib";

/// The folder with NVRTC: `TIEPOINT_NVRTC`, or the wheel's, fetched if missing.
pub(crate) fn prepare() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TIEPOINT_NVRTC") {
        return Ok(folder.into());
    }
    let home = workspace().join("target/nvrtc");
    let folder = home.join(LIBRARIES);
    if !folder.is_dir() {
        fetch(&home)
            .map_err(|e| format!("no NVRTC: {e} (or TIEPOINT_NVRTC may name the folder of libnvrtc.so)"))?;
    }
    folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))
}

/// Unpacks the wheel beside its place, so that a fetch that broke off leaves nothing that looks whole.
fn fetch(home: &Path) -> Result<()> {
    // Debian's Python comes without pip. `--target` is allowed where the system's packages are managed by
    // others.
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !pip.status().is_ok_and(|s| s.success()) {
        debian::install(&["python3", "python3-pip"]).map_err(|e| format!("python3 has no pip: {e}"))?;
    }
    println!("unpacking {WHEEL} into {}", home.display());
    let beside = home.with_extension("under-way");
    if beside.exists() {
        std::fs::remove_dir_all(&beside).map_err(|e| format!("{}: {e}", beside.display()))?;
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", WHEEL, "--target"]);
    let status = pip
        .arg(&beside)
        .env("PIP_ROOT_USER_ACTION", "ignore")
        .status()
        .map_err(|e| format!("python3: {e}"))?;
    if !status.success() {
        return Err(format!("python3 -m pip could not fetch {WHEEL}"));
    }
    std::fs::rename(&beside, home).map_err(|e| format!("{}: {e}", home.display()))
}
