//! NPZ: a zip archive of one `.npy` file (version 1.0) for each array. It is written uncompressed, as `numpy.savez`
//! does; files of `numpy.savez_compressed` are read, too.

use crate::{
    feature::{Descriptors, Features, Keypoint},
    image::{
        Size,
        npy::{header, parse_header},
    },
};
use rawzip::time::UtcDateTime;
use rawzip::{
    CompressionMethod, ErrorKind, ZipArchive, ZipArchiveEntryWayfinder, ZipArchiveWriter, ZipSliceArchive,
};
use std::io::{self, Read, Write};

/// 1980-01-01, the first day that zip can store, in seconds from 1970. With a fixed date the same features give the
/// same file.
const DATE: i64 = 315_532_800;

/// The largest size of an array as a multiple of the whole file. Features compress to about a half; a file made to
/// exhaust memory expands to a thousand times its size.
const MOST_INFLATED: u64 = 100;

/// An array: NumPy's name of its element type, its shape and its bytes.
struct Array {
    kind: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    fn of<const N: usize>(
        kind: &'static str,
        shape: &[usize],
        values: impl Iterator<Item = [u8; N]>,
    ) -> Self {
        Self { kind, shape: shape.to_vec(), bytes: values.flatten().collect() }
    }

    /// The values of an array of `<f4`.
    fn floats(&self) -> Vec<f32> {
        self.bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
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
    let mut zip = ZipArchiveWriter::new(out);
    add(&mut zip, "xy", &Array::of("<f4", &[n, 2], xy))?;
    add(&mut zip, "scale", &floats(|k| k.scale))?;
    add(&mut zip, "angle", &floats(|k| k.angle))?;
    add(&mut zip, "response", &floats(|k| k.response))?;
    add(&mut zip, "sign", &Array::of("|i1", &[n], k.iter().map(|k| k.sign.to_le_bytes())))?;
    add(&mut zip, "octave", &Array::of("|i1", &[n], k.iter().map(|k| k.octave.to_le_bytes())))?;
    add(&mut zip, "layer", &Array::of("|u1", &[n], k.iter().map(|k| [k.layer])))?;
    add(&mut zip, "descriptors", &descriptors)?;
    add(&mut zip, "image", &Array::of("<u8", &[2], size.into_iter()))?;
    zip.finish().map_err(io_error)?;
    Ok(())
}

fn add<W: Write>(zip: &mut ZipArchiveWriter<W>, name: &str, array: &Array) -> io::Result<()> {
    let file = zip.new_file(format!("{name}.npy")).last_modified(UtcDateTime::from_unix(DATE));
    let (mut entry, config) = file.start().map_err(io_error)?;
    let mut writer = config.wrap(&mut entry);
    writer.write_all(&header(array.kind, &array.shape))?;
    writer.write_all(&array.bytes)?;
    let (_, sizes) = writer.finish().map_err(io_error)?;
    entry.finish(sizes).map_err(io_error)?;
    Ok(())
}

/// The operating system's error inside, where there is one.
fn io_error(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        other => io::Error::other(rawzip::Error::from(other)),
    }
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
        "<f4" => Descriptors::F32(array.floats()),
        kind => return Err(format!("descriptors are {kind}, expected |u1 or <f4")),
    };
    Ok(Features { keypoints: keypoints.collect(), descriptors, dimension, image: archive.size()? })
}

struct Entry {
    name: String,
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

struct Archive<'a> {
    zip: ZipSliceArchive<&'a [u8]>,
    entries: Vec<Entry>,
}

