//! The driver's library: whether it is present, complete and ready; its answers as results.
#![expect(unsafe_code, reason = "a driver is foreign code")]

use crate::{Api, Error, Result};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_int;

/// The oldest driver interface with all the calls made here (R570, 2025).
const OLDEST: c_int = 12_080;

/// Functions that are needed to learn the driver's version.
const FIRST: [&str; 3] = ["cuInit", "cuDriverGetVersion", "cuGetErrorString"];

/// The other functions that are called.
const FUNCTIONS: [&str; 45] = [
    "cuCtxGetStreamPriorityRange",
    "cuCtxRecordEvent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpy2DAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuPointerGetAttributes",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamIsCapturing",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

pub(super) fn error(reason: String) -> Error {
    Error::Driver { api: Api::Cuda, reason }
}

pub(super) fn absent(reason: String) -> Error {
    Error::Absent { api: Api::Cuda, reason }
}

pub(super) fn check(call: &str, result: CUresult) -> Result<()> {
    result.result().map_err(|e| {
        let text = e.error_string().map(|t| format!(" ({})", t.to_string_lossy()));
        error(format!("{call}: {result:?}{}", text.unwrap_or_default()))
    })
}

/// Fails if a library lacks one of these functions, because calling it would panic.
pub(super) fn complete(library: &str, functions: &[&str], has: impl Fn(&[u8]) -> bool) -> Result<()> {
    match functions.iter().find(|name| !has(name.as_bytes())) {
        None => Ok(()),
        Some(name) => Err(error(format!(
            "{library} has no {name}: it is not NVIDIA's, or broken; install it anew, or use cpu or opencl"
        ))),
    }
}

/// Calls `$f(arguments…)` of the driver and names it in the error.
macro_rules! call {
    ($f:ident($($argument:expr),* $(,)?)) => {
        $crate::cuda::library::check(stringify!($f), cudarc::driver::sys::$f($($argument),*))
    };
}
pub(super) use call;

/// Loads the library once.
pub(crate) fn has_driver() -> Result<()> {
    // cudarc tries three dozen names, which takes 2 ms where there is no driver; every driver on Linux has this one.
    // SAFETY: opens a library, as every call below would.
    #[cfg(target_os = "linux")]
    let is_there = unsafe { libloading::Library::new("libcuda.so.1") }.is_ok();
    #[cfg(not(target_os = "linux"))]
    // SAFETY: as above.
    let is_there = unsafe { sys::is_culib_present() };
    if !is_there {
        return Err(absent("no driver: libcuda.so.1 cannot be loaded; use cpu or opencl".into()));
    }
    // SAFETY: the library is there; the function is looked up and not called.
    let has = |name: &[u8]| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name).is_ok() };
    complete("libcuda.so.1", &FIRST, has)
}

/// Loads the driver once.
pub(super) fn start() -> Result<()> {
    has_driver()?;
    let mut version = 0;
    // SAFETY: takes no flags, and may be called often.
    let answer = unsafe { call!(cuInit(0)) };
    answer.map_err(|refused| match refused {
        Error::Driver { reason, .. } => {
            error(format!("{reason}; see what `nvidia-smi` says, or use cpu or opencl"))
        }
        other => other,
    })?;
    // SAFETY: writes one integer.
    unsafe { call!(cuDriverGetVersion(&raw mut version)) }?;
    if version < OLDEST {
        return Err(error(format!(
            "the driver supports CUDA {}.{}, 12.8 or newer is needed; update it, or use opencl",
            version / 1000,
            version % 1000 / 10
        )));
    }
    // SAFETY: the library is there; the function is looked up and not called.
    let has = |name: &[u8]| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name).is_ok() };
    complete("libcuda.so.1", &FUNCTIONS, has)
}

#[cfg(test)]
mod tests {
    use super::{FIRST, FUNCTIONS};

    #[test]
    fn all_functions_are_looked_up_first() {
        let source =
            concat!(include_str!("library.rs"), include_str!("foreign.rs"), include_str!("../cuda.rs"));
        let calls = source.split(['!', ':']).filter_map(|s| s.trim_start_matches('(').split_once('('));
        let is_driver =
            |name: &str| name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase));
        let called: Vec<&str> = calls.map(|(name, _)| name).filter(|name| is_driver(name)).collect();
        assert!(called.len() > FUNCTIONS.len(), "{} calls are seen", called.len());
        for name in called {
            assert!(
                FIRST.contains(&name) || FUNCTIONS.contains(&name),
                "{name} is called, but may be missing"
            );
        }
    }
}
