//! The reasons why a command fails, and their exit codes.

use crate::arguments::flag_of;
use tiepoint::{Error, ErrorKind};

#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something impossible: exit code 2.
    Usage(String),
    /// The work could not be done: exit code 1.
    Work(String),
    /// A signal ended the work, and the process ends by the same signal. The message says how to go on.
    Interrupted(&'static str),
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    pub(crate) fn work(message: impl Into<String>) -> Self {
        Self::Work(message.into())
    }

    /// The same failure, with the names of the files concerned.
    #[must_use]
    pub(crate) fn about(self, what: impl std::fmt::Display) -> Self {
        match self {
            Self::Work(message) => Self::Work(format!("{what}: {message}")),
            other => other,
        }
    }

    /// The same failure, for a command that can be resumed after an interrupt.
    #[must_use]
    pub(crate) fn of_resumable(self) -> Self {
        match self {
            Self::Interrupted(_) => Self::Interrupted("run the same command to go on"),
            other => other,
        }
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Work(_) | Self::Interrupted(_) => 1,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Work(message) => f.write_str(message),
            Self::Interrupted(how) => write!(f, "interrupted; {how}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Error::Option { name, value, expected } = &error {
            return Self::Usage(match flags(name) {
                Some(flags) => format!("{flags} {value}: expected {expected}"),
                None => error.to_string(),
            });
        }
        if let Error::Cancelled = error {
            return Self::Interrupted("files that were written are whole");
        }
        Self::Work(format!("{error}{}", hint(error.kind())))
    }
}

/// The flag that helps against an error of this kind, which the library's message does not name.
fn hint(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Device | ErrorKind::DeviceMemory | ErrorKind::Unsupported => {
            "; with --device cpu no GPU is used"
        }
        ErrorKind::MemoryLimit => "; --memory sets the limit",
        _ => "",
    }
}

/// The flags for `names`, the library's options separated by commas, followed by "is" or "are"; `None` if one has no
/// flag.
fn flags(names: &str) -> Option<String> {
    let flags: Option<Vec<String>> =
        names.split(", ").map(|name| Some(format!("--{}", flag_of(name)?))).collect();
    let flags = flags?;
    Some(format!("{} {}", flags.join(", "), if flags.len() == 1 { "is" } else { "are" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_by_their_flags() {
        let message = |name| Failure::from(Error::option(name, "7", "less")).to_string();
        assert_eq!(message("contrast"), "--contrast is 7: expected less", "same name as the flag");
        assert_eq!(message("first_octave"), "--first-octave is 7: expected less", "with an underscore");
        assert_eq!(message("threshold_px"), "--inlier-distance is 7: expected less", "another name");
        assert_eq!(message("p1, p2_least, p2"), "--p1, --p2-least, --p2 are 7: expected less", "several");
        assert_eq!(message("reach"), "option reach is 7: expected less", "no flag");
    }

    #[test]
    fn errors_of_devices_and_memory_name_the_flag_that_helps() {
        let failed = Error::Device { device: "cuda:0".into(), reason: "it fell off the bus".into() };
        let message = Failure::from(failed).to_string();
        assert_eq!(message, "device cuda:0: it fell off the bus; with --device cpu no GPU is used");
        let shortage = tiepoint::error::Shortage::Limit(5);
        let message = Failure::from(Error::Memory { what: "stereo", needed: 9, shortage }).to_string();
        assert!(message.ends_with("; --memory sets the limit"), "{message}");
    }
}
