//! Strips and tiles into rows.

use crate::files::Fault;
use crate::image::{
    AnyImage, Image, Pixel, Size, jpeg,
    rows::{Request, Rows, Source, zeros},
};
use ::tiff::{
    ColorType, TiffError,
    decoder::{ChunkType, Decoder, DecodingResult, DecodingSampleType, Limits},
    tags::{ByteOrder, CompressionMethod, PhotometricInterpretation, PlanarConfiguration, Tag},
};
use std::io::{Read, SeekFrom};

impl From<TiffError> for Fault {
    fn from(e: TiffError) -> Self {
        match e {
            TiffError::IoError(e) => Self::Io(e),
            e => Self::Bad(format!("damaged or unsupported TIFF: {e}")),
        }
    }
}

/// How the samples become pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    AsIs,
    Cmyk,
    YCbCr,
}

/// What the directory says of the image.
#[derive(Debug)]
struct Plan {
    size: Size,
    /// Width and height of a strip or tile.
    cell: Size,
    /// Values of a pixel in one cell: all of them, or one where each has its own plane.
    values: usize,
    planes: usize,
    /// Bits of a value.
    depth: u8,
    colour: Colour,
    /// Strips hold the values of their pixels as they are: no compression, predictor, inversion or half
    /// floats.
    plain: bool,
    byte_order: ByteOrder,
    /// Offset and length of each cell in the file.
    places: Vec<(u64, u64)>,
    /// What a byte of a cell can expand to at most.
    ratio: u64,
    /// Cells are JPEG files, possibly without their tables.
    jpeg: bool,
}

pub(in crate::image) fn read(source: impl Source, request: &Request<'_>) -> Result<AnyImage, Fault> {
    use DecodingSampleType::{F16, F32, F64, U8, U16};
    let mut decoder = Decoder::new(source)?;
    let (width, height) = decoder.dimensions()?;
    let size = Size::new(width as usize, height as usize);
    request.affordable(size, Some(size.area()))?;
    let kind = decoder.image_buffer_layout()?.sample_type;
    let mut limits = Limits::unlimited();
    limits.decoding_buffer_size = usize::try_from(request.options.max_bytes).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size;
    limits.ifd_value_size = usize::try_from(request.file_len).unwrap_or(usize::MAX);
    let mut decoder = decoder.with_limits(limits);
    let plan = Plan::new(&mut decoder, size, kind == Some(F16))?;
    match (kind, plan.depth) {
        (Some(U8), 1 | 2 | 4 | 8) => collect::<u8>(decoder, request, &plan),
        (Some(U16), 16) => collect::<u16>(decoder, request, &plan),
        (Some(F16 | F32 | F64), _) => collect::<f32>(decoder, request, &plan),
        (kind, depth) => Err(format!(
            "TIFF samples of {depth} bits ({}) are not read; convert them to 8-bit or 16-bit unsigned or to float",
            kind.map_or("of no known kind".into(), |k| format!("{k:?}"))
        )
        .into()),
    }
}

impl Plan {
    fn new(decoder: &mut Decoder<impl Source>, size: Size, half: bool) -> Result<Self, Fault> {
        let color = decoder.colortype()?;
        let (samples, colour) = match color {
            ColorType::Gray(_) => (1, Colour::AsIs),
            ColorType::RGB(_) => (3, Colour::AsIs),
            ColorType::RGBA(_) => (4, Colour::AsIs),
            ColorType::Multiband { num_samples, .. } => (usize::from(num_samples), Colour::AsIs),
            ColorType::CMYK(8 | 16) => (4, Colour::Cmyk),
            ColorType::YCbCr(8) => (3, Colour::YCbCr),
            other => {
                return Err(
                    format!("TIFF colours {other:?} are not read; convert them to RGB or grey").into()
                );
            }
        };
        let mut tag = |tag, default: u16| decoder.find_tag_unsigned::<u16>(tag).map(|v| v.unwrap_or(default));
        let planar = tag(Tag::PlanarConfiguration, 1)? == PlanarConfiguration::Planar.to_u16();
        let compression = tag(Tag::Compression, 1)?;
        let predictor = tag(Tag::Predictor, 1)?;
        let stored = usize::from(tag(Tag::SamplesPerPixel, 1)?);
        let white_is_zero =
            tag(Tag::PhotometricInterpretation, 1)? == PhotometricInterpretation::WhiteIsZero.to_u16();
        if stored != samples && (planar || predictor != 1) {
            return Err(format!(
                "TIFF with {stored} values a pixel of which {samples} are colour: only read when \
                                interleaved and without a predictor"
            )
            .into());
        }
        if planar && colour != Colour::AsIs {
            return Err("TIFF with CMYK or YCbCr in planes is not read; convert it to RGB".into());
        }
        let tiled = decoder.get_chunk_type() == ChunkType::Tile;
        let (width, height) = decoder.chunk_dimensions();
        let cell = Size::new(width as usize, height as usize);
        // The decoder allocates a whole row of a tile, however little of it is in the image.
        if tiled && cell.width > size.width.max(1 << 16) {
            return Err(format!("tiles of {cell} in an image of {size}: too wide to be true").into());
        }
        let depth = color.bit_depth();
        Ok(Self {
            size,
            cell,
            values: if planar { 1 } else { samples },
            planes: if planar { samples } else { 1 },
            depth,
            colour,
            plain: !tiled
                && !planar
                && stored == samples
                && depth >= 8
                && !half
                && colour == Colour::AsIs
                && !white_is_zero
                && predictor == 1
                && compression == CompressionMethod::None.to_u16(),
            byte_order: decoder.byte_order(),
            places: places(decoder, tiled)?,
            jpeg: compression == CompressionMethod::ModernJPEG.to_u16(),
            ratio: ratio(CompressionMethod::from_u16_exhaustive(compression), size.width as u64),
        })
    }

