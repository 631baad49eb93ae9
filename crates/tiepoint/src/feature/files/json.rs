//! JSON:
//! `{"image":{"width","height"},"dimension","descriptors":"u8"|"f32","features":[{…,"descriptor":[…]},…]}`.

use super::Values;
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
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
    let file: File = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let List { keypoints, lengths, values } = file.features;
    if let Some(i) = lengths.iter().position(|&n| n != file.dimension) {
        return Err(format!("feature {i} has {} descriptor values, expected {}", lengths[i], file.dimension));
    }
    let descriptors = match (file.descriptors, values.finish()) {
        (Kind::U8, Descriptors::F32(_)) => {
            return Err("a descriptor value is not a whole number from 0 to 255".into());
        }
        (Kind::F32, Descriptors::U8(v)) => Descriptors::F32(v.into_iter().map(f32::from).collect()),
        (Kind::U8 | Kind::F32, same) => same,
    };
    let image = Size::new(file.image.width, file.image.height);
    Ok(Features { keypoints, descriptors, dimension: file.dimension, image })
}

#[derive(serde::Deserialize)]
struct File {
    #[serde(default)]
    image: Pixels,
    dimension: usize,
    descriptors: Kind,
    features: List,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Pixels {
    width: usize,
    height: usize,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    U8,
    F32,
}

/// The keypoints, the length of each one's descriptor, and all descriptor values.
#[derive(Default)]
struct List {
    keypoints: Vec<Keypoint>,
    lengths: Vec<usize>,
    values: Values,
}

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'de> Visitor<'de> for List {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of features")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(feature) = items.next_element::<Feature>()? {
            self.lengths.push(feature.descriptor.len());
            self.values.append(feature.descriptor);
            self.keypoints.push(Keypoint {
                x: feature.x,
                y: feature.y,
                scale: feature.scale,
                angle: feature.angle,
                response: feature.response,
                sign: feature.sign,
                octave: feature.octave,
                layer: feature.layer,
            });
        }
        Ok(self)
    }
}

#[derive(serde::Deserialize)]
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
    descriptor: Values,
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'de> Visitor<'de> for Values {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element_seed(Push(&mut self))?.is_some() {}
        Ok(self)
    }
}

struct Push<'a>(&'a mut Values);

impl<'de> DeserializeSeed<'de> for Push<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // Decimals are rounded directly to f32, not first to f64.
        deserializer.deserialize_f32(self)
    }
}

impl Visitor<'_> for Push<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<(), E> {
        match u8::try_from(v) {
            Ok(byte) => self.0.push_byte(byte),
            Err(_) => self.0.push_float(v as f32),
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<(), E> {
        self.0.push_float(v as f32);
        Ok(())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<(), E> {
        self.0.push_float(v as f32);
        Ok(())
    }
}
