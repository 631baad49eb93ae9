//! The devices of all platforms, and their properties.

use super::failed;
use crate::{Api, Devices, Error, Info, Result, lock};
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::{
    CL_DEVICE_NOT_FOUND, CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_FUNCTION_NOT_AVAILABLE,
    DLOPEN_RUNTIME_LOAD_FAILED,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Held while devices are listed and opened: PoCL crashes if two threads make its first call at once (seen with 3.1).
pub(super) static LOOKING: Mutex<()> = Mutex::new(());

fn missing(reason: &str) -> Error {
    let needed = "a vendor's driver, or PoCL (pocl-opencl-icd), with libOpenCL.so.1 is needed";
    Error::Absent { api: Api::OpenCl, reason: format!("{reason}; {needed}") }
}

/// Loads the loader's library once.
pub(crate) fn has_driver() -> Result<()> {
    let failed = ClError(DLOPEN_RUNTIME_LOAD_FAILED);
    let refused = || missing(&format!("the loader cannot be used ({failed})"));
    cl3::is_opencl_runtime_available().then_some(()).ok_or_else(refused)
}

/// All devices, GPUs before CPUs, otherwise in the loader's order; and errors of platforms that did not tell theirs.
pub(super) fn all() -> Result<(Vec<Device>, Vec<Error>)> {
    // On some systems the call panics when the loader finds no library.
    let platforms = catch_unwind(AssertUnwindSafe(opencl3::platform::get_platforms));
    let platforms = platforms.map_err(|_| missing("its loader failed"))?;
    let platforms = platforms.map_err(|e| match e {
        ClError(CL_PLATFORM_NOT_FOUND_KHR) => missing("no platform"),
        ClError(DLOPEN_RUNTIME_LOAD_FAILED | DLOPEN_FUNCTION_NOT_AVAILABLE) => {
            missing(&format!("the loader cannot be used ({e})"))
        }
        e => failed("clGetPlatformIDs", e),
    })?;
    let (mut devices, mut refused) = (Vec::new(), Vec::new());
    for platform in platforms {
        match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(found) => devices.extend(found.into_iter().map(Device::new)),
            Err(ClError(CL_DEVICE_NOT_FOUND)) => {}
            Err(e) => refused.push(failed("clGetDeviceIDs", e)),
        }
    }
    // A device that does not answer stays in the list: listing or opening it says why.
    devices.retain(|d| d.available().unwrap_or(true) && d.compiler_available().unwrap_or(true));
    devices.sort_by_key(is_cpu);
    match devices.is_empty() {
        true => Err(refused.pop().unwrap_or_else(|| missing("no device"))),
        false => Ok((devices, refused)),
    }
}

fn is_cpu(device: &Device) -> bool {
    device.dev_type().is_ok_and(|t| t & CL_DEVICE_TYPE_CPU != 0)
}

pub(crate) fn devices() -> Result<Devices> {
    let _alone = lock(&LOOKING);
    let (devices, refused) = all()?;
    let mut listed = Devices::of((0..).zip(&devices).map(|(index, device)| info(device, index)));
    listed.refused.extend(refused);
    Ok(listed)
}

pub(super) fn info(device: &Device, index: u32) -> Result<Info> {
    let describe = || {
        device.available()?;
        device.compiler_available()?;
        let extensions = device.extensions()?;
        let has = |wanted| extensions.split_whitespace().any(|e| e == wanted);
        Ok(Info {
            api: Api::OpenCl,
            index,
            name: device.name()?.trim().to_owned(),
            driver: device.driver_version()?,
            memory: device.global_mem_size()?,
            units: device.max_compute_units()?,
            local_memory: u32::try_from(device.local_mem_size()?).unwrap_or(u32::MAX),
            group: u32::try_from(device.max_work_group_size()?).unwrap_or(u32::MAX),
            capability: 0,
            has_f64: has("cl_khr_fp64"),
            // Mesa 22.3 on the CPU lacks it, and does write such words in two halves.
            has_whole_words: has("cl_khr_int64_base_atomics"),
            warp: nvidia_capability(device).map_or(1, |_| 32),
            is_cpu: device.dev_type()? & CL_DEVICE_TYPE_CPU != 0,
        })
    };
    describe().map_err(|e| failed(&format!("device {index}: clGetDeviceInfo"), e))
}

/// The compute capability of an NVIDIA card, 90 for 9.0; its OpenCL C takes inline PTX as CUDA does. `None` for cards
/// of other vendors, and for those before 7.0, which have no synchronised warp shuffles.
pub(super) fn nvidia_capability(device: &Device) -> Option<u32> {
    let extensions = device.extensions().ok()?;
    if !extensions.split_whitespace().any(|e| e == "cl_nv_device_attribute_query") {
        return None;
    }
    let capability =
        10 * device.compute_capability_major_nv().ok()? + device.compute_capability_minor_nv().ok()?;
    Some(capability).filter(|&c| c >= 70)
}
