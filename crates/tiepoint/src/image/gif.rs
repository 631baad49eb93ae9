//! GIF: the first frame, as colour, with alpha if any pixel is transparent.

use super::{
    FileImage, Size,
    rows::{Request, Source, zeros},
};
use crate::files::Fault;
use ::gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};
use std::num::NonZeroU64;

impl From<DecodingError> for Fault {
    fn from(e: DecodingError) -> Self {
        match e {
            DecodingError::Io(e) => Self::Io(e),
            e => Self::Bad(format!("damaged GIF: {e}")),
        }
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    let most = NonZeroU64::new(request.options.max_bytes).unwrap_or(NonZeroU64::MIN);
    options.set_memory_limit(MemoryLimit::Bytes(most));
    let mut decoder = options.read_info(source)?;
    let size = Size::new(decoder.width().into(), decoder.height().into());
    // Four bytes a pixel for the picture, and as many for a frame, which may fill it.
    request.affordable(size, size.area().checked_mul(8))?;
    request.begin::<u8>(size)?;
    let mut pixels: Vec<u8> = zeros(4 * size.area())?;
    let frame = decoder.read_next_frame()?.ok_or("the GIF holds no picture")?;
    let [left, top, width, height] = [frame.left, frame.top, frame.width, frame.height].map(usize::from);
    if left + width > size.width || top + height > size.height {
        return Err("damaged GIF: its first frame leaves the picture".into());
    }
    for (row, y) in frame.buffer.chunks_exact(4 * width.max(1)).zip(top..top + height) {
        pixels[4 * (y * size.width + left)..][..row.len()].copy_from_slice(row);
    }
    let transparent = pixels.as_chunks::<4>().0.iter().any(|pixel| pixel[3] == 0);
    if transparent {
        return FileImage::whole(pixels, size, request.layout(4), request);
    }
    let colours = pixels.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
    FileImage::whole(colours, size, request.layout(3), request)
}
