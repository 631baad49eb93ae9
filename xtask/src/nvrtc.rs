//! NVRTC, which compiles kernels for CUDA without a card: NVIDIA's wheel, unpacked below the target folder.

use crate::{Result, pip, workspace};
use std::path::PathBuf;

const WHEEL: &str = "nvidia-cuda-nvrtc-cu12==12.9.86";
const LIBRARIES: &str = "nvidia/cuda_nvrtc/lib";

/// The folder with NVRTC: `TIEPOINT_NVRTC`, or the wheel's, fetched if missing.
pub(crate) fn prepare() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("TIEPOINT_NVRTC") {
        return Ok(folder.into());
    }
    let home = pip::unpack(&[WHEEL], &["--no-deps"], &workspace().join("target/nvrtc"))
        .map_err(|e| format!("no NVRTC: {e} (or TIEPOINT_NVRTC may name the folder of libnvrtc.so)"))?;
    Ok(home.join(LIBRARIES))
}