    fn across(&self) -> usize {
        self.size.width.div_ceil(self.cell.width)
    }

    fn down(&self) -> usize {
        self.size.height.div_ceil(self.cell.height)
    }

    /// Rows of the image in a row of cells.
    fn rows(&self, band: usize) -> usize {
        self.cell.height.min(self.size.height - band * self.cell.height)
    }

    /// Fails when a cell of `width` by `rows` pixels cannot come from the bytes it has in the file.
    fn plausible(&self, cell: usize, width: usize, rows: usize) -> Result<(), Fault> {
        let (_, len) = self.places[cell];
        let row_bits = (width * self.values) as u64 * u64::from(self.depth);
        let bytes = (row_bits / 8).saturating_mul(rows as u64);
        if len == 0 || bytes / self.ratio > len.saturating_add(64) {
            return Err(format!(
                "strip or tile {cell} of the TIFF has {len} bytes, too few for its {width}x{rows} pixels"
            )
            .into());
        }
        Ok(())
    }
}

/// Where the strips or tiles stand in the file.
fn places(decoder: &mut Decoder<impl Source>, tiled: bool) -> Result<Vec<(u64, u64)>, Fault> {
    let (offsets, lengths) = match tiled {
        true => (Tag::TileOffsets, Tag::TileByteCounts),
        false => (Tag::StripOffsets, Tag::StripByteCounts),
    };
    let offsets = decoder.get_tag_u64_vec(offsets)?;
    let lengths = decoder.get_tag_u64_vec(lengths)?;
    Ok(offsets.into_iter().zip(lengths).collect())
}

/// The greatest expansion of a byte. Dictionary coders refer to at most their whole window; JPEG takes at
/// least a bit for a block of 64 pixels, fax a bit for a row.
fn ratio(method: CompressionMethod, width: u64) -> u64 {
    match method {
        CompressionMethod::None => 1,
        CompressionMethod::PackBits => 64,
        CompressionMethod::Deflate | CompressionMethod::OldDeflate => 1032,
        CompressionMethod::LZW => 4096,
        CompressionMethod::ModernJPEG => 2048,
        _ => width.max(1 << 16),
    }
}

/// A pixel type as the decoder hands it out.
trait Sample: Pixel {
    /// The values of a decoded cell whose rows are `width` pixels wide.
    fn of(cell: DecodingResult, width: usize, plan: &Plan) -> Option<Vec<Self>>;

    /// Appends the values that `bytes` are.
    fn parse(bytes: &[u8], plan: &Plan, out: &mut Vec<Self>);

    /// The memory of the next rows, for a type whose values are bytes; `None` for types that have to be
    /// parsed.
    fn next_rows(_: &mut Rows<Self>, _count: usize) -> Result<Option<&mut [u8]>, Fault> {
        Ok(None)
    }
}

impl Sample for u8 {
    fn of(cell: DecodingResult, width: usize, plan: &Plan) -> Option<Vec<Self>> {
        let DecodingResult::U8(bytes) = cell else { return None };
        Some(if plan.depth < 8 { unpack(&bytes, width * plan.values, plan.depth) } else { bytes })
    }

    fn parse(bytes: &[u8], _: &Plan, out: &mut Vec<Self>) {
        out.extend_from_slice(bytes);
    }

