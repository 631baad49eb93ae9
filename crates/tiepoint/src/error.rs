//! What can go wrong, said so that a person can act on it.

use std::path::PathBuf;

/// The result of a fallible call in this library.
pub type Result<T> = std::result::Result<T, Error>;

/// Every error says what was wrong, what was expected and, where it helps, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read, written or renamed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file's contents are not what its format demands, or a format is not known.
    #[error("{path}: {reason}", path = path.display())]
    Format {
        /// The file concerned.
        path: PathBuf,
        /// What was wrong and what was expected.
        reason: String,
    },
    /// An option has a value outside its range.
    #[error("option {name} is {value}: expected {expected}")]
    Option {
        /// The option's name, as in the options struct.
        name: &'static str,
        /// The value given.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// An image's buffer, size, stride or channel count do not fit each other or the operation.
    #[error("image: {0}")]
    Image(String),
    /// The work would need more memory than the stated limit.
    #[error(
        "{what} needs {needed} bytes, more than the limit of {limit}; raise the limit or use a smaller input"
    )]
    Memory {
        /// What asked for the memory.
        what: &'static str,
        /// Bytes asked for.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The system gave no memory.
    #[error(
        "{what} need {bytes} bytes, which the system did not give; set a limit of memory to work in parts"
    )]
    Refused {
        /// What asked for the memory.
        what: &'static str,
        /// Bytes asked for.
        bytes: u64,
    },
    /// A GPU's memory is too small.
    #[error("{device} cannot give {needed} bytes{}; use a smaller input or `--device cpu`, whose result is the same", free.map_or(String::new(), |f| format!(", {f} are free")))]
    DeviceMemory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        needed: u64,
        /// Bytes free, where the driver tells.
        free: Option<u64>,
    },
    /// A GPU lacks what some work needs; the CPU has it.
    #[error("{device} has no {lacks}, which {work} needs; the CPU's result is the same")]
    Unsupported {
        /// The device's name.
        device: String,
        /// The work.
        work: &'static str,
        /// What is missing.
        lacks: &'static str,
    },
    /// Too few correspondences for the model asked for.
    #[error("{found} matches, but a {model} needs at least {needed}")]
    TooFewMatches {
        /// The model.
        model: &'static str,
        /// Matches present.
        found: usize,
        /// Matches needed.
        needed: usize,
    },
    /// The correspondences do not determine the model (collinear, coincident, or without a consensus).
    #[error("the matches do not determine a {model}: {reason}")]
    Degenerate {
        /// The model.
        model: &'static str,
        /// In what way.
        reason: &'static str,
    },
    /// Two things that must agree do not (descriptor kinds, image sizes, …).
    #[error("{0}")]
    Mismatch(String),
    /// The device asked for cannot be used.
    #[error("device {device}: {reason}")]
    Device {
        /// The device as it was named.
        device: String,
        /// Why not, and what to do.
        reason: String,
    },
}

impl Error {
    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// An [`Error::Format`] for `path`.
    pub fn format(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Format { path: path.into(), reason: reason.into() }
    }

    /// Whether a GPU refused work for want of memory or of a feature, which the CPU can do with the same result.
    pub fn is_for_the_cpu(&self) -> bool {
        matches!(self, Self::DeviceMemory { .. } | Self::Unsupported { .. })
    }

    /// An [`Error::Option`].
    pub fn option(name: &'static str, value: impl std::fmt::Display, expected: &'static str) -> Self {
        Self::Option { name, value: format!("{value}"), expected }
    }
}
