//! Reading image files of any known format, recognised by their first bytes.

use super::{
    AnyImage, FileImage, Georeference, Image, Mask, Size, bmp, exr, foreign, gif, grey, jpeg, jpeg2000,
    jpegxl, npy,
    orientation::upright,
    pam, pfm, png, pnm,
    rows::{Channels, Request, Source},
    tiff, webp, world_file,
    write::MASK,
};
use crate::files::Fault;
use crate::image::PixelKind;
use crate::options::options;
use crate::{Error, Result, device::Cpu};
use std::{
    cell::Cell,
    fs::File,
    io::{BufRead, BufReader, Cursor, Read},
    path::Path,
};

options! {
    /// How image files are read, and how much one may ask for, so that a hostile header cannot exhaust memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReadOptions {
        /// Memory that a decoded image may take; a larger one is refused.
        ///
        /// Colour counts only where it is kept. Formats that decode as a whole (JPEG, interlaced PNG) count their
        /// working memory too. The default is enough for two gigapixels of 16-bit grey.
        max_bytes / with_max_bytes: u64 = 1 << 32 => 1.., unit "BYTES";
        /// Pixels that an image may have, whatever their type; a larger one is refused.
        max_pixels / with_max_pixels: u64 = 1 << 32 => 1.., unit "PIXELS";
        /// Turn a picture upright as its file says, so that coordinates are those of `cv2.imread`.
        ///
        /// JPEG, PNG, WebP and TIFF say it by EXIF's orientation, JPEG XL in its header. A picture with a place on a
        /// map is not turned, because its place belongs to the pixels as they are stored.
        orient / with_orient: bool = true, without "Leave the picture as it is stored and ignore the orientation that its file records";
        /// The band that detectors and stereo use, counted from 1; by default the grey of red, green and blue, or the first band.
        band / with_band: Option<usize> = None => 1.., unit "N";
    }
}

/// The image in the file at `path`. The format is recognised by the content; `docs/files.md` lists the formats.
///
/// 8 and 16 bits and floats stay what they are; fewer bits are spread over 8, palettes become colour, signed integers,
/// integers of more bits and 64-bit floats become 32-bit floats. The first image of a file with several is read. All
/// channels are kept, and no-data values stay in the image; [`read_file`] returns what the file says of both.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is not a known image, is damaged or
/// exceeds the limits in `options`.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyImage> {
    Ok(read_file(path, options)?.image)
}

/// [`read`], with what the file says of the image.
///
/// # Errors
/// As [`read`].
pub fn read_file(path: impl AsRef<Path>, options: &ReadOptions) -> Result<FileImage> {
    open(path.as_ref(), options, Channels::All, None)
}

/// The size and pixel type of the image in the file at `path`, as [`read`] would give them, but from the header alone:
/// nothing is decoded.
///
/// # Errors
/// Those of [`read`] that the header shows.
pub fn read_shape(path: impl AsRef<Path>, options: &ReadOptions) -> Result<(Size, PixelKind)> {
    let shape = Cell::new(None);
    let image = open(path.as_ref(), options, Channels::All, Some(&shape));
    match (shape.get(), image) {
        (Some(shape), _) => Ok(shape),
        (None, image) => image.map(|FileImage { image, .. }| (image.size(), image.view().pixel())),
    }
}

/// [`read`] followed by [`grey`](super::grey). Formats stored in rows, strips or tiles are converted as they are read,
/// so that the whole colour image is never in memory. Alpha and no-data values are lost, and values keep their range: for a
/// detector, [`FileImage::prepare`] makes a picture of [`read_file`] ready.
///
/// # Errors
/// As [`read`].
pub fn read_grey(path: impl AsRef<Path>, options: &ReadOptions, cpu: &Cpu) -> Result<AnyImage> {
    let image = read_grey_alpha(path, options, cpu)?.image;
    let made = grey(&image, cpu)?.into_owned();
    Ok(made.unwrap_or(image))
}

