//! Reads the strips and tiles of a TIFF into rows.

use super::cell;
use super::directory::{Colour, Kind, MASK, Plan, find_image, samples, subfile, text};
use crate::files::Fault;
use crate::image::{
    AnyImage, FileImage, Image, Pixel, Size, Stored,
    no_data::{held, within_floats},
    rows::{Channels, Request, Rows, Source, zeros},
};
use crate::numeric::{float_24, half};
use ::tiff::{
    TiffError,
    decoder::{Decoder, Limits},
    tags::{ByteOrder, Tag},
};
use std::io::{ErrorKind::UnexpectedEof, SeekFrom};

impl From<TiffError> for Fault {
    fn from(e: TiffError) -> Self {
        match e {
            // The decoders report their own errors as I/O errors without a system error code.
            TiffError::IoError(e) if e.raw_os_error().is_some() || e.kind() == UnexpectedEof => Self::Io(e),
            e => Self::Bad(format!("damaged or unsupported TIFF: {e}")),
        }
    }
}

pub(in crate::image) fn read(mut source: impl Source, request: &Request<'_>) -> Result<FileImage, Fault> {
    // The signature of Canon's raw photographs follows the head of the file.
    if source.fill_buf()?.get(8..10) == Some(b"CR") {
        return Err(crate::image::foreign::raw().into());
    }
    let mut decoder = Decoder::new(source)?;
    let mut limits = Limits::unlimited();
    limits.decoding_buffer_size = usize::try_from(request.options.max_bytes).unwrap_or(usize::MAX);
    limits.intermediate_buffer_size = limits.decoding_buffer_size;
    limits.ifd_value_size = usize::try_from(request.file_len).unwrap_or(usize::MAX);
    find_image(&mut decoder)?;
    let mut decoder = decoder.with_limits(limits);
    let mut plan = Plan::new(&mut decoder, request)?;
    if plan.colour == Colour::WhiteIsZero && plan.kind == Kind::Unsigned && plan.bits <= 16 {
        // The pixels are inverted, so their no-data value is, too.
        plan.no_data = plan.no_data.map(|value| f64::from(most(plan.bits)) - value);
    }
    let stretches =
        plan.bits < 8 && plan.kind == Kind::Unsigned && !matches!(plan.colour, Colour::Palette(_));
    if stretches {
        // The pixels are stretched to 8 bits; a no-data value that they cannot have marks none of them.
        let held =
            plan.no_data.filter(|v| v.fract() == 0.0 && (0.0..=f64::from(most(plan.bits))).contains(v));
        plan.no_data = held.map(|value| f64::from(stretched(value as u32, plan.bits)));
    }
    let mut decoded = match (&plan.colour, plan.kind, plan.bits) {
        (Colour::Lab, ..) | (_, Kind::Unsigned, ..=8) => collect::<u8>(&mut decoder, request, &plan)?,
        (_, Kind::Unsigned, 9..=16) => collect::<u16>(&mut decoder, request, &plan)?,
        _ => collect::<f32>(&mut decoder, request, &plan)?,
    };
    if let Some(mask) = mask(&mut decoder, request, plan.size)? {
        let both = crate::image::Mask::from(decoded.shown.take()).and(mask);
        decoded.shown = both.map_err(|e| e.to_string())?.into_image();
    }
    within_floats(&mut decoded);
    let white = stretches.then(|| most(plan.bits) as u16);
    Ok(FileImage { orientation: plan.orientation, bands: plan.bands, white, ..decoded })
}

/// How the pixels are stored.
pub(in crate::image) fn stored(source: impl Source) -> Result<Stored, Fault> {
    let mut decoder = Decoder::new(source)?;
    find_image(&mut decoder)?;
    let found = decoder.find_tag(Tag::PhotometricInterpretation)?.and_then(|value| value.into_u16().ok());
    let kind = match samples(&mut decoder)? {
        (Kind::Unsigned, ..=8) => "Byte",
        (Kind::Unsigned, ..=16) => "UInt16",
        (Kind::Unsigned, ..=32) => "UInt32",
        (Kind::Unsigned, _) => "UInt64",
        (Kind::Signed, ..=8) => "Int8",
        (Kind::Signed, ..=16) => "Int16",
        (Kind::Signed, ..=32) => "Int32",
        (Kind::Signed, _) => "Int64",
        (Kind::Float, ..=32) => "Float32",
        (Kind::Float, _) => "Float64",
    };
    let no_data = text(&mut decoder, crate::image::no_data::TAG)?;
    let no_data = no_data.map(|bytes| String::from_utf8_lossy(&bytes).trim().replace(',', "."));
    let no_data = no_data.filter(|text| text.parse::<f64>().is_ok());
    Ok(Stored { palette: matches!(found, Some(3 | 5)), kind: Some(kind), no_data })
}

