//! The files of a work folder.
//!
//! A binary file has a head and a body, each with a checksum: a stage has to read only heads to know what is done.
//!
//! ```text
//! "tiepoint"  kind [4]  version u32  fingerprint u64  head length u64  body length u64
//! head  XXH3-64 of all before, u64
//! body  XXH3-64 of the body, u64
//! ```
//!
//! Numbers are little-endian. A file with an unexpected fingerprint belongs to another run. The fingerprint covers the
//! options and the version of the stage, for pairs also the photographs. The files of features and tiles record in
//! their heads from which photographs they were made.
//!
//! Text is JSON. Its first field, on the second line, is the checksum of the lines that follow.

use crate::files::Disk;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use std::path::Path;
use twox_hash::XxHash3_64;

const MAGIC: &[u8; 8] = b"tiepoint";
const VERSION: u32 = 2;
const HEADER: usize = 40;
/// Bytes of a checksum.
const SUM: usize = 8;

/// The kind of content of a file, with its tag.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Kind {
    Features = u32::from_le_bytes(*b"feat"),
    Pairs = u32::from_le_bytes(*b"pair"),
    Tile = u32::from_le_bytes(*b"tile"),
    Suggestions = u32::from_le_bytes(*b"sugg"),
    Given = u32::from_le_bytes(*b"givn"),
}

/// The kind of a file, and the fingerprint of what it was made from.
pub(super) type Made = (Kind, u64);

/// The state of a file, with its content.
#[derive(Debug)]
pub(super) enum Found<T> {
    /// Undamaged, and of this run.
    Whole(T),
    Missing,
    /// Damaged, or of another run, for this reason; it has to be made again.
    Unfit(String),
}

impl<T> Found<T> {
    /// The content as `decode` makes it of this one; unfit, for this reason, where it cannot.
    pub(super) fn decoded<U>(self, reason: &str, decode: impl FnOnce(T) -> Option<U>) -> Found<U> {
        self.and_then(|content| decode(content).map_or_else(|| Found::Unfit(reason.into()), Found::Whole))
    }

    pub(super) fn and_then<U>(self, f: impl FnOnce(T) -> Found<U>) -> Found<U> {
        match self {
            Self::Whole(content) => f(content),
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

    /// The content, or an error that names the stage that makes the file.
    pub(super) fn or_made_by(self, stage: &str, path: &Path) -> Result<T> {
        let reason = match self {
            Self::Whole(content) => return Ok(content),
            Self::Missing => format!("is not there; run the stage `{stage}` first"),
            Self::Unfit(reason) => format!("{reason}; run the stage `{stage}` again"),
        };
        Err(Error::format(path, reason))
    }
}

/// XXH3-64 of the parts, each preceded by its length.
pub(super) fn fingerprint<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> u64 {
    let mut hash = XxHash3_64::with_seed(0);
    for part in parts {
        hash.write(&(part.len() as u64).to_le_bytes());
        hash.write(part);
    }
    hash.finish()
}

/// Writes a file to `disk`, whole or not at all. The body is given in parts.
pub(super) fn write(disk: &Disk, path: &Path, made: Made, head: &[u8], body: &[&[u8]]) -> Result<()> {
    let (kind, fingerprint) = made;
    path.parent().map_or(Ok(()), |folder| disk.make_folder(folder))?;
    let length: usize = body.iter().map(|part| part.len()).sum();
    let mut front = Vec::with_capacity(HEADER + head.len() + SUM);
    front.extend_from_slice(MAGIC);
    front.extend_from_slice(&(kind as u32).to_le_bytes());
    front.extend_from_slice(&VERSION.to_le_bytes());
    for n in [fingerprint, head.len() as u64, length as u64] {
        front.extend_from_slice(&n.to_le_bytes());
    }
    front.extend_from_slice(head);
    front.extend_from_slice(&XxHash3_64::oneshot(&front).to_le_bytes());
    let mut hash = XxHash3_64::with_seed(0);
    disk.write(path, |out| {
        out.write_all(&front)?;
        for part in body {
            hash.write(part);
            out.write_all(part)?;
        }
        out.write_all(&hash.finish().to_le_bytes())
    })
}

/// What `f` finds in a regular file. A device or a pipe is unfit, because reading it might never end.
fn in_file<T>(path: &Path, f: impl FnOnce(File, fs::Metadata) -> io::Result<Found<T>>) -> Result<Found<T>> {
    let opened = || match fs::metadata(path)?.is_file() {
        true => File::open(path).and_then(|file| Ok(Some((file.metadata()?, file)))),
        false => Ok(None),
    };
    let found = match opened() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Found::Missing),
        Err(e) => Err(e),
        Ok(None) => Ok(Found::Unfit("is no regular file".into())),
        Ok(Some((meta, file))) => f(file, meta),
    };
    found.map_err(|e| Error::io(path, e))
}

