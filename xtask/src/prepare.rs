//! What tests need beside Rust, installed where this process may: two OpenCL devices and NVRTC.

use crate::{Result, nvrtc, opencl, workspace};
use std::ffi::OsString;
use std::path::PathBuf;

/// Environment variables for `cargo test`.
pub(crate) type Variables = Vec<(&'static str, OsString)>;

/// The variables under which tests find both; from then on a test may not skip. What cannot be had is said, and is a
/// failure under CI.
pub(crate) fn prepare() -> Result<Variables> {
    let mut variables: Variables = vec![("TIEPOINT_CACHE", workspace().join("target/kernels").into())];
    let (devices, missing) = opencl::prepare();
    missing.into_iter().try_for_each(|missing| without("kernels are not tested on it", &missing))?;
    if devices > 0 {
        variables.push((opencl::RUSTICL.0, opencl::RUSTICL.1.into()));
        variables.push(("TIEPOINT_REQUIRE_GPU", devices.to_string().into()));
    }
    match nvrtc::prepare() {
        Ok(folder) => {
            variables.push(("LD_LIBRARY_PATH", before_others(folder)));
            variables.push(("TIEPOINT_REQUIRE_NVRTC", "1".into()));
        }
        Err(missing) => without("kernels are not compiled for CUDA", &missing)?,
    }
    Ok(variables)
}

fn without(loss: &str, missing: &str) -> Result<()> {
    match std::env::var_os("CI") {
        Some(_) => Err(missing.into()),
        None => {
            println!("{missing}: {loss}");
            Ok(())
        }
    }
}

/// A search path with this folder first.
fn before_others(folder: PathBuf) -> OsString {
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let all = std::iter::once(folder.clone()).chain(std::env::split_paths(&others));
    std::env::join_paths(all).unwrap_or_else(|_| folder.into())
}
