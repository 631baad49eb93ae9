//! Comparison of pictures in tests. If two differ, both are written to files, with a third that shows where.

use super::{AnyImage, Image, Pixel, ReadOptions, read_grey, write};
use crate::by_pixel;
use crate::device::Cpu;
use std::fmt::{Debug, Display};
use std::path::{Path, PathBuf};

/// A pixel type of pictures in tests.
pub(crate) trait Value: Copy + Debug {
    fn number(self) -> f64;

    /// Whether the bits are the same; any two NaNs are, as IEEE 754 does not say which bits a NaN has.
    fn same(self, other: Self) -> bool;

    /// The picture as a file can hold it: integers become floats, except those of 8 and 16 bits.
    fn picture(image: &Image<Self>) -> AnyImage {
        like(image, image.data.iter().map(|v| v.number() as f32).collect()).into()
    }
}

impl<T: Pixel> Value for T {
    fn number(self) -> f64 {
        self.to_f32().into()
    }

    fn same(self, other: Self) -> bool {
        let [a, b] = [self, other].map(T::to_f32);
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    fn picture(image: &Image<Self>) -> AnyImage {
        image.clone().into()
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Value for $integer {
            fn number(self) -> f64 {
                self as f64
            }

            fn same(self, other: Self) -> bool {
                self == other
            }
        }
    )*};
}
integers!(i16, i32, u32, u64);

/// The values as an image of the same shape.
fn like<T, O: Pixel>(image: &Image<T>, data: Vec<O>) -> Image<O> {
    Image { data, size: image.size, channels: image.channels }
}

/// A little-endian TIFF: pixels, a directory of these entries (tag, type, count, value), and `tail`.
pub(crate) fn tiff(pixels: &[u8], entries: &[(u16, u16, u32, u32)], tail: &[u8]) -> Vec<u8> {
    let start = (8 + pixels.len()) as u32;
    let mut bytes = [b"II*\0", &start.to_le_bytes()[..], pixels].concat();
    bytes.extend((entries.len() as u16).to_le_bytes());
    for (tag, kind, count, value) in entries {
        bytes.extend([tag, kind].into_iter().flat_map(|n| n.to_le_bytes()));
        bytes.extend([count, value].into_iter().flat_map(|n| n.to_le_bytes()));
    }
    bytes.extend([0; 4]);
    bytes.extend(tail);
    bytes
}

/// A file or folder of the photographs with ground truth, in the folder that `TIEPOINT_DATA` names or in
/// `../shared/data` beside the workspace. Where it is absent, prints a line that says so and returns `None`.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = std::env::var_os("TIEPOINT_DATA").map_or_else(|| beside.into(), PathBuf::from);
    let path = root.join(name);
    if !path.exists() {
        println!("SKIPPED: {} is absent; the test runs without it", path.display());
        return None;
    }
    Some(path)
}

/// A photograph of 8 bits as grey; `None` where it is absent, as [`shared`].
pub(crate) fn photograph(name: &str) -> Option<Image<u8>> {
    let path = shared(name)?;
    match read_grey(&path, &ReadOptions::default(), &Cpu::sequential()).unwrap() {
        AnyImage::U8(image) => Some(image),
        AnyImage::U16(_) | AnyImage::F32(_) => panic!("{}: expected 8 bits", path.display()),
    }
}

/// Asserts that two pictures are the same, bit for bit. Where they are not, `found` and `expected` are
/// written, and `difference.png`: black where they agree, the greatest difference white.
pub(crate) fn assert_same<T: Value>(found: &Image<T>, expected: &Image<T>, what: impl Display) {
    let differing = || pairs(found, expected).enumerate().filter(|(_, (a, b))| !a.same(*b));
    let shapes = [shape(found), shape(expected)];
    let difference = if shapes[0] != shapes[1] {
        format!("{} in place of {}", shapes[0], shapes[1])
    } else if let Some((i, (a, b))) = differing().next() {
        let (row, n) = (found.size.width * found.channels, differing().count());
        format!("{a:?} in place of {b:?} at element {} of row {}, the first of {n}", i % row, i / row)
    } else {
        return;
    };
    let folder = folder(&what.to_string());
    let left = match leave(&folder, found, expected) {
        Ok(()) => format!("both pictures lie in {}", folder.display()),
        Err(e) => format!("the pictures could not be kept: {e}"),
    };
    panic!("{what}: {difference}; {left}");
}

/// As [`assert_same`], for pictures of any type of pixel, which must be the same.
pub(crate) fn assert_same_any(found: &AnyImage, expected: &AnyImage, what: impl Display) {
    let compared = by_pixel!((expected, found), (expected, found) => {
        assert_same(found, expected, &what);
        Ok(())
    });
    compared.unwrap_or_else(|e| panic!("{what}: {e}"));
}

fn pairs<T: Value>(a: &Image<T>, b: &Image<T>) -> impl Iterator<Item = (T, T)> {
    a.data.iter().copied().zip(b.data.iter().copied())
}

