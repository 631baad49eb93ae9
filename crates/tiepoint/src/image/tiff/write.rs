//! Uncompressed TIFF in strips, BigTIFF where 32-bit offsets would not do.

use super::geo::Georeference;
use crate::image::{AnyView, ImageView, Pixel};
use std::io::{self, Write};

/// Bytes that a strip aims at.
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

/// Writes every pixel type as it is, and where the image lies on a map.
pub(in crate::image) fn write(
    out: impl Write,
    view: &AnyView<'_>,
    place: Option<&Georeference>,
) -> io::Result<()> {
    let place = place.map_or(&[][..], Georeference::fields);
    match view {
        AnyView::U8(v) => write_rows(out, *v, (1, place), |row, bytes| bytes.extend_from_slice(row)),
        AnyView::U16(v) => {
            write_rows(out, *v, (1, place), |row, b| b.extend(row.iter().flat_map(|v| v.to_le_bytes())))
        }
        AnyView::F32(v) => {
            write_rows(out, *v, (3, place), |row, b| b.extend(row.iter().flat_map(|v| v.to_le_bytes())))
        }
    }
}

/// Writes floats, each as `value` makes it.
pub(in crate::image) fn write_floats(
    out: impl Write,
    view: ImageView<'_, f32>,
    value: fn(f32) -> f32,
) -> io::Result<()> {
    write_rows(out, view, (3, &[]), |row, bytes| {
        bytes.extend(row.iter().flat_map(|v| value(*v).to_le_bytes()));
    })
}

/// One entry of the directory; the values stand in the file after it when they do not fit inside.
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
    mut out: impl Write,
    view: ImageView<'_, T>,
    (format, place): (u64, &[Field]),
    push: impl Fn(&[T], &mut Vec<u8>),
) -> io::Result<()> {
    let size = view.size();
    let row_bytes = (size.width * view.channels() * size_of::<T>()) as u64;
    let image_bytes = row_bytes * size.height as u64;
    let rows_per_strip = (STRIP / (row_bytes as usize).max(1)).clamp(1, size.height);
    let strips = size.height.div_ceil(rows_per_strip);
    // Room for the directory and the two tables of strips.
    let directory_bytes = 4096 + place.iter().map(Field::len).sum::<usize>() as u64;
    let big = image_bytes + 24 * strips as u64 + directory_bytes > u64::from(u32::MAX);
    let (mut head, start) = directory(view, (format, place), rows_per_strip, strips, row_bytes, big);
    head.resize(start as usize, 0);
    out.write_all(&head)?;
    let mut bytes = Vec::new();
    for y in 0..size.height {
        bytes.clear();
        push(view.row(y), &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Everything before the pixels, and where these begin.
fn directory<T: Pixel>(
    view: ImageView<'_, T>,
    (format, place): (u64, &[Field]),
    rows_per_strip: usize,
    strips: usize,
    row_bytes: u64,
    big: bool,
) -> (Vec<u8>, u64) {
    let (size, channels) = (view.size(), view.channels());
    let offset_kind = if big { FieldType::Long8 } else { FieldType::Long };
    let photometric = if channels >= 3 { 2 } else { 1 };
    let extra = channels - if channels >= 3 { 3 } else { 1 };
    let strip_bytes = |i: usize| row_bytes * rows_per_strip.min(size.height - i * rows_per_strip) as u64;
    let field = |tag, kind, values| Field { tag, kind, values };
    let mut fields = vec![
        field(256, FieldType::Long, vec![size.width as u64]),
        field(257, FieldType::Long, vec![size.height as u64]),
        field(258, FieldType::Short, vec![8 * size_of::<T>() as u64; channels]),
        field(259, FieldType::Short, vec![1]),
        field(262, FieldType::Short, vec![photometric]),
        field(273, offset_kind, vec![0; strips]),
        field(277, FieldType::Short, vec![channels as u64]),
        field(278, FieldType::Long, vec![rows_per_strip as u64]),
        field(279, offset_kind, (0..strips).map(strip_bytes).collect()),
        field(284, FieldType::Short, vec![1]),
    ];
    if extra > 0 {
        // The first is alpha, not multiplied into the colour; of others nothing is known.
        let kinds = (0..extra).map(|i| if i == 0 { 2 } else { 0 }).collect();
        fields.push(field(338, FieldType::Short, kinds));
    }
    fields.push(field(339, FieldType::Short, vec![format; channels]));
    // By ascending tag, as TIFF wants them.
    fields.extend(place.iter().cloned());

    let (header, count, entry, inside) = if big { (16, 8, 20, 8) } else { (8, 2, 12, 4) };
    let tables = header + count + entry * fields.len() + inside;
    let outside = |f: &Field| if f.len() > inside { f.len().next_multiple_of(8) } else { 0 };
    let start = ((tables + fields.iter().map(outside).sum::<usize>()).next_multiple_of(16)) as u64;
    for (i, offset) in fields[5].values.iter_mut().enumerate() {
        *offset = start + i as u64 * row_bytes * rows_per_strip as u64;
    }

    let mut head = b"II".to_vec();
    let number = |head: &mut Vec<u8>, v: u64, width: usize| head.extend(&v.to_le_bytes()[..width]);
    if big {
        for (v, width) in [(43, 2), (8, 2), (0, 2), (header as u64, 8)] {
            number(&mut head, v, width);
        }
    } else {
        number(&mut head, 42, 2);
        number(&mut head, header as u64, 4);
    }
    number(&mut head, fields.len() as u64, count);
    let mut values = Vec::new();
    for f in &fields {
        number(&mut head, u64::from(f.tag), 2);
        number(&mut head, f.kind as u64, 2);
        number(&mut head, f.values.len() as u64, inside);
        if f.len() > inside {
            number(&mut head, (tables + values.len()) as u64, inside);
            values.extend(f.bytes());
            values.resize(values.len().next_multiple_of(8), 0);
        } else {
            head.extend(f.bytes());
            head.resize(head.len() + inside - f.len(), 0);
        }
    }
    number(&mut head, 0, inside);
    head.extend(values);
    (head, start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Image, ReadOptions, Size, decode};

    #[test]
    fn big_tiff_is_read_back() {
        let size = Size::new(5, 7);
        let image = Image::from_vec((0..140_u16).map(|v| v * 467).collect(), size, 4).unwrap();
        for rows_per_strip in [1, 3, 7] {
            let strips = size.height.div_ceil(rows_per_strip);
            let (mut file, start) = directory(image.view(), (1, &[]), rows_per_strip, strips, 40, true);
            file.resize(start as usize, 0);
            file.extend(image.data().iter().flat_map(|v| v.to_le_bytes()));
            assert_eq!(file[..4], *b"II\x2b\0", "the sign of BigTIFF");
            let back = decode(&file, "big", &ReadOptions::default()).unwrap();
            assert_eq!(back, image.clone().into(), "{rows_per_strip} rows per strip");
        }
    }
}
