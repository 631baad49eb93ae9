//! The orientation of a picture in its file, by EXIF: 1 to 8, where 1 is upright.

use exif::{Exif, In, Reader, Tag};
use std::io::Cursor;

/// The orientation in the EXIF data of a JPEG; 1 where it is missing or invalid.
pub(super) fn of_jpeg(bytes: &[u8]) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_from_container(&mut Cursor::new(bytes)))
}

/// As [`of_jpeg`], from EXIF data alone.
pub(super) fn of_exif(bytes: Vec<u8>) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_raw(bytes))
}

fn read(found: Result<Exif, exif::Error>) -> u8 {
    let found = found.or_else(|e| e.distill_partial_result(|_| {})).ok();
    let value = found.and_then(|exif| exif.get_field(Tag::Orientation, In::PRIMARY)?.value.get_uint(0));
    value.map_or(1, of_number)
}

/// The orientation with this number; 1 for a number that is not 1 to 8.
pub(super) fn of_number(value: u32) -> u8 {
    u8::try_from(value).ok().filter(|value| (1..=8).contains(value)).unwrap_or(1)
}
