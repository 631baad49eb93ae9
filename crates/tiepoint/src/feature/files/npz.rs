//! NPZ: a zip archive, uncompressed, of one `.npy` file (version 1.0) for each array, as `numpy.savez` writes it.

use crate::{
    feature::{Descriptors, Features, Keypoint},
    image::Size,
};
use std::io::{self, Write};

/// Signatures of zip's records, which begin with the letters PK.
const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
/// 1980-01-01, the first day of zip, so that the same features give the same file.
const DATE: u16 = 0x21;

/// An array as NumPy names it: its element type, its shape and its bytes.
struct Array<'a> {
    kind: &'a str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array<'_> {
    fn of<const N: usize>(
        kind: &'static str,
        shape: &[usize],
        values: impl Iterator<Item = [u8; N]>,
    ) -> Self {
        Self { kind, shape: shape.to_vec(), bytes: values.flatten().collect() }
    }

    /// The header of a `.npy` file: padded with blanks so that the data begin at a multiple of 64.
    fn header(&self) -> Vec<u8> {
        let shape: String = self.shape.iter().map(|n| format!("{n}, ")).collect();
        let shape = if self.shape.len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
        let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", self.kind);
        let blanks = (10 + text.len() + 1).next_multiple_of(64) - (10 + text.len() + 1);
        text.push_str(&" ".repeat(blanks));
        text.push('\n');
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend((text.len() as u16).to_le_bytes());
        header.extend(text.as_bytes());
        header
    }
}

pub(super) fn write(out: &mut impl Write, features: &Features) -> io::Result<()> {
    let (n, k) = (features.len(), &features.keypoints);
    let floats = |f: fn(&Keypoint) -> f32| Array::of("<f4", &[n], k.iter().map(move |k| f(k).to_le_bytes()));
    let size = [features.image.width, features.image.height].map(|v| (v as u64).to_le_bytes());
    let descriptors = [n, features.dimension];
    let descriptors = match &features.descriptors {
        Descriptors::U8(v) => Array::of("|u1", &descriptors, v.iter().map(|v| [*v])),
        Descriptors::F32(v) => Array::of("<f4", &descriptors, v.iter().map(|v| v.to_le_bytes())),
    };
    let xy = k.iter().flat_map(|k| [k.x, k.y]).map(f32::to_le_bytes);
    let mut zip = Zip { out, at: 0, central: Vec::new(), entries: 0 };
    zip.add("xy", &Array::of("<f4", &[n, 2], xy))?;
    zip.add("scale", &floats(|k| k.scale))?;
    zip.add("angle", &floats(|k| k.angle))?;
    zip.add("response", &floats(|k| k.response))?;
    zip.add("sign", &Array::of("|i1", &[n], k.iter().map(|k| k.sign.to_le_bytes())))?;
    zip.add("octave", &Array::of("|i1", &[n], k.iter().map(|k| k.octave.to_le_bytes())))?;
    zip.add("layer", &Array::of("|u1", &[n], k.iter().map(|k| [k.layer])))?;
    zip.add("descriptors", &descriptors)?;
    zip.add("image", &Array::of("<u8", &[2], size.into_iter()))?;
    zip.finish()
}

/// Writes stored entries and remembers their directory.
struct Zip<'a, W> {
    out: &'a mut W,
    at: u64,
    central: Vec<u8>,
    entries: u16,
}

impl<W: Write> Zip<'_, W> {
    fn add(&mut self, name: &str, array: &Array<'_>) -> io::Result<()> {
        let name = format!("{name}.npy");
        let header = array.header();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&header);
        crc.update(&array.bytes);
        let size = short((header.len() + array.bytes.len()) as u64)?;
        let mut common = Vec::new();
        for v in [20, 0, 0, 0, DATE] {
            common.extend(v.to_le_bytes());
        }
        for v in [crc.finalize(), size, size] {
            common.extend(v.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);

        self.central.extend(CENTRAL.to_le_bytes());
        self.central.extend(20_u16.to_le_bytes());
        self.central.extend(&common);
        // No comment, first disk, binary, no attributes.
        self.central.extend([0; 10]);
        self.central.extend(short(self.at)?.to_le_bytes());
        self.central.extend(name.as_bytes());
        self.entries += 1;
        let local = LOCAL.to_le_bytes();
        self.put(&[&local[..], &common[..], name.as_bytes(), &header[..], &array.bytes[..]])
    }

    fn put(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        for part in parts {
            self.out.write_all(part)?;
            self.at += part.len() as u64;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        let central = std::mem::take(&mut self.central);
        let mut end = END.to_le_bytes().to_vec();
        for v in [0, 0, self.entries, self.entries] {
            end.extend(v.to_le_bytes());
        }
        end.extend((central.len() as u32).to_le_bytes());
        end.extend(short(self.at)?.to_le_bytes());
        end.extend([0; 2]);
        self.put(&[&central[..], &end[..]])
    }
}

