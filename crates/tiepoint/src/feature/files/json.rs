//! JSON:
//! `{"image":{"width","height"},"dimension","descriptors":"u8"|"f32","features":[{…,"descriptor":[…]},…]}`.

use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use serde::Deserialize;
use std::io::{self, Write};

/// Writes one feature in each line; floats in the shortest form that reads back to the same bits.
pub(super) fn write(out: &mut impl Write, features: &Features) -> io::Result<()> {
    let Size { width, height } = features.image;
    let kind = match features.descriptors {
        Descriptors::U8(_) => "u8",
        Descriptors::F32(_) => "f32",
    };
    write!(
        out,
        "{{\"image\":{{\"width\":{width},\"height\":{height}}},\"dimension\":{},",
        features.dimension
    )?;
    write!(out, "\"descriptors\":\"{kind}\",\"features\":[")?;
    for (i, k) in features.keypoints.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(
            out,
            "{comma}\n{{\"x\":{:?},\"y\":{:?},\"scale\":{:?},\"angle\":{:?},",
            k.x, k.y, k.scale, k.angle
        )?;
        write!(out, "\"response\":{:?},\"sign\":{},\"octave\":{},", k.response, k.sign, k.octave)?;
        write!(out, "\"layer\":{},\"descriptor\":[", k.layer)?;
        for j in 0..features.dimension {
            let comma = if j > 0 { "," } else { "" };
            match &features.descriptors {
                Descriptors::U8(v) => write!(out, "{comma}{}", v[i * features.dimension + j])?,
                Descriptors::F32(v) => write!(out, "{comma}{:?}", v[i * features.dimension + j])?,
            }
        }
        write!(out, "]}}")?;
    }
    writeln!(out, "\n]}}")
}

pub(super) fn read(text: &str) -> Result<Features, String> {
    let File { image, dimension, descriptors, features } =
        serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut lengths = features.iter().map(|feature| feature.descriptor.len()).enumerate();
    if let Some((i, n)) = lengths.find(|(_, n)| *n != dimension) {
        return Err(format!("feature {i} has {n} descriptor values, expected {dimension}"));
    }
    let values = features.iter().flat_map(|feature| feature.descriptor.iter().copied());
    let descriptors = match descriptors {
        Kind::F32 => Descriptors::F32(values.collect()),
        Kind::U8 => {
            let byte = |value: f32| Some(value as u8).filter(|byte| f32::from(*byte) == value);
            let bytes: Option<_> = values.map(byte).collect();
            Descriptors::U8(bytes.ok_or("a descriptor value is not a whole number from 0 to 255")?)
        }
    };
    let keypoint = |f: Feature| Keypoint {
        x: f.x,
        y: f.y,
        scale: f.scale,
        angle: f.angle,
        response: f.response,
        sign: f.sign,
        octave: f.octave,
        layer: f.layer,
    };
    let keypoints = features.into_iter().map(keypoint).collect();
    Ok(Features { keypoints, descriptors, dimension, image: Size::new(image.width, image.height) })
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    image: Pixels,
    dimension: usize,
    descriptors: Kind,
    features: Vec<Feature>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pixels {
    width: usize,
    height: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    U8,
    F32,
}

#[derive(Deserialize)]
struct Feature {
    x: f32,
    y: f32,
    scale: f32,
    angle: f32,
    response: f32,
    sign: i8,
    octave: i8,
    layer: u8,
    #[serde(default)]
    descriptor: Vec<f32>,
}
