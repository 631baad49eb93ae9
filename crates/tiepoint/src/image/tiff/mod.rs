//! TIFF and BigTIFF: strips and tiles, whole numbers of 1 to 32 and 64 bits, floats, any number of bands, palettes, masks.
//!
//! The `tiff` crate reads directories, and decodes JPEG and fax. Strips and tiles in every other coding are decoded
//! here: the crate supports neither Zstandard without C, nor packed values, reversed bits, palettes or omitted cells.
//! Strips and tiles are read one at a time; uncompressed strips a few rows at a time, so that a file of one single
//! strip needs no more memory than another.

pub(crate) mod bands;
mod cell;
mod directory;
mod geo;
mod read;
mod write;

pub(super) use geo::read as read_georeference;
pub use geo::{CoordinateSystem, Georeference};
pub(super) use read::{read, stored};
pub(super) use write::{check, write, write_floats, write_mask};