/// [`read_file`] with what a detector needs: colour becomes grey, row by row where the format allows, and an alpha
/// channel stays.
///
/// # Errors
/// As [`read`].
pub fn read_grey_alpha(path: impl AsRef<Path>, options: &ReadOptions, cpu: &Cpu) -> Result<FileImage> {
    let _stage = cpu.stage("read");
    open(path.as_ref(), options, Channels::GreyAndAlpha, None)
}

/// The image in `bytes`, the content of an image file; errors call it `name`.
///
/// # Errors
/// As [`read`].
pub fn decode(bytes: &[u8], name: impl AsRef<Path>, options: &ReadOptions) -> Result<AnyImage> {
    Ok(decode_file(bytes, name, options)?.image)
}

/// [`decode`], with what the file says of the image.
///
/// # Errors
/// As [`read`].
pub fn decode_file(bytes: &[u8], name: impl AsRef<Path>, options: &ReadOptions) -> Result<FileImage> {
    decode_as(bytes, name.as_ref(), options, Channels::All)
}

/// [`decode`] with what a detector needs, as [`read_grey_alpha`].
///
/// # Errors
/// As [`decode`].
pub fn decode_grey_alpha(bytes: &[u8], name: impl AsRef<Path>, options: &ReadOptions) -> Result<FileImage> {
    decode_as(bytes, name.as_ref(), options, Channels::GreyAndAlpha)
}

fn decode_as(bytes: &[u8], name: &Path, options: &ReadOptions, channels: Channels) -> Result<FileImage> {
    options.check()?;
    let request = Request { options, channels, file_len: bytes.len() as u64, no_data: None, shape: None };
    read_source(Cursor::new(bytes), name, &request)
}

/// Where the pixels of the image in the file at `path` lie on a map, as a GeoTIFF says it itself, and for other files the
/// world file beside them. `None` for files without either.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] for a damaged TIFF or world file.
pub fn read_georeference(path: impl AsRef<Path>) -> Result<Option<Georeference>> {
    let path = path.as_ref();
    // A pipe can be read only once, which its pixels need.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    let mut source = BufReader::with_capacity(1 << 16, File::open(path).map_err(|e| Error::io(path, e))?);
    let found = source.fill_buf().map_err(Fault::Io).map(is_tiff);
    let found = found.and_then(|tiff| if tiff { tiff::read_georeference(source) } else { Ok(None) });
    let found = found.map_err(|fault| fault.at(path, "its place on a map does"))?;
    let world = || world_file::beside(path);
    match found {
        None => world(),
        // The coordinate system may be in the file and the place beside it.
        Some(found) if found.transform().is_none() => {
            let placed = world()?.and_then(|world| found.placed_as(&world));
            Ok(Some(placed.unwrap_or(found)))
        }
        found => Ok(found),
    }
}

/// How a file stores pixels that are converted when they are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stored {
    /// Whether they are indices into a palette, or inks, which are read as colours.
    pub(crate) palette: bool,
    /// GDAL's name of the type of a TIFF's values, and of 16-bit integers with a sign in an array of NumPy.
    pub(crate) kind: Option<&'static str>,
    /// The no-data value, as a TIFF or GDAL's `FILE.aux.xml` beside the picture says it.
    pub(crate) no_data: Option<String>,
}

/// How the image at `path` is stored.
pub(crate) fn stored(path: &Path) -> Result<Stored> {
    let mut source = BufReader::new(File::open(path).map_err(|e| Error::io(path, e))?);
    let head = source.fill_buf().map_err(|e| Error::io(path, e))?;
    let found = match head {
        head if is_tiff(head) => tiff::stored(source).map_err(|fault| fault.at(path, "the image does"))?,
        head if head.starts_with(b"\x93NUMPY") => {
            let kind = npy::signed_kind(source).map_err(|fault| fault.at(path, "the array does"))?;
            Stored { kind, ..Stored::default() }
        }
        head => Stored { palette: has_palette(head), ..Stored::default() },
    };
    let beside = pam::no_data(path, 1).map(|value| value.to_string());
    Ok(Stored { no_data: beside.or(found.no_data), ..found })
}

