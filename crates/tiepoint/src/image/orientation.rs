//! How a picture lies in its file, by EXIF: a number from 1, as it is looked at, to 8.

use exif::{Exif, In, Reader, Tag};
use std::io::Cursor;

/// As the camera data of a JPEG say; 1 where they say nothing, or nothing sound.
pub(super) fn of_jpeg(bytes: &[u8]) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_from_container(&mut Cursor::new(bytes)))
}

/// As [`of_jpeg`], of camera data alone.
pub(super) fn of_exif(bytes: Vec<u8>) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_raw(bytes))
}

fn read(found: Result<Exif, exif::Error>) -> u8 {
    let found = found.or_else(|e| e.distill_partial_result(|_| {})).ok();
    let value = found.and_then(|exif| exif.get_field(Tag::Orientation, In::PRIMARY)?.value.get_uint(0));
    value.map_or(1, of_number)
}

/// The orientation of this number, 1 for one that is none.
pub(super) fn of_number(value: u32) -> u8 {
    u8::try_from(value).ok().filter(|value| (1..=8).contains(value)).unwrap_or(1)
}
