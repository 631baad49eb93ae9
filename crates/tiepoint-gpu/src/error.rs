//! Errors of GPUs and their drivers.

use crate::Api;

/// The result of this crate's calls.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a GPU could not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no driver, no compiler or no device.
    #[error("{api}: {reason}")]
    Absent {
        /// The driver.
        api: Api,
        /// What is missing, or could not be loaded.
        reason: String,
    },
    /// A call of a driver failed.
    #[error("{api}: {reason}")]
    Driver {
        /// The driver.
        api: Api,
        /// The call, and its answer.
        reason: String,
    },
    /// No device of this number.
    #[error("{api}:{index} is not there: {found}")]
    Index {
        /// The driver.
        api: Api,
        /// The number that was asked for.
        index: u32,
        /// How many there are.
        found: String,
    },
    /// The device's memory is too small.
    #[error("{device} cannot give {asked} bytes of memory{}", free.map_or(String::new(), |f| format!(": {f} are free")))]
    Memory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        asked: u64,
        /// Free bytes, if the driver reports them.
        free: Option<u64>,
    },
    /// The device lacks what a kernel needs.
    #[error("{device} lacks {feature}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// What it lacks.
        feature: &'static str,
    },
    /// A program is still being compiled ([`crate::Gpu::handing_over`]).
    #[error("{device} is still being prepared: its kernels are being compiled")]
    NotReady {
        /// The device's name.
        device: String,
    },
    /// A kernel does not compile.
    #[error("{program} does not compile for {device}:\n{log}")]
    Compile {
        /// The program's name.
        program: String,
        /// The device.
        device: String,
        /// The compiler's messages.
        log: String,
    },
    /// The caller ended the work ([`crate::Cancel`]).
    #[error("cancelled")]
    Cancelled,
    /// A wrong call of this crate.
    #[error("{0}")]
    Usage(String),
}