/// Whether a file that begins with `head` holds indices into a palette; false of a TIFF.
fn has_palette(head: &[u8]) -> bool {
    match head {
        [0x89, b'P', b'N', b'G', ..] => head.get(25) == Some(&3),
        [b'G', b'I', b'F', ..] => true,
        [b'B', b'M', ..] => head.get(28).is_some_and(|bits| *bits <= 8),
        _ => false,
    }
}

/// Whether GDAL keeps another place of the picture at `path` in `FILE.aux.xml`: [`read_georeference`] finds `place`, and
/// GDAL and QGIS use the other.
pub fn other_place(path: impl AsRef<Path>, place: &Georeference) -> bool {
    let Some((ours, theirs)) = place.transform().zip(pam::transform(path.as_ref())) else { return false };
    // Numbers written as text are not exact.
    let pixel = [0, 1, 3, 4].map(|i| ours[i].abs()).into_iter().fold(0.0, f64::max);
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * pixel + 1e-12 * a.abs();
    ours.iter().zip(theirs).any(|(a, b)| !near(*a, b))
}

/// Why [`read_georeference`] may miss a place on a map that the image at `path` has: it is a JPEG 2000 with a map, a pipe, or
/// GDAL keeps it in a file beside it.
pub fn place_not_read(path: impl AsRef<Path>) -> Option<&'static str> {
    /// The identifier of the box that holds a GeoTIFF (the `GeoJP2` encoding, version 1.0.3), and the label of that with GML.
    const BOXES: [&[u8]; 2] =
        [b"\xb1\x4b\xf8\xbd\x08\x3d\x4b\x43\xa5\xae\x8c\xd7\xd5\xa6\xce\x03", b"gml.data"];
    /// Bytes that are searched: the boxes before the pixels are shorter.
    const MOST: u64 = 1 << 20;
    let path = path.as_ref();
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Some("is a pipe, whose place is not read; name a file");
    }
    if pam::has_place(path) {
        return Some(
            "has its place in an .aux.xml file, which is not read; make a GeoTIFF of it (gdal_translate)",
        );
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut head).ok()?;
    let is_jp2 = head.get(4..8) == Some(b"jP  ");
    let holds = |mark: &[u8]| head.windows(mark.len()).any(|bytes| bytes == mark);
    let has_place = is_jp2 && BOXES.into_iter().any(holds);
    has_place.then_some("is a JPEG 2000, whose place is not read; make a GeoTIFF of it")
}

/// As [`read_georeference`], of a TIFF in memory.
#[cfg(any(fuzzing, test))]
pub(crate) fn georeference_of(bytes: &[u8]) -> Option<Georeference> {
    tiff::read_georeference(Cursor::new(bytes)).ok().flatten()
}

fn open(
    path: &Path,
    options: &ReadOptions,
    channels: Channels,
    shape: Option<&Cell<Option<(Size, PixelKind)>>>,
) -> Result<FileImage> {
    options.check()?;
    let meta = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    if meta.is_dir() {
        return Err(Error::format(path, "is a folder; images are read from files"));
    }
    if !meta.is_file() && shape.is_some() {
        return Err(Error::format(path, "is a pipe, of which nothing can be read twice"));
    }
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    if !meta.is_file() {
        return read_pipe(file, path, options, channels);
    }
    // A place on the map is that of the pixels as they are stored. A TIFF that has one itself is not turned either.
    let is_placed = options.orient && matches!(world_file::beside(path), Ok(Some(_)));
    let options = &options.with_orient(options.orient && !is_placed);
    let no_data = pam::no_data(path, options.band.unwrap_or(1));
    let request = Request { options, channels, file_len: meta.len(), no_data, shape };
    let read = read_source(BufReader::with_capacity(1 << 16, file), path, &request);
    let mut image = read.map_err(|e| match (e, foreign::envi(path)) {
        (Error::Format { .. }, Some(reason)) => Error::format(path, reason),
        (e, _) => e,
    })?;
    if shape.is_none() {
        image.hide_by(beside(path, &image, options)?)?;
        image.bands = image.bands.or_else(|| pam::bands(path).filter(|_| image.white.is_none()));
    }
    Ok(image)
}

