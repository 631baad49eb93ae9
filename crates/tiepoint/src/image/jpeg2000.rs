//! JPEG 2000, as a file or a bare codestream: any number of bands; up to 8 bits become 8, up to 16 become 16, signed
//! numbers become floats.
//!
//! The decoder is built without vector instructions, so that the values of lossy files are the same everywhere.

use super::{
    FileImage, Layout, Pixel, Size,
    rows::{Request, Source, reserve},
};
use crate::files::Fault;
use hayro_jpeg2000::{ColorSpace, DecodeError, DecodeSettings, DecoderContext, Image as Picture};

impl From<DecodeError> for Fault {
    fn from(e: DecodeError) -> Self {
        Self::Bad(format!("damaged or unsupported JPEG 2000: {e}"))
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let bytes = request.bytes(source)?;
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    let picture = Picture::new(&bytes, &settings)?;
    let size = Size::new(picture.width() as usize, picture.height() as usize);
    let said = colour_space(&bytes);
    let of_bands = |n: u8| (if n == 3 || n > 3 && said == Some(SRGB) { 3 } else { 1 }, usize::from(n));
    let (colours, channels) = match picture.color_space() {
        ColorSpace::Gray => (1, 1),
        // The decoder takes any four bands for CMYK.
        ColorSpace::CMYK if !matches!(said, Some(CMYK | YCCK)) => of_bands(4),
        ColorSpace::CMYK => {
            return Err("JPEG 2000 with CMYK is not read; convert it: opj_decompress -i IN -o OUT.tif".into());
        }
        ColorSpace::RGB => (3, 3),
        ColorSpace::Icc { num_channels: n, .. } | ColorSpace::Unknown { num_channels: n } => of_bands(*n),
    };
    let alpha = picture.has_alpha().then_some(channels);
    let channels = channels + usize::from(picture.has_alpha());
    let layout = Layout { channels, first: 0, colours, alpha }.with_band(request.options.band);
    // The decoder holds all coefficients and samples as floats, beside the result.
    request.affordable(size, size.area().checked_mul(channels * (4 + 4 + 2)))?;
    let signs = signs(&bytes);
    match picture.original_bit_depth() {
        ..=16 if signs.contains(&true) => collect::<f32>(&picture, size, layout, &signs, request),
        ..=8 => collect::<u8>(&picture, size, layout, &signs, request),
        9..=16 => collect::<u16>(&picture, size, layout, &signs, request),
        bits => {
            Err(format!("JPEG 2000 of {bits} bits is not read; convert it: gdal_translate IN OUT.tif").into())
        }
    }
}

fn collect<T: Pixel>(
    picture: &Picture<'_>,
    size: Size,
    layout: Layout,
    signs: &[bool],
    request: &Request<'_>,
) -> Result<FileImage, Fault> {
    request.begin::<T>(size)?;
    let mut context = DecoderContext::default();
    let decoded = picture.decode(&mut context)?;
    let bands = decoded.components();
    if bands.len() != layout.channels || bands.iter().any(|band| band.samples().len() != size.area()) {
        return Err("damaged JPEG 2000: its bands do not fit its header".into());
    }
    // Fewer than 8 bits are scaled to 8; 9 to 16 keep their values. The decoder adds half of the range to signed bands.
    let signed = |i: usize| signs.get(i).copied().unwrap_or_default();
    let scale = |i: usize, bits: u8| match (signs.contains(&true), bits) {
        (true, _) => (1.0, if signed(i) { (1_u32 << (bits - 1)) as f32 } else { 0.0 }),
        (false, ..8) => (255.0 / ((1_u32 << bits) - 1) as f32, 0.0),
        (false, _) => (1.0, 0.0),
    };
    let scales: Vec<(f32, f32)> =
        bands.iter().enumerate().map(|(i, band)| scale(i, band.bit_depth())).collect();
    let mut pixels = reserve(size.area() * layout.channels)?;
    for at in 0..size.area() {
        let values = bands.iter().zip(&scales);
        pixels.extend(values.map(|(band, (scale, half))| T::from_f32(band.samples()[at] * scale - half)));
    }
    drop(context);
    FileImage::whole(pixels, size, layout, request)
}

/// Which bands of a codestream, in a file or bare, are signed; empty if there is no codestream.
fn signs(bytes: &[u8]) -> Vec<bool> {
    let stream = match bytes {
        [0xff, 0x4f, ..] => Some(bytes),
        _ => boxed(bytes, b"jp2c"),
    };
    // After the start, marker, length, capabilities and eight numbers of 32 bits: how many bands, and three bytes for each.
    let bands = stream.and_then(|stream| stream.get(40..)).and_then(|rest| rest.split_first_chunk::<2>());
    let Some((count, bands)) = bands else { return Vec::new() };
    let count = u16::from_be_bytes(*count).into();
    bands.as_chunks::<3>().0.iter().take(count).map(|[depth, ..]| depth & 0x80 != 0).collect()
}

/// Numbers of colour spaces in the box `colr` (ISO 15444-1, I.5.3.3, and 15444-2, M.11.7.3).
const CMYK: u32 = 12;
const YCCK: u32 = 13;
const SRGB: u32 = 16;

/// The number of the colour space that the file names.
fn colour_space(bytes: &[u8]) -> Option<u32> {
    match boxed(boxed(bytes, b"jp2h")?, b"colr")? {
        [1, _, _, number @ ..] => number.first_chunk().map(|number| u32::from_be_bytes(*number)),
        _ => None,
    }
}

/// The content of the first box of this kind.
fn boxed<'a>(mut bytes: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    loop {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (head, length) = match u32::from_be_bytes(*length) {
            0 => (8, bytes.len() as u64),
            1 => (16, u64::from_be_bytes(*rest.first_chunk()?)),
            length => (8, length.into()),
        };
        if kind == wanted {
            return bytes.get(head..);
        }
        bytes = bytes.get(usize::try_from(length).ok()?.max(head)..)?;
    }
}