fn shape<T>(image: &Image<T>) -> String {
    format!("{} x {}", image.size, image.channels)
}

fn leave<T: Value>(folder: &Path, found: &Image<T>, expected: &Image<T>) -> crate::Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).map_err(|e| crate::Error::io(folder, e))?;
    for (name, image) in [("found", found), ("expected", expected)] {
        let picture = T::picture(image);
        let extension = if matches!(picture, AnyImage::F32(_)) { "tif" } else { "png" };
        write(folder.join(name).with_extension(extension), &picture)?;
    }
    if shape(found) == shape(expected) {
        write(folder.join("difference.png"), &difference(found, expected))?;
    }
    Ok(())
}

/// A picture of the differences: black where there is none, otherwise from dark grey to white.
fn difference<T: Value>(found: &Image<T>, expected: &Image<T>) -> Image<u8> {
    let apart = |a: T, b: T| (a.number() - b.number()).abs();
    let finite = pairs(found, expected).map(|(a, b)| apart(a, b)).filter(|d| d.is_finite());
    let greatest = finite.fold(f64::MIN_POSITIVE, f64::max);
    let shade = |(a, b): (T, T)| match apart(a, b) {
        _ if a.same(b) => 0,
        d if d.is_finite() => 64 + (191.0 * d / greatest) as u8,
        _ => 255,
    };
    like(found, pairs(found, expected).map(shade).collect())
}

/// `target/differing/NAME`, where NAME is the test's, or `what` was compared if the thread has no name of a test.
fn folder(what: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let target = program.ancestors().nth(3).unwrap_or(Path::new("target"));
    let thread = std::thread::current();
    let name = thread.name().filter(|name| name.contains("::")).unwrap_or(what).replace("::", ".");
    let plain = |c: char| if c.is_alphanumeric() || "._".contains(c) { c } else { '-' };
    target.join("differing").join(name.chars().map(plain).take(120).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ReadOptions, Size, read};

    /// The panic message for two different pictures, the folder that it names, and the files in it.
    fn fails<T: Value>(found: &Image<T>, expected: &Image<T>) -> (String, PathBuf, Vec<String>)
    where
        Image<T>: std::panic::RefUnwindSafe,
    {
        let panic =
            std::panic::catch_unwind(|| assert_same(found, expected, "what was compared")).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap().clone();
        let folder = PathBuf::from(message.split_once("lie in ").unwrap().1);
        let files = std::fs::read_dir(&folder).unwrap();
        let mut names: Vec<_> = files.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        (message, folder, names)
    }

    #[test]
    fn both_pictures_are_left() {
        let size = Size::new(7, 5);
        let expected = Image::from_fn(size, |x, y| (x * 20 + y) as u8);
        let mut found = expected.clone();
        found.row_mut(3)[2] += 1;
        found.row_mut(4)[6] += 10;
        let (message, folder, names) = fails(&found, &expected);
        assert!(message.contains("44 in place of 43 at element 2 of row 3, the first of 2"), "{message}");
        assert!(folder.parent().unwrap().ends_with("differing"), "{message}");
        assert_eq!(names, ["difference.png", "expected.png", "found.png"]);
        let read = |name: &str| read(folder.join(name), &ReadOptions::default()).unwrap();
        assert_eq!(read("found.png"), found.clone().into());
        assert_eq!(read("expected.png"), expected.clone().into());
        let mut difference = Image::new(size);
        (difference.row_mut(3)[2], difference.row_mut(4)[6]) = (64 + 19, 255_u8);
        assert_eq!(read("difference.png"), difference.into());
        assert_same(&found, &found, "the same");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn floats_keep_their_values_and_shapes_are_compared() {
        let expected = Image::filled(Size::new(3, 2), 1, -0.0_f32);
        let mut found = expected.clone();
        found.row_mut(1)[1] = 0.0;
        found.row_mut(1)[2] = f32::NAN;
        let (_, folder, names) = fails(&found, &expected);
        assert_eq!(names, ["difference.png", "expected.tif", "found.tif"]);
        let AnyImage::F32(kept) = read(folder.join("found.tif"), &ReadOptions::default()).unwrap() else {
            panic!("not float")
        };
        assert_same(&kept, &found, "signs of zero and NaN");
        let difference = read(folder.join("difference.png"), &ReadOptions::default()).unwrap();
        assert_eq!(
            difference,
            Image::from_vec(vec![0, 0, 0, 0, 64, 255_u8], found.size(), 1).unwrap().into()
        );
        let other = Image::filled(Size::new(2, 3), 1, 0_i32);
        let (message, folder, names) = fails(&Image::filled(Size::new(3, 2), 1, 0), &other);
        assert!(message.contains("3x2 x 1 in place of 2x3 x 1"), "{message}");
        assert_eq!(names, ["expected.tif", "found.tif"]);
        let _ = std::fs::remove_dir_all(folder);
    }
}
