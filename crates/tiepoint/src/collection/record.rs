//! The binary files of a work folder: a header, a payload, and a checksum of both.
//!
//! ```text
//! "tiepoint"  kind [4]  version u32  fingerprint u64  length u64  payload [length]  XXH3-64 of all before, u64
//! ```
//!
//! Numbers are little-endian. The fingerprint is that of what the payload was made from: a file with another belongs to
//! another run.

use crate::files::Disk;
use crate::{Error, Result};
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::Path;
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 8] = b"tiepoint";
const VERSION: u32 = 1;
const HEADER: usize = 32;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Features,
    Pairs,
    Tile,
    Suggestions,
}

impl Kind {
    fn tag(self) -> &'static [u8; 4] {
        match self {
            Self::Features => b"feat",
            Self::Pairs => b"pair",
            Self::Tile => b"tile",
            Self::Suggestions => b"sugg",
        }
    }
}

/// A file as it was found.
#[derive(Debug)]
pub(super) enum Found<T> {
    /// Whole, and of this run.
    Whole(T),
    Missing,
    /// Damaged, or of another run; it is to be made again.
    Unfit(String),
}

impl<T> Found<T> {
    pub(super) fn map<U>(self, f: impl FnOnce(T) -> U) -> Found<U> {
        match self {
            Self::Whole(content) => Found::Whole(f(content)),
            Self::Missing => Found::Missing,
            Self::Unfit(reason) => Found::Unfit(reason),
        }
    }

    pub(super) fn whole(self) -> Option<T> {
        match self {
            Self::Whole(content) => Some(content),
            Self::Missing | Self::Unfit(_) => None,
        }
    }

    /// The content; otherwise an error that says which stage makes the file.
    pub(super) fn or_made_by(self, stage: &str, path: &Path) -> Result<T> {
        match self {
            Self::Whole(content) => Ok(content),
            Self::Missing => Err(Error::format(path, format!("is not there; run the stage `{stage}` first"))),
            Self::Unfit(reason) => {
                Err(Error::format(path, format!("{reason}; run the stage `{stage}` again")))
            }
        }
    }
}

/// XXH3-64 of parts that follow each other, each with its length.
pub(super) fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> u64 {
    let mut hash = XxHash3_64::with_seed(0);
    for part in parts {
        hash.write(&(part.len() as u64).to_le_bytes());
        hash.write(part);
    }
    hash.finish()
}

/// Writes a file to `disk`, whole or not at all; the payload comes in parts that follow each other.
pub(super) fn write(disk: &Disk, path: &Path, kind: Kind, fingerprint: u64, payload: &[&[u8]]) -> Result<()> {
    path.parent().map_or(Ok(()), |folder| disk.make_folder(folder))?;
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(kind.tag());
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&fingerprint.to_le_bytes());
    header.extend_from_slice(&(length as u64).to_le_bytes());
    let mut hash = XxHash3_64::with_seed(0);
    hash.write(&header);
    disk.write(path, |out| {
        out.write_all(&header)?;
        for part in payload {
            hash.write(part);
            out.write_all(part)?;
        }
        out.write_all(&hash.finish().to_le_bytes())
    })
}

/// The bytes of a regular file. A device or a pipe is none: reading it might never end.
///
/// # Errors
/// [`Error::Io`] when the system refuses to read what is there.
pub(super) fn content(path: &Path) -> Result<Found<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Ok(Found::Unfit("is no regular file".into())),
        Ok(_) => std::fs::read(path).map(Found::Whole).map_err(|e| Error::io(path, e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Found::Missing),
        Err(e) => Err(Error::io(path, e)),
    }
}

/// Reads a file that `write` wrote for this kind and fingerprint.
///
/// # Errors
/// [`Error::Io`] when the system refuses to read what is there.
pub(super) fn read(path: &Path, kind: Kind, fingerprint: u64) -> Result<Found<Vec<u8>>> {
    let mut bytes = match content(path)? {
        Found::Whole(bytes) => bytes,
        Found::Missing => return Ok(Found::Missing),
        Found::Unfit(reason) => return Ok(Found::Unfit(reason)),
    };
    Ok(match check(&bytes, kind, fingerprint) {
        Ok(()) => {
            bytes.truncate(bytes.len() - 8);
            bytes.drain(..HEADER);
            Found::Whole(bytes)
        }
        Err(reason) => Found::Unfit(reason.to_owned()),
    })
}

fn check(bytes: &[u8], kind: Kind, fingerprint: u64) -> std::result::Result<(), &'static str> {
    let mut fields = Fields(bytes);
    let head = fields.take(12).ok_or("is cut off")?;
    if head[..8] != MAGIC[..] || head[8..] != kind.tag()[..] {
        return Err("is no file of this kind");
    }
    if fields.u32() != Some(VERSION) {
        return Err("was written by another version");
    }
    let made_from = fields.u64().ok_or("is cut off")?;
    let length = fields.u64().ok_or("is cut off")?;
    if length.checked_add(8) != Some(fields.0.len() as u64) {
        return Err("is cut off, or longer than it says");
    }
    let end = bytes.len() - 8;
    if XxHash3_64::oneshot(&bytes[..end]).to_le_bytes() != bytes[end..] {
        return Err("is damaged: its checksum differs");
    }
    if made_from != fingerprint {
        return Err("belongs to another run");
    }
    Ok(())
}

/// The fields of a payload, one after the other; `None` where it ends too early.
#[derive(Debug)]
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl<'b> Fields<'b> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Option<f64> {
        self.array().map(f64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_what_was_written_is_unfit() {
        let folder = std::env::temp_dir().join(format!("tiepoint-record-{}", std::process::id()));
        let path = folder.join("inner/a.bin");
        let read_as = |kind, fingerprint| read(&path, kind, fingerprint).unwrap();
        assert!(matches!(read_as(Kind::Tile, 7), Found::Missing), "nothing there");
        write(&Disk::at_once(true), &path, Kind::Tile, 7, &[b"pay", b"", b"load"]).unwrap();
        assert_eq!(read_as(Kind::Tile, 7).whole().unwrap(), b"payload");
        assert!(matches!(read_as(Kind::Tile, 8), Found::Unfit(_)), "of another run");
        assert!(matches!(read_as(Kind::Pairs, 7), Found::Unfit(_)), "of another kind");
        let good = std::fs::read(&path).unwrap();
        for end in 0..good.len() {
            std::fs::write(&path, &good[..end]).unwrap();
            assert!(matches!(read_as(Kind::Tile, 7), Found::Unfit(_)), "cut off at {end}");
        }
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 4;
            std::fs::write(&path, &bad).unwrap();
            assert!(matches!(read_as(Kind::Tile, 7), Found::Unfit(_)), "byte {i} changed");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
