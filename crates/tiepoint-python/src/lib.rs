//! The compiled half of the Python package `tiepoint`: arrays in, arrays out, no algorithm.
//!
//! The public interface is in `python/tiepoint/`: options, results and their documentation. This crate reads arrays
//! without a copy (`image`), runs the library without the interpreter's lock (`device`), and returns results as arrays
//! over Rust's memory. There is one file for each topic; each function here calls one function of the library.

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

mod array;
mod collection;
mod device;
mod dlpack;
mod errors;
mod evaluate;
mod exchange;
mod features;
mod files;
mod filters;
mod finder;
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
    #[pymodule_export]
    use crate::array::DeviceArray;
    #[pymodule_export]
    use crate::collection::{Collection, Results};
    #[pymodule_export]
    use crate::device::{Device, devices, stop_compilers, watch};
    #[pymodule_export]
    use crate::evaluate::{angle_error, corner_error, disparity_score, matching_accuracy, repeatability};
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
    use crate::geometry::{apply, estimate, invert, residuals, warp};
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
    use crate::stereo::{Stereo, StereoStream, depth, points};
    #[pymodule_export]
    use crate::synth::{scene, stereo_scene, texture};
    #[pymodule_export]
    use crate::tensor::described;
}
