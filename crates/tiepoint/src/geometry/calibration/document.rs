//! The content of a calibration file in any of its syntaxes: named numbers and matrices.

use super::{flow, kalibr, kitti, middlebury, ros, s2p, xml, yaml};
use crate::{Error, Result};
use std::fmt::Display;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) data: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Matrix(Matrix),
    Text(String),
    /// A list, or anything else that no calibration needs.
    Other,
}

impl Value {
    /// A matrix with this many rows, from its elements row by row.
    pub(super) fn matrix(rows: usize, data: Vec<f64>) -> Self {
        Self::Matrix(Matrix { rows, columns: data.len() / rows, data })
    }

    /// A finite number, or `other`.
    pub(super) fn number_or(text: &str, other: impl FnOnce() -> Self) -> Self {
        finite(text).map_or_else(other, Self::Number)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) value: Value,
    pub(super) line: usize,
}

impl Entry {
    /// A matrix with this many rows, from its elements row by row.
    pub(super) fn matrix(key: &str, line: usize, rows: usize, data: &[f64]) -> Self {
        Self { key: key.into(), value: Value::matrix(rows, data.to_vec()), line }
    }
}

/// The program whose key names the entries have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Also for ROS's and Kalibr's files.
    OpenCv,
    Kitti,
    /// Also for s2p's file.
    Middlebury,
}

#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    pub(super) names: Names,
    pub(super) entries: Vec<Entry>,
}

/// A part of a file, or why it cannot be read.
pub(super) type Parsed<T> = std::result::Result<T, String>;

impl Document {
    pub(super) fn parse(text: &str, path: &Path) -> Result<Self> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let found = entries(text).and_then(|(names, entries)| {
            no_key_twice(entries.iter().map(|e| (&e.key, e.line)))?;
            Ok(Self { path: path.into(), names, entries })
        });
        found.map_err(|reason| Error::format(path, reason))
    }

    /// The entry of the first name that exists; `names` are separated by spaces.
    pub(super) fn find(&self, names: &str) -> Option<&Entry> {
        names.split(' ').find_map(|name| self.entries.iter().find(|e| e.key == name))
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::format(&self.path, reason)
    }

    pub(super) fn wrong_at(&self, entry: &Entry, reason: impl Display) -> Error {
        self.wrong(format!("line {}: {} {reason}", entry.line, entry.key))
    }

    pub(super) fn number(&self, entry: &Entry) -> Result<f64> {
        match &entry.value {
            Value::Number(v) => Ok(*v),
            Value::Matrix(_) | Value::Text(_) | Value::Other => Err(self.wrong_at(entry, "is not a number")),
        }
    }

    pub(super) fn matrix<'a>(&self, entry: &'a Entry) -> Result<&'a Matrix> {
        match &entry.value {
            Value::Matrix(m) if m.data.iter().any(|v| !v.is_finite()) => {
                Err(self.wrong_at(entry, "holds a number that is not finite"))
            }
            Value::Matrix(m) => Ok(m),
            Value::Number(_) | Value::Text(_) | Value::Other => Err(self.wrong_at(entry, "is not a matrix")),
        }
    }

    /// The entry's matrix of `R` rows and `C` columns, which the file may hold as a single list.
    pub(super) fn fixed<const R: usize, const C: usize>(&self, entry: &Entry) -> Result<[[f64; C]; R]> {
        let m = self.matrix(entry)?;
        if (m.rows, m.columns) != (R, C) && (m.rows, m.columns) != (1, R * C) {
            let reason = format!("is a {}x{} matrix, expected {R}x{C}", m.rows, m.columns);
            return Err(self.wrong_at(entry, reason));
        }
        Ok(std::array::from_fn(|i| std::array::from_fn(|j| m.data[i * C + j])))
    }

    /// The `N` numbers of the entry, a row or a column.
    pub(super) fn vector<const N: usize>(&self, entry: &Entry) -> Result<[f64; N]> {
        let m = self.matrix(entry)?;
        if m.data.len() != N || m.rows.min(m.columns) != 1 {
            let reason = format!("is a {}x{} matrix, expected {N} numbers", m.rows, m.columns);
            return Err(self.wrong_at(entry, reason));
        }
        Ok(std::array::from_fn(|i| m.data[i]))
    }
}

