//! WebP: colour of 8 bits, with or without alpha. The first frame of an animation is read.

use super::{
    FileImage, Size, orientation,
    rows::{Request, Source, zeros},
};
use crate::files::Fault;
use image_webp::{DecodingError, WebPDecoder};

impl From<DecodingError> for Fault {
    fn from(e: DecodingError) -> Self {
        match e {
            DecodingError::IoError(e) => Self::Io(e),
            e => Self::Bad(format!("damaged WebP: {e}")),
        }
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut decoder = WebPDecoder::new(source)?;
    let (width, height) = decoder.dimensions();
    let (size, channels) =
        (Size::new(width as usize, height as usize), if decoder.has_alpha() { 4 } else { 3 });
    // The decoder holds four bytes a pixel beside the result.
    let held = size.area().checked_mul(4 + channels + 1);
    request.affordable(size, held)?;
    decoder.set_memory_limit(usize::try_from(request.options.max_bytes).unwrap_or(usize::MAX));
    request.begin::<u8>(size)?;
    let mut pixels: Vec<u8> = zeros(decoder.output_buffer_size().ok_or("the WebP is too large")?)?;
    decoder.read_image(&mut pixels)?;
    // Damaged EXIF data are ignored.
    let turned = decoder.exif_metadata().ok().flatten().map_or(1, orientation::of_exif);
    Ok(FileImage {
        orientation: turned,
        ..FileImage::whole(pixels, size, request.layout(channels), request)?
    })
}