/// The bytes of a regular file, and its metadata.
pub(super) fn content(path: &Path) -> Result<Found<(Vec<u8>, fs::Metadata)>> {
    in_file(path, |mut file, meta| {
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0).saturating_add(1));
        file.read_to_end(&mut bytes)?;
        Ok(Found::Whole((bytes, meta)))
    })
}

/// The head of a file that `write` wrote as `made`. The body is not read, but its length is checked.
pub(super) fn read_head(path: &Path, made: Made) -> Result<Found<Vec<u8>>> {
    in_file(path, |mut file, meta| {
        let mut front = vec![0; HEADER.min(usize::try_from(meta.len()).unwrap_or(HEADER))];
        file.read_exact(&mut front)?;
        let [head, _] = match lengths(&front, meta.len(), made) {
            Ok(lengths) => lengths,
            Err(reason) => return Ok(Found::Unfit(reason.into())),
        };
        front.resize(HEADER + head + SUM, 0);
        file.read_exact(&mut front[HEADER..])?;
        Ok(match checked(&front) {
            true => Found::Whole(front[HEADER..HEADER + head].to_vec()),
            false => Found::Unfit(DAMAGED.into()),
        })
    })
}

/// Head and body of a file that `write` wrote as `made`. A file with a damaged body is removed,
/// because stages that only read heads would take it for done.
pub(super) fn read(path: &Path, made: Made) -> Result<Found<(Vec<u8>, Vec<u8>)>> {
    Ok(content(path)?.and_then(|(mut bytes, _)| {
        let [head, body] = match lengths(&bytes, bytes.len() as u64, made) {
            Ok(lengths) => lengths,
            Err(reason) => return Found::Unfit(reason.into()),
        };
        let start = HEADER + head + SUM;
        if !checked(&bytes[..start]) {
            return Found::Unfit(DAMAGED.into());
        }
        if !checked(&bytes[start..]) {
            // If it cannot be removed, the next reader finds the same damage.
            let _ = fs::remove_file(path);
            return Found::Unfit(DAMAGED.into());
        }
        let front = bytes[HEADER..HEADER + head].to_vec();
        bytes.truncate(start + body);
        bytes.drain(..start);
        Found::Whole((front, bytes))
    }))
}

const DAMAGED: &str = "is damaged: its checksum differs";

/// Whether the last bytes are the checksum of the others.
fn checked(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<SUM>().is_some_and(|(all, sum)| XxHash3_64::oneshot(all).to_le_bytes() == *sum)
}

/// The lengths of head and body in a file of `length` bytes that begins with `front`.
fn lengths(front: &[u8], length: u64, made: Made) -> std::result::Result<[usize; 2], &'static str> {
    let mut fields = Fields(front);
    let (magic, tag) = fields.take(8).zip(fields.u32()).ok_or("is cut off")?;
    if magic != MAGIC || tag != made.0 as u32 {
        return Err("is no file of this kind");
    }
    if fields.u32() != Some(VERSION) {
        return Err("was written by another version");
    }
    let mut next = || fields.u64().ok_or("is cut off");
    let (made_from, head, body) = (next()?, next()?, next()?);
    let whole = head.checked_add(body).and_then(|sum| sum.checked_add((HEADER + 2 * SUM) as u64));
    if whole != Some(length) {
        return Err("is cut off, or longer than it says");
    }
    if made_from != made.1 {
        return Err("belongs to another run");
    }
    let as_usize = |n: u64| usize::try_from(n).map_err(|_| "is larger than this machine's memory");
    Ok([as_usize(head)?, as_usize(body)?])
}

/// The text before and after the checksum in a JSON file.
const TEXT: [&str; 2] = ["{\n  \"checksum\": \"", "\",\n"];

/// Writes a struct as JSON with a checksum.
pub(super) fn write_json(path: &Path, content: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(content)
        .map_err(|e| Error::Mismatch(format!("{} cannot be recorded: {e}", path.display())))?;
    let rest = text.strip_prefix("{\n").unwrap_or(&text);
    let [before, after] = TEXT;
    let sum = XxHash3_64::oneshot(rest.as_bytes());
    Disk::at_once(true).write(path, |out| writeln!(out, "{before}{sum:016x}{after}{rest}"))
}

