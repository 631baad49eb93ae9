//! Blocks of numbers inside the file: little-endian, deflated, base 64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn deflated(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes)?;
    Ok(base64(&encoder.finish()?))
}

fn block(kind: &str, bytes: &[u8]) -> io::Result<Value> {
    Ok(json!({ "type": kind, "data": deflated(bytes)? }))
}

/// A column of floats: NaN and infinities are kept.
pub(crate) fn f32s(values: impl Iterator<Item = f32>) -> io::Result<Value> {
    block("f32", &values.flat_map(f32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u32s(values: impl Iterator<Item = u32>) -> io::Result<Value> {
    block("u32", &values.flat_map(u32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u16s(values: impl Iterator<Item = u16>) -> io::Result<Value> {
    block("u16", &values.flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u8s(values: impl Iterator<Item = u8>) -> io::Result<Value> {
    block("u8", &values.collect::<Vec<_>>())
}

/// The value of a pixel without a disparity.
pub(crate) const NOTHING: u16 = u16::MAX;

/// A map in 16 bits: a value is `low` + `step` · n, or [`NOTHING`] if it is not finite. Each row holds the differences
/// of neighbours, all low bytes before all high bytes, which halves the deflated size.
pub(crate) fn map(rows: &[Vec<f32>]) -> io::Result<Value> {
    let finite = || rows.iter().flatten().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = if low <= high { (f64::from(low), f64::from(high)) } else { (0.0, 0.0) };
    // 256ths are exact for disparities as 16-bit files hold them.
    let step = ((high - low) / f64::from(NOTHING - 1)).max(1.0 / 256.0);
    let number = |v: f32| match v.is_finite() {
        true => ((f64::from(v) - low) / step).round() as u16,
        false => NOTHING,
    };
    let mut bytes = Vec::new();
    for row in rows {
        let mut before = 0_u16;
        let differences: Vec<u16> = row
            .iter()
            .map(|v| {
                let n = number(*v);
                let difference = n.wrapping_sub(before);
                before = n;
                difference
            })
            .collect();
        bytes.extend(differences.iter().map(|d| *d as u8));
        bytes.extend(differences.iter().map(|d| (d >> 8) as u8));
    }
    Ok(json!({ "low": low, "step": step, "values": block("u8", &bytes)? }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Read;

    pub(crate) fn unpacked(block: &Value) -> Vec<u8> {
        let bytes = STANDARD.decode(block["data"].as_str().unwrap()).unwrap();
        let mut out = Vec::new();
        flate2::read::DeflateDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn maps_are_read_back_within_half_a_step() {
        for scale in [0.1, 1.0, 1000.0] {
            let value = |x: usize, y: usize| match (x * y) % 7 {
                3 => f32::INFINITY,
                5 => f32::NAN,
                _ => ((x * 37 + y * 91) % 101) as f32 * scale - 20.0,
            };
            let rows: Vec<Vec<f32>> = (0..9).map(|y| (0..13).map(|x| value(x, y)).collect()).collect();
            let packed = map(&rows).unwrap();
            let (low, step) = (packed["low"].as_f64().unwrap(), packed["step"].as_f64().unwrap());
            let bytes = unpacked(&packed["values"]);
            for (row, bytes) in rows.iter().zip(bytes.chunks_exact(2 * 13)) {
                let mut number = 0_u16;
                for (x, v) in row.iter().enumerate() {
                    let difference = u16::from(bytes[x]) | u16::from(bytes[13 + x]) << 8;
                    number = number.wrapping_add(difference);
                    let found = low + step * f64::from(number);
                    match v.is_finite() {
                        true => assert!((found - f64::from(*v)).abs() <= 0.5001 * step, "{v} became {found}"),
                        false => assert_eq!(number, NOTHING, "{v}"),
                    }
                }
            }
        }
        let nothing = map(&[vec![f32::NAN; 3]]).unwrap();
        assert_eq!(unpacked(&nothing["values"]).len(), 6, "a map without values");
    }

    #[test]
    fn columns_keep_every_bit() {
        let values = [1.5_f32, f32::NAN, f32::INFINITY, -0.0, 1e-42];
        let bytes = unpacked(&f32s(values.into_iter()).unwrap());
        let found = bytes.as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b));
        assert!(found.eq(values.map(f32::to_bits)), "little-endian, as they are");
    }
}