/// How many images after the first are looked at for its mask.
const LOOKED_AT: usize = 16;

/// The mask in the file for an image of this size: 0 where there are no data.
fn mask(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    size: Size,
) -> Result<Option<Image<u8>>, Fault> {
    for _ in 0..LOOKED_AT {
        // The image itself has been read; a later directory that cannot be read does no harm.
        if !decoder.more_images() || decoder.next_image().is_err() {
            return Ok(None);
        }
        let (width, height) = decoder.dimensions()?;
        if subfile(decoder)? != MASK || Size::new(width as usize, height as usize) != size {
            continue;
        }
        let options = request.options.with_band(None);
        let request = Request {
            options: &options,
            channels: Channels::GreyAndAlpha,
            no_data: None,
            shape: None,
            ..*request
        };
        let plan = Plan::new(decoder, &request)?;
        if plan.bits > 8 || plan.kind != Kind::Unsigned {
            return Err(format!("the mask of the TIFF has {} bits a pixel, not 1 or 8", plan.bits).into());
        }
        let AnyImage::U8(mask) = collect::<u8>(decoder, &request, &plan)?.image else { return Ok(None) };
        return Ok(Some(mask));
    }
    Ok(None)
}

/// A pixel type that can be read from the bytes of a cell.
trait Sample: Pixel {
    /// Appends the `count` values of a row to `out`.
    fn parse(bytes: &[u8], count: usize, order: ByteOrder, plan: &Plan, out: &mut Vec<Self>);

    /// The value with black and white exchanged.
    fn inverted(self, bits: usize) -> Self;

    /// The memory of the next rows, to be read into directly; `None` for types that have to be parsed.
    fn next_rows(_: &mut Rows<Self>, _count: usize) -> Result<Option<&mut [u8]>, Fault> {
        Ok(None)
    }
}

/// The `count` values of a row, packed with `bits` bits each, the highest bit first.
fn packed(bytes: &[u8], count: usize, bits: usize) -> impl Iterator<Item = u32> {
    (0..count).map(move |i| {
        let (start, end) = (i * bits, (i + 1) * bits);
        let all =
            bytes[start / 8..end.div_ceil(8)].iter().fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
        let below = end.next_multiple_of(8) - end;
        (all >> below & ((1 << bits) - 1)) as u32
    })
}

/// The greatest value of this many bits.
fn most(bits: usize) -> u32 {
    (1 << bits) - 1
}

/// A value of fewer than 8 bits in 8 bits.
fn stretched(value: u32, bits: usize) -> u8 {
    ((value * 255 + most(bits) / 2) / most(bits)) as u8
}

impl Sample for u8 {
    fn parse(bytes: &[u8], count: usize, _: ByteOrder, plan: &Plan, out: &mut Vec<Self>) {
        match (&plan.colour, plan.bits) {
            (_, 8) => out.extend_from_slice(&bytes[..count]),
            // Indices of a palette stay as they are.
            (Colour::Palette(_), bits) => out.extend(packed(bytes, count, bits).map(|v| v as Self)),
            (_, bits) => out.extend(packed(bytes, count, bits).map(|v| stretched(v, bits))),
        }
    }

    fn inverted(self, _: usize) -> Self {
        !self
    }

    fn next_rows(rows: &mut Rows<Self>, count: usize) -> Result<Option<&mut [u8]>, Fault> {
        rows.next_rows(count).map(Some)
    }
}

impl Sample for u16 {
    fn parse(bytes: &[u8], count: usize, order: ByteOrder, plan: &Plan, out: &mut Vec<Self>) {
        let values = bytes.as_chunks().0.iter().take(count);
        match (plan.bits, order) {
            (16, ByteOrder::LittleEndian) => out.extend(values.map(|b| Self::from_le_bytes(*b))),
            (16, ByteOrder::BigEndian) => out.extend(values.map(|b| Self::from_be_bytes(*b))),
            // Values of a sensor with fewer bits stay as they are.
            (bits, _) => out.extend(packed(bytes, count, bits).map(|v| v as Self)),
        }
    }

    fn inverted(self, bits: usize) -> Self {
        most(bits) as Self - self
    }
}