impl<'a> Archive<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let damaged = |e: rawzip::Error| format!("not an .npz file, or damaged: {e}");
        let zip = ZipArchive::from_slice(bytes).map_err(damaged)?;
        let mut entries = Vec::new();
        let mut records = zip.entries();
        while let Some(record) = records.next_entry().map_err(damaged)? {
            let name = record.file_path();
            let name = std::str::from_utf8(name.as_ref()).map_err(|_| "a name in the archive is not text")?;
            let (at, method) = (record.wayfinder(), record.compression_method());
            entries.push(Entry { name: name.to_owned(), at, method });
        }
        Ok(Self { zip, entries })
    }

    fn array(&self, name: &str) -> Result<Array, String> {
        let found = self.entries.iter().find(|e| e.name.strip_suffix(".npy") == Some(name));
        let entry = found.ok_or_else(|| format!("the array {name} is missing"))?;
        let damaged = |e: &dyn std::fmt::Display| format!("{name} is damaged: {e}");
        let file = self.zip.get_entry(entry.at).map_err(|e| damaged(&e))?;
        let stored = file.data();
        let inflated: Box<dyn Read> = match entry.method {
            CompressionMethod::STORE => Box::new(stored),
            CompressionMethod::DEFLATE => Box::new(flate2::bufread::DeflateDecoder::new(stored)),
            other => return Err(format!("{name} is compressed in a way that is not read: {other:?}")),
        };
        // Checksums are not checked while fuzzing: a fuzzer would hardly ever guess one.
        let inflated: Box<dyn Read> =
            if cfg!(fuzzing) { inflated } else { Box::new(file.verifying_reader(inflated)) };
        let most = (self.zip.get_ref().len() as u64).saturating_mul(MOST_INFLATED).saturating_add(1 << 16);
        let mut bytes = Vec::new();
        inflated.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| damaged(&e))?;
        if bytes.len() as u64 > most {
            return Err(format!("{name} would grow to more than {MOST_INFLATED} times the file"));
        }
        parse(&bytes).map_err(|e| format!("{name}: {e}"))
    }

    fn floats(&self, name: &str, dimensions: usize) -> Result<(Vec<usize>, Vec<f32>), String> {
        let array = self.array(name)?;
        let pairs = name != "xy" || array.shape.get(1) == Some(&2);
        if array.kind != "<f4" || array.shape.len() != dimensions || !pairs {
            return Err(format!("{name} is {} of {:?}, expected <f4", array.kind, array.shape));
        }
        let floats = array.floats();
        Ok((array.shape, floats))
    }

    /// The size of the image; 0 × 0 if the file does not contain it.
    fn size(&self) -> Result<Size, String> {
        if !self.entries.iter().any(|e| e.name == "image.npy") {
            return Ok(Size::default());
        }
        let array = self.array("image")?;
        match (array.kind, &array.shape[..]) {
            ("<u8" | "<i8", [2]) => {
                let side = |i: usize| array.bytes.as_chunks().0.get(i).copied().map(u64::from_le_bytes);
                let side = |i| side(i).and_then(|v| usize::try_from(v).ok()).ok_or("image is not a size");
                Ok(Size::new(side(0)?, side(1)?))
            }
            (kind, shape) => Err(format!("image is {kind} of {shape:?}, expected <u8 of [2]")),
        }
    }
}

fn parse(data: &[u8]) -> Result<Array, String> {
    if data.get(..8) != Some(b"\x93NUMPY\x01\x00") {
        return Err("not an array of version 1.0".into());
    }
    let len = data.get(8..10).map_or(0, |b| usize::from(b[0]) | usize::from(b[1]) << 8);
    let header = data.get(10..10 + len).and_then(|h| std::str::from_utf8(h).ok()).ok_or("damaged header")?;
    let (kind, shape) = parse_header(header)?;
    let known = [("|u1", 1), ("|i1", 1), ("<f4", 4), ("<u8", 8), ("<i8", 8)];
    let found = known.into_iter().find(|(name, _)| *name == kind);
    let (kind, width) =
        found.ok_or_else(|| format!("elements of type {kind:?}, expected float32, uint8 or int8"))?;
    let bytes = &data[10 + len..];
    match shape.iter().try_fold(width, |n: usize, d| n.checked_mul(*d)) {
        Some(n) if n == bytes.len() => Ok(Array { kind, shape, bytes: bytes.to_vec() }),
        _ => Err(format!("{} bytes of {kind} do not make an array of {shape:?}", bytes.len())),
    }
}
