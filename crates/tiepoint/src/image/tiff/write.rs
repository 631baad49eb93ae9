//! TIFF in strips, compressed where that is asked for; BigTIFF where 32-bit offsets do not suffice.

use super::bands;
use super::geo::Georeference;
use crate::device::Cpu;
use crate::image::write::push_row;
use crate::image::{AnyView, Compression, Image, ImageView, Known, Layout, Pixel, Size, no_data};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{self, Write};

/// The size of a strip in bytes, at most, unless a single row is longer.
const STRIP: usize = 1 << 18;

/// Field types of TIFF 6.0 and BigTIFF, by their numbers in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Ascii = 2,
    Short = 3,
    Long = 4,
    Double = 12,
    Long8 = 16,
}

/// Why `view` cannot be written, if it cannot.
pub(in crate::image) fn check(view: &AnyView<'_>) -> Result<(), String> {
    match u16::try_from(view.channels()) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("TIFF holds up to 65535 channels, not {}", view.channels())),
    }
}

/// Writes the pixels in their own type, and what is `known` beside them.
pub(in crate::image) fn write(out: impl Write, view: &AnyView<'_>, known: &Known<'_>) -> io::Result<()> {
    match view {
        AnyView::U8(v) => write_rows(out, *v, 1, known, |row, bytes| bytes.extend_from_slice(row)),
        AnyView::U16(v) => write_rows(out, *v, 1, known, |row, b| push_row(row, b, u16::to_le_bytes)),
        AnyView::F32(v) => write_rows(out, *v, 3, known, |row, b| push_row(row, b, f32::to_le_bytes)),
    }
}

/// Writes `value` of every float.
pub(in crate::image) fn write_floats(
    out: impl Write,
    view: ImageView<'_, f32>,
    value: impl Fn(f32) -> f32 + Sync,
    known: &Known<'_>,
) -> io::Result<()> {
    write_rows(out, view, 3, known, |row, bytes| push_row(row, bytes, |v| value(v).to_le_bytes()))
}

/// Writes the mask of an image as GDAL keeps it in a file of its own: one mask for all bands.
pub(in crate::image) fn write_mask(out: impl Write, mask: &Image<u8>) -> io::Result<()> {
    // Says that the mask is for the whole image; GDAL ignores the file without this item.
    let text = "<GDALMetadata><Item name=\"INTERNAL_MASK_FLAGS_1\">2</Item></GDALMetadata>";
    let more = vec![ascii(bands::TAG, text)];
    rows_and_directory(out, mask.view(), [1, 1], &Known::default(), more, |row, bytes| {
        bytes.extend_from_slice(row);
    })
}

fn field(tag: u16, kind: FieldType, values: Vec<u64>) -> Field {
    Field { tag, kind, values }
}

fn ascii(tag: u16, text: &str) -> Field {
    field(tag, FieldType::Ascii, text.bytes().chain([0]).map(u64::from).collect())
}

/// One entry of the directory. Values that do not fit inside it stand behind the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) tag: u16,
    pub(super) kind: FieldType,
    /// Whole numbers, or the bits of doubles.
    pub(super) values: Vec<u64>,
}

impl Field {
    fn width(&self) -> usize {
        match self.kind {
            FieldType::Ascii => 1,
            FieldType::Short => 2,
            FieldType::Long => 4,
            FieldType::Double | FieldType::Long8 => 8,
        }
    }

    fn len(&self) -> usize {
        self.values.len() * self.width()
    }

    fn bytes(&self) -> impl Iterator<Item = u8> {
        self.values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(self.width()))
    }
}

