//! JPEG 2000, as a file or a bare codestream: any number of bands; up to 8 bits become 8, up to 16 become 16.
//!
//! The decoder is built without vector instructions, so that the values of lossy files are the same everywhere.

use super::{
    AnyImage, Image, Layout, Pixel, Size,
    rows::{Decoded, Request, Source, reserve},
};
use crate::files::Fault;
use hayro_jpeg2000::{ColorSpace, DecodeError, DecodeSettings, DecoderContext, Image as Picture};

impl From<DecodeError> for Fault {
    fn from(e: DecodeError) -> Self {
        Self::Bad(format!("damaged or unsupported JPEG 2000: {e}"))
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<Decoded, Fault> {
    let bytes = request.bytes(source)?;
    let settings = DecodeSettings { strict: true, ..DecodeSettings::default() };
    let picture = Picture::new(&bytes, &settings)?;
    let size = Size::new(picture.width() as usize, picture.height() as usize);
    let (colours, channels) = match picture.color_space() {
        ColorSpace::Gray => (1, 1),
        ColorSpace::CMYK => {
            return Err("JPEG 2000 with CMYK is not read; convert it: opj_decompress -i IN -o OUT.tif".into());
        }
        ColorSpace::RGB => (3, 3),
        ColorSpace::Icc { num_channels: n, .. } | ColorSpace::Unknown { num_channels: n } => {
            (if *n == 3 { 3 } else { 1 }, usize::from(*n))
        }
    };
    let alpha = picture.has_alpha().then_some(channels);
    let channels = channels + usize::from(picture.has_alpha());
    let layout = Layout { channels, first: 0, colours, alpha }.with_band(request.options.band);
    // The decoder holds all coefficients and samples as floats, beside the result.
    request.affordable(size, size.area().checked_mul(channels * (4 + 4 + 2)))?;
    match picture.original_bit_depth() {
        ..=8 => collect::<u8>(&picture, size, layout, request),
        9..=16 => collect::<u16>(&picture, size, layout, request),
        bits => {
            Err(format!("JPEG 2000 of {bits} bits is not read; convert it: gdal_translate IN OUT.tif").into())
        }
    }
}

fn collect<T: Pixel>(
    picture: &Picture<'_>,
    size: Size,
    layout: Layout,
    request: &Request<'_>,
) -> Result<Decoded, Fault>
where
    AnyImage: From<Image<T>>,
{
    request.begin::<T>(size)?;
    let mut context = DecoderContext::default();
    let decoded = picture.decode(&mut context)?;
    let bands = decoded.components();
    if bands.len() != layout.channels || bands.iter().any(|band| band.samples().len() != size.area()) {
        return Err("damaged JPEG 2000: its bands do not fit its header".into());
    }
    // Fewer than 8 bits are scaled to 8; 9 to 16 bits keep the values of the sensor.
    let scale = |bits: u8| if bits < 8 { 255.0 / ((1_u32 << bits) - 1) as f32 } else { 1.0 };
    let scales: Vec<f32> = bands.iter().map(|band| scale(band.bit_depth())).collect();
    let mut pixels = reserve(size.area() * layout.channels)?;
    for at in 0..size.area() {
        pixels.extend(bands.iter().zip(&scales).map(|(band, scale)| T::from_f32(band.samples()[at] * scale)));
    }
    drop(context);
    Decoded::whole(pixels, size, layout, request)
}
