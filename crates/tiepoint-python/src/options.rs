//! Options of the library from keyword arguments, under the library's names, and back.

use crate::errors::{raised, wrong_option};
use pyo3::conversion::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tiepoint::collection::{CollectionOptions, PairChoice};
use tiepoint::evaluate::RepeatabilityOptions;
use tiepoint::feature::DescriptorKind;
use tiepoint::feature::select::Keep;
use tiepoint::feature::sift::{SiftOptions, SiftPreset};
use tiepoint::feature::surf::{SurfOptions, SurfPreset};
use tiepoint::filter::any::Gradient;
use tiepoint::geometry::RobustOptions;
use tiepoint::geometry::rectify::{OutputFrame, Principal, RectifyOptions, SelfCalibrationOptions};
use tiepoint::geometry::warp::{Interpolation, WarpOptions};
use tiepoint::image::Border;
use tiepoint::matching::MatchOptions;
use tiepoint::options::Named;
use tiepoint::register::Rematch;
use tiepoint::stereo::{CensusWindow, Cost, Learning, Paths, RightView, StereoOptions, Subpixel};
use tiepoint::synth::{Scenery, TextureKind};

/// A value of an option.
pub(crate) trait Field: Sized {
    /// The value from Python's.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self>;
    /// Python's value.
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                value.extract()
            }
            fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.into_bound_py_any(py)
            }
        }
    )*};
}
plain!(bool, u8, i8, u16, i32, u32, u64, usize, f64, PathBuf);

impl Field for f32 {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        value.extract()
    }
    /// The shortest decimal number that stands for it: 0.02, not 0.019999999552965164.
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shortest: f64 = self.to_string().parse().unwrap_or_else(|_| f64::from(*self));
        shortest.into_bound_py_any(py)
    }
}

macro_rules! by_name {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                named(value)
            }
            fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                Named::name(*self).into_bound_py_any(py)
            }
        }
    )*};
}
by_name!(
    Border,
    CensusWindow,
    Cost,
    DescriptorKind,
    Gradient,
    Interpolation,
    Keep,
    OutputFrame,
    PairChoice,
    Paths,
    Principal,
    RightView,
    Scenery,
    SiftPreset,
    Subpixel,
    SurfPreset,
    TextureKind
);

/// Names that other programs have for a value of ours: the option, their name, ours.
const SYNONYMS: [(&str, &str, &str); 3] =
    [("preset", "lowe", "default"), ("interpolation", "cubic", "bicubic"), ("descriptors", "f32", "float")];

/// A named value: its name, or what is shown as its name (`8` for the paths `"8"`).
pub(crate) fn named<T: Named>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    let name = value.str()?.to_string();
    let synonym = SYNONYMS.iter().find(|(option, theirs, _)| *option == T::OPTION && *theirs == name);
    T::from_name(synonym.map_or(name.as_str(), |(_, _, ours)| ours)).map_err(raised)
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if value.is_none() { Ok(None) } else { T::read(value).map(Some) }
    }
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.as_ref().map_or_else(|| Ok(py.None().into_bound(py)), |value| value.show(py))
    }
}

impl Field for Learning {
    /// None, or a number of iterations.
    fn read(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Option::<u8>::read(value)?.map_or(Self::CoarseToFine, Self::Iterations))
    }
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::CoarseToFine => None::<u8>.show(py),
            Self::Iterations(n) => n.show(py),
        }
    }
}

/// An option struct that keyword arguments fill.
pub(crate) trait Options: Sized {
    /// These options with some of them replaced.
    fn with(self, given: &Bound<'_, PyDict>) -> PyResult<Self>;
    /// All of them.
    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>>;
}

/// Implements [`Options`]: for each keyword the field.
macro_rules! options {
    ($($type:ty { $($name:literal: $($field:ident).+),* $(,)? })*) => {$(
        impl Options for $type {
            fn with(mut self, given: &Bound<'_, PyDict>) -> PyResult<Self> {
                for (key, value) in given.iter() {
                    let key = key.extract::<String>()?;
                    let read = match key.as_str() {
                        $($name => Field::read(&value).map(|read| self.$($field).+ = read),)*
                        other => {
                            let names: &[&str] = &[$($name),*];
                            return Err(wrong_option(&format!(
                                "there is no option {other}: expected {}", names.join(", ")
                            )));
                        }
                    };
                    read.map_err(|error| explained(value.py(), &key, &value, error))?;
                }
                Ok(self)
            }

            fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let all = PyDict::new(py);
                $(all.set_item($name, self.$($field).+.show(py)?)?;)*
                Ok(all)
            }
        }
    )*};
}

