//! Feature files. The extension names the format:
//!
//! | extension | what | keeps |
//! |---|---|---|
//! | `.csv` | one line a feature under `x,y,scale,angle,response,sign,octave,layer,d0,d1,…` | all but the image size |
//! | `.json` | one object a feature | all |
//! | `.npz` | NumPy arrays `xy`, `scale`, `angle`, `response`, `sign`, `octave`, `layer`, `descriptors`, `image` | all |
//! | `.sift` | VLFeat's text: `x y scale angle d1 … d128`, no header | these, descriptors in 8 bits |
//! | `.txt` | COLMAP's text: `N 128`, then as above with the first pixel's centre at (0.5, 0.5) | the same |
//!
//! `.npz` is also read with the names that hloc and `LightGlue` have (`keypoints`, `scores` or `keypoint_scores`, `scales`,
//! `oris`, `image_size`), with numbers of any type; all arrays but the positions may be missing. hloc's `.h5` is read as features of
//! a collection (`collect --features`) and not written.
//!
//! Numbers are written in the shortest form that reads back to the same bits. The two foreign formats hold SIFT
//! descriptors of 128 values from 0 to 255; unit vectors are written times 512, rounded and saturated. The values are
//! in the order of Lowe, OpenCV and COLMAP, except in `.sift`, which has VLFeat's. Features read from the two foreign
//! formats have response, sign, octave and layer 0. Every format keeps the order of the features, so that indices
//! stay valid.

pub(crate) mod arrays;
mod csv;
pub(crate) mod hdf5;
mod json;
pub(crate) mod npz;
#[cfg(test)]
mod tests;
mod text;

use super::{Descriptors, Features, Keypoint};
use crate::files::{format_of, text_of, write_atomically};
use crate::{Error, Result};
use std::io::{self, Write};
use std::path::Path;

/// A format of feature files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureFormat {
    /// `.csv`
    Csv,
    /// `.json`
    Json,
    /// `.npz`
    Npz,
    /// `.sift`, as VLFeat writes it.
    Sift,
    /// `.txt`, as COLMAP imports it.
    Colmap,
}

impl FeatureFormat {
    /// The format that the extension of `path` names. Call it before long work, so that a wrong name is reported at
    /// once.
    ///
    /// # Errors
    /// [`Error::Format`] listing the known extensions.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let known = [
            ("csv", Self::Csv),
            ("json", Self::Json),
            ("npz", Self::Npz),
            ("sift", Self::Sift),
            ("txt", Self::Colmap),
        ];
        let what = "a feature file; use .csv, .json, .npz, .sift (VLFeat text) or .txt (COLMAP text)";
        format_of(path.as_ref(), &known, what)
    }
}

/// Writes `features` to `path` in the format of its extension, [whole or not at all](write_atomically).
///
/// # Errors
/// [`Error::Format`] when the extension is unknown or the format cannot hold the features,
/// [`Error::Mismatch`] when keypoints and descriptors do not fit each other, [`Error::Io`] when the file
/// cannot be written.
pub fn write(path: impl AsRef<Path>, features: &Features) -> Result<()> {
    let path = path.as_ref();
    let format = FeatureFormat::of(path)?;
    check(features).map_err(Error::Mismatch)?;
    let bytes = match format {
        FeatureFormat::Sift | FeatureFormat::Colmap => {
            quantised(features).map_err(|e| Error::format(path, e))?
        }
        FeatureFormat::Csv | FeatureFormat::Json | FeatureFormat::Npz => Vec::new(),
    };
    write_atomically(path, |out| encode(out, format, features, &bytes))
}

/// Writes features. The descriptors of the two foreign formats are `bytes`.
fn encode(out: &mut impl Write, format: FeatureFormat, features: &Features, bytes: &[u8]) -> io::Result<()> {
    match format {
        FeatureFormat::Csv => csv::write(out, features),
        FeatureFormat::Json => json::write(out, features),
        FeatureFormat::Npz => npz::write(out, features),
        FeatureFormat::Sift => text::write_sift(out, features, bytes),
        FeatureFormat::Colmap => text::write_colmap(out, features, bytes),
    }
}

/// The features in the file at `path`.
///
/// # Errors
/// [`Error::Format`] when the extension is unknown or the content is not what the format demands,
/// [`Error::Io`] when the file cannot be read.
pub fn read(path: impl AsRef<Path>) -> Result<Features> {
    let path = path.as_ref();
    let format = FeatureFormat::of(path)?;
    let is_file = std::fs::metadata(path).map_err(|e| Error::io(path, e))?.is_file();
    if !is_file {
        return Err(Error::format(path, "is not a regular file; features are read from files"));
    }
    let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
    parse(&bytes, format, path)
}

/// The features in `bytes`, the content of a feature file, which errors call `name`.
///
/// # Errors
/// [`Error::Format`] when the content is not what the format demands.
pub fn parse(bytes: &[u8], format: FeatureFormat, name: impl AsRef<Path>) -> Result<Features> {
    let text = |expected| text_of(bytes, expected);
    let vlfeat = "VLFeat's text, lines of x, y, scale, angle and 128 values";
    let features = match format {
        FeatureFormat::Csv => text("CSV of this program").and_then(csv::read),
        FeatureFormat::Json => text("JSON of this program").and_then(json::read),
        FeatureFormat::Npz => npz::read(bytes),
        FeatureFormat::Sift if bytes.starts_with(b"SIFTV") => {
            Err(format!("is a binary file of VisualSFM, which is not read: expected {vlfeat}"))
        }
        FeatureFormat::Sift => text(vlfeat).and_then(text::read_sift),
        FeatureFormat::Colmap => text("COLMAP's text, with a first line `N 128`").and_then(text::read_colmap),
    };
    let checked = features.and_then(|f| check(&f).map(|()| f));
    checked.map_err(|reason| Error::format(name.as_ref(), reason))
}

/// Fails for lengths that do not fit each other and for numbers that are not finite.
pub(crate) fn check(features: &Features) -> std::result::Result<(), String> {
    features.check().map_err(|e| e.to_string())?;
    Keypoint::check(&features.keypoints)?;
    match &features.descriptors {
        Descriptors::F32(v) if v.iter().any(|v| !v.is_finite()) => {
            Err("a descriptor holds a number that is infinite or not a number".into())
        }
        Descriptors::F32(_) | Descriptors::U8(_) => Ok(()),
    }
}

/// The descriptors as 128 values of 8 bits each, as SIFT files hold them.
fn quantised(features: &Features) -> std::result::Result<Vec<u8>, String> {
    if features.dimension != 128 {
        return Err(format!(
            "this format holds SIFT descriptors of 128 values, not {}; use .csv, .json or .npz",
            features.dimension
        ));
    }
    match &features.descriptors {
        Descriptors::U8(v) => Ok(v.clone()),
        Descriptors::F32(v) if v.iter().any(|v| *v < 0.0) => Err(
            "this format holds descriptor values from 0 up, and some are negative; use .csv, .json or .npz"
                .into(),
        ),
        // The cast saturates at 255.
        Descriptors::F32(v) => Ok(v.iter().map(|v| (512.0 * v).round_ties_even() as u8).collect()),
    }
}
