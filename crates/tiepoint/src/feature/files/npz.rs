//! NPZ: a zip archive of one `.npy` file (version 1.0) for each array. It is written uncompressed, as `numpy.savez`
//! does; files of `numpy.savez_compressed` are read, too.

use super::arrays::{self, Array};
use crate::feature::{Descriptors, Features, Keypoint};
use crate::image::npy::{Header, by_rows, header, parse_header};
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

/// An array of these values, to be written.
pub(crate) fn array_of<const N: usize>(
    kind: &'static str,
    shape: &[usize],
    values: impl Iterator<Item = [u8; N]>,
) -> Array {
    Array { kind, shape: shape.to_vec(), bytes: values.flatten().collect() }
}

pub(super) fn write(out: &mut impl Write, features: &Features) -> io::Result<()> {
    let (n, k) = (features.len(), &features.keypoints);
    let floats = |f: fn(&Keypoint) -> f32| array_of("<f4", &[n], k.iter().map(move |k| f(k).to_le_bytes()));
    let size = [features.image.width, features.image.height].map(|v| (v as u64).to_le_bytes());
    let descriptors = [n, features.dimension];
    let descriptors = match &features.descriptors {
        Descriptors::U8(v) => array_of("|u1", &descriptors, v.iter().map(|v| [*v])),
        Descriptors::F32(v) => array_of("<f4", &descriptors, v.iter().map(|v| v.to_le_bytes())),
    };
    let xy = k.iter().flat_map(|k| [k.x, k.y]).map(f32::to_le_bytes);
    let arrays = [
        ("xy", array_of("<f4", &[n, 2], xy)),
        ("scale", floats(|k| k.scale)),
        ("angle", floats(|k| k.angle)),
        ("response", floats(|k| k.response)),
        ("sign", array_of("|i1", &[n], k.iter().map(|k| k.sign.to_le_bytes()))),
        ("octave", array_of("|i1", &[n], k.iter().map(|k| k.octave.to_le_bytes()))),
        ("layer", array_of("|u1", &[n], k.iter().map(|k| [k.layer]))),
        ("descriptors", descriptors),
        ("image", array_of("<u8", &[2], size.into_iter())),
    ];
    write_arrays(out, arrays)
}

/// Writes arrays with their names.
pub(crate) fn write_arrays<'a>(
    out: &mut impl Write,
    arrays: impl IntoIterator<Item = (&'a str, Array)>,
) -> io::Result<()> {
    let mut zip = ZipArchiveWriter::new(out);
    for (name, array) in arrays {
        let file = zip.new_file(format!("{name}.npy")).last_modified(UtcDateTime::from_unix(DATE));
        let (mut entry, config) = file.start().map_err(io_error)?;
        let mut writer = config.wrap(&mut entry);
        writer.write_all(&header(array.kind, &array.shape))?;
        writer.write_all(&array.bytes)?;
        let (_, sizes) = writer.finish().map_err(io_error)?;
        entry.finish(sizes).map_err(io_error)?;
    }
    zip.finish().map_err(io_error)?;
    Ok(())
}

/// The operating system's error in `error`, if there is one.
fn io_error(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        other => io::Error::other(rawzip::Error::from(other)),
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Features, String> {
    let archive = Archive::open(bytes)?;
    // hloc's name of the size; ours is `image`.
    let lie = if archive.entry("image_size").is_some() { arrays::Lie::Columns } else { arrays::Lie::Rows };
    arrays::features(|name| archive.array(name), lie)
}

struct Entry {
    name: String,
    at: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
}

/// The arrays of a file.
pub(crate) struct Archive<'a> {
    zip: ZipSliceArchive<&'a [u8]>,
    entries: Vec<Entry>,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, String> {
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

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.name.strip_suffix(".npy") == Some(name))
    }

    /// The array of this name, if there is one.
    pub(crate) fn array(&self, name: &str) -> Result<Option<Array>, String> {
        let Some(entry) = self.entry(name) else { return Ok(None) };
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
        parse(&bytes).map(Some).map_err(|e| format!("{name}: {e}"))
    }
}

fn parse(data: &[u8]) -> Result<Array, String> {
    if data.get(..8) != Some(b"\x93NUMPY\x01\x00") {
        return Err("not an array of version 1.0".into());
    }
    let len = data.get(8..10).map_or(0, |b| usize::from(b[0]) | usize::from(b[1]) << 8);
    let header = data.get(10..10 + len).and_then(|h| std::str::from_utf8(h).ok()).ok_or("damaged header")?;
    let Header { kind, shape, by_columns } = parse_header(header)?;
    let mut array = Array::new(kind, shape, data[10 + len..].to_vec())?;
    if by_columns {
        array.bytes = by_rows(&array.bytes, &array.shape, array.width());
    }
    Ok(array)
}
