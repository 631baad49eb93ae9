//! Features that another program found, read from its files instead of searching.
//!
//! Places are those of the stored photograph, with (0, 0) at the centre of its first pixel; formats are those of
//! [`files`], and HDF5 as hloc writes it: a group for each photograph, with its name. Features that lie more than 3
//! pixels outside the photograph are refused: they were found in a picture of another size.
//!
//! **Descriptors** are of any kind and length. They are compared as they are (`metric` l2) or divided by their length
//! (`cosine`: the nearest descriptor is then that of the smallest angle, since the squared distance of unit vectors is
//! 2 − 2 cos). The length is the root of a sum of f64 in the order of the values, so that it is the same everywhere.

use crate::collection::scan::GIVEN;
use crate::collection::{CollectionOptions, Metric, PairChoice};
use crate::feature::files::{self, hdf5::Fault, hdf5::Hdf5};
use crate::feature::{Descriptors, Features};
use crate::image::Size;
use crate::matching::MAX_DIMENSION;
use crate::{Error, Result};
use std::path::PathBuf;

/// Pixels by which a place may be outside the photograph; those of simulated views in OpenCV are by up to 2.3.
const BEYOND: f32 = 3.0;

#[derive(Debug)]
pub(super) struct Given<'o> {
    place: PathBuf,
    /// The file of all features, if `place` is one.
    file: Option<Hdf5>,
    options: &'o CollectionOptions,
}

impl<'o> Given<'o> {
    pub(super) fn open(options: &'o CollectionOptions) -> Result<Self> {
        let place = options.features.given.clone().unwrap_or_default();
        let file = if place.is_dir() { None } else { Some(Hdf5::open(&place)?) };
        Ok(Self { place, file, options })
    }

    /// The features of the photograph `name` of this size; `file` is the path of its file of features and the content. An
    /// error of the file of all features names its path, others the photograph or its own file.
    pub(super) fn features_of(
        &self,
        name: &str,
        file: Option<&(PathBuf, Vec<u8>)>,
        size: Size,
    ) -> Result<Features> {
        let none = |wanted: String| Error::format(name, format!("no features are given for it: {wanted}"));
        let path = file.map_or(&self.place, |(path, _)| path);
        let fault = |reason: String| Error::format(name, format!("{}: {reason}", path.display()));
        let features = match (&self.file, file) {
            (Some(all), _) => {
                let found = all.features(name).map_err(|e| match e {
                    Fault::Array(reason) => fault(reason),
                    of_file => of_file.at(path),
                })?;
                found.ok_or_else(|| {
                    none(format!(
                        "{} has no group {name} (links to other files are not followed)",
                        path.display()
                    ))
                })?
            }
            (None, Some((path, bytes))) => files::parse(bytes, files::FeatureFormat::of(path)?, path)?,
            (None, None) => {
                let (first, others) = (GIVEN[0], GIVEN[1..].join(", ."));
                let first = self.place.join(format!("{name}.{first}"));
                return Err(none(format!("expected {}, or the same with .{others}", first.display())));
            }
        };
        of_photograph(features, size, self.options).map_err(fault)
    }
}

/// Descriptors longer, on average, than this many times the greatest distance of a match do not suit that distance.
const FAR_TOO_LONG: f64 = 10.0;
/// Descriptors up to this length count as unit vectors, which suit any distance.
const UNIT: f64 = 2.0;

/// Fails for floats so long that hardly any two are within the greatest distance of a match, meant for unit vectors.
fn check_lengths(features: &Features, options: &CollectionOptions) -> std::result::Result<(), String> {
    let searched = options.pairs.choice != PairChoice::Matches;
    let most = options.matching.max_distance.filter(|_| searched);
    let (Descriptors::F32(values), Some(most)) = (&features.descriptors, most) else { return Ok(()) };
    let lengths = values.chunks_exact(features.dimension.max(1)).map(length);
    let mean = lengths.sum::<f64>() / features.len().max(1) as f64;
    match mean > UNIT.max(FAR_TOO_LONG * f64::from(most)) {
        true => Err(format!(
            "holds descriptors of length {mean:.0} on average, and matches are to be no farther apart than {most} \
             (`--max-distance`): `--metric cosine` compares directions, `--max-distance none` takes matches of any distance"
        )),
        false => Ok(()),
    }
}

/// The features as those of a photograph of this size, whether they come from a file or are imported.
pub(super) fn of_photograph(
    features: Features,
    size: Size,
    options: &CollectionOptions,
) -> std::result::Result<Features, String> {
    let said = features.image;
    if !said.is_empty() && said != size {
        return Err(format!("holds features of a picture of {said}, and the photograph has {size}"));
    }
    let dimension = features.dimension;
    if dimension > MAX_DIMENSION {
        return Err(format!(
            "holds descriptors of {dimension} values: at most {MAX_DIMENSION} can be matched"
        ));
    }
    let within = |v: f32, side: usize| (-BEYOND..side as f32 + BEYOND).contains(&v);
    if let Some((i, k)) =
        (0..).zip(&features.keypoints).find(|(_, k)| !within(k.x, size.width) || !within(k.y, size.height))
    {
        return Err(format!(
            "feature {i} lies at ({}, {}), outside of the photograph of {size}: places must be pixels of the photograph as it \
             is stored",
            k.x, k.y
        ));
    }
    files::check(&features)?;
    let features = Features { image: size, ..features };
    match options.features.metric {
        Metric::L2 => check_lengths(&features, options).map(|()| features),
        Metric::Cosine => Ok(unit(features)),
    }
}

fn length(descriptor: &[f32]) -> f64 {
    descriptor.iter().map(|v| f64::from(*v) * f64::from(*v)).sum::<f64>().sqrt()
}

/// The same features with descriptors of length 1; those that are 0 stay 0.
fn unit(features: Features) -> Features {
    let dimension = features.dimension;
    if dimension == 0 {
        return features;
    }
    let values = match &features.descriptors {
        Descriptors::U8(values) => values.iter().map(|v| f32::from(*v)).collect(),
        Descriptors::F32(values) => values.clone(),
    };
    let of_length_one = |descriptor: &[f32]| {
        let length = length(descriptor);
        let by = if length > 0.0 { length } else { 1.0 };
        descriptor.iter().map(|v| (f64::from(*v) / by) as f32).collect::<Vec<_>>()
    };
    let values = values.chunks_exact(dimension).flat_map(of_length_one).collect();
    Features { descriptors: Descriptors::F32(values), ..features }
}
