//! BMP: 8 bits, grey or colour, with or without alpha; palettes and fewer bits are expanded.

use super::{
    Size,
    rows::{Decoded, Request, Source, zeros},
};
use crate::files::Fault;
use zune_bmp::{BmpDecoder, BmpDecoderErrors};
use zune_core::{bytestream::ZCursor, options::DecoderOptions};

impl From<BmpDecoderErrors> for Fault {
    fn from(e: BmpDecoderErrors) -> Self {
        Self::Bad(format!("damaged or unsupported BMP: {e:?}"))
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<Decoded, Fault> {
    let bytes = request.bytes(source)?;
    let options =
        DecoderOptions::default().set_max_width(1 << 24).set_max_height(1 << 24).set_strict_mode(true);
    let mut decoder = BmpDecoder::new_with_options(ZCursor::new(bytes.as_slice()), options);
    decoder.decode_headers()?;
    let (width, height) = decoder.dimensions().ok_or("the BMP has no header")?;
    let channels = decoder.colorspace().map_or(3, |colours| colours.num_components());
    let size = Size::new(width, height);
    request.affordable(size, size.area().checked_mul(channels + 1))?;
    request.begin::<u8>(size)?;
    let mut pixels: Vec<u8> = zeros(size.area() * channels)?;
    decoder.decode_into(&mut pixels)?;
    Decoded::whole(pixels, size, request.layout(channels), request)
}
