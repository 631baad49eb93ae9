//! PFM: 32-bit floats, one or three channels, rows from the bottom up.

use super::{
    FileImage, ImageView, Pixel, Size,
    pnm::Header,
    rows::{Request, Rows, Source, zeros},
    write::{push_row, write_rows},
};
use crate::files::Fault;
use std::io::{self, SeekFrom, Write};

pub(super) fn read(mut source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    let mut header = Header::new(&mut source);
    let channels = if header.magic()? == b'F' { 3 } else { 1 };
    let size = Size::new(header.number("width")?, header.number("height")?);
    let scale = header.word()?;
    let scale: f32 = scale.parse().map_err(|_| format!("the scale of the PFM is {scale:?}, not a number"))?;
    if scale == 0.0 || !scale.is_finite() {
        return Err(format!(
            "the scale of the PFM is {scale}: expected below 0 for little-endian, above for big"
        )
        .into());
    }
    let bytes = (size.area() as u64).saturating_mul(4 * channels as u64);
    header.end(bytes, request.file_len)?;
    request.plausible(size, bytes, 1)?;
    let value = if scale < 0.0 { f32::from_le_bytes } else { f32::from_be_bytes };
    let start = source.stream_position()?;
    let mut rows = Rows::new(request, size, request.layout(channels), request.no_data)?;
    let mut bytes: Vec<u8> = zeros(rows.row_len() * 4)?;
    let mut row = Vec::new();
    for y in (0..size.height).rev() {
        source.seek(SeekFrom::Start(start + (y * bytes.len()) as u64))?;
        source.read_exact(&mut bytes)?;
        rows.push_from(bytes.as_chunks().0.iter().map(|b| value(*b)), &mut row)?;
    }
    rows.finish()
}

/// Writes an image, of each sample its `value`.
pub(super) fn write<T: Pixel>(
    mut out: impl Write,
    view: ImageView<'_, T>,
    value: impl Fn(T) -> f32,
) -> io::Result<()> {
    let size = view.size();
    let magic = if view.channels() == 3 { "PF" } else { "Pf" };
    write!(out, "{magic}\n{} {}\n-1.0\n", size.width, size.height)?;
    let push = |row: &[T], bytes: &mut Vec<u8>| push_row(row, bytes, |v| value(v).to_le_bytes());
    write_rows(out, view, (0..size.height).rev(), push)
}