    fn next_rows(rows: &mut Rows<Self>, count: usize) -> Result<Option<&mut [u8]>, Fault> {
        rows.next_rows(count).map(Some)
    }
}

impl Sample for u16 {
    fn of(cell: DecodingResult, _: usize, _: &Plan) -> Option<Vec<Self>> {
        let DecodingResult::U16(values) = cell else { return None };
        Some(values)
    }

    fn parse(bytes: &[u8], plan: &Plan, out: &mut Vec<Self>) {
        let values = bytes.as_chunks().0.iter();
        match plan.byte_order {
            ByteOrder::LittleEndian => out.extend(values.map(|b| Self::from_le_bytes(*b))),
            ByteOrder::BigEndian => out.extend(values.map(|b| Self::from_be_bytes(*b))),
        }
    }
}

impl Sample for f32 {
    fn of(cell: DecodingResult, _: usize, _: &Plan) -> Option<Vec<Self>> {
        match cell {
            DecodingResult::F16(values) => Some(values.iter().map(|v| v.to_f32()).collect()),
            DecodingResult::F32(values) => Some(values),
            DecodingResult::F64(values) => Some(values.iter().map(|v| *v as Self).collect()),
            _ => None,
        }
    }

    fn parse(bytes: &[u8], plan: &Plan, out: &mut Vec<Self>) {
        let little = plan.byte_order == ByteOrder::LittleEndian;
        match plan.depth {
            32 => out.extend(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| if little { Self::from_le_bytes(*b) } else { Self::from_be_bytes(*b) }),
            ),
            _ => {
                out.extend(
                    bytes.as_chunks().0.iter().map(|b| {
                        (if little { f64::from_le_bytes(*b) } else { f64::from_be_bytes(*b) }) as Self
                    }),
                );
            }
        }
    }
}

/// Values of 1, 2 or 4 bits spread over 8; each row begins at a byte.
fn unpack(bytes: &[u8], row_len: usize, depth: u8) -> Vec<u8> {
    let per_byte = 8 / usize::from(depth);
    let maximum = (1_u8 << depth) - 1;
    let row = |row: &[u8]| {
        let value = |i: usize| row[i / per_byte] >> (8 - usize::from(depth) * (i % per_byte + 1)) & maximum;
        (0..row_len).map(|i| value(i) * (255 / maximum)).collect::<Vec<_>>()
    };
    bytes.chunks_exact(row_len.div_ceil(per_byte).max(1)).flat_map(row).collect()
}

fn collect<T: Sample>(
    mut decoder: Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
) -> Result<AnyImage, Fault>
where
    AnyImage: From<Image<T>>,
{
    let channels = if plan.colour == Colour::Cmyk { 3 } else { plan.values * plan.planes };
    let mut rows = Rows::<T>::new(request, plan.size, channels)?;
    if plan.plain {
        let bytes = (rows.row_len() * usize::from(plan.depth) / 8) as u64;
        request.plausible(plan.size, bytes.saturating_mul(plan.size.height as u64), 1)?;
    }
    let whole = plan.planes == 1 && plan.across() == 1;
    for band in 0..plan.down() {
        let count = plan.rows(band);
        if whole && plan.plain {
            read_plain(&mut decoder, plan, band, &mut rows)?;
            continue;
        }
        if whole && rows.direct() && plan.depth == 8 && plan.colour == Colour::AsIs {
            admit(&mut decoder, plan, band, plan.size.width, count)?;
            if let Some(place) = T::next_rows(&mut rows, count)? {
                decoder.read_chunk_bytes(band as u32, place)?;
                continue;
            }
        }
        let cells = match whole {
            true => read_cell::<T>(&mut decoder, request, plan, band, plan.size.width, count)?,
            false => read_band::<T>(&mut decoder, request, plan, band)?,
        };
        rows.push(&converted(cells, plan.colour))?;
    }
    rows.finish()
}

/// A strip of values as they stand in the file, a few rows at a time.
fn read_plain<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    plan: &Plan,
    strip: usize,
    rows: &mut Rows<T>,
) -> Result<(), Fault> {
    let row_bytes = rows.row_len() * usize::from(plan.depth) / 8;
    let at_once = ((1 << 20) / row_bytes).max(1);
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    let source = decoder.inner();
    source.seek(SeekFrom::Start(plan.places[strip].0))?;
    let mut left = plan.rows(strip);
    while left > 0 {
        let count = left.min(at_once);
        left -= count;
        if rows.direct()
            && let Some(place) = T::next_rows(rows, count)?
        {
            source.read_exact(place)?;
            continue;
        }
        if bytes.len() != count * row_bytes {
            bytes = zeros(count * row_bytes)?;
        }
        source.read_exact(&mut bytes)?;
        values.clear();
        T::parse(&bytes, plan, &mut values);
        rows.push(&values)?;
    }
    Ok(())
}