options! {
    SiftOptions {
        "preset": preset, "max_features": selection.limit, "keep": selection.keep, "even": selection.even,
        "root": root, "upright": upright, "domain_size_pooling": domain_size_pooling, "descriptors": descriptors, "first_octave": first_octave,
        "octaves": octaves, "levels": levels, "contrast": contrast, "edge": edge, "sigma": sigma,
        "input_sigma": input_sigma,
    }
    SurfOptions {
        "preset": preset, "max_features": selection.limit, "keep": selection.keep, "even": selection.even,
        "upright": upright, "extended": extended, "descriptors": descriptors, "threshold": threshold,
        "octaves": octaves, "intervals": intervals, "step": step,
    }
    MatchOptions { "ratio": ratio, "mutual": mutual, "same_sign": same_sign, "max_distance": max_distance }
    RobustOptions {
        "threshold": threshold_px, "confidence": confidence, "max_iterations": max_iterations,
        "false_alarms": false_alarms, "seed": seed,
    }
    Rematch { "radius": radius, "ratio": ratio, "rounds": rounds }
    WarpOptions { "interpolation": interpolation, "fill": fill }
    RectifyOptions { "frame": frame, "principal": principal }
    SelfCalibrationOptions { "focal": focal }
    RepeatabilityOptions { "distance": distance, "scale_ratio": scale_ratio }
    CollectionOptions {
        "max_features": features.sift.selection.limit, "keep": features.sift.selection.keep,
        "preset": features.sift.preset, "contrast": features.sift.contrast,
        "first_octave": features.sift.first_octave, "upright": features.sift.upright,
        "domain_size_pooling": features.sift.domain_size_pooling,
        "longest_side": features.longest_side, "masks": features.masks, "pairs": pairs.choice, "list": pairs.list,
        "exhaustive_up_to": pairs.exhaustive_up_to, "overlap": pairs.overlap, "neighbours": pairs.neighbours,
        "max_metres": pairs.max_metres, "top_features": pairs.top_features, "top_matches": pairs.top_matches,
        "top_partners": pairs.top_partners, "closure": pairs.closure, "ratio": matching.ratio,
        "same_sign": matching.same_sign, "threshold": two_view.threshold_px, "block": block,
    }
    StereoOptions {
        "min_disparity": min_disparity, "disparities": disparities, "cost": cost, "iterations": learning,
        "paths": paths, "uniqueness": uniqueness, "subpixel": subpixel, "right_view": right_view,
        "max_difference": max_difference, "speckle_size": speckle_size,
        "speckle_difference": speckle_difference, "median": median, "fill": fill, "memory": memory, "device_memory": device_memory,
        "right": right, "confidence": confidence, "reasons": reasons,
    }
}

/// An error about a value that names the option.
fn explained(py: Python<'_>, key: &str, value: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let ours = py.import("tiepoint.errors").and_then(|errors| errors.getattr("Error"));
    if ours.is_ok_and(|class| error.is_instance(py, &class)) {
        return error;
    }
    let shown = value.repr().map_or_else(|_| "of an unknown kind".to_owned(), |r| r.to_string());
    wrong_option(&format!("option {key} is {shown}: {}", error.value(py)))
}

/// The census window of this name.
pub(crate) fn census_window(name: &Bound<'_, PyAny>) -> PyResult<CensusWindow> {
    named(name)
}

/// The defaults of the library, as keyword arguments; for the test that compares them with the package's.
#[pyfunction]
pub(crate) fn defaults<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyDict>> {
    match what {
        "sift" => SiftOptions::default().shown(py),
        "surf" => SurfOptions::default().shown(py),
        "match" => MatchOptions::default().shown(py),
        "estimate" => RobustOptions::default().shown(py),
        "rematch" => Rematch::default().shown(py),
        "warp" => WarpOptions::default().shown(py),
        "rectify" => RectifyOptions::default().shown(py),
        "repeatability" => RepeatabilityOptions::default().shown(py),
        "collect" => CollectionOptions::default().shown(py),
        "stereo" => StereoOptions::default().shown(py),
        other => Err(wrong_option(&format!("{other} has no options"))),
    }
}
