//! The bytes of a strip or tile (a cell), decompressed and with the predictor undone.

use super::directory::{Colour, Kind, Plan};
use crate::files::Fault;
use crate::image::{
    jpeg,
    rows::{Source, zeros},
};
use ::tiff::decoder::Decoder;
use ::tiff::tags::{ByteOrder, Tag};
use std::io::{Cursor, Read, SeekFrom};

/// How the bytes of a cell are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    None,
    PackBits,
    Lzw,
    Deflate,
    Zstd,
    /// Cells are JPEG files, possibly without their tables.
    Jpeg,
    /// CCITT fax, group 4.
    Fax,
}

impl Coding {
    pub(super) fn of(number: u16) -> Result<Self, Fault> {
        let name = match number {
            1 => return Ok(Self::None),
            4 => return Ok(Self::Fax),
            5 => return Ok(Self::Lzw),
            7 => return Ok(Self::Jpeg),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 => return Ok(Self::Zstd),
            2 | 3 => "fax of group 3",
            6 => "JPEG of the old kind",
            34712 => "JPEG 2000",
            34887 => "LERC",
            34925 => "LZMA",
            50001 => "WebP",
            50002 | 52546 => "JPEG XL",
            other => return Err(unread(&format!("compression {other}"))),
        };
        Err(unread(name))
    }

    /// The most bytes that one byte can expand to. LZW and deflate copy at most their whole window at once; JPEG takes
    /// at least a bit for a block of 64 pixels, fax a bit for a row, Zstandard three bytes for a block of 128 KiB.
    pub(super) fn ratio(self, width: u64) -> u64 {
        match self {
            Self::None => 1,
            Self::PackBits => 64,
            Self::Deflate => 1032,
            Self::Lzw => 4096,
            Self::Jpeg => 2048,
            Self::Zstd => 1 << 16,
            Self::Fax => width.max(1 << 16),
        }
    }
}

fn unread(name: &str) -> Fault {
    Fault::Bad(format!(
        "TIFF with {name} is not read; convert it: gdal_translate -co COMPRESS=DEFLATE IN OUT.tif"
    ))
}

/// The bytes of a cell, of which `width` by `rows` pixels lie in the image, as rows of that width, with the byte order
/// of the values. `None` for a cell that the file leaves out.
pub(super) fn read(
    decoder: &mut Decoder<impl Source>,
    plan: &Plan,
    cell: usize,
    width: usize,
    rows: usize,
) -> Result<Option<(Vec<u8>, ByteOrder)>, Fault> {
    if plan.places[cell].1 == 0 {
        return Ok(None);
    }
    plan.plausible(cell, width, rows)?;
    if matches!(plan.coding, Coding::Jpeg | Coding::Fax) {
        return by_crate(decoder, plan, cell, width, rows).map(|bytes| Some((bytes, plan.order)));
    }
    let (offset, len) = plan.places[cell];
    let source = decoder.inner();
    source.seek(SeekFrom::Start(offset))?;
    let mut packed = Vec::new();
    source.take(len).read_to_end(&mut packed)?;
    if plan.reversed {
        packed.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
    }
    let stored = if plan.tiled { plan.cell.width } else { width };
    let row = plan.row_bytes(stored);
    let needed = row * rows;
    let mut bytes = first(needed, unpacked(packed, plan.coding, needed)?, cell)?;
    let mut order = plan.order;
    for row in bytes.chunks_exact_mut(row) {
        order = unpredicted(row, plan)?;
    }
    let kept = plan.row_bytes(width);
    if kept < row {
        for y in 0..rows {
            bytes.copy_within(y * row..y * row + kept, y * kept);
        }
        bytes.truncate(kept * rows);
    }
    Ok(Some((bytes, order)))
}