impl Sample for f32 {
    fn parse(bytes: &[u8], count: usize, order: ByteOrder, plan: &Plan, out: &mut Vec<Self>) {
        let (kind, bits) = (plan.kind, plan.bits);
        if (kind, bits, order) == (Kind::Float, 32, ByteOrder::LittleEndian) {
            out.extend(bytes.as_chunks().0.iter().take(count).map(|b| Self::from_le_bytes(*b)));
            return;
        }
        let signed = |v: u64| (v << (64 - bits)) as i64 >> (64 - bits);
        if !bits.is_multiple_of(8) || kind != Kind::Float && bits == 24 {
            let values = packed(bytes, count, bits);
            match kind {
                Kind::Signed => out.extend(values.map(|v| signed(v.into()) as Self)),
                _ => out.extend(values.map(|v| v as Self)),
            }
            return;
        }
        out.extend(bytes.chunks_exact(bits / 8).take(count).map(|bytes| {
            let all = match order {
                ByteOrder::LittleEndian => bytes.iter().rev().fold(0_u64, |all, b| all << 8 | u64::from(*b)),
                ByteOrder::BigEndian => bytes.iter().fold(0_u64, |all, b| all << 8 | u64::from(*b)),
            };
            match (kind, bits) {
                (Kind::Float, 16) => half(all as u16),
                (Kind::Float, 24) => float_24(all as u32),
                (Kind::Float, 32) => Self::from_bits(all as u32),
                (Kind::Float, _) => f64::from_bits(all) as Self,
                (Kind::Signed, _) => signed(all) as Self,
                (Kind::Unsigned, _) => all as Self,
            }
        }));
    }

    /// Floats, signed integers and wider integers are measurements, which have no white: OpenCV and GDAL leave them.
    fn inverted(self, _: usize) -> Self {
        self
    }
}

fn collect<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
) -> Result<FileImage, Fault> {
    // The no-data value of an image with a palette is an index, so it is compared before the conversion to colours.
    let palette = matches!(plan.colour, Colour::Palette(_));
    let no_data = plan.no_data.filter(|_| !palette);
    let mut rows = Rows::<T>::new(request, plan.size, plan.layout, no_data)?;
    let plain = plan.plain();
    if plain {
        let bytes = plan.row_bytes(plan.size.width) as u64;
        request.plausible(plan.size, bytes.saturating_mul(plan.size.height as u64), 1)?;
    }
    let mut hidden = Vec::new();
    for band in 0..plan.down() {
        if plain {
            read_plain(decoder, plan, band, &mut rows)?;
            continue;
        }
        let values = read_band::<T>(decoder, request, plan, band)?;
        if palette && let Some(no_data) = plan.no_data {
            hidden.extend(values.iter().map(|v| 255 * u8::from(f64::from(v.to_f32()) != no_data)));
        }
        rows.push(&converted(values, &plan.colour))?;
    }
    let mut decoded = rows.finish()?;
    if hidden.contains(&0) {
        decoded.shown = Some(Image::from_vec(hidden, plan.size, 1).map_err(|e| e.to_string())?);
    }
    Ok(decoded)
}

/// Bytes of plain values that are read and converted at a time; they stay in the cache of a core.
const AT_ONCE: usize = 1 << 16;

/// Reads a strip of plain values, a few rows at a time.
fn read_plain<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    plan: &Plan,
    strip: usize,
    rows: &mut Rows<T>,
) -> Result<(), Fault> {
    let row_bytes = plan.row_bytes(plan.size.width);
    let at_once = (AT_ONCE / row_bytes).max(1);
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
        T::parse(&bytes, count * plan.size.width * plan.values, plan.order, plan, &mut values);
        rows.push(&values)?;
    }
    Ok(())
}

/// The values of one cell, of which `width` by `rows` pixels lie in the image.
fn read_cell<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
    cell: usize,
    [width, rows]: [usize; 2],
) -> Result<Vec<T>, Fault> {
    let count = width * plan.values;
    let bytes = (count * rows).checked_mul(size_of::<T>() + plan.bits.div_ceil(8));
    request.affordable(plan.size, bytes)?;
    let Some((bytes, order)) = cell::read(decoder, plan, cell, width, rows)? else {
        // A cell without bytes holds no data.
        let mut values = zeros(count * rows)?;
        values.fill(plan.no_data.and_then(held).unwrap_or_default());
        return Ok(values);
    };
    let mut values = crate::image::rows::reserve(count * rows)?;
    for row in bytes.chunks_exact(plan.row_bytes(width)) {
        T::parse(row, count, order, plan, &mut values);
    }
    // Planes behind the first are other channels, such as alpha.
    if plan.colour == Colour::WhiteIsZero && (plan.planes == 1 || cell < plan.down() * plan.across()) {
        let greys = values.iter_mut().step_by(plan.values);
        greys.for_each(|v| *v = v.inverted(plan.bits));
    }
    Ok(values)
}

