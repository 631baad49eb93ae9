//! What can go wrong between a program and a GPU.

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
    /// A driver refuses.
    #[error("{api}: {reason}")]
    Driver {
        /// The driver.
        api: Api,
        /// What was tried and what came back.
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
        /// Bytes free, where the driver tells.
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
    /// A kernel does not compile.
    #[error("{program} does not compile for {device}:\n{log}")]
    Compile {
        /// The program's name.
        program: String,
        /// The device.
        device: String,
        /// What the compiler says.
        log: String,
    },
    /// The caller ended the work ([`crate::Cancel`]).
    #[error("cancelled")]
    Cancelled,
    /// A call of this crate that cannot be right.
    #[error("{0}")]
    Usage(String),
}
