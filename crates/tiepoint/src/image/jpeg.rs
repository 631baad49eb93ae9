//! JPEG: grey and colour, baseline and progressive; CMYK becomes RGB.

use super::{
    AnyImage, Image, Size,
    rows::{Fault, Request, Rows, Source, reserve, zeros},
};
use zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions};
use zune_jpeg::{JpegDecoder, errors::DecodeErrors};

/// Pixels that one byte can stand for at most: a block of 64 takes at least one bit.
const RATIO: u64 = 512;

impl From<DecodeErrors> for Fault {
    fn from(e: DecodeErrors) -> Self {
        Self::Bad(format!("damaged or unsupported JPEG: {e:?}"))
    }
}

pub(super) fn read(mut source: impl Source, request: &Request<'_>) -> Result<AnyImage, Fault> {
    if request.file_len > request.options.max_bytes {
        return Err(format!("{} bytes are more than the limit of max_bytes", request.file_len).into());
    }
    let mut bytes = reserve(request.file_len as usize)?;
    source.read_to_end(&mut bytes)?;
    if !ends(&bytes) {
        return Err("the JPEG has no end marker; it is truncated".into());
    }
    let options =
        DecoderOptions::default().set_max_width(1 << 16).set_max_height(1 << 16).set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes.as_slice()), options);
    decoder.decode_headers()?;
    let info = decoder.info().ok_or("the JPEG has no header")?;
    let size = Size::new(usize::from(info.width), usize::from(info.height));
    let channels = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => 1,
        _ => 3,
    };
    request.plausible(size, size.area() as u64, RATIO)?;
    // A progressive file keeps all its coefficients, 16 bits each, until the last scan.
    let decoding = if progressive(&bytes) { 3 * channels } else { channels };
    let held = decoding.max(channels + usize::from(request.grey));
    request.affordable(size, size.area().checked_mul(held))?;
    let out = if channels == 1 { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(options.jpeg_set_out_colorspace(out));
    let mut pixels: Vec<u8> = zeros(size.area() * channels)?;
    decoder.decode_into(&mut pixels)?;
    drop(decoder);
    drop(bytes);
    if request.grey && channels == 3 {
        let mut rows = Rows::new(request, size, channels)?;
        rows.push(&pixels)?;
        return rows.finish();
    }
    let image = Image::from_vec(pixels, size, channels).map_err(|e| e.to_string())?;
    Ok(image.into())
}

/// True when an end marker follows the last start of a scan. Inside a scan 0xff is always followed by 0, so the
/// marker cannot be part of the data; one of an embedded thumbnail stands before the scan.
fn ends(bytes: &[u8]) -> bool {
    let last = |marker: u8| bytes.windows(2).rposition(|w| w == [0xff, marker]);
    last(0xd9).is_some_and(|end| last(0xda).is_none_or(|scan| scan < end))
}

/// True when some frame header may be a progressive one.
fn progressive(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|w| w == [0xff, 0xc2])
}