/// A size or offset in 32 bits, as plain zip has it.
fn short(n: u64) -> io::Result<u32> {
    u32::try_from(n).map_err(|_| io::Error::other("more than the 4 GiB that an .npz file holds; use .csv"))
}

pub(super) fn read(bytes: &[u8]) -> Result<Features, String> {
    let archive = Archive::open(bytes)?;
    let (_, xy) = archive.floats("xy", 2)?;
    let n = xy.len() / 2;
    let column = |name| match archive.floats(name, 1)? {
        (_, values) if values.len() == n => Ok(values),
        (_, values) => Err(format!("{name} has {} values, xy has {n} rows", values.len())),
    };
    let bytes = |name, kind| match archive.array(name)? {
        a if a.kind == kind && a.shape == [n] => Ok(a.bytes),
        a => Err(format!("{name} is {} of {:?}, expected {kind} of [{n}]", a.kind, a.shape)),
    };
    let (scale, angle, response) = (column("scale")?, column("angle")?, column("response")?);
    let (sign, octave, layer) = (bytes("sign", "|i1")?, bytes("octave", "|i1")?, bytes("layer", "|u1")?);
    let keypoints = (0..n).map(|i| Keypoint {
        x: xy[2 * i],
        y: xy[2 * i + 1],
        scale: scale[i],
        angle: angle[i],
        response: response[i],
        sign: sign[i] as i8,
        octave: octave[i] as i8,
        layer: layer[i],
    });
    let array = archive.array("descriptors")?;
    let dimension = match array.shape[..] {
        [rows, dimension] if rows == n => dimension,
        _ => return Err(format!("descriptors have the shape {:?}, expected {n} rows", array.shape)),
    };
    let descriptors = match array.kind {
        "|u1" => Descriptors::U8(array.bytes),
        _ => Descriptors::F32(archive.floats("descriptors", 2)?.1),
    };
    Ok(Features { keypoints: keypoints.collect(), descriptors, dimension, image: archive.size()? })
}

/// A file in the archive; its checksum is looked at only when it is asked for.
struct Entry<'a> {
    name: &'a str,
    data: &'a [u8],
    crc: u32,
}

/// The entries of a zip archive in memory.
struct Archive<'a> {
    bytes: &'a [u8],
    entries: Vec<Entry<'a>>,
}

/// The little-endian number of `N` bytes at `at`.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Result<usize, String> {
    let part = at.checked_add(N).and_then(|end| bytes.get(at..end)).ok_or("the archive is truncated")?;
    Ok(part.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)))
}