/// The bytes of a cell that the `tiff` crate decodes.
fn by_crate(
    decoder: &mut Decoder<impl Source>,
    plan: &Plan,
    cell: usize,
    width: usize,
    rows: usize,
) -> Result<Vec<u8>, Fault> {
    if plan.coding == Coding::Jpeg {
        if plan.values == 2 {
            return Err(
                "the TIFF holds JPEG of two channels, which is not read; save it with another compression"
                    .into(),
            );
        }
        // Joined as the decoder does: the tables without their end marker, then the cell without its start marker.
        let tables = match decoder.find_tag(Tag::JPEGTables)? {
            Some(tables) => tables.into_u8_vec()?,
            None => Vec::new(),
        };
        let (offset, len) = plan.places[cell];
        let mut bytes = Vec::new();
        let source = decoder.inner();
        source.seek(SeekFrom::Start(offset))?;
        let there = source.take(len).read_to_end(&mut bytes)? as u64;
        // The JPEG decoder fills up missing data.
        if there < len {
            return Err(
                format!("strip or tile {cell} of the TIFF is truncated: {there} of {len} bytes").into()
            );
        }
        if let Some(head) = tables.len().checked_sub(2) {
            bytes = [&tables[..head], bytes.get(2..).unwrap_or_default()].concat();
        }
        jpeg::check_frame(&bytes)?;
    }
    let layout = decoder.image_chunk_buffer_layout(cell as u32)?;
    let mut bytes: Vec<u8> = zeros(layout.len)?;
    decoder.read_chunk_bytes(cell as u32, &mut bytes)?;
    // The crate has already inverted the values; undone here, because `read_cell` inverts those of every coding.
    if plan.colour == Colour::WhiteIsZero {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    first(plan.row_bytes(width) * rows, bytes, cell)
}

/// The first `needed` bytes of a cell.
fn first(needed: usize, mut bytes: Vec<u8>, cell: usize) -> Result<Vec<u8>, Fault> {
    if bytes.len() < needed {
        return Err(format!("strip or tile {cell} of the TIFF is too short").into());
    }
    bytes.truncate(needed);
    Ok(bytes)
}

/// Decompresses up to `needed` bytes.
fn unpacked(packed: Vec<u8>, coding: Coding, needed: usize) -> Result<Vec<u8>, Fault> {
    let damaged = |e: &dyn std::fmt::Display| Fault::Bad(format!("damaged TIFF: {e}"));
    let all = |source: &mut dyn Read| {
        let mut bytes = Vec::new();
        let read = source.take(needed as u64).read_to_end(&mut bytes);
        // An error after all needed bytes have come does no harm.
        match read {
            Err(e) if bytes.len() < needed => Err(damaged(&e)),
            _ => Ok(bytes),
        }
    };
    match coding {
        Coding::PackBits => Ok(unpacked_bits(&packed, needed)),
        Coding::Lzw => {
            let mut decoder = weezl::decode::Decoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
            let mut bytes: Vec<u8> = zeros(needed)?;
            let (mut read, mut written) = (0, 0);
            while written < needed {
                let step = decoder.decode_bytes(&packed[read..], &mut bytes[written..]);
                (read, written) = (read + step.consumed_in, written + step.consumed_out);
                match step.status {
                    Ok(weezl::LzwStatus::Ok) if step.consumed_in + step.consumed_out > 0 => {}
                    Ok(_) => break,
                    Err(e) => return Err(damaged(&e)),
                }
            }
            bytes.truncate(written);
            Ok(bytes)
        }
        Coding::Deflate => all(&mut flate2::read::ZlibDecoder::new(Cursor::new(packed))),
        Coding::Zstd => {
            let frame = ruzstd::decoding::StreamingDecoder::new(Cursor::new(packed));
            all(&mut frame.map_err(|e| damaged(&e))?)
        }
        Coding::None | Coding::Jpeg | Coding::Fax => Ok(packed),
    }
}

/// Decodes `PackBits`: after a byte n ≥ 0, n + 1 bytes follow as they are; after n < 0, one byte stands for 1 − n of it.
fn unpacked_bits(packed: &[u8], needed: usize) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), packed);
    while bytes.len() < needed
        && let Some(&head) = rest.split_off_first()
    {
        match head as i8 {
            n @ 0.. => {
                let run = rest.split_off(..rest.len().min(n as usize + 1)).unwrap_or_default();
                bytes.extend_from_slice(run);
            }
            -128 => {}
            n => {
                let Some(&value) = rest.split_off_first() else { break };
                bytes.extend(std::iter::repeat_n(value, 1 + n.unsigned_abs() as usize));
            }
        }
    }
    bytes
}

/// Undoes the predictor of a row, and returns the byte order of its values afterwards.
fn unpredicted(row: &mut [u8], plan: &Plan) -> Result<ByteOrder, Fault> {
    /// Adds to every value the one before it of the same channel.
    fn summed<const N: usize>(row: &mut [u8], values: usize, add: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
        let row = row.as_chunks_mut::<N>().0;
        for i in values..row.len() {
            row[i] = add(row[i], row[i - values]);
        }
    }
    macro_rules! summed {
        ($type:ty) => {
            match plan.order {
                ByteOrder::LittleEndian => summed(row, plan.values, |a, b| {
                    <$type>::from_le_bytes(a).wrapping_add(<$type>::from_le_bytes(b)).to_le_bytes()
                }),
                ByteOrder::BigEndian => summed(row, plan.values, |a, b| {
                    <$type>::from_be_bytes(a).wrapping_add(<$type>::from_be_bytes(b)).to_be_bytes()
                }),
            }
        };
    }
    match (plan.predictor, plan.bits, plan.kind) {
        (1, ..) => {}
        (2, 8, _) => summed!(u8),
        (2, 16, _) => summed!(u16),
        (2, 32, _) => summed!(u32),
        (2, 64, _) => summed!(u64),
        (3, bits @ (16 | 24 | 32 | 64), Kind::Float) => {
            summed(row, plan.values, |a: [u8; 1], b| [a[0].wrapping_add(b[0])]);
            // The highest bytes of all values come first, then the second highest, and so on.
            let (planes, width) = (row.to_vec(), bits / 8);
            let count = row.len() / width;
            for (i, value) in row.chunks_exact_mut(width).enumerate() {
                value.iter_mut().enumerate().for_each(|(byte, to)| *to = planes[byte * count + i]);
            }
            return Ok(ByteOrder::BigEndian);
        }
        (predictor, bits, _) => {
            return Err(format!("TIFF with the predictor {predictor} on {bits} bits is not read; convert it: gdal_translate -co PREDICTOR=1 IN OUT.tif").into());
        }
    }
    Ok(plan.order)
}
