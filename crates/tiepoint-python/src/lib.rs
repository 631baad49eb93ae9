//! The compiled half of the Python package `tiepoint`: arrays in, arrays out, no algorithm.
//!
//! The public interface is in `python/tiepoint/`: options, results and their documentation. This crate reads arrays
//! without a copy (`image`), runs the library without the interpreter's lock (`device`, `call`), and returns results as arrays
//! over Rust's memory. There is one file for each topic; each function here calls one function of the library.

// `cargo test --workspace --lib` compiles it as a test in spite of `test = false`; pytest tests it.
#![cfg(not(test))]
#![expect(clippy::doc_markdown, reason = "what Python shows is numpydoc, not Markdown")]
#![expect(clippy::needless_pass_by_value, reason = "arguments come from Python as values")]

/// A dictionary of these keys and values; an error of a value is returned by the function around it.
macro_rules! dict {
    ($py:expr, { $($key:literal: $value:expr),* $(,)? }) => {{
        let made = pyo3::types::PyDict::new($py);
        $(made.set_item($key, $value)?;)*
        made
    }};
}

mod call;
mod collection;
mod device;
mod device_array;
mod dlpack;
mod errors;
mod evaluate;
mod exchange;
mod features;
mod files;
mod filters;
mod finder;
mod fork;
mod geometry;
mod image;
mod matching;
mod options;
mod picture;
mod rectify;
mod register;
mod report;
mod stereo;
mod synth;
mod tensor;
mod tied;

use pyo3::prelude::*;

/// The compiled half of tiepoint.
#[pymodule]
mod _core {
    use numpy::{PyArray1, PyArrayMethods};
    use pyo3::prelude::*;
    use pyo3::types::PyInt;

    #[pymodule_export]
    use crate::call::watch;
    #[pymodule_export]
    use crate::collection::{Collection, Results};
    #[pymodule_export]
    use crate::device::{Device, devices, finish_background};
    #[pymodule_export]
    use crate::device_array::DeviceArray;
    #[pymodule_export]
    use crate::evaluate::{
        angle_error, corner_error, disparity_score, matching_accuracy, non_occluded, repeatability,
    };
    #[pymodule_export]
    use crate::features::Features;
    #[pymodule_export]
    use crate::files::{
        decode, read, read_calibration, read_disparity, read_features, read_homography, read_matches,
        read_points, read_rectified, write, write_disparity, write_features, write_matches, write_points,
        write_rectified, write_text,
    };
    #[pymodule_export]
    use crate::filters::{blobs, convolve, gauss, hessian, integral, resample, sobel};
    #[pymodule_export]
    use crate::finder::Finder;
    #[pymodule_export]
    use crate::fork::{pause_opening, resume_opening};
    #[pymodule_export]
    use crate::geometry::{apply, essential, estimate, invert, residuals, warp};
    #[pymodule_export]
    use crate::matching::{match_features, nearest, tie_points};
    #[pymodule_export]
    use crate::options::tables;
    #[pymodule_export]
    use crate::rectify::{Rectify, rectify_stored};
    #[pymodule_export]
    use crate::register::Register;
    #[pymodule_export]
    use crate::report::report;
    #[pymodule_export]
    use crate::stereo::{Stereo, StereoStream, assess_disparities, depth, points, range_of_pair};
    #[pymodule_export]
    use crate::synth::{scene, stereo_scene, texture};
    #[pymodule_export]
    use crate::tensor::described;

    /// Kernels are compiled and devices are opened on threads of their own, which end before the interpreter does and
    /// stand still while a process is forked (`tiepoint/__init__.py`).
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        py.import("atexit")?.call_method1("register", (module.getattr("finish_background")?,))?;
        // What is made once is made here, where a fork waits for the import: a child would wait for ever for what another
        // thread had begun to make.
        let _ = PyInt::new(py, 0).extract::<bool>();
        crate::device::device_of(py, None)?;
        if py.import("sys")?.getattr("modules")?.contains("numpy")? {
            drop(PyArray1::<u8>::zeros(py, 0, false).try_readonly());
        }
        // The stub lists what there is.
        module.delattr("__all__")
    }
}