fn write_rows<T: Pixel>(
    out: impl Write,
    view: ImageView<'_, T>,
    format: u64,
    known: &Known<'_>,
    push: impl Fn(&[T], &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let layout = known.layout.unwrap_or(Layout::usual(view.channels()));
    let photometric = if layout.colours == 3 { 2 } else { 1 };
    let mut more = known.place.map_or(&[][..], Georeference::fields).to_vec();
    // Rust writes NaN, GDAL nan.
    more.extend(known.no_data.map(|value| ascii(no_data::TAG, &value.to_string().to_lowercase())));
    more.extend(known.bands.map(|text| ascii(bands::TAG, text)));
    more.sort_by_key(|field| field.tag);
    rows_and_directory(out, view, [format, photometric], known, more, push)
}

fn rows_and_directory<T: Pixel>(
    mut out: impl Write,
    view: ImageView<'_, T>,
    [format, photometric]: [u64; 2],
    known: &Known<'_>,
    more: Vec<Field>,
    push: impl Fn(&[T], &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let (size, channels) = (view.size(), view.channels());
    let layout = known.layout.unwrap_or(Layout::usual(channels));
    let row_bytes = (size.width * channels * size_of::<T>()) as u64;
    let image_bytes = row_bytes * size.height as u64;
    let rows_per_strip = (STRIP / (row_bytes as usize).max(1)).clamp(1, size.height);
    let strips = size.height.div_ceil(rows_per_strip);
    // An upper bound for the directories, the fields of `more` and a mask that does not compress.
    let rest = 8192 + more.iter().map(Field::len).sum::<usize>() as u64 + size.area() as u64 / 4;
    let width = if image_bytes + 24 * strips as u64 + rest > u64::from(u32::MAX) {
        Width::Big
    } else {
        Width::Classic
    };
    let fill = |i: usize, strip: &mut Vec<u8>| {
        strip.clear();
        (i * rows_per_strip..size.height.min((i + 1) * rows_per_strip))
            .for_each(|y| push(view.row(y), strip));
    };
    let packed = |pack: fn(&[u8]) -> io::Result<Vec<u8>>| {
        let packed = |i| {
            let mut strip = Vec::new();
            fill(i, &mut strip);
            pack(&strip)
        };
        let one = Cpu::sequential();
        known.cpu.unwrap_or(&one).map(strips, packed).into_iter().collect::<io::Result<Vec<_>>>().map(Some)
    };
    let (code, packed) = match known.compression {
        Compression::None => (1, None),
        Compression::Deflate => (8, packed(deflated)?),
        Compression::Zstd => (50000, packed(|strip| Ok(compress_to_vec(strip, CompressionLevel::Fastest)))?),
    };
    let strip_bytes = |i: usize| match &packed {
        Some(packed) => packed[i].len() as u64,
        None => row_bytes * rows_per_strip.min(size.height - i * rows_per_strip) as u64,
    };
    let lengths: Vec<u64> = (0..strips).map(strip_bytes).collect();
    let bits = vec![8 * size_of::<T>() as u64; channels];
    let mut fields = entries(size, bits, [code, photometric, rows_per_strip as u64], width, &lengths);
    fields.push(field(284, FieldType::Short, vec![1]));
    let beside = layout.colours..channels;
    if !beside.is_empty() {
        // 2: alpha that is not multiplied into the colour. 0: not specified.
        let kinds = beside.map(|i| if layout.alpha == Some(i) { 2 } else { 0 }).collect();
        fields.push(field(338, FieldType::Short, kinds));
    }
    fields.push(field(339, FieldType::Short, vec![format; channels]));
    // TIFF requires ascending tags.
    fields.extend(more);

    let start = (width.head() + width.directory_len(&fields)).next_multiple_of(16) as u64;
    let mut behind = start;
    for (offset, length) in fields[5].values.iter_mut().zip(&lengths) {
        *offset = behind;
        behind += length;
    }
    let end = behind.next_multiple_of(16);
    let mut head = width.header();
    head.extend(width.directory(&fields, width.head() as u64, known.valid.map(|_| end)));
    head.resize(start as usize, 0);
    out.write_all(&head)?;
    let mut strip = Vec::new();
    for i in 0..strips {
        match &packed {
            Some(packed) => out.write_all(&packed[i])?,
            None => {
                fill(i, &mut strip);
                out.write_all(&strip)?;
            }
        }
    }
    let Some(mask) = known.valid else { return Ok(()) };
    out.write_all(&vec![0; (end - behind) as usize])?;
    let packed = deflated_bits(mask)?;
    let strip = entries(size, vec![1], [8, 4, size.height as u64], width, &[packed.len() as u64]);
    let mut fields = [vec![field(254, FieldType::Long, vec![4])], strip].concat();
    fields[6].values[0] = end + width.directory_len(&fields) as u64;
    out.write_all(&width.directory(&fields, end, None))?;
    out.write_all(&packed)
}

/// The entries of every directory: `bits` of each channel; the numbers of the coding and of the kind of colours, and the
/// rows of a strip; and the lengths of the strips, whose places are still 0.
fn entries(
    size: Size,
    bits: Vec<u64>,
    [code, photometric, rows]: [u64; 3],
    width: Width,
    lengths: &[u64],
) -> Vec<Field> {
    let channels = bits.len() as u64;
    vec![
        field(256, FieldType::Long, vec![size.width as u64]),
        field(257, FieldType::Long, vec![size.height as u64]),
        field(258, FieldType::Short, bits),
        field(259, FieldType::Short, vec![code]),
        field(262, FieldType::Short, vec![photometric]),
        field(273, width.offset(), vec![0; lengths.len()]),
        field(277, FieldType::Short, vec![channels]),
        field(278, FieldType::Long, vec![rows]),
        field(279, width.offset(), lengths.to_vec()),
    ]
}

fn deflated(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes)?;
    packed.finish()
}

/// A mask as one compressed strip: a bit a pixel, each row starting at a byte.
fn deflated_bits(mask: &Image<u8>) -> io::Result<Vec<u8>> {
    let mut bits = Vec::new();
    for y in 0..mask.size().height {
        let byte = |eight: &[u8]| {
            (0..8).fold(0, |byte, i| byte << 1 | u8::from(eight.get(i).is_some_and(|m| *m != 0)))
        };
        bits.extend(mask.row(y).chunks(8).map(byte));
    }
    deflated(&bits)
}

/// Whether offsets have 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Classic,
    Big,
}

