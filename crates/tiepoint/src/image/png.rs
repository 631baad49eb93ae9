//! PNG: 8 and 16 bits, grey, RGB and both with alpha; palettes and fewer bits are expanded.

use super::{
    FileImage, ImageView, Pixel, PixelKind, Size, orientation,
    rows::{Request, Rows, Source, zeros},
    write::write_rows,
};
use crate::files::Fault;
use ::png::{BitDepth, ColorType, Compression, Decoder, DecodingError, Encoder, Reader, Transformations};
use std::io::{self, Write};

/// The most bytes that one byte of deflate can expand to.
const RATIO: u64 = 1032;

impl From<DecodingError> for Fault {
    fn from(e: DecodingError) -> Self {
        match e {
            DecodingError::IoError(e) => Self::Io(e),
            e => {
                // The decoder prints a chunk as a structure of its source; only its name means something to a user.
                let said = e.to_string();
                let chunk = said
                    .split_once("ChunkType { type: ")
                    .and_then(|(what, rest)| rest.split_once(',').map(|(name, _)| format!("{what}{name}")));
                Self::Bad(format!("damaged PNG: {}", chunk.unwrap_or(said)))
            }
        }
    }
}

pub(super) fn read(source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut decoder = Decoder::new(source);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let info = decoder.read_header_info()?;
    let size = Size::new(info.width as usize, info.height as usize);
    // Checked before the decoder allocates a row.
    let row_bytes = (size.width as u64 * info.bits_per_pixel() as u64).div_ceil(8) + 1;
    request.plausible(size, row_bytes.saturating_mul(size.height as u64), RATIO)?;
    request.affordable(size, Some(size.area()))?;
    let reader = decoder.read_info()?;
    // The decoder relies on a palette of at most 256 whole entries.
    let palette = reader.info().palette.as_deref().map_or(0, <[u8]>::len);
    if palette % 3 != 0 || palette > 3 * 256 {
        return Err(format!("damaged PNG: a palette of {palette} bytes").into());
    }
    let (color, depth) = reader.output_color_type();
    let (stored, bits) = (reader.info().color_type, reader.info().bit_depth as u8);
    let white = (stored == ColorType::Grayscale && bits < 8).then(|| (1 << bits) - 1);
    let request = &request.stretched(white, 255.0);
    let read = match depth {
        BitDepth::Sixteen => {
            collect(reader, request, size, color.samples(), |b: [u8; 2]| u16::from_be_bytes(b))
        }
        _ => collect(reader, request, size, color.samples(), |b: [u8; 1]| b[0]),
    };
    Ok(FileImage { white, ..read? })
}

/// The orientation in the EXIF data, which may come after the pixels.
fn orientation(reader: &mut Reader<impl Source>) -> u8 {
    // Damage after the pixels does no harm to them and is ignored.
    drop(reader.finish());
    reader.info().exif_metadata.as_deref().map_or(1, |exif| orientation::of_exif(exif.to_vec()))
}

fn collect<T: Pixel, const N: usize>(
    mut reader: Reader<impl Source>,
    request: &Request<'_>,
    size: Size,
    channels: usize,
    value: fn([u8; N]) -> T,
) -> Result<FileImage, Fault> {
    let layout = request.layout(channels);
    let mut rows = Rows::new(request, size, layout, request.no_data)?;
    let mut row = Vec::new();
    let mut take =
        |bytes: &[u8]| rows.push_from(bytes.as_chunks::<N>().0.iter().map(|b| value(*b)), &mut row);
    if reader.info().interlaced {
        let bytes = reader.output_buffer_size();
        let kept = request.channels.kept(layout);
        request.affordable(size, bytes.and_then(|b| b.checked_add(size.area() * kept * N)))?;
        let mut whole: Vec<u8> = zeros(bytes.unwrap_or(usize::MAX))?;
        reader.next_frame(&mut whole)?;
        whole.chunks_exact(size.width * channels * N).try_for_each(&mut take)?;
    } else {
        while let Some(row) = reader.next_row()? {
            take(row.data())?;
        }
    }
    Ok(FileImage { orientation: orientation(&mut reader), ..rows.finish()? })
}

/// Appends a row: bytes as they are; 16 bits, and floats (0 to 1 as the whole range) in 16 bits, the higher byte first.
pub(super) fn push_levels<T: Pixel>(row: &[T], bytes: &mut Vec<u8>) {
    match T::u8s(row) {
        Some(row) => bytes.extend_from_slice(row),
        None => bytes.extend(row.iter().flat_map(|v| (v.level() as u16).to_be_bytes())),
    }
}

/// Writes the rows as `push` appends them, in 8 bits for bytes and in 16 for others.
pub(super) fn write<T: Pixel>(
    out: impl Write,
    view: ImageView<'_, T>,
    push: impl Fn(&[T], &mut Vec<u8>),
) -> io::Result<()> {
    let side = |n: usize| u32::try_from(n).map_err(io::Error::other);
    let size = view.size();
    let mut encoder = Encoder::new(out, side(size.width)?, side(size.height)?);
    encoder.set_color(match view.channels() {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        4 => ColorType::Rgba,
        n => return Err(io::Error::other(format!("PNG holds 1 to 4 channels, not {n}"))),
    });
    encoder.set_depth(if T::KIND == PixelKind::U8 { BitDepth::Eight } else { BitDepth::Sixteen });
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    let mut stream = writer.stream_writer()?;
    write_rows(&mut stream, view, 0..size.height, push)?;
    stream.finish()?;
    Ok(writer.finish()?)
}
