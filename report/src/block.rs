//! Blocks of numbers inside the file: little-endian, deflated, base 64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use std::io::{Read, Write};
use tiepoint::image::Image;
use tiepoint::{Error, Result};

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn block(kind: &str, bytes: &[u8]) -> Result<Value> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|e| Error::io("report", e));
    Ok(json!({ "type": kind, "data": base64(&packed?) }))
}

/// A column of floats: NaN and infinities are kept.
pub(crate) fn f32s(values: impl Iterator<Item = f32>) -> Result<Value> {
    block("f32", &values.flat_map(f32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u32s(values: impl Iterator<Item = u32>) -> Result<Value> {
    block("u32", &values.flat_map(u32::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u16s(values: impl Iterator<Item = u16>) -> Result<Value> {
    block("u16", &values.flat_map(u16::to_le_bytes).collect::<Vec<_>>())
}

pub(crate) fn u8s(values: impl Iterator<Item = u8>) -> Result<Value> {
    block("u8", &values.collect::<Vec<_>>())
}

/// The most bytes of a block that is read.
const LARGEST: u64 = 1 << 30;

/// The bytes of a block of a page; `None` if it is damaged, or larger than `LARGEST`.
pub(crate) fn read_u8s(block: &Value) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(block["data"].as_str()?).ok()?;
    let mut out = Vec::new();
    DeflateDecoder::new(&bytes[..]).take(LARGEST).read_to_end(&mut out).ok()?;
    ((out.len() as u64) < LARGEST).then_some(out)
}

/// The values of a block, `N` bytes each.
pub(crate) fn read<const N: usize, T>(block: &Value, value: fn([u8; N]) -> T) -> Option<Vec<T>> {
    let bytes = read_u8s(block)?;
    let (values, rest) = bytes.as_chunks::<N>();
    rest.is_empty().then(|| values.iter().copied().map(value).collect())
}

/// The values of a map of this size, row by row; NaN where there are none.
pub(crate) fn read_map(map: &Value, columns: usize, rows: usize) -> Option<Vec<f32>> {
    let (low, step) = (map["low"].as_f64()?, map["step"].as_f64()?);
    let bytes = read_u8s(&map["values"])?;
    if columns == 0 || Some(bytes.len()) != columns.checked_mul(rows)?.checked_mul(2) {
        return None;
    }
    let mut out = Vec::with_capacity(columns * rows);
    for row in bytes.chunks_exact(2 * columns) {
        let (lows, highs) = row.split_at(columns);
        let mut number = 0_u16;
        out.extend(lows.iter().zip(highs).map(|(l, h)| {
            number = number.wrapping_add(u16::from_le_bytes([*l, *h]));
            if number == NOTHING { f32::NAN } else { (low + step * f64::from(number)) as f32 }
        }));
    }
    Some(out)
}

/// The value of a pixel without a disparity.
pub(crate) const NOTHING: u16 = u16::MAX;

/// A map in 16 bits: a value is `low` + `step` · n, or [`NOTHING`] if it is not finite. Each row holds the differences
/// of neighbours, all low bytes before all high bytes, which halves the deflated size.
pub(crate) fn map(image: &Image<f32>) -> Result<Value> {
    let finite = || image.data().iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let (low, high) = if low <= high { (f64::from(low), f64::from(high)) } else { (0.0, 0.0) };
    // 256ths are exact for disparities as 16-bit files hold them.
    let step = ((high - low) / f64::from(NOTHING - 1)).max(1.0 / 256.0);
    let number = |v: f32| if v.is_finite() { ((f64::from(v) - low) / step).round() as u16 } else { NOTHING };
    let mut bytes = Vec::new();
    for y in 0..image.size().height {
        let mut before = 0_u16;
        let difference = |v: &f32| {
            let n = number(*v);
            n.wrapping_sub(std::mem::replace(&mut before, n))
        };
        let differences: Vec<u16> = image.row(y).iter().map(difference).collect();
        bytes.extend(differences.iter().map(|d| *d as u8));
        bytes.extend(differences.iter().map(|d| (d >> 8) as u8));
    }
    Ok(json!({ "low": low, "step": step, "values": block("u8", &bytes)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiepoint::image::Size;

    #[test]
    fn maps_are_read_back_within_half_a_step() {
        for scale in [0.1, 1.0, 1000.0] {
            let value = |x: usize, y: usize| match (x * y) % 7 {
                3 => f32::INFINITY,
                5 => f32::NAN,
                _ => ((x * 37 + y * 91) % 101) as f32 * scale - 20.0,
            };
            let image = Image::from_fn(Size::new(13, 9), value);
            let packed = map(&image).unwrap();
            let step = packed["step"].as_f64().unwrap();
            let found = read_map(&packed, 13, 9).unwrap();
            for (v, found) in image.data().iter().zip(found) {
                // A float has 24 bits.
                let close = 0.5001 * step + 1e-6 * f64::from(v.abs());
                match v.is_finite() {
                    true => assert!((f64::from(found) - f64::from(*v)).abs() <= close, "{v} became {found}"),
                    false => assert!(found.is_nan(), "{v} became {found}"),
                }
            }
            assert_eq!(read_map(&packed, 12, 9), None, "of another size");
        }
        let nothing = map(&Image::filled(Size::new(3, 1), 1, f32::NAN)).unwrap();
        assert!(read_map(&nothing, 3, 1).unwrap().iter().all(|v| v.is_nan()), "a map without values");
    }

    #[test]
    fn columns_keep_every_bit() {
        let values = [1.5_f32, f32::NAN, f32::INFINITY, -0.0, 1e-42];
        let packed = f32s(values.into_iter()).unwrap();
        let found = read(&packed, f32::from_le_bytes).unwrap();
        assert!(found.iter().map(|v| v.to_bits()).eq(values.map(f32::to_bits)), "as they are");
        assert_eq!(read_u8s(&packed).unwrap()[..4], 1.5_f32.to_le_bytes(), "little-endian");
        assert_eq!(read_u8s(&json!({ "data": "AAAA" })), None, "damaged");
    }
}
