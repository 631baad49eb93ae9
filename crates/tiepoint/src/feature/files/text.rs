//! Numbers in text files, and the two foreign formats, which have a line `x y scale angle d1 … d128` for each feature.
//!
//! - VLFeat's `sift` command: no header, pixel centres at integers, angles in radians from +x towards +y. It truncates
//!   512 times the unit vector to 8 bits; here it is rounded. Its eight directions turn the other way: direction o of a
//!   cell is (8 − o) mod 8 here.
//! - COLMAP's `feature_importer`: `N 128`, then N lines. The centre of the first pixel is (0.5, 0.5).
//!
//! Descriptor values may have decimals, which COLMAP cuts off.

use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::Size;
use crate::numeric::within_a_turn;
use std::fmt::Display;
use std::io::{self, Write};
use std::str::FromStr;

/// `word` as a number, or an error that names the field `name` in line `line`.
pub(super) fn number<T: FromStr>(word: &str, name: impl Display, line: usize) -> Result<T, String> {
    word.parse().map_err(|_| format!("line {line}: {name} is {word:?}, not a {}", std::any::type_name::<T>()))
}

/// As [`number`], for a number that must be finite.
pub(super) fn finite(word: &str, name: impl Display, line: usize) -> Result<f32, String> {
    match number::<f32>(word, &name, line)? {
        v if v.is_finite() => Ok(v),
        _ => Err(format!("line {line}: {name} is {word:?}, not a finite number")),
    }
}

pub(super) fn write_bytes(out: &mut impl Write, values: &[u8], separator: u8) -> io::Result<()> {
    for &v in values {
        let digits = [separator, b'0' + v / 100, b'0' + v / 10 % 10, b'0' + v % 10];
        match v {
            0..10 => out.write_all(&[separator, digits[3]])?,
            10..100 => out.write_all(&[separator, digits[2], digits[3]])?,
            100.. => out.write_all(&digits)?,
        }
    }
    Ok(())
}

pub(super) const CENTRE_OF_COLMAP: f32 = 0.5;

pub(super) fn write_sift(out: &mut impl Write, features: &Features, descriptors: &[u8]) -> io::Result<()> {
    let mut descriptors = descriptors.to_vec();
    turn(&mut descriptors);
    write_lines(out, features, 0.0, &descriptors)
}

pub(super) fn write_colmap(out: &mut impl Write, features: &Features, descriptors: &[u8]) -> io::Result<()> {
    writeln!(out, "{} 128", features.len())?;
    write_lines(out, features, CENTRE_OF_COLMAP, descriptors)
}

/// Reverses the directions of every cell; applied twice it changes nothing.
fn turn(descriptors: &mut [u8]) {
    for cell in descriptors.as_chunks_mut::<8>().0 {
        cell[1..].reverse();
    }
}

pub(super) fn read_sift(text: &str) -> Result<Features, String> {
    let (keypoints, mut descriptors) = read_lines(lines(text), 0.0)?;
    turn(&mut descriptors);
    Ok(features(keypoints, descriptors))
}

pub(super) fn read_colmap(text: &str) -> Result<Features, String> {
    let mut lines = lines(text);
    let (_, header) = lines.next().ok_or("the file is empty; expected a first line of `N 128`")?;
    let count = match header.split_ascii_whitespace().collect::<Vec<_>>()[..] {
        [count, "128"] => number::<usize>(count, "the number of features", 1)?,
        _ => return Err(format!("the first line is {header:?}, expected `N 128`")),
    };
    let (keypoints, descriptors) = read_lines(lines, CENTRE_OF_COLMAP)?;
    if keypoints.len() != count {
        return Err(format!("the first line promises {count} features, but {} follow", keypoints.len()));
    }
    Ok(features(keypoints, descriptors))
}

/// A line for each feature, with `centre` the place of the first pixel's centre.
fn write_lines(out: &mut impl Write, features: &Features, centre: f32, bytes: &[u8]) -> io::Result<()> {
    for (k, descriptor) in features.keypoints.iter().zip(bytes.chunks_exact(128)) {
        write!(out, "{:?} {:?} {:?} {:?}", k.x + centre, k.y + centre, k.scale, k.angle)?;
        write_bytes(out, descriptor, b' ')?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The lines that are not blank, with their numbers from 1.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

/// Keypoints and all descriptor values of lines as [`write_lines`] writes them.
fn read_lines<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    centre: f32,
) -> Result<(Vec<Keypoint>, Vec<u8>), String> {
    let mut descriptors = Vec::new();
    let keypoints = lines.map(|(number, line)| read_line(line, number, centre, &mut descriptors));
    Ok((keypoints.collect::<Result<_, _>>()?, descriptors))
}

/// Reads a line, and appends its descriptor to the values.
fn read_line(text: &str, line: usize, centre: f32, descriptors: &mut Vec<u8>) -> Result<Keypoint, String> {
    let mut words = text.split_ascii_whitespace();
    let mut next = |name: &str| match words.next() {
        Some(word) => finite(word, name, line),
        None => Err(format!("line {line}: {name} is missing")),
    };
    let (x, y) = (next("x")? - centre, next("y")? - centre);
    let (scale, angle) = (next("scale")?, within_a_turn(next("angle")?));
    let before = descriptors.len();
    let mut most = 0.0_f32;
    for word in words {
        let value = finite(word, "a descriptor value", line)?;
        if !(0.0..=255.0).contains(&value) {
            return Err(format!("line {line}: a descriptor value is {word}, expected 0 to 255"));
        }
        most = most.max(value);
        descriptors.push(value as u8);
    }
    match descriptors.len() - before {
        // Unit vectors would become zeros.
        128 if most > 0.0 && most < 1.0 => Err(format!(
            "line {line}: all descriptor values are below 1: expected 0 to 255, 512 times a unit vector"
        )),
        128 => Ok(Keypoint { x, y, scale, angle, response: 0.0, sign: 0, octave: 0, layer: 0 }),
        n => Err(format!("line {line}: {n} descriptor values, expected 128")),
    }
}

/// SIFT's features from such lines.
fn features(keypoints: Vec<Keypoint>, descriptors: Vec<u8>) -> Features {
    let (descriptors, image) = (Descriptors::U8(descriptors), Size::default());
    Features { keypoints, descriptors, dimension: 128, image }
}
