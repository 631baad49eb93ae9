//! JSON: `{"image":{"width","height"},"dimension","descriptors":"u8"|"f32","features":[{…,"descriptor":[…]},…]}`.

use super::Values;
use crate::{
    feature::{Descriptors, Features, Keypoint},
    image::Size,
};
use std::io::{self, Write};

/// How deep values of unknown keys may be nested.
const DEPTH: usize = 32;

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

/// `text` as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

pub(super) fn read(text: &str) -> Result<Features, String> {
    let mut json = Reader { text, at: 0 };
    let (mut image, mut dimension, mut kind, mut list) = (Size::default(), None, None, None);
    json.object(|json, key| {
        match key {
            "image" => json.object(|json, key| {
                match key {
                    "width" => image.width = json.number()?,
                    "height" => image.height = json.number()?,
                    _ => json.skip(DEPTH)?,
                }
                Ok(())
            })?,
            "dimension" => dimension = Some(json.number()?),
            "descriptors" => kind = Some(json.string()?.to_owned()),
            "features" => list = Some(features(json)?),
            _ => json.skip(DEPTH)?,
        }
        Ok(())
    })?;
    json.end()?;
    let dimension: usize = dimension.ok_or("\"dimension\" is missing")?;
    let (keypoints, lengths, values) = list.ok_or("\"features\" is missing")?;
    if let Some(i) = lengths.iter().position(|&n| n != dimension) {
        return Err(format!("feature {i} has {} descriptor values, expected {dimension}", lengths[i]));
    }
    let descriptors = match (kind.as_deref(), values) {
        (Some("u8"), Values::U8(v)) => Descriptors::U8(v),
        (Some("u8"), _) => return Err("a descriptor value is not a whole number from 0 to 255".into()),
        (Some("f32"), Values::F32(v)) => Descriptors::F32(v),
        (Some("f32"), Values::U8(v)) => Descriptors::F32(v.into_iter().map(f32::from).collect()),
        _ => return Err("\"descriptors\" must be \"u8\" or \"f32\"".into()),
    };
    Ok(Features { keypoints, descriptors, dimension, image })
}

/// The keypoints, the length of each one's descriptor, and all descriptor values.
fn features(json: &mut Reader<'_>) -> Result<(Vec<Keypoint>, Vec<usize>, Values), String> {
    let (mut keypoints, mut lengths, mut values) = (Vec::new(), Vec::new(), Values::U8(Vec::new()));
    json.array(|json| {
        let [mut x, mut y, mut scale, mut angle, mut response] = [None; 5];
        let (mut sign, mut octave, mut layer, mut length) = (None, None, None, None);
        json.object(|json, key| {
            match key {
                "x" => x = Some(json.number()?),
                "y" => y = Some(json.number()?),
                "scale" => scale = Some(json.number()?),
                "angle" => angle = Some(json.number()?),
                "response" => response = Some(json.number()?),
                "sign" => sign = Some(json.number()?),
                "octave" => octave = Some(json.number()?),
                "layer" => layer = Some(json.number()?),
                "descriptor" if length.is_none() => {
                    let mut n = 0;
                    json.array(|json| {
                        n += 1;
                        let word = json.word()?;
                        values.push(word).map_err(|e| json.wrong(&e))
                    })?;
                    length = Some(n);
                }
                "descriptor" => return Err(json.wrong("a second descriptor")),
                _ => json.skip(DEPTH)?,
            }
            Ok(())
        })?;
        let missing = |name: &str| format!("feature {}: {name:?} is missing", keypoints.len());
        keypoints.push(Keypoint {
            x: x.ok_or_else(|| missing("x"))?,
            y: y.ok_or_else(|| missing("y"))?,
            scale: scale.ok_or_else(|| missing("scale"))?,
            angle: angle.ok_or_else(|| missing("angle"))?,
            response: response.ok_or_else(|| missing("response"))?,
            sign: sign.ok_or_else(|| missing("sign"))?,
            octave: octave.ok_or_else(|| missing("octave"))?,
            layer: layer.ok_or_else(|| missing("layer"))?,
        });
        lengths.push(length.unwrap_or(0));
        Ok(())
    })?;
    Ok((keypoints, lengths, values))
}

/// Walks through a JSON text. Strings are handed out as they stand, escapes unresolved: no known key has any.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&self) -> usize {
        1 + self.text.as_bytes()[..self.at].iter().filter(|b| **b == b'\n').count()
    }

    fn wrong(&self, found: &str) -> String {
        format!("line {}: {found}", self.line())
    }

    /// The next byte that is not white space, 0 at the end.
    fn peek(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += blank;
        rest.get(blank).copied().unwrap_or(0)
    }

    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == byte && byte != 0;
        self.at += usize::from(taken);
        taken
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        match self.take(byte) {
            true => Ok(()),
            false => Err(self.wrong(&format!("expected {:?}", char::from(byte)))),
        }
    }

    fn end(&mut self) -> Result<(), String> {
        match self.peek() {
            0 if self.at == self.text.len() => Ok(()),
            _ => Err(self.wrong("something follows the end")),
        }
    }

    fn string(&mut self) -> Result<&'a str, String> {
        self.expect(b'"')?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.at) {
            match b {
                b'"' => {
                    self.at += 1;
                    return Ok(&self.text[start..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(bytes.len());
        Err(self.wrong("a string does not end"))
    }

    /// A number, `true`, `false` or `null` as it stands.
    fn word(&mut self) -> Result<&'a str, String> {
        self.peek();
        let rest = &self.text[self.at..];
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let word = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        self.at += word.len();
        if word.is_empty() { Err(self.wrong("expected a value")) } else { Ok(word) }
    }

    fn number<T: std::str::FromStr>(&mut self) -> Result<T, String> {
        let word = self.word()?;
        word.parse().map_err(|_| self.wrong(&format!("{word:?} is not a {}", std::any::type_name::<T>())))
    }

    fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            member(self, key)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn array(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Passes over a value of any kind.
    fn skip(&mut self, depth: usize) -> Result<(), String> {
        let Some(inner) = depth.checked_sub(1) else { return Err(self.wrong("nested too deep")) };
        match self.peek() {
            b'{' => self.object(|json, _| json.skip(inner)),
            b'[' => self.array(|json| json.skip(inner)),
            b'"' => self.string().map(|_| ()),
            _ => self.word().map(|_| ()),
        }
    }
}