/// Whether nothing is lost if the file is written anew: `write_json` wrote it, even if it is damaged, or there is none.
pub(super) fn is_ours(path: &Path) -> Result<bool> {
    let beginning = in_file(path, |file, _| {
        let mut bytes = Vec::new();
        file.take(TEXT[0].len() as u64).read_to_end(&mut bytes)?;
        Ok(Found::Whole(bytes))
    })?;
    let Some(bytes) = beginning.whole() else { return Ok(true) };
    let same = bytes.iter().zip(TEXT[0].as_bytes()).filter(|(found, wanted)| found == wanted).count();
    Ok(bytes.iter().all(|byte| *byte == 0) || 2 * same > bytes.len())
}

/// Reads what `write_json` wrote.
pub(super) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Found<T>> {
    let [before, after] = TEXT;
    let is_sound = |bytes: &[u8]| {
        let (sum, rest) = bytes.strip_prefix(before.as_bytes())?.split_at_checked(16)?;
        let rest = rest.strip_prefix(after.as_bytes())?.strip_suffix(b"\n")?;
        Some(format!("{:016x}", XxHash3_64::oneshot(rest)).as_bytes() == sum)
    };
    Ok(content(path)?.and_then(|(bytes, _)| match is_sound(&bytes) {
        // T ignores the field of the checksum.
        Some(true) => match serde_json::from_slice(&bytes) {
            Ok(content) => Found::Whole(content),
            Err(e) => Found::Unfit(format!("was written by another version: {e}")),
        },
        Some(false) | None => Found::Unfit(DAMAGED.into()),
    }))
}

/// Reads the fields of a head or a body one after the other; `None` where the bytes end too early.
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

    /// `count` pairs of numbers.
    pub(super) fn pairs(&mut self, count: usize) -> Option<Vec<[u32; 2]>> {
        let numbers = self.take(count.checked_mul(8)?)?.as_chunks::<4>().0;
        Some(numbers.as_chunks::<2>().0.iter().map(|pair| pair.map(u32::from_le_bytes)).collect())
    }

    pub(super) fn f32(&mut self) -> Option<f32> {
        self.array().map(f32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Folder;

    #[test]
    fn a_damaged_or_foreign_record_is_unfit() {
        let folder = Folder::new("record");
        let path = folder.join("inner/a.bin");
        let read_as = |made| read(&path, made).unwrap();
        let head_of = |made| read_head(&path, made).unwrap();
        assert!(matches!(read_as((Kind::Tile, 7)), Found::Missing), "nothing there");
        write(&Disk::at_once(true), &path, (Kind::Tile, 7), b"head", &[b"bo", b"", b"dy"]).unwrap();
        assert_eq!(read_as((Kind::Tile, 7)).whole().unwrap(), (b"head".to_vec(), b"body".to_vec()));
        assert_eq!(head_of((Kind::Tile, 7)).whole().unwrap(), b"head");
        for made in [(Kind::Tile, 8), (Kind::Pairs, 7)] {
            assert!(matches!(read_as(made), Found::Unfit(_)), "of another run or kind");
            assert!(matches!(head_of(made), Found::Unfit(_)), "of another run or kind");
        }
        let good = fs::read(&path).unwrap();
        for end in 0..good.len() {
            fs::write(&path, &good[..end]).unwrap();
            assert!(matches!(read_as((Kind::Tile, 7)), Found::Unfit(_)), "cut off at {end}");
            assert!(matches!(head_of((Kind::Tile, 7)), Found::Unfit(_)), "cut off at {end}");
        }
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 4;
            fs::write(&path, &bad).unwrap();
            let in_body = i >= good.len() - 12;
            assert_eq!(matches!(head_of((Kind::Tile, 7)), Found::Whole(_)), in_body, "byte {i} changed");
            assert!(matches!(read_as((Kind::Tile, 7)), Found::Unfit(_)), "byte {i} changed");
            assert_eq!(path.exists(), !in_body, "a damaged body is removed: byte {i}");
        }
    }

    #[test]
    fn a_text_with_a_changed_bit_is_unfit() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Text {
            a: Vec<u32>,
            b: String,
        }
        let folder = Folder::new("record-text");
        let path = folder.join("a.json");
        let text = Text { a: vec![1, 2], b: "c".into() };
        write_json(&path, &text).unwrap();
        assert_eq!(read_json::<Text>(&path).unwrap().whole(), Some(text));
        let good = fs::read(&path).unwrap();
        for i in 0..good.len() {
            let mut bad = good.clone();
            bad[i] ^= 1;
            fs::write(&path, &bad).unwrap();
            assert!(matches!(read_json::<Text>(&path).unwrap(), Found::Unfit(_)), "byte {i} changed");
        }
    }
}
