//! The two OpenCL implementations on which kernels are tested, both on the CPU.
//!
//! PoCL has all features that kernels use. Mesa's rusticl has another compiler, no f64, no fused multiply-add and 32 KiB
//! of local memory. It lists its device only when `RUSTICL_ENABLE` names one.

use crate::{Result, debian};
use std::process::Command;
use tiepoint_gpu::{Api, Devices, devices};

/// Lets rusticl show its device that runs on the CPU, which has this name.
pub(crate) const RUSTICL: (&str, &str) = ("RUSTICL_ENABLE", "llvmpipe");

/// The kernel tests that are run on rusticl too; the others have not been tried. Many take minutes each there, as every
/// fused multiply-add is some sixty integer instructions. On such a device the CPU does what needs f64 or whole 64-bit
/// words (warping, integral images and with them SURF).
pub(crate) const ON_RUSTICL: [&str; 12] = [
    "feature::gpu::tests::features_come_back_as_they_went",
    "feature::order::gpu::tests::the_order_is_that_of_the_cpu",
    "feature::sift::gpu::tests::every_pixel_is_looked_at_without_a_threshold",
    "feature::sift::gpu::tests::images_of_a_batch_do_not_mix_and_masks_cut",
    "feature::sift::gpu::tests::points_beyond_the_capacity_are_counted",
    "filter::resample::gpu::tests::sizes_are_changed_as_on_the_cpu",
    "image::gpu::tests::images_come_back_as_they_went",
    "image::gpu::tests::pixels_are_converted_as_on_the_cpu",
    "matching::gpu::tests::filters_are_those_of_the_cpu",
    "matching::gpu::tests::many_tiles_and_turns",
    "matching::gpu::tests::not_a_number_is_nobodys_neighbour",
    "matching::gpu::tests::numbers_stay_on_the_device",
];

/// The command by which this program looks for devices anew: a loader that found nothing remembers that.
pub(crate) const LIST: &str = "opencl-devices";

/// A kind of device that tests need, and the packages that provide it.
struct Wanted {
    name: &'static str,
    is: fn(device: &str) -> bool,
    packages: &'static [&'static str],
    elsewhere: &'static str,
}

/// The loader `libOpenCL.so.1` stands in every list: both drivers only recommend it.
const WANTED: [Wanted; 2] = [
    Wanted {
        name: "PoCL or a vendor's driver",
        is: |device| !device.starts_with("llvmpipe"),
        packages: &["ocl-icd-libopencl1", "pocl-opencl-icd"],
        elsewhere: "macOS: brew install pocl",
    },
    Wanted {
        name: "rusticl",
        is: |device| device.starts_with("llvmpipe"),
        packages: &["ocl-icd-libopencl1", "mesa-opencl-icd"],
        elsewhere: "it comes with Mesa on Linux",
    },
];

/// Looks for PoCL (or a vendor's driver) and for rusticl, and installs what is missing where that is possible; an error
/// says what is still missing.
pub(crate) fn prepare() -> [Result<()>; 2] {
    let mut found = list();
    WANTED.map(|wanted| {
        let there = |found: &Result<Vec<String>>| matches!(found, Ok(d) if d.iter().any(|d| (wanted.is)(d)));
        if there(&found) {
            return Ok(());
        }
        let installed = debian::install(wanted.packages);
        found = list();
        if there(&found) {
            return Ok(());
        }
        let seen = match &found {
            Ok(devices) => format!("the loader finds {}", devices.join(", ")),
            Err(reason) => reason.clone(),
        };
        let why = installed.err().unwrap_or_else(|| "its packages are installed".into());
        Err(format!("no OpenCL device of {}: {seen}; {why}; {}", wanted.name, wanted.elsewhere))
    })
}

/// The names of all devices, seen by a new process.
fn list() -> Result<Vec<String>> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let output =
        Command::new(this).arg(LIST).env(RUSTICL.0, RUSTICL.1).output().map_err(|e| e.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Prints the name of every OpenCL device.
pub(crate) fn print_list() -> Result<()> {
    for device in devices(Api::OpenCl).and_then(Devices::complete).map_err(|e| e.to_string())? {
        println!("{}", device.name);
    }
    Ok(())
}
