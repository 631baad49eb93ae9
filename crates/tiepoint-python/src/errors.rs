//! Errors of the library as exceptions of `tiepoint.errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tiepoint::{Error, ErrorKind};

/// The exception for an error. Files that cannot be opened, read or written are `OSError`, whose subclasses Python
/// chooses by the number of the error.
pub(crate) fn raised(error: impl Into<Error>) -> PyErr {
    let error = error.into();
    let made = Python::attach(|py| match &error {
        Error::Io { path, source } => {
            let class = py.import("builtins")?.getattr("OSError")?;
            let made = match source.raw_os_error() {
                Some(number) => class.call1((number, without_number(source), path.as_os_str())),
                None => class.call1((error.to_string(),)),
            };
            made.map(PyErr::from_value)
        }
        other => {
            // The library names the field of its option.
            let text = other.to_string().replacen("option threshold_px is", "option threshold is", 1);
            exception(py, class_of(other.kind()), &spelled(py, &text)?).map(PyErr::from_value)
        }
    });
    made.unwrap_or_else(|failed| failed)
}

/// A text of the library, in which the command's flags are arguments.
pub(crate) fn spelled(py: Python<'_>, text: &str) -> PyResult<String> {
    py.import("tiepoint.errors")?.call_method1("_spelled", (text,))?.extract()
}

/// The exception for an invalid option.
pub(crate) fn wrong_option(message: &str) -> PyErr {
    named("OptionError", message)
}

/// The exception for an array that is not an image, or does not fit.
pub(crate) fn wrong_image(message: &str) -> PyErr {
    named("ImageError", message)
}

fn named(class: &str, message: &str) -> PyErr {
    let made = Python::attach(|py| exception(py, class, message).map(PyErr::from_value));
    made.unwrap_or_else(|failed| PyRuntimeError::new_err(format!("{message} ({failed})")))
}

fn exception<'py>(py: Python<'py>, class: &str, message: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("tiepoint.errors")?.getattr(class)?.call1((message,))
}

fn class_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Format => "FormatError",
        ErrorKind::Option => "OptionError",
        ErrorKind::Image => "ImageError",
        ErrorKind::Mismatch => "MismatchError",
        ErrorKind::MemoryLimit | ErrorKind::HostMemory | ErrorKind::DeviceMemory => "OutOfMemoryError",
        ErrorKind::TooFewMatches | ErrorKind::Degenerate => "ModelError",
        ErrorKind::Device | ErrorKind::Unsupported => "DeviceError",
        // Kinds may be added; `Io` is handled above.
        _ => "Error",
    }
}

/// The operating system's message, without the number that Rust appends.
fn without_number(source: &std::io::Error) -> String {
    let told = source.to_string();
    told.split(" (os error").next().unwrap_or(&told).to_owned()
}
