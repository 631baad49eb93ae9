//! The two OpenCL implementations on which kernels are tested, both on the CPU.
//!
//! PoCL has all features that kernels use. Mesa's rusticl has another compiler, no f64, no fused multiply-add and 32
//! KiB of local memory. It lists its device only when `RUSTICL_ENABLE` names one, and ends the loops of a kernel after
//! 65 535 turns: the library refuses it, but tests of short kernels open it.

use crate::{Result, debian, told};
use std::process::Command;
use tiepoint_gpu::{Api, Devices, devices};

/// The variable that makes rusticl list its device on the CPU, and the device's name.
pub(crate) const RUSTICL: (&str, &str) = ("RUSTICL_ENABLE", "llvmpipe");

/// The kernel tests that are left out on rusticl, by what their names contain; it runs all others, new ones too.
pub(crate) const NOT_ON_RUSTICL: [&str; 21] = [
    // They run no kernel.
    "kernels::",
    // They need 64-bit atomics; the library lets the CPU do it.
    "surf::gpu::tests",
    "integral::gpu::tests",
    "bisect::every_stage_is_that_of_the_cpu",
    "stereo::gpu::tests::bands_of_rows_change_nothing",
    "stereo::gpu::tests::disparities_are_those_of_the_cpu",
    "stereo::gpu::tests::images_and_maps_on_the_device_are_those_of_the_host",
    "stereo::gpu::tests::streams_give_what_single_calls_give_in_order",
    "stereo::gpu::tests::pictures_and_masks_that_do_not_fit_are_refused",
    "stereo::gpu::tests::volumes_give_the_bits_of_the_cpu",
    "opening_tests::a_gpu_that_opens_during_the_work_changes_nothing",
    // They need 64-bit floats; the library lets the CPU do it.
    "align::gpu::tests",
    "shrink::gpu::tests",
    "mutual_information::learn::gpu::tests",
    // Each takes half a minute to two minutes of a core: a fused multiply-add is some sixty integer instructions there. Every
    // kernel of theirs runs in other tests, whole pictures in three of them (`docs/notebook/gpu.md`).
    "gauss::gpu::tests::far_taps_are_those_of_the_cpu",
    "sift::gpu::bands::tests::a_photograph_takes_no_more_memory_than_is_allowed_and_keeps_its_features",
    "sift::gpu::bands::tests::bands_",
    "sift::gpu::bands::tests::more_features_than_bands_have_room_for_are_found",
    "sift::gpu::bands::tests::progress_is_reported_for_each_band",
    "sift::gpu::tests::batches_of_bytes_and_floats_give_what_single_images_give",
    "sift::gpu::tests::features_are_those_of_the_cpu_for_every",
];

/// The command by which this program lists devices in a new process: a loader that found none does not look again.
pub(crate) const LIST: &str = "opencl-devices";

/// The devices that tests need: the name, whether it is rusticl's, the packages that provide it, and where else it comes
/// from. The loader `libOpenCL.so.1` is in each list, because both drivers only recommend it.
const WANTED: [(&str, bool, [&str; 2], &str); 2] = [
    (
        "PoCL or a vendor's driver",
        false,
        ["ocl-icd-libopencl1", "pocl-opencl-icd"],
        "macOS: brew install pocl",
    ),
    ("rusticl", true, ["ocl-icd-libopencl1", "mesa-opencl-icd"], "it comes with Mesa on Linux"),
];

/// Looks for PoCL (or a vendor's driver) and for rusticl, and installs what is missing; an error says what still is.
pub(crate) fn prepare() -> [Result<()>; 2] {
    let mut found = list();
    WANTED.map(|(name, is_rusticl, packages, elsewhere)| {
        let is_wanted = |device: &String| device.starts_with(RUSTICL.1) == is_rusticl;
        let there = |found: &Result<Vec<String>>| matches!(found, Ok(d) if d.iter().any(is_wanted));
        if there(&found) {
            return Ok(());
        }
        let installed = debian::install(&packages);
        found = list();
        if there(&found) {
            return Ok(());
        }
        let seen = match &found {
            Ok(devices) => format!("the loader finds {}", devices.join(", ")),
            Err(reason) => reason.clone(),
        };
        let why = installed.err().unwrap_or_else(|| "its packages are installed".into());
        Err(format!("no OpenCL device of {name}: {seen}; {why}; {elsewhere}"))
    })
}

fn list() -> Result<Vec<String>> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let listed = told(Command::new(this).arg(LIST).env(RUSTICL.0, RUSTICL.1))?;
    Ok(listed.lines().map(str::to_owned).collect())
}

pub(crate) fn print_list() -> Result<()> {
    for device in devices(Api::OpenCl).and_then(Devices::complete).map_err(|e| e.to_string())? {
        println!("{}", device.name);
    }
    Ok(())
}
