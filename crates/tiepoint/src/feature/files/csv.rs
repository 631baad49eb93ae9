//! CSV: a header, then one line for each feature. Descriptors of whole numbers from 0 to 255 are 8-bit ones; floats
//! always have a point or an exponent.

use super::text::{finite, lines, number, write_bytes};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use std::io::{self, Write};

const COLUMNS: [&str; 8] = ["x", "y", "scale", "angle", "response", "sign", "octave", "layer"];

pub(super) fn write(out: &mut impl Write, features: &Features) -> io::Result<()> {
    write!(out, "{}", COLUMNS.join(","))?;
    for i in 0..features.dimension {
        write!(out, ",d{i}")?;
    }
    writeln!(out)?;
    for (i, k) in features.keypoints.iter().enumerate() {
        write!(out, "{:?},{:?},{:?},{:?},{:?}", k.x, k.y, k.scale, k.angle, k.response)?;
        write!(out, ",{},{},{}", k.sign, k.octave, k.layer)?;
        let range = i * features.dimension..(i + 1) * features.dimension;
        match &features.descriptors {
            Descriptors::U8(v) => write_bytes(out, &v[range], b',')?,
            Descriptors::F32(v) => v[range].iter().try_for_each(|v| write!(out, ",{v:?}"))?,
        }
        writeln!(out)?;
    }
    Ok(())
}

pub(super) fn read(text: &str) -> Result<Features, String> {
    let mut lines = lines(text);
    let (_, header) = lines.next().ok_or("the file is empty; expected a header")?;
    let dimension = dimension(header)?;
    let (mut keypoints, mut values, mut are_bytes) = (Vec::new(), Vec::new(), true);
    for (number, line) in lines {
        let mut fields = line.split(',').map(str::trim);
        keypoints.push(keypoint(&mut fields, number)?);
        let before = values.len();
        for word in fields {
            let value = word.parse().ok().filter(|value: &f32| value.is_finite());
            let value = value.ok_or_else(|| {
                format!("line {number}: the descriptor value {word:?} is not a finite number")
            })?;
            are_bytes &= value <= 255.0 && word.bytes().all(|b| b.is_ascii_digit());
            values.push(value);
        }
        let found = values.len() - before;
        if found != dimension {
            return Err(format!("line {number}: {found} descriptor values, the header has {dimension}"));
        }
    }
    let descriptors = match are_bytes {
        true => Descriptors::U8(values.into_iter().map(|value| value as u8).collect()),
        false => Descriptors::F32(values),
    };
    Ok(Features { keypoints, descriptors, dimension, image: Size::default() })
}

/// The number of descriptor columns in the header.
fn dimension(header: &str) -> Result<usize, String> {
    let names: Vec<_> = header.split(',').map(str::trim).collect();
    let rest = names
        .strip_prefix(&COLUMNS)
        .ok_or_else(|| format!("line 1: the header does not begin with {}", COLUMNS.join(",")))?;
    match rest.iter().enumerate().find(|(i, name)| name.strip_prefix('d') != Some(&i.to_string())) {
        Some((i, name)) => Err(format!("line 1: column {name:?} where d{i} was expected")),
        None => Ok(rest.len()),
    }
}

fn keypoint<'a>(fields: &mut impl Iterator<Item = &'a str>, line: usize) -> Result<Keypoint, String> {
    let mut next = |name| fields.next().ok_or_else(|| format!("line {line}: {name} is missing"));
    let mut float = |name| finite(next(name)?, name, line);
    let [x, y, scale, angle, response] =
        [float("x")?, float("y")?, float("scale")?, float("angle")?, float("response")?];
    Ok(Keypoint {
        x,
        y,
        scale,
        angle,
        response,
        sign: number(next("sign")?, "sign", line)?,
        octave: number(next("octave")?, "octave", line)?,
        layer: number(next("layer")?, "layer", line)?,
    })
}