impl Width {
    fn offset(self) -> FieldType {
        if self == Self::Big { FieldType::Long8 } else { FieldType::Long }
    }

    /// Bytes of the file's head, of a directory's count of entries, of an entry, and of the values inside an entry.
    fn sizes(self) -> [usize; 4] {
        if self == Self::Big { [16, 8, 20, 8] } else { [8, 2, 12, 4] }
    }

    fn head(self) -> usize {
        self.sizes()[0]
    }

    /// The head of the file; the first directory follows it.
    fn header(self) -> Vec<u8> {
        let head = self.head() as u8;
        match self {
            Self::Big => [&b"II\x2b\0\x08\0\0\0"[..], &[head, 0, 0, 0, 0, 0, 0, 0]].concat(),
            Self::Classic => [&b"II\x2a\0"[..], &[head, 0, 0, 0]].concat(),
        }
    }

    /// Bytes that a directory takes, with the values that do not fit into its entries.
    fn directory_len(self, fields: &[Field]) -> usize {
        let [_, count, entry, inside] = self.sizes();
        let outside = |f: &Field| if f.len() > inside { f.len().next_multiple_of(8) } else { 0 };
        count + entry * fields.len() + inside + fields.iter().map(outside).sum::<usize>()
    }

    /// The bytes of a directory that is written at offset `at`; `next` is the offset of the one after it.
    fn directory(self, fields: &[Field], at: u64, next: Option<u64>) -> Vec<u8> {
        let [_, count, entry, inside] = self.sizes();
        let tables = at as usize + count + entry * fields.len() + inside;
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, v: u64, width: usize| out.extend(&v.to_le_bytes()[..width]);
        number(&mut out, fields.len() as u64, count);
        let mut values = Vec::new();
        for f in fields {
            number(&mut out, u64::from(f.tag), 2);
            number(&mut out, f.kind as u64, 2);
            number(&mut out, f.values.len() as u64, inside);
            if f.len() > inside {
                number(&mut out, (tables + values.len()) as u64, inside);
                values.extend(f.bytes());
                values.resize(values.len().next_multiple_of(8), 0);
            } else {
                out.extend(f.bytes());
                out.resize(out.len() + inside - f.len(), 0);
            }
        }
        number(&mut out, next.unwrap_or(0), inside);
        out.extend(values);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ReadOptions, decode};

    #[test]
    fn big_tiff_is_read_back() {
        let size = Size::new(5, 7);
        let image = Image::from_vec((0..140_u16).map(|v| v * 467).collect(), size, 4).unwrap();
        let mut file = Vec::new();
        write(&mut file, &(&image).into(), &Known::default()).unwrap();
        let classic = decode(&file, "classic", &ReadOptions::default()).unwrap();
        assert_eq!(classic, image.clone().into());
        let fields = |width: Width, start: u64| {
            let mut fields = entries(size, vec![16; 4], [1, 2, 2], width, &[80, 80, 80, 40]);
            fields[5].values = (0..4).map(|i| start + 80 * i).collect();
            fields.push(field(338, FieldType::Short, vec![2]));
            fields
        };
        let width = Width::Big;
        let start = (width.head() + width.directory_len(&fields(width, 0))) as u64;
        let mut file = width.header();
        file.extend(width.directory(&fields(width, start), width.head() as u64, None));
        file.extend(image.data().iter().flat_map(|v| v.to_le_bytes()));
        assert_eq!(file[..4], *b"II\x2b\0", "the sign of BigTIFF");
        assert_eq!(decode(&file, "big", &ReadOptions::default()).unwrap(), image.into(), "in four strips");
    }
}
