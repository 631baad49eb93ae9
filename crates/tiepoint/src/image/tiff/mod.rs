//! TIFF and BigTIFF: strips and tiles, 1 to 16 bits and floats, any compression of the `tiff` crate.
//!
//! Strips and tiles are read one at a time. 8-bit grey strips are decoded straight into the image;
//! uncompressed strips are read a few rows at a time, so that a file of one single strip needs no more memory
//! than another.

mod geo;
mod read;
mod write;

pub use geo::Georeference;
pub(super) use geo::read as read_georeference;
pub(super) use read::read;
pub(super) use write::{check, write, write_floats};