/// The image from a pipe or a device. All bytes are read first, because readers move back and forth in a file.
fn read_pipe(
    mut source: impl Read,
    path: &Path,
    options: &ReadOptions,
    channels: Channels,
) -> Result<FileImage> {
    let mut bytes = Vec::new();
    let most = options.max_bytes.saturating_add(1);
    let failed = |e| Error::io(path, e);
    source.by_ref().take(most.min(HEAD)).read_to_end(&mut bytes).map_err(failed)?;
    // Checked now, because a pipe without an image may never end.
    reader_of::<Cursor<&[u8]>>(&bytes).map_err(|fault| fault.at(path, "the image does"))?;
    source.take(most.saturating_sub(HEAD)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == most {
        let limit = options.max_bytes;
        return Err(Error::format(
            path,
            format!("brings more than the limit of {limit} bytes; raise max_bytes"),
        ));
    }
    decode_as(&bytes, path, options, channels)
}

/// GDAL's mask of the image at `path`, from `PATH.msk` beside it: 0 where the image holds no data.
fn beside(path: &Path, image: &FileImage, options: &ReadOptions) -> Result<Option<Image<u8>>> {
    let path = &path.with_added_extension(MASK);
    if !path.is_file() {
        return Ok(None);
    }
    let stored = image.stored_size();
    let options = options.with_orient(false).with_band(None);
    let mask = open(path, &options, Channels::GreyAndAlpha, None)?.image;
    Mask::of_size(&mask, path, stored).map(Mask::into_image)
}

fn read_source(mut source: impl Source, path: &Path, request: &Request<'_>) -> Result<FileImage> {
    let head = source.fill_buf().map_err(Fault::Io).map(<[u8]>::to_vec);
    let decoded = head.and_then(|head| {
        // A no-data value that is an index marks no colour; a TIFF compares it before the conversion.
        let no_data = request.no_data.filter(|_| is_tiff(&head) || !has_palette(&head));
        reader_of(&head)?(source, &Request { no_data, ..*request })
    });
    let mut file = decoded.map_err(|fault| fault.at(path, "the image does"))?;
    let shown = file.shown.take();
    file.turned = request.options.orient && file.orientation != 1;
    if file.turned {
        file.image = upright(file.image, file.orientation)?;
    }
    file.hide_by(shown)?;
    Ok(file)
}

/// Bytes by which the format of a file is recognised.
const HEAD: u64 = 1 << 12;

type Reader<S> = fn(S, &Request<'_>) -> std::result::Result<FileImage, Fault>;

/// The reader of the format whose files begin with `head`; it does not turn the picture.
fn reader_of<S: Source>(head: &[u8]) -> std::result::Result<Reader<S>, Fault> {
    Ok(match head {
        [] => return Err("the file is empty".into()),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => png::read,
        [0xff, 0xd8, 0xff, ..] => jpeg::read,
        head if is_tiff(head) => tiff::read,
        [b'P', b'F' | b'f', b, ..] if b.is_ascii_whitespace() => pfm::read,
        [b'P', b'1'..=b'7', b, ..] if b.is_ascii_whitespace() || *b == b'#' => pnm::read,
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp::read,
        [b'B', b'M', ..] => bmp::read,
        [b'G', b'I', b'F', b'8', ..] => gif::read,
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => jpeg2000::read,
        [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => jpegxl::read,
        [0x76, 0x2f, 0x31, 0x01, ..] => exr::read,
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1..=3, ..] => npy::read,
        head => return Err(foreign::refusal(head).into()),
    })
}

/// Whether a file that begins with `head` is a TIFF or BigTIFF.
fn is_tiff(head: &[u8]) -> bool {
    matches!(head, [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..])
}