/// Fails when a cell of `width` by `rows` pixels cannot be what its bytes hold.
fn admit(
    decoder: &mut Decoder<impl Source>,
    plan: &Plan,
    cell: usize,
    width: usize,
    rows: usize,
) -> Result<(), Fault> {
    plan.plausible(cell, width, rows)?;
    if plan.jpeg {
        // The decoder joins them in this way: the tables without their end, then the cell without its start.
        let tables = match decoder.find_tag(Tag::JPEGTables)? {
            Some(tables) => tables.into_u8_vec()?,
            None => Vec::new(),
        };
        let (offset, len) = plan.places[cell];
        let mut bytes = Vec::new();
        let source = decoder.inner();
        source.seek(SeekFrom::Start(offset))?;
        source.take(len).read_to_end(&mut bytes)?;
        if let Some(head) = tables.len().checked_sub(2) {
            bytes = [&tables[..head], bytes.get(2..).unwrap_or_default()].concat();
        }
        jpeg::check_frame(&bytes)?;
    }
    Ok(())
}

/// One cell, of which `width` by `rows` pixels lie in the image.
fn read_cell<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
    cell: usize,
    width: usize,
    rows: usize,
) -> Result<Vec<T>, Fault> {
    admit(decoder, plan, cell, width, rows)?;
    let bytes = (width * rows).checked_mul(plan.values * size_of::<T>());
    request.affordable(plan.size, bytes)?;
    let values = T::of(decoder.read_chunk(cell as u32)?, width, plan);
    let mut values = values.ok_or("the samples of the TIFF are not of the kind it says")?;
    let needed = width * rows * plan.values;
    if values.len() < needed {
        return Err(format!("strip or tile {cell} of the TIFF is too short").into());
    }
    // Planes after the first come with the rows that pad their last tiles.
    values.truncate(needed);
    Ok(values)
}

/// A row of cells, in all planes, put side by side.
fn read_band<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
    band: usize,
) -> Result<Vec<T>, Fault> {
    let (across, count, pixel) = (plan.across(), plan.rows(band), plan.values * plan.planes);
    let row_len = plan.size.width * pixel;
    let len = row_len.checked_mul(count);
    request.affordable(plan.size, len.and_then(|n| n.checked_mul(size_of::<T>())))?;
    let mut out = zeros(len.unwrap_or(usize::MAX))?;
    for plane in 0..plan.planes {
        for column in 0..across {
            let x = column * plan.cell.width;
            let width = plan.cell.width.min(plan.size.width - x);
            let index = (plane * plan.down() + band) * across + column;
            let cell = read_cell::<T>(decoder, request, plan, index, width, count)?;
            for (out, cell) in out.chunks_exact_mut(row_len).zip(cell.chunks_exact(width * plan.values)) {
                let place = &mut out[x * pixel..(x + width) * pixel];
                if plan.planes == 1 {
                    place.copy_from_slice(cell);
                    continue;
                }
                for (p, v) in place.chunks_exact_mut(pixel).zip(cell) {
                    p[plane] = *v;
                }
            }
        }
    }
    Ok(out)
}

/// CMYK and YCbCr to RGB, three values a pixel.
fn converted<T: Pixel>(mut values: Vec<T>, colour: Colour) -> Vec<T> {
    match colour {
        Colour::AsIs => {}
        Colour::Cmyk => {
            let rgb = |p: &[T]| {
                let [c, m, y, k] = [p[0], p[1], p[2], p[3]].map(|v| T::WHITE - v.to_f32());
                [c, m, y].map(|v| T::from_f32(v * k / T::WHITE))
            };
            values = values.chunks_exact(4).flat_map(rgb).collect();
        }
        // The JFIF equations, without the headroom of video.
        Colour::YCbCr => {
            for p in values.chunks_exact_mut(3) {
                let [y, b, r] = [p[0].to_f32(), p[1].to_f32() - 128.0, p[2].to_f32() - 128.0];
                p[0] = T::from_f32(y + 1.402 * r);
                p[1] = T::from_f32(y - 0.344_136 * b - 0.714_136 * r);
                p[2] = T::from_f32(y + 1.772 * b);
            }
        }
    }
    values
}