fn entries(text: &str) -> Parsed<(Names, Vec<Entry>)> {
    if let Some(entries) = s2p::entries(text) {
        return Ok((Names::Middlebury, entries));
    }
    let opencv = |entries: Parsed<_>| Ok((Names::OpenCv, ros::renamed(entries?)?));
    let start = text.trim_start();
    let first = start.lines().next().unwrap_or_default();
    let sign = first.find([':', '=']).map(|i| first.as_bytes()[i]);
    match sign {
        _ if start.is_empty() => Err("the file is empty".into()),
        _ if start.starts_with('<') => opencv(xml::parse(text)),
        _ if start.starts_with('{') => opencv(flow::parse(text)),
        _ if kalibr::is_kalibr(start) => Ok((Names::OpenCv, kalibr::parse(text)?)),
        _ if start.starts_with('%') || start.starts_with("---") => opencv(yaml::parse(text)),
        _ if kitti::is_kitti(start) => Ok((Names::Kitti, kitti::parse(text)?)),
        Some(b':') => opencv(yaml::parse(text)),
        Some(b'=') => Ok((Names::Middlebury, middlebury::parse(text)?)),
        _ => Err(
            "not a calibration of a known kind; OpenCV YAML (%YAML:1.0), XML (<opencv_storage>) and JSON, ROS \
             camera_info YAML, Kalibr camchain.yaml (cam0:), Middlebury calib.txt (cam0=[…]), KITTI calib.txt (P2:) and disp_min_max.txt of s2p (two \
             numbers) are read"
                .into(),
        ),
    }
}

/// A line of YAML without its comment, which begins with a # outside quotes, at the line's start or after a blank.
pub(super) fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (i, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') && matches!(before, ' ' | '\t' | '[' | '{' | ',') => {
                quote = Some(c);
            }
            None if c == '#' && before.is_whitespace() => return line[..i].trim_end(),
            Some(_) | None => {}
        }
        before = c;
    }
    line.trim_end()
}

/// Fails if a key occurs twice; each key comes with the number of its line.
pub(super) fn no_key_twice<K: Ord + Display>(keys: impl IntoIterator<Item = (K, usize)>) -> Parsed<()> {
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_unstable();
    match keys.windows(2).find(|w| w[0].0 == w[1].0) {
        Some(w) => Err(format!("line {}: {} was given in line {} already", w[1].1, w[1].0, w[0].1)),
        None => Ok(()),
    }
}

/// The beginning of a text, for messages.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

pub(super) fn finite(word: &str) -> Option<f64> {
    word.parse::<f64>().ok().filter(|v| v.is_finite())
}

/// `word` as a finite number.
pub(super) fn number(word: &str, key: &str, line: usize) -> Parsed<f64> {
    finite(word).ok_or_else(|| format!("line {line}: {key} holds {word:?}, not a finite number"))
}

/// The words as `N` finite numbers.
pub(super) fn numbers<'a, const N: usize>(
    words: impl IntoIterator<Item = &'a str>,
    key: &str,
    line: usize,
) -> Parsed<[f64; N]> {
    let found = words.into_iter().map(|word| number(word, key, line)).collect::<Parsed<Vec<f64>>>()?;
    found
        .try_into()
        .map_err(|n: Vec<f64>| format!("line {line}: {key} has {} numbers: expected {N}", n.len()))
}

/// The parts of an OpenCV matrix that have been read.
#[derive(Debug, Default)]
pub(super) struct MatrixParts {
    pub(super) rows: Option<usize>,
    pub(super) columns: Option<usize>,
    pub(super) kind: Option<String>,
    pub(super) data: Option<Vec<f64>>,
}

