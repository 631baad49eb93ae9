//! The devices of a machine and what is known of each.

use crate::{Error, Result, cuda, opencl};
use std::fmt::{self, Display};

/// The two drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// NVIDIA's own, with kernels compiled by NVRTC.
    Cuda,
    /// Any vendor's.
    OpenCl,
}

impl Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "cuda",
            Self::OpenCl => "opencl",
        })
    }
}

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The driver that offers it.
    pub api: Api,
    /// Its number among the driver's devices.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The driver's version.
    pub driver: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Multiprocessors or compute units.
    pub units: u32,
    /// Bytes of local (shared) memory that a work group can have.
    pub local_memory: u32,
    /// Most lanes of a work group.
    pub group: u32,
    /// CUDA's compute capability, 90 for 9.0; 0 with OpenCL.
    pub capability: u32,
    /// Whether kernels may use `f64`.
    pub has_f64: bool,
    /// Whether 64-bit words in global memory are read and written whole, also while other groups do.
    pub has_whole_words: bool,
    /// The lanes in a group's first dimension that can exchange numbers by `SHUFFLE_UP` and the like; 1 for none.
    pub warp: u32,
    /// Not a GPU but the CPU under OpenCL (PoCL).
    pub is_cpu: bool,
}

impl Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gigabytes = self.memory as f64 / f64::from(1 << 30);
        let Self { api, index, name, driver, units, .. } = self;
        write!(f, "{api}:{index}  {name}, {units} units, {gigabytes:.1} GiB, driver {driver}")
    }
}

/// The devices of one driver.
#[derive(Debug, Default)]
pub struct Devices {
    /// The devices whose properties can be read, by ascending number.
    pub found: Vec<Info>,
    /// Why others are not listed: a platform that fails beside one that works, or a device whose properties cannot be
    /// read.
    pub refused: Vec<Error>,
}

impl Devices {
    /// The devices, if none was refused.
    ///
    /// # Errors
    /// The first refusal.
    pub fn complete(self) -> Result<Vec<Info>> {
        self.refused.into_iter().next().map_or(Ok(self.found), Err)
    }

    /// Separates the devices whose properties could be read from the errors of the others.
    pub(crate) fn of(answers: impl IntoIterator<Item = Result<Info>>) -> Self {
        let mut devices = Self::default();
        for answer in answers {
            match answer {
                Ok(info) => devices.found.push(info),
                Err(e) => devices.refused.push(e),
            }
        }
        devices
    }
}

/// The devices of one driver.
///
/// # Errors
/// [`Error::Absent`] when there is no driver or no device, [`Error::Driver`] when the driver itself refuses.
pub fn devices(api: Api) -> Result<Devices> {
    match api {
        Api::Cuda => cuda::devices(),
        Api::OpenCl => opencl::devices(),
    }
}

/// Fails if the driver's library is missing or is no such driver. Does not call the driver, which would take time.
///
/// # Errors
/// [`Error::Absent`].
pub fn has_driver(api: Api) -> Result<()> {
    match api {
        Api::Cuda => cuda::has_driver(),
        Api::OpenCl => opencl::has_driver(),
    }
}

/// The number of devices, in words.
pub(crate) fn numbered(count: usize) -> String {
    match count {
        0 => "it has no device".into(),
        1 => "the only device has number 0".into(),
        n => format!("there are {n} devices, numbered from 0"),
    }
}
