//! Errors: a message for people, and a [kind](ErrorKind) for programs.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// The result of a fallible call in this library.
pub type Result<T> = std::result::Result<T, Error>;

/// A count with commas between thousands, for people.
pub fn counted(count: usize) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Every error says what was wrong, what was expected and, where it helps, what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read, written or renamed.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The content of a file is not valid for its format, or the format is unknown.
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
        expected: Cow<'static, str>,
    },
    /// An image's buffer, size, stride or channel count do not fit each other or the operation.
    #[error("image: {0}")]
    Image(String),
    /// There is not enough memory.
    #[error("{what}: {needed} bytes are needed, {shortage}")]
    Memory {
        /// What needs the memory.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Where they are lacking.
        shortage: Shortage,
    },
    /// Too few correspondences for the model asked for.
    #[error("{found} matches, but {article} {model} needs at least {needed}", article = article(model))]
    TooFewMatches {
        /// The model.
        model: &'static str,
        /// Matches present.
        found: usize,
        /// Matches needed.
        needed: usize,
    },
    /// The correspondences do not determine the model (collinear, coincident, or without a consensus).
    #[error("{}", undetermined(model, reason))]
    Degenerate {
        /// The model.
        model: &'static str,
        /// Why the model is not determined.
        reason: &'static str,
    },
    /// No model of two pictures: too few of their matches agree.
    #[error("{error} ({compared}). {advice}")]
    NoModel {
        /// What the estimation said.
        error: Box<Error>,
        /// What was compared, in numbers.
        compared: String,
        /// What to try.
        advice: String,
    },
    /// Two things that must agree do not (descriptor kinds, image sizes, …).
    #[error("{0}")]
    Mismatch(String),
    /// A device failed, or cannot be used at all.
    #[error("device {device}: {reason}")]
    Device {
        /// The device, as the user or the driver names it.
        device: String,
        /// What failed.
        reason: String,
    },
    /// The caller ended the work ([`Cancel`](crate::device::Cancel)): of any call with a device that can be cancelled. The
    /// same call may be made again.
    #[error("cancelled")]
    Cancelled,
    /// A device works, but lacks a feature that this computation needs.
    #[error("{device} lacks {feature}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// What it lacks.
        feature: String,
    },
    /// A GPU's kernels are still being compiled ([`Device::Auto`](crate::device::Device::Auto)).
    #[error("{device} is still being prepared: its kernels are being compiled")]
    NotReady {
        /// The device's name.
        device: String,
    },
}

/// Whose memory is too small.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shortage {
    /// The caller allows no more than this many bytes.
    Limit(u64),
    /// The operating system has too little.
    Host,
    /// A GPU has too little.
    Device {
        /// Its name.
        name: String,
        /// Bytes that are free, if the driver tells.
        free: Option<u64>,
    },
    /// The caller allows too little of a GPU's memory.
    DeviceLimit {
        /// Its name.
        name: String,
        /// Bytes that may be used.
        limit: u64,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limit) => {
                write!(f, "more than the limit of {limit}; raise the limit or use a smaller input")
            }
            Self::Host => f.write_str(
                "which the system does not have; use a smaller input, or for stereo a limit of memory",
            ),
            Self::Device { name, free: Some(free) } => write!(f, "{name} has {free} free"),
            Self::Device { name, free: None } => write!(f, "{name} has less"),
            Self::DeviceLimit { name, limit } => write!(f, "more than the {limit} that {name} may give"),
        }
    }
}

/// The kind of an error, by which a program can decide what to do. [`Error`] has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused to open, read, write or rename a file.
    Io,
    /// A file is not valid for its format, or the format is unknown.
    Format,
    /// An option is out of its range.
    Option,
    /// An image does not fit the operation.
    Image,
    /// Two inputs do not fit each other.
    Mismatch,
    /// More memory is needed than the caller allows.
    MemoryLimit,
    /// The operating system does not have enough memory.
    HostMemory,
    /// A GPU does not have enough memory; the CPU may.
    DeviceMemory,
    /// There are fewer matches than the model needs.
    TooFewMatches,
    /// The matches do not determine the model.
    Degenerate,
    /// A device failed or cannot be used.
    Device,
    /// A device lacks a feature that the CPU has.
    Unsupported,
    /// A device is still being prepared; the CPU is ready.
    NotReady,
    /// The caller ended the work.
    Cancelled,
}

impl Error {
    /// What kind of error this is.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Io { .. } => ErrorKind::Io,
            Self::Format { .. } => ErrorKind::Format,
            Self::Option { .. } => ErrorKind::Option,
            Self::Image(_) => ErrorKind::Image,
            Self::Mismatch(_) => ErrorKind::Mismatch,
            Self::Memory { shortage: Shortage::Limit(_), .. } => ErrorKind::MemoryLimit,
            Self::Memory { shortage: Shortage::Host, .. } => ErrorKind::HostMemory,
            Self::Memory { shortage: Shortage::Device { .. } | Shortage::DeviceLimit { .. }, .. } => {
                ErrorKind::DeviceMemory
            }
            Self::TooFewMatches { .. } => ErrorKind::TooFewMatches,
            Self::Degenerate { .. } => ErrorKind::Degenerate,
            Self::NoModel { error, .. } => error.kind(),
            Self::Device { .. } => ErrorKind::Device,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::NotReady { .. } => ErrorKind::NotReady,
            Self::Cancelled => ErrorKind::Cancelled,
        }
    }

    /// Whether a GPU lacks memory, a feature or kernels, which are still being compiled, for a computation that the CPU
    /// can do. False for a device that has failed.
    pub const fn is_device_limit(&self) -> bool {
        matches!(self.kind(), ErrorKind::DeviceMemory | ErrorKind::Unsupported | ErrorKind::NotReady)
    }

    /// An [`Error::Io`] for `path`.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    /// An [`Error::Format`] for `path`.
    pub fn format(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Format { path: path.into(), reason: reason.into() }
    }

    /// An [`Error::Option`].
    pub fn option(
        name: &'static str,
        value: impl fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Option { name, value: format!("{value}"), expected: expected.into() }
    }
}

/// That a model cannot be made, of matches or of a matrix that was given.
fn undetermined(model: &str, reason: &str) -> String {
    let article = article(model);
    match reason.strip_prefix("its matrix ") {
        Some(is) => format!("the matrix is not that of {article} {model}: it {is}"),
        None => format!("the matches do not determine {article} {model}: {reason}"),
    }
}

/// The indefinite article before a word.
fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_well() {
        let few = |model| Error::TooFewMatches { model, found: 1, needed: 3 }.to_string();
        assert_eq!(few("affine"), "1 matches, but an affine needs at least 3");
        assert_eq!(few("homography"), "1 matches, but a homography needs at least 3");
        let short = |shortage| Error::Memory { what: "SIFT on a GPU", needed: 9, shortage };
        let device = short(Shortage::Device { name: "card".into(), free: Some(4) });
        assert_eq!(device.to_string(), "SIFT on a GPU: 9 bytes are needed, card has 4 free");
        assert!(device.is_device_limit(), "the CPU can do it");
        let limited = short(Shortage::DeviceLimit { name: "card".into(), limit: 4 });
        assert_eq!(
            limited.to_string(),
            "SIFT on a GPU: 9 bytes are needed, more than the 4 that card may give"
        );
        assert!(limited.is_device_limit(), "the CPU can do it");
        assert_eq!(short(Shortage::Limit(5)).kind(), ErrorKind::MemoryLimit, "the caller's limit");
        assert!(!short(Shortage::Limit(5)).is_device_limit(), "which holds for the CPU too");
    }
}