/// The most rows and the most columns of a calibration's matrix.
const MAX_SIDE: usize = 1 << 16;

impl MatrixParts {
    /// Sets the data from words, each with the number of its line; `line` is the line of the key `data`.
    pub(super) fn take_data<'a>(
        &mut self,
        words: impl IntoIterator<Item = (&'a str, usize)>,
        key: &str,
        line: usize,
    ) -> Parsed<()> {
        // OpenCV writes .Inf and .Nan, which are refused where the matrix is needed.
        let value = |(word, line): (&str, usize)| match word.trim_start_matches(['-', '.']) {
            "Inf" | "inf" | "Nan" | "nan" | "NaN" => Ok(f64::NAN),
            _ => number(word, key, line),
        };
        let data: Parsed<Vec<f64>> = words.into_iter().map(value).collect();
        self.data.replace(data?).map_or(Ok(()), |_| Err(format!("line {line}: {key} has data twice")))
    }

    /// Sets `rows`, `cols` or `dt`, or both `rows` and `cols` from `sizes`; for a list OpenCV 5 writes a single size.
    pub(super) fn take(&mut self, part: &str, text: &str, key: &str, line: usize) -> Parsed<()> {
        let count = || match text.parse::<usize>() {
            Ok(n) if (1..=MAX_SIDE).contains(&n) => Ok(n),
            _ => Err(format!("line {line}: {part} of {key} is {text:?}, expected 1 to {MAX_SIDE}")),
        };
        let twice = || format!("line {line}: {key} has {part} twice");
        match part {
            "rows" => self.rows.replace(count()?).map_or(Ok(()), |_| Err(twice())),
            "cols" => self.columns.replace(count()?).map_or(Ok(()), |_| Err(twice())),
            "sizes" => {
                let words = text.split(['[', ']', ',', ' ']).filter(|word| !word.is_empty());
                match words.collect::<Vec<_>>()[..] {
                    [columns] => {
                        self.take("rows", "1", key, line).and_then(|()| self.take("cols", columns, key, line))
                    }
                    [rows, columns] => self
                        .take("rows", rows, key, line)
                        .and_then(|()| self.take("cols", columns, key, line)),
                    _ => Err(format!("line {line}: sizes of {key} are {text}: expected one or two numbers")),
                }
            }
            "dt" => self.kind.replace(text.into()).map_or(Ok(()), |_| Err(twice())),
            _ => Err(format!("line {line}: {part:?} in {key}: expected rows, cols, dt and data")),
        }
    }

    /// The matrix, once all its parts are there.
    pub(super) fn finish(self, key: &str, line: usize) -> Parsed<Value> {
        let missing = |part: &str| format!("line {line}: {key} has no {part}");
        let rows = self.rows.ok_or_else(|| missing("rows"))?;
        let columns = self.columns.ok_or_else(|| missing("cols"))?;
        let kind = self.kind.ok_or_else(|| missing("dt"))?;
        let data = self.data.ok_or_else(|| missing("data"))?;
        let channels = channels(&kind).ok_or_else(|| {
            format!("line {line}: dt of {key} is {kind:?}, expected a count and a type such as d, f or 2f")
        })?;
        if data.len() != rows * columns * channels {
            let n = data.len();
            return Err(format!(
                "line {line}: {key} holds {n} numbers, expected {rows} x {columns} x {channels}"
            ));
        }
        // No calibration has a matrix of several channels.
        Ok(if channels == 1 { Value::Matrix(Matrix { rows, columns, data }) } else { Value::Other })
    }
}

/// The channels of an OpenCV element type such as `d` or `2f`.
fn channels(kind: &str) -> Option<usize> {
    let count = kind.strip_suffix(['u', 'c', 'w', 's', 'i', 'f', 'd'])?;
    if count.is_empty() { Some(1) } else { count.parse().ok().filter(|n| (1..=64).contains(n)) }
}