/// The pixels of a row of cells, put together from all its cells and planes.
fn read_band<T: Sample>(
    decoder: &mut Decoder<impl Source>,
    request: &Request<'_>,
    plan: &Plan,
    band: usize,
) -> Result<Vec<T>, Fault> {
    let (across, count, pixel) = (plan.across(), plan.rows(band), plan.values * plan.planes);
    if plan.planes == 1 && across == 1 {
        return read_cell(decoder, request, plan, band, [plan.size.width, count]);
    }
    let row_len = plan.size.width * pixel;
    let len = row_len.checked_mul(count);
    request.affordable(plan.size, len.and_then(|n| n.checked_mul(size_of::<T>())))?;
    let mut out = zeros(len.unwrap_or(usize::MAX))?;
    for plane in 0..plan.planes {
        for column in 0..across {
            let x = column * plan.cell.width;
            let width = plan.cell.width.min(plan.size.width - x);
            let index = (plane * plan.down() + band) * across + column;
            let cell = read_cell::<T>(decoder, request, plan, index, [width, count])?;
            for (out, cell) in out.chunks_exact_mut(row_len).zip(cell.chunks_exact(width * plan.values)) {
                let place = &mut out[x * pixel..(x + width) * pixel];
                match plan.planes {
                    1 => place.copy_from_slice(cell),
                    _ => place.chunks_exact_mut(pixel).zip(cell).for_each(|(p, v)| p[plane] = *v),
                }
            }
        }
    }
    Ok(out)
}

/// Converts palettes, CMYK, YCbCr and Lab to RGB.
fn converted<T: Pixel>(mut values: Vec<T>, colour: &Colour) -> Vec<T> {
    match colour {
        Colour::AsIs | Colour::WhiteIsZero => {}
        Colour::Palette(colours) => {
            let colour = |v: T| colours.get(v.to_f32() as usize).copied().unwrap_or_default();
            values = values.iter().flat_map(|v| colour(*v).map(|c| T::from_f32(c.into()))).collect();
        }
        Colour::Cmyk => {
            let rgb = |p: &[T]| {
                let [c, m, y, k] = [p[0], p[1], p[2], p[3]].map(|v| T::WHITE - v.to_f32());
                [c, m, y].map(|v| T::from_f32(v * k / T::WHITE))
            };
            values = values.chunks_exact(4).flat_map(rgb).collect();
        }
        // The equations of JFIF: full range, not that of video.
        Colour::YCbCr => {
            for p in values.chunks_exact_mut(3) {
                let [y, b, r] = [p[0].to_f32(), p[1].to_f32() - 128.0, p[2].to_f32() - 128.0];
                p[0] = T::from_f32(y + 1.402 * r);
                p[1] = T::from_f32(y - 0.344_136 * b - 0.714_136 * r);
                p[2] = T::from_f32(y + 1.772 * b);
            }
        }
        Colour::Lab => {
            for p in values.chunks_exact_mut(3) {
                // a and b are signed.
                let signed = |v: T| f64::from(v.to_f32() as u8 as i8);
                let rgb = rgb_of_lab(f64::from(p[0].to_f32()) * 100.0 / 255.0, signed(p[1]), signed(p[2]));
                p.iter_mut().zip(rgb).for_each(|(to, v)| *to = T::from_f32(v));
            }
        }
    }
    values
}

/// CIE L*a*b* (D50) as sRGB, 0 to 255: the inverse of CIE 15, XYZ adapted to D65 after Bradford, IEC 61966-2-1.
fn rgb_of_lab(l: f64, a: f64, b: f64) -> [f32; 3] {
    let fy = (l + 16.0) / 116.0;
    let linear = |f: f64| if f > 6.0 / 29.0 { f * f * f } else { 108.0 / 841.0 * (f - 4.0 / 29.0) };
    let [x, y, z] = [0.9642 * linear(fy + a / 500.0), linear(fy), 0.8249 * linear(fy - b / 200.0)];
    let rows = [
        [3.134_136, -1.617_386, -0.490_662],
        [-0.978_795, 1.916_254, 0.033_443],
        [0.071_955, -0.228_977, 1.405_386],
    ];
    rows.map(|[r, g, b]| {
        let v = (r * x + g * y + b * z).clamp(0.0, 1.0);
        let v = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * libm::pow(v, 1.0 / 2.4) - 0.055 };
        (255.0 * v) as f32
    })
}
