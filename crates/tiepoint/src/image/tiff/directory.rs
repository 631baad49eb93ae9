//! What the directory of a TIFF says about its image.

use super::bands;
use super::cell::Coding;
use crate::files::Fault;
use crate::image::{
    Layout, Size, foreign, no_data, orientation,
    rows::{Request, Source},
};
use ::tiff::{
    decoder::{ChunkType, Decoder},
    tags::{ByteOrder, Tag, Type, ValueBuffer},
};

/// The type of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// How samples are converted to pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    AsIs,
    /// The least value is white.
    WhiteIsZero,
    /// Red, green and blue of every index, of 8 bits, or of 16 where indices have more than 8.
    Palette(Vec<[u16; 3]>),
    Cmyk,
    YCbCr,
    Lab,
}

/// What the directory says about the image.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) size: Size,
    /// Width and height of a strip or tile.
    pub(super) cell: Size,
    pub(super) tiled: bool,
    /// Values of a pixel in one cell: all of them, or one where every channel has its own plane.
    pub(super) values: usize,
    pub(super) planes: usize,
    /// Bits of a value.
    pub(super) bits: usize,
    pub(super) kind: Kind,
    pub(super) colour: Colour,
    pub(super) coding: Coding,
    pub(super) predictor: u16,
    /// Whether the bits of a byte are stored lowest first.
    pub(super) reversed: bool,
    pub(super) order: ByteOrder,
    /// Offset and length of each cell in the file.
    pub(super) places: Vec<(u64, u64)>,
    pub(super) orientation: u8,
    /// The layout of the converted pixels.
    pub(super) layout: Layout,
    pub(super) no_data: Option<f64>,
    /// What GDAL says of the bands ([`bands::kept`]).
    pub(super) bands: Option<String>,
}

/// Values of `NewSubfileType`: a reduced copy of another image, and the mask of another image.
pub(super) const REDUCED: u16 = 1;
pub(super) const MASK: u16 = 4;

/// `DNGVersion` and `SubIFDs`, and the tags that place an image on a map or the ground.
const DNG: u16 = 50706;
const SUB_DIRECTORIES: u16 = 330;
const PLACE: [u16; 4] = [33550, 33922, 34264, 50844];

