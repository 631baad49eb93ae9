//! The orientation of a picture in its file, by EXIF: 1 to 8, where 1 is upright.

use super::{AnyImage, Image, ImageView, Pixel, Size};
use crate::{Result, by_pixel};
use exif::{Exif, In, Reader, Tag};
use std::io::Cursor;

/// The orientation in the EXIF data of a JPEG; 1 where it is missing or invalid.
pub(super) fn of_jpeg(bytes: &[u8]) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_from_container(&mut Cursor::new(bytes)))
}

/// As [`of_jpeg`], from EXIF data alone.
pub(super) fn of_exif(bytes: Vec<u8>) -> u8 {
    let mut reader = Reader::new();
    read(reader.continue_on_error(true).read_raw(bytes))
}

fn read(found: std::result::Result<Exif, exif::Error>) -> u8 {
    let found = found.or_else(|e| e.distill_partial_result(|_| {})).ok();
    let value = found.and_then(|exif| exif.get_field(Tag::Orientation, In::PRIMARY)?.value.get_uint(0));
    value.map_or(1, of_number)
}

/// The orientation with this number; 1 for a number that is not 1 to 8.
pub(super) fn of_number(value: u32) -> u8 {
    u8::try_from(value).ok().filter(|value| (1..=8).contains(value)).unwrap_or(1)
}

/// The image turned upright from its EXIF orientation in the file (1 to 8).
pub(super) fn upright(image: AnyImage, orientation: u8) -> Result<AnyImage> {
    match orientation {
        2..=8 => Ok(by_pixel!(map &image, i => turned(i.view(), orientation)?)),
        _ => Ok(image),
    }
}

/// Side of the squares in which pixels are moved, so that rows and columns both stay in the cache.
const SQUARE: usize = 64;

/// See [`upright`].
pub(super) fn turned<T: Pixel>(view: ImageView<'_, T>, orientation: u8) -> Result<Image<T>> {
    let (from, n) = (view.size(), view.channels());
    let lying = matches!(orientation, 5..=8);
    let size = if lying { Size::new(from.height, from.width) } else { from };
    let source = |x: usize, y: usize| {
        let (column, row) = if lying { (y, x) } else { (x, y) };
        let column = if matches!(orientation, 2 | 3 | 7 | 8) { from.width - 1 - column } else { column };
        (column, if matches!(orientation, 3 | 4 | 6 | 7) { from.height - 1 - row } else { row })
    };
    let mut out = Image::try_filled(size, n, T::default())?;
    for top in (0..size.height).step_by(SQUARE) {
        for left in (0..size.width).step_by(SQUARE) {
            for y in top..size.height.min(top + SQUARE) {
                let columns = left..size.width.min(left + SQUARE);
                let row = out.row_mut(y)[n * columns.start..n * columns.end].chunks_exact_mut(n);
                for (to, x) in row.zip(columns) {
                    let (column, row) = source(x, y);
                    to.copy_from_slice(&view.row(row)[n * column..n * (column + 1)]);
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The eight orientations of the EXIF specification.
    #[test]
    fn pictures_are_turned_as_exif_says() {
        let stored = Image::from_vec((0..6_u8).collect(), Size::new(3, 2), 1).unwrap();
        let expected: [(u8, [usize; 2], [u8; 6]); 8] = [
            (1, [3, 2], [0, 1, 2, 3, 4, 5]),
            (2, [3, 2], [2, 1, 0, 5, 4, 3]),
            (3, [3, 2], [5, 4, 3, 2, 1, 0]),
            (4, [3, 2], [3, 4, 5, 0, 1, 2]),
            (5, [2, 3], [0, 3, 1, 4, 2, 5]),
            (6, [2, 3], [3, 0, 4, 1, 5, 2]),
            (7, [2, 3], [5, 2, 4, 1, 3, 0]),
            (8, [2, 3], [2, 5, 1, 4, 0, 3]),
        ];
        for (orientation, [width, height], data) in expected {
            let upright = upright(stored.clone().into(), orientation).unwrap();
            let expected = Image::from_vec(data.to_vec(), Size::new(width, height), 1).unwrap();
            assert_eq!(upright, expected.into(), "orientation {orientation}");
        }
        let large = Image::from_fn(Size::new(150, 70), |x, y| (x * 300 + y) as u16);
        let there = turned(large.view(), 6).unwrap();
        assert_eq!(turned(there.view(), 8).unwrap(), large, "there and back, in several squares");
    }
}
