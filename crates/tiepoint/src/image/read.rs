//! Reading image files of any known format, recognised by their first bytes.

use super::gpu::PixelKind;
use super::{
    AnyImage, Georeference, Size, grey, jpeg, pfm, png, pnm,
    rows::{Channels, Request, Source},
    tiff,
};
use crate::files::Fault;
use crate::options::{OptionTable, options};
use crate::{Error, Result, device::Cpu};
use std::{
    cell::Cell,
    fs::File,
    io::{BufRead, BufReader, Cursor},
    path::Path,
};

options! {
    /// How much an image file may ask for, so that a hostile header cannot exhaust memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReadOptions {
        /// Memory that a decoded image may take; a larger one is refused.
        ///
        /// Colour counts only where it is kept. Formats that decode as a whole (JPEG, interlaced PNG) count their
        /// working memory too. The default is enough for two gigapixels of 16-bit grey.
        max_bytes / with_max_bytes: u64 = 1 << 32 => 1.., unit "BYTES";
        /// Pixels that an image may have, whatever their type; a larger one is refused.
        max_pixels / with_max_pixels: u64 = 1 << 32 => 1.., unit "PIXELS";
    }
}

impl ReadOptions {
    /// Fails when a limit is 0.
    ///
    /// # Errors
    /// [`Error::Option`] naming the limit.
    pub fn check(&self) -> Result<()> {
        self.check_ranges()
    }
}

/// The image in the file at `path`: PNG, JPEG, TIFF, PNM (P1 to P7) or PFM, told apart by content.
///
/// 8 and 16 bits and floats stay what they are; fewer bits are spread over 8, palettes become colour, 64-bit
/// floats become 32-bit. Of a file with several images the first is read.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is not a known image, is damaged or
/// exceeds the limits in `options`.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyImage> {
    read_file(path.as_ref(), options, Channels::All, None)
}

/// The size of the image in the file at `path` and the type of its pixels, as [`read`] would give them: from the header
/// alone, before anything is decoded.
///
/// # Errors
/// As [`read`], of what the header shows.
pub fn read_shape(path: impl AsRef<Path>, options: &ReadOptions) -> Result<(Size, PixelKind)> {
    let shape = Cell::new(None);
    let image = read_file(path.as_ref(), options, Channels::All, Some(&shape));
    match (shape.get(), image) {
        (Some(shape), _) => Ok(shape),
        (None, image) => image.map(|image| (image.size(), image.view().pixel())),
    }
}

/// [`read`] followed by [`grey`](super::grey). The colour image is never in memory as a whole where the
/// format is stored in rows, strips or tiles (all but JPEG and interlaced PNG).
///
/// # Errors
/// As [`read`], and [`Error::Format`] for more than four channels.
pub fn read_grey(path: impl AsRef<Path>, options: &ReadOptions, cpu: &Cpu) -> Result<AnyImage> {
    let image = read_grey_alpha(path, options, cpu)?;
    let made = grey(&image, cpu)?.into_owned();
    Ok(made.unwrap_or(image))
}

/// [`read`] of what [`prepare`](super::prepare) needs: colour becomes grey, row by row where the format allows, and an
/// alpha channel stays.
///
/// # Errors
/// As [`read`].
pub fn read_grey_alpha(path: impl AsRef<Path>, options: &ReadOptions, cpu: &Cpu) -> Result<AnyImage> {
    let _stage = cpu.stage("read");
    read_file(path.as_ref(), options, Channels::GreyAndAlpha, None)
}

/// The image in `bytes`, an image file's content; `name` stands for it in errors.
///
/// # Errors
/// As [`read`].
pub fn decode(bytes: &[u8], name: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyImage> {
    options.check()?;
    let request = Request { options, channels: Channels::All, file_len: bytes.len() as u64, shape: None };
    read_source(Cursor::new(bytes), name.as_ref(), &request)
}

/// [`decode`] of what [`prepare`](super::prepare) needs, as [`read_grey_alpha`].
///
/// # Errors
/// As [`decode`].
pub fn decode_grey_alpha(bytes: &[u8], name: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyImage> {
    options.check()?;
    let channels = Channels::GreyAndAlpha;
    let request = Request { options, channels, file_len: bytes.len() as u64, shape: None };
    read_source(Cursor::new(bytes), name.as_ref(), &request)
}

/// Where the pixels of the image in the file at `path` lie on a map: what a GeoTIFF says, `None` of every other file.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] for a damaged TIFF.
pub fn read_georeference(path: impl AsRef<Path>) -> Result<Option<Georeference>> {
    let path = path.as_ref();
    let mut source = BufReader::with_capacity(1 << 16, File::open(path).map_err(|e| Error::io(path, e))?);
    let found = source.fill_buf().map_err(Fault::Io).map(is_tiff);
    let found = found.and_then(|tiff| if tiff { tiff::read_georeference(source) } else { Ok(None) });
    found.map_err(|fault| fault.at(path, "its place on a map does"))
}

/// As [`read_georeference`], of a TIFF in memory.
#[cfg(any(fuzzing, test))]
pub(crate) fn georeference_of(bytes: &[u8]) -> Option<Georeference> {
    tiff::read_georeference(Cursor::new(bytes)).ok().flatten()
}

fn read_file(
    path: &Path,
    options: &ReadOptions,
    channels: Channels,
    shape: Option<&Cell<Option<(Size, PixelKind)>>>,
) -> Result<AnyImage> {
    options.check()?;
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let meta = file.metadata().map_err(|e| Error::io(path, e))?;
    if !meta.is_file() {
        return Err(Error::format(path, "is not a regular file; images are read from files"));
    }
    let request = Request { options, channels, file_len: meta.len(), shape };
    read_source(BufReader::with_capacity(1 << 16, file), path, &request)
}

fn read_source(mut source: impl Source, path: &Path, request: &Request<'_>) -> Result<AnyImage> {
    let image = source.fill_buf().map_err(Fault::Io).map(<[u8]>::to_vec);
    image.and_then(|head| read_as(&head, source, request)).map_err(|fault| fault.at(path, "the image does"))
}

/// Reads with the reader of the format that begins with `head`.
fn read_as(head: &[u8], source: impl Source, request: &Request<'_>) -> std::result::Result<AnyImage, Fault> {
    match head {
        [] => Err("the file is empty".into()),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png::read(source, request),
        [0xff, 0xd8, 0xff, ..] => jpeg::read(source, request),
        head if is_tiff(head) => tiff::read(source, request),
        [b'P', b'F' | b'f', b, ..] if b.is_ascii_whitespace() => pfm::read(source, request),
        [b'P', b'1'..=b'7', b, ..] if b.is_ascii_whitespace() || *b == b'#' => pnm::read(source, request),
        _ => Err("not an image of a known format; PNG, JPEG, TIFF, PNM and PFM are read".into()),
    }
}

/// Whether a file that begins so is a TIFF or BigTIFF.
fn is_tiff(head: &[u8]) -> bool {
    matches!(head, [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..])
}