impl Plan {
    pub(super) fn new(decoder: &mut Decoder<impl Source>, request: &Request<'_>) -> Result<Self, Fault> {
        let (width, height) = decoder.dimensions()?;
        let size = Size::new(width as usize, height as usize);
        request.affordable(size, Some(size.area()))?;
        let mut tag = |tag, default: u16| decoder.find_tag_unsigned::<u16>(tag).map(|v| v.unwrap_or(default));
        let planar = tag(Tag::PlanarConfiguration, 1)? == 2;
        let compression = tag(Tag::Compression, 1)?;
        let predictor = tag(Tag::Predictor, 1)?;
        let stored = usize::from(tag(Tag::SamplesPerPixel, 1)?);
        let photometric = tag(Tag::PhotometricInterpretation, 1)?;
        let reversed = tag(Tag::FillOrder, 1)? == 2;
        let turned = orientation::of_number(tag(Tag::Orientation, 1)?.into());
        let (kind, bits) = samples(decoder)?;
        let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?.unwrap_or_default();
        let coding = Coding::of(compression)?;
        let (colours, colour) = match photometric {
            0 => (1, Colour::WhiteIsZero),
            1 | 4 => (1, Colour::AsIs),
            2 => (3, Colour::AsIs),
            3 => (1, Colour::Palette(palette(decoder, bits)?)),
            5 => (4, Colour::Cmyk),
            6 => (3, Colour::YCbCr),
            8 => (3, Colour::Lab),
            other => return Err(format!("TIFF colours of kind {other} are not read; convert them: tiff2rgba IN OUT.tif, or gdal_translate IN OUT.tif").into()),
        };
        let converted = !matches!(colour, Colour::AsIs | Colour::WhiteIsZero);
        if stored < colours
            || converted && (stored > colours || planar && stored > 1 && colour != Colour::Cmyk)
        {
            let planes = if planar { ", in planes," } else { "" };
            return Err(format!("TIFF with {stored} values a pixel{planes} and photometric interpretation {photometric} is not read; convert it: gdal_translate IN OUT.tif").into());
        }
        let sound = match colour {
            Colour::Palette(_) => bits <= 16 && kind == Kind::Unsigned,
            Colour::Cmyk => matches!(bits, 8 | 16) && kind == Kind::Unsigned,
            Colour::YCbCr | Colour::Lab => bits == 8,
            Colour::AsIs | Colour::WhiteIsZero => true,
        };
        if !sound {
            return Err(format!("TIFF colours of kind {photometric} with {bits} bits a value are not read; convert them: gdal_translate IN OUT.tif").into());
        }
        let mut coarse = || decoder.find_tag_unsigned_vec::<u16>(Tag::ChromaSubsampling);
        if colour == Colour::YCbCr && coding != Coding::Jpeg && coarse()?.as_deref() != Some(&[1, 1]) {
            return Err(
                "TIFF with subsampled colour outside of JPEG is not read; convert it: tiff2rgba IN OUT.tif"
                    .into(),
            );
        }
        if coding == Coding::Fax && reversed {
            return Err(
                "TIFF with fax whose bits are reversed is not read; convert it: tiffcp -f msb2lsb IN OUT.tif"
                    .into(),
            );
        }
        let layout = match colour {
            Colour::AsIs | Colour::WhiteIsZero => {
                let alpha = extra.iter().position(|kind| matches!(kind, 1 | 2)).map(|i| colours + i);
                let alpha = alpha.filter(|alpha| *alpha < stored);
                Layout { channels: stored, first: 0, colours, alpha }
            }
            Colour::Palette(_) | Colour::Cmyk | Colour::YCbCr | Colour::Lab => Layout::usual(3),
        };
        let tiled = decoder.get_chunk_type() == ChunkType::Tile;
        let (width, height) = decoder.chunk_dimensions();
        let cell = Size::new(width as usize, height as usize);
        // The decoder allocates whole rows of a tile, however little of them is in the image.
        if tiled && cell.width > size.width.max(1 << 16) {
            return Err(format!("tiles of {cell} in an image of {size}: too wide to be true").into());
        }
        let on_a_map = PLACE.into_iter().map(|tag| decoder.find_tag(Tag::from_u16_exhaustive(tag)));
        let on_a_map = on_a_map.collect::<Result<Vec<_>, _>>()?.iter().any(Option::is_some);
        let mut words = |tag| {
            text(decoder, tag).map(|found| found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        // A text that is not a number is ignored; GDAL also reads a comma before fractions.
        let told =
            words(no_data::TAG)?.and_then(|text| text.trim_matches(' ').replace(',', ".").parse().ok());
        let no_data = request.no_data.or(told);
        let keeps_values = matches!(bits, 8 | 16 | 32 | 64) && matches!(colour, Colour::AsIs);
        let bands = words(bands::TAG)?.filter(|_| keeps_values).and_then(|text| bands::kept(&text));
        let mut plan = Self {
            size,
            cell,
            tiled,
            values: if planar { 1 } else { stored },
            planes: if planar { stored } else { 1 },
            bits,
            kind,
            colour,
            coding,
            predictor,
            reversed,
            order: decoder.byte_order(),
            places: places(decoder, tiled)?,
            orientation: if on_a_map { 1 } else { turned },
            layout: layout.with_band(request.options.band),
            no_data,
            bands,
        };
        plan.measure()?;
        Ok(plan)
    }

    /// Sets the lengths of cells for which the file gives only an offset. A cell without offset and length is omitted.
    fn measure(&mut self) -> Result<(), Fault> {
        for cell in 0..self.places.len() {
            if let (1.., 0) = self.places[cell] {
                if self.coding != Coding::None {
                    return Err(format!(
                        "strip or tile {cell} of the TIFF has a place in the file and no length"
                    )
                    .into());
                }
                let (width, rows) = match self.tiled {
                    true => (self.cell.width, self.cell.height),
                    false => (self.size.width, self.rows(cell % self.down())),
                };
                self.places[cell].1 = (self.row_bytes(width) as u64).saturating_mul(rows as u64);
            }
        }
        Ok(())
    }

    pub(super) fn across(&self) -> usize {
        self.size.width.div_ceil(self.cell.width)
    }

    pub(super) fn down(&self) -> usize {
        self.size.height.div_ceil(self.cell.height)
    }

    /// Rows of the image in row `band` of cells.
    pub(super) fn rows(&self, band: usize) -> usize {
        self.cell.height.min(self.size.height - band * self.cell.height)
    }

    /// Bytes of a row of `width` pixels in a cell.
    pub(super) fn row_bytes(&self, width: usize) -> usize {
        (width * self.values * self.bits).div_ceil(8)
    }

    /// Whether the strips hold nothing but pixels as they are wanted, so that no cell has to be decoded.
    pub(super) fn plain(&self) -> bool {
        let whole = matches!((self.kind, self.bits), (Kind::Unsigned, 8 | 16) | (Kind::Float, 32));
        whole
            && !self.tiled
            && self.planes == 1
            && self.coding == Coding::None
            && self.predictor == 1
            && self.colour == Colour::AsIs
            && !self.reversed
            && self.places.iter().all(|(_, len)| *len > 0)
    }

    /// Fails when a cell has too few bytes in the file for `width` by `rows` pixels.
    pub(super) fn plausible(&self, cell: usize, width: usize, rows: usize) -> Result<(), Fault> {
        let (_, len) = self.places[cell];
        let bytes = (self.row_bytes(width) as u64).saturating_mul(rows as u64);
        if bytes / self.coding.ratio(self.size.width as u64) > len.saturating_add(64) {
            return Err(format!(
                "strip or tile {cell} of the TIFF has {len} bytes, too few for its {width}x{rows} pixels"
            )
            .into());
        }
        Ok(())
    }
}

/// The type of samples, and the bits of one.
pub(super) fn samples(decoder: &mut Decoder<impl Source>) -> Result<(Kind, usize), Fault> {
    let mut first = |tag| {
        let values = decoder.find_tag_unsigned_vec::<u16>(tag);
        values.map(|values| values.and_then(|values| values.first().copied()).unwrap_or(1))
    };
    let bits = usize::from(first(Tag::BitsPerSample)?);
    let kind = match (first(Tag::SampleFormat)?, bits) {
        (1 | 4, 1..=32 | 64) => Kind::Unsigned,
        (2, 1..=32 | 64) => Kind::Signed,
        (3, 16 | 24 | 32 | 64) => Kind::Float,
        (5 | 6, _) => return Err("TIFF samples are complex numbers, which are not read; take their magnitude: gdal_calc.py -A IN --calc='abs(A)' --outfile OUT.tif".into()),
        (format, bits) => return Err(format!("TIFF samples of {bits} bits in format {format} are not read; convert them: gdal_translate -ot Float32 IN OUT.tif").into()),
    };
    Ok((kind, bits))
}

/// Goes to the first image in full size. Raw photographs, whose picture is in another directory, are refused.
pub(super) fn find_image(decoder: &mut Decoder<impl Source>) -> Result<(), Fault> {
    let mut has = |tag| decoder.find_tag(Tag::from_u16_exhaustive(tag)).map(|found| found.is_some());
    let (dng, inner) = (has(DNG)?, has(SUB_DIRECTORIES)?);
    let reduced = |kind: u16| kind & REDUCED != 0;
    if dng || inner && reduced(subfile(decoder)?) {
        return Err(foreign::raw().into());
    }
    while reduced(subfile(decoder)?) {
        if !decoder.more_images() {
            return Err("the TIFF holds a thumbnail and no image in full size".into());
        }
        decoder.next_image()?;
    }
    Ok(())
}

/// The bytes of a text tag without trailing zeros; it need not end with a zero nor be UTF-8.
pub(super) fn text(decoder: &mut Decoder<impl Source>, tag: u16) -> Result<Option<Vec<u8>>, Fault> {
    let mut found = ValueBuffer::empty(Type::ASCII);
    let there = decoder.image_ifd().find_tag_buf(Tag::from_u16_exhaustive(tag), &mut found)?;
    let bytes = found.as_bytes();
    let len = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    Ok(there.map(|_| bytes[..len].to_vec()))
}

/// The `NewSubfileType` of the directory.
pub(super) fn subfile(decoder: &mut Decoder<impl Source>) -> Result<u16, Fault> {
    Ok(decoder.find_tag_unsigned(Tag::NewSubfileType)?.unwrap_or(0))
}

/// Offset and length of each strip or tile in the file.
fn places(decoder: &mut Decoder<impl Source>, tiled: bool) -> Result<Vec<(u64, u64)>, Fault> {
    let (offsets, lengths) = match tiled {
        true => (Tag::TileOffsets, Tag::TileByteCounts),
        false => (Tag::StripOffsets, Tag::StripByteCounts),
    };
    let offsets = decoder.get_tag_u64_vec(offsets)?;
    let lengths = decoder.get_tag_u64_vec(lengths)?;
    Ok(offsets.into_iter().zip(lengths).collect())
}

/// The colours of all indices of `bits` bits.
fn palette(decoder: &mut Decoder<impl Source>, bits: usize) -> Result<Vec<[u16; 3]>, Fault> {
    let map = decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap)?.unwrap_or_default();
    let count = 1_usize << bits.min(16);
    if map.len() != 3 * count {
        return Err(format!("damaged TIFF: a palette of {} values for {bits} bits", map.len()).into());
    }
    // Some old programs write 8 of the 16 bits only.
    let value: fn(u16) -> u16 = match (map.iter().all(|v| *v < 256), bits > 8) {
        (false, false) => |v| v >> 8,
        (true, true) => |v| v * 257,
        _ => |v| v,
    };
    Ok((0..count).map(|i| [0, 1, 2].map(|c| value(map[c * count + i]))).collect())
}
