//! Options of the library from keyword arguments, under the library's names, and back.

use crate::errors::{raised, wrong_option};
use pyo3::conversion::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tiepoint::Error;
use tiepoint::collection::CollectionOptions;
use tiepoint::evaluate::RepeatabilityOptions;
use tiepoint::feature::sift::SiftOptions;
use tiepoint::feature::surf::{SurfOptions, SurfPreset};
use tiepoint::geometry::RobustOptions;
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::matching::MatchOptions;
use tiepoint::options::{self, Kind, Named, OptionTable, Value};
use tiepoint::register::Rematch;
use tiepoint::stereo::StereoOptions;

/// Other programs' names of values: the option, their name, ours.
const SYNONYMS: [(&str, &str, &str); 3] =
    [("preset", "lowe", "default"), ("interpolation", "cubic", "bicubic"), ("descriptors", "f32", "float")];

/// Our name of a value that may have another program's name.
fn ours(option: &str, name: String) -> String {
    let synonym = SYNONYMS.iter().find(|(known, theirs, _)| *known == option && *theirs == name);
    synonym.map_or(name, |(_, _, ours)| (*ours).to_owned())
}

/// A named value, from its name or an object that is displayed as its name (`8` for the paths `"8"`).
pub(crate) fn named<T: Named>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    T::from_name(&ours(T::OPTION, value.str()?.to_string())).map_err(raised)
}

/// A Python value in the form that the library's tables take. Anything but a number, a truth value or None is taken as
/// text.
fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if given.is_none() {
        return Ok(Value::None);
    }
    // NumPy's truth values, too.
    if let Ok(truth) = given.extract::<bool>() {
        return Ok(Value::Bool(truth));
    }
    if let Ok(whole) = given.extract::<i128>() {
        return Ok(Value::Integer(whole));
    }
    if let Ok(number) = given.extract::<f64>() {
        return Ok(Value::Number(number));
    }
    let text = given.extract::<PathBuf>().map(|path| path.to_string_lossy().into_owned());
    Ok(Value::Text(text.or_else(|_| given.str().map(|text| text.to_string()))?))
}

fn shown<'py>(py: Python<'py>, value: Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::Integer(whole) => whole.into_bound_py_any(py),
        Value::Number(number) => number.into_bound_py_any(py),
        // A choice of numbers, such as that of paths.
        Value::Text(text) => match text.parse::<i64>() {
            Ok(whole) => whole.into_bound_py_any(py),
            Err(_) => text.into_bound_py_any(py),
        },
    }
}

/// Whether an option is a number, other than one of bytes.
fn takes_numbers(options: &impl OptionTable, name: &str) -> bool {
    let fields = options.fields();
    let mut same = fields.iter().filter(|field| field.name == name || field.field == name);
    same.any(|field| matches!(field.kind, Kind::Integer | Kind::Number) && field.unit != "BYTES")
}

/// Option structs from keyword arguments, and back.
pub(crate) trait Options: OptionTable {
    /// These options with some of them replaced.
    fn with(mut self, given: &Bound<'_, PyDict>) -> PyResult<Self> {
        for (key, given) in given.iter() {
            let key = key.extract::<String>()?;
            let value = match value(&given)? {
                // Text is allowed for sizes in bytes, such as "8GiB"; for any other number it is a mistake.
                Value::Text(text) if text.parse::<f64>().is_ok() && takes_numbers(&self, &key) => {
                    return Err(wrong_option(&format!(
                        "option {key} is the text {text:?}: expected a number"
                    )));
                }
                Value::Text(name) => Value::Text(ours(&key, name)),
                other => other,
            };
            match self.set(&key, &value) {
                Ok(true) => {}
                Ok(false) => {
                    let names: Vec<&str> = self.fields().iter().map(|field| field.name).collect();
                    return Err(wrong_option(&format!(
                        "there is no option {key}: expected {}",
                        names.join(", ")
                    )));
                }
                Err(Error::Option { expected, .. }) => {
                    let found = match &value {
                        Value::Text(text) => text.clone(),
                        _ => given.repr().map_or_else(|_| "of an unknown kind".to_owned(), |r| r.to_string()),
                    };
                    return Err(wrong_option(&format!("option {key} is {found}: expected {expected}")));
                }
                Err(other) => return Err(raised(other)),
            }
        }
        Ok(self)
    }

    fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for field in self.fields() {
            all.set_item(field.name, shown(py, self.get(field.name).unwrap_or(Value::None))?)?;
        }
        Ok(all)
    }
}

impl<T: OptionTable> Options for T {}

/// The tables of the library's options, from which `_options.py` is generated: for each struct its purpose and its
/// fields.
#[pyfunction]
pub(crate) fn tables(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    table::<SiftOptions>(&all, "SiftOptions", &[])?;
    let presets: Vec<_> = SurfPreset::ALL.iter().map(|choice| SurfOptions::preset(choice.value)).collect();
    table(&all, "SurfOptions", &presets)?;
    table::<MatchOptions>(&all, "MatchOptions", &[])?;
    table::<RobustOptions>(&all, "RobustOptions", &[])?;
    table::<Rematch>(&all, "RematchOptions", &[])?;
    table::<WarpOptions>(&all, "WarpOptions", &[])?;
    table::<RepeatabilityOptions>(&all, "RepeatabilityOptions", &[])?;
    table::<StereoOptions>(&all, "StereoOptions", &[])?;
    table::<CollectionOptions>(&all, "CollectionOptions", &[])?;
    Ok(all)
}

/// Adds a table. Options whose value differs in one of `presets` get no default.
fn table<T: OptionTable + Default>(all: &Bound<'_, PyDict>, name: &str, presets: &[T]) -> PyResult<()> {
    let py = all.py();
    let fields = T::default().fields().into_iter().map(|field| {
        let of_preset = |preset: &T| preset.get(field.name).is_some_and(|value| value != field.default);
        let follows = field.name != "preset" && presets.iter().any(of_preset);
        let (kind, values) = match &field.kind {
            Kind::Bool => ("bool", field.values),
            Kind::Integer => ("int", field.values),
            Kind::Number => ("float", field.values),
            Kind::Name(names) => ("name", names.iter().map(|(name, _)| (*name).to_owned()).collect()),
            Kind::Path => ("path", field.values),
        };
        Ok(dict!(py, {
            "name": field.name,
            "flag": &field.flag,
            "kind": kind,
            "values": values,
            "optional": field.optional,
            "unit": field.unit,
            "allowed": field.allowed,
            "help": field.help,
            "default": shown(py, field.default)?,
            "follows_preset": follows,
        }))
    });
    let fields = fields.collect::<PyResult<Vec<_>>>()?;
    all.set_item(name, (T::ABOUT.trim(), fields))
}

/// The value of this option in bytes: a number, or text as [`options::bytes`] takes it.
pub(crate) fn bytes(option: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    amount(option, value, options::bytes, options::BYTES)
}

/// The value of this option as a count: a number, or text as [`options::count`] takes it.
pub(crate) fn count(option: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    amount(option, value, options::count, options::COUNT)
}

fn amount(
    option: &str,
    value: &Bound<'_, PyAny>,
    read: fn(&str) -> Option<u64>,
    expected: &str,
) -> PyResult<u64> {
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number);
    }
    let text = value.str()?.to_string();
    read(&text).ok_or_else(|| wrong_option(&format!("option {option} is {text}: expected {expected}")))
}