impl<'a> Archive<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let signature = END.to_le_bytes();
        // The last record is followed by a comment of up to 65535 bytes.
        let from = bytes.len().saturating_sub(22 + 65535);
        let end = bytes[from..].windows(4).rposition(|w| w == signature);
        let end = from + end.ok_or("not an .npz file, or truncated: it has no end record")?;
        let mut archive = Self { bytes, entries: Vec::new() };
        let mut at = number::<4>(bytes, end + 16)?;
        for _ in 0..number::<2>(bytes, end + 10)? {
            at = archive.entry(at)?;
        }
        Ok(archive)
    }

    /// Notes the entry whose central record stands at `at`; returns where the next one does.
    fn entry(&mut self, at: usize) -> Result<usize, String> {
        let bytes = self.bytes;
        let field2 = |i: usize| number::<2>(bytes, at.saturating_add(i));
        let field4 = |i: usize| number::<4>(bytes, at.saturating_add(i));
        if field4(0)? != CENTRAL as usize {
            return Err("the directory of the archive is damaged".into());
        }
        let (name_len, extra, comment) = (field2(28)?, field2(30)?, field2(32)?);
        let name = bytes.get(at + 46..at + 46 + name_len).ok_or("the archive is truncated")?;
        let name = std::str::from_utf8(name).map_err(|_| "a name in the archive is not text")?;
        if field2(10)? != 0 {
            return Err(format!(
                "{name} is compressed; write the file with numpy.savez, not savez_compressed"
            ));
        }
        let (crc, size, local) = (field4(16)?, field4(24)?, field4(42)?);
        // The local header may have another extra field than the directory.
        let head = 30 + number::<2>(bytes, local + 26)? + number::<2>(bytes, local + 28)?;
        let data = bytes.get(local + head..).and_then(|b| b.get(..size)).ok_or("the archive is truncated")?;
        self.entries.push(Entry { name, data, crc: crc as u32 });
        Ok(at + 46 + name_len + extra + comment)
    }

    fn array(&self, name: &str) -> Result<Array<'a>, String> {
        let found = self.entries.iter().find(|e| e.name.strip_suffix(".npy") == Some(name));
        let entry = found.ok_or_else(|| format!("the array {name} is missing"))?;
        // A fuzzer would hardly ever guess the checksum.
        if !cfg!(fuzzing) && crc32fast::hash(entry.data) != entry.crc {
            return Err(format!("{name} is damaged: its checksum is wrong"));
        }
        parse(entry.data).map_err(|e| format!("{name}: {e}"))
    }

    /// The shape and values of an array of floats with so many dimensions.
    fn floats(&self, name: &str, dimensions: usize) -> Result<(Vec<usize>, Vec<f32>), String> {
        let array = self.array(name)?;
        let pairs = name != "xy" || array.shape.get(1) == Some(&2);
        if array.kind != "<f4" || array.shape.len() != dimensions || !pairs {
            return Err(format!("{name} is {} of {:?}, expected <f4", array.kind, array.shape));
        }
        Ok((array.shape, array.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()))
    }

    /// The image's size, unknown where it is not told.
    fn size(&self) -> Result<Size, String> {
        if !self.entries.iter().any(|e| e.name == "image.npy") {
            return Ok(Size::default());
        }
        let array = self.array("image")?;
        match (array.kind, &array.shape[..]) {
            ("<u8" | "<i8", [2]) => {
                Ok(Size::new(number::<8>(&array.bytes, 0)?, number::<8>(&array.bytes, 8)?))
            }
            (kind, shape) => Err(format!("image is {kind} of {shape:?}, expected <u8 of [2]")),
        }
    }
}

/// A `.npy` file.
fn parse(data: &[u8]) -> Result<Array<'_>, String> {
    if data.get(..8) != Some(b"\x93NUMPY\x01\x00") {
        return Err("not an array of version 1.0".into());
    }
    let len = number::<2>(data, 8)?;
    let header = data.get(10..10 + len).and_then(|h| std::str::from_utf8(h).ok()).ok_or("damaged header")?;
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start());
    let kind = after("'descr':").and_then(|r| r.strip_prefix('\'')).and_then(|r| r.split_once('\''));
    let (kind, _) = kind.ok_or("no element type")?;
    if !after("'fortran_order':").is_some_and(|r| r.starts_with("False")) {
        return Err("not in row-major order".into());
    }
    let shape = after("'shape':").and_then(|r| r.strip_prefix('(')).and_then(|r| r.split_once(')'));
    let (shape, _) = shape.ok_or("no shape")?;
    let numbers = shape.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::parse::<usize>);
    let shape = numbers.collect::<Result<Vec<_>, _>>().map_err(|_| format!("the shape is ({shape})"))?;
    let width = match kind {
        "|u1" | "|i1" => 1,
        "<f4" => 4,
        "<u8" | "<i8" => 8,
        _ => return Err(format!("elements of type {kind:?}, expected float32, uint8 or int8")),
    };
    let bytes = &data[10 + len..];
    match shape.iter().try_fold(width, |n: usize, d| n.checked_mul(*d)) {
        Some(n) if n == bytes.len() => Ok(Array { kind, shape, bytes: bytes.to_vec() }),
        _ => Err(format!("{} bytes of {kind} do not make an array of {shape:?}", bytes.len())),
    }
}
