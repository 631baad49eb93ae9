//! Numbers in text files.

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

/// One line of `x y scale angle d1 … d128`, with `centre` the place of the first pixel's centre.
pub(super) fn write_line(
    out: &mut impl Write,
    k: &Keypoint,
    centre: f32,
    descriptor: &[u8],
) -> io::Result<()> {
    write!(out, "{:?} {:?} {:?} {:?}", k.x + centre, k.y + centre, k.scale, k.angle)?;
    write_bytes(out, descriptor, b' ')?;
    out.write_all(b"\n")
}

/// Reads a line as [`write_line`] writes it, and appends its descriptor to the values.
pub(super) fn read_line(
    text: &str,
    line: usize,
    centre: f32,
    descriptors: &mut Vec<u8>,
) -> Result<Keypoint, String> {
    let mut words = text.split_ascii_whitespace();
    let mut next = |name: &str| match words.next() {
        Some(word) => finite(word, name, line),
        None => Err(format!("line {line}: {name} is missing")),
    };
    let (x, y) = (next("x")? - centre, next("y")? - centre);
    let (scale, angle) = (next("scale")?, within_a_turn(next("angle")?));
    let before = descriptors.len();
    for word in words {
        descriptors.push(number(word, "a descriptor value", line)?);
    }
    match descriptors.len() - before {
        128 => Ok(Keypoint { x, y, scale, angle, response: 0.0, sign: 1, octave: 0, layer: 0 }),
        n => Err(format!("line {line}: {n} descriptor values, expected 128")),
    }
}

/// SIFT's features from such lines.
pub(super) fn features(keypoints: Vec<Keypoint>, descriptors: Vec<u8>) -> Features {
    let (descriptors, image) = (Descriptors::U8(descriptors), Size::default());
    Features { keypoints, descriptors, dimension: 128, image }
}
