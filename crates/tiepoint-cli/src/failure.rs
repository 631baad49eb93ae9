//! Why the command ends without success, and with which exit code.

use std::process::ExitCode;
use tiepoint::Error;

/// A message for a person and what kind of failure it is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for what is not possible: exit code 2.
    Usage(String),
    /// The work could not be done: exit code 1.
    Work(String),
    /// The reader of our output went away, which is its right: exit code 0, no message.
    Quiet,
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    pub(crate) fn work(message: impl Into<String>) -> Self {
        Self::Work(message.into())
    }

    pub(crate) fn code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Work(_) => ExitCode::FAILURE,
            Self::Quiet => ExitCode::SUCCESS,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(message) | Self::Work(message) => f.write_str(message),
            Self::Quiet => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // The library's option names are the flags' names with an underscore.
            Error::Option { name, value, expected } => {
                Self::Usage(format!("--{} is {value}: expected {expected}", name.replace('_', "-")))
            }
            other => Self::Work(other.to_string()),
        }
    }
}
