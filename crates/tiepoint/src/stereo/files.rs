//! Disparity maps as files.
//!
//! | file | a disparity d | none |
//! |---|---|---|
//! | `.pfm` | d as a float | +∞ |
//! | `.tif`, `.exr`, `.npy` | d as a float | NaN |
//! | `.png` | 16 bits: 256 · d to nearest, ties to even, at least 1 | 0 |
//!
//! PNG follows the convention of the KITTI benchmark (Menze and Geiger, CVPR 2015, its development kit), which also
//! writes a disparity below 1/256 as 1. It can hold only 0 to 255.998; a map with other disparities is refused, not
//! clipped.
//!
//! Maps are read from these files and from those of benchmarks, which hold 8 or 16 bits with a scale and 0 for unknown,
//! some as colour with three equal channels.

use crate::files::format_of;
use crate::image::{self, AnyImage, Compression, Image, ImageView, Pixel, ReadOptions};
use crate::options::{Above, options};
use crate::{Error, Result};
use std::path::Path;

/// The number of units of a 16-bit PNG in a pixel of disparity.
const STEPS: f32 = 256.0;
/// The greatest disparity that rounds to a 16-bit number.
const LIMIT: f32 = 65_535.5 / STEPS;

/// The format of a disparity map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisparityFormat {
    /// Floats, +∞ for pixels without a disparity.
    Pfm,
    /// 16 bits, 256 units in a pixel, 0 for pixels without a disparity.
    Png,
    /// Floats, NaN for pixels without a disparity.
    Tiff,
    /// As TIFF, but `.exr`.
    Exr,
    /// As TIFF, an array of NumPy.
    Npy,
}

impl DisparityFormat {
    /// The format that belongs to the extension of `path`.
    ///
    /// # Errors
    /// [`Error::Format`] when the extension is unknown.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let (pfm, png) = (("pfm", Self::Pfm), ("png", Self::Png));
        let (tif, exr) = (("tif", Self::Tiff), ("exr", Self::Exr));
        let known = [pfm, png, tif, ("tiff", Self::Tiff), exr, ("npy", Self::Npy)];
        format_of(path.as_ref(), &known, "a disparity map; use .pfm, .png, .tif, .tiff, .exr or .npy")
    }

    /// Fails when this format cannot hold the results of a search from `min_disparity` over `disparities` whole
    /// disparities. Call it before the search, so that a wrong name is reported at once.
    ///
    /// # Errors
    /// [`Error::Format`] naming `path` and the formats that can.
    pub fn check_range(self, path: impl AsRef<Path>, min_disparity: i32, disparities: usize) -> Result<()> {
        let greatest = i64::from(min_disparity) + disparities as i64 - 1;
        if self == Self::Png && (min_disparity < 0 || greatest > 255) {
            let asked = format!("disparities {min_disparity} to {greatest}");
            return Err(Error::format(path.as_ref(), unfit(&asked)));
        }
        Ok(())
    }
}

fn unfit(what: &str) -> String {
    format!("a 16-bit PNG holds disparities from 0 to 255, not {what}; write .pfm or .tif")
}

/// Writes a disparity map to `path` in the format of its extension, whole or not at all. `compression` is for TIFF.
///
/// # Errors
/// [`Error::Format`] when the extension is unknown, the map has no pixel or several channels, or a PNG cannot
/// hold one of its disparities; [`Error::Io`] when the file cannot be written.
pub fn write(path: impl AsRef<Path>, disparity: ImageView<'_, f32>, compression: Compression) -> Result<()> {
    let path = path.as_ref();
    let format = DisparityFormat::of(path)?;
    let outside = |v: &&f32| v.is_finite() && !(0.0..LIMIT).contains(*v);
    let rows = (0..disparity.size().height).map(|y| disparity.row(y));
    if let Some(d) = rows.flatten().find(outside).filter(|_| format == DisparityFormat::Png) {
        return Err(Error::format(path, unfit(&format!("{d}"))));
    }
    let missing = if format == DisparityFormat::Pfm { f32::INFINITY } else { f32::NAN };
    image::write_values(path, disparity, finite_or(missing), level, compression)
}

/// Writes depths to `path`, as [`write()`] writes disparities; but a PNG holds `scale` times the depth in 16 bits, and
/// 0 for pixels without depth. Returns the number of depths that the PNG cannot hold; these become 0, too.
///
/// # Errors
/// As [`write()`]; [`Error::Format`] for a scale that is not above 0, and when a PNG can hold none of the depths.
pub fn write_depth(
    path: impl AsRef<Path>,
    depth: ImageView<'_, f32>,
    scale: f32,
    compression: Compression,
) -> Result<usize> {
    let path = path.as_ref();
    if DisparityFormat::of(path)? != DisparityFormat::Png {
        return write(path, depth, compression).map(|()| 0);
    }
    if !(scale > 0.0 && scale.is_finite()) {
        let reason = format!("the scale of depths is {scale}: expected a number above 0");
        return Err(Error::format(path, reason));
    }
    let scaled = Image::from_fn(depth.size(), |x, y| depth.row(y)[x] * scale);
    let unfit = |z: &&f32| z.is_finite() && rounded(**z) == 0;
    let outside = scaled.data().iter().filter(unfit).count();
    if outside > 0 && outside == scaled.data().iter().filter(|z| z.is_finite()).count() {
        let reason = format!(
            "a 16-bit PNG holds none of the {outside} depths at a scale of {scale}: it holds {} to {}; choose another \
             scale, or write .tif or .exr",
            1.0 / scale,
            65_535.0 / scale
        );
        return Err(Error::format(path, reason));
    }
    image::write_values(path, scaled.view(), finite_or(f32::NAN), rounded, compression)?;
    Ok(outside)
}

/// Rounds to the nearest integer; 0 if that is not from 1 to 65535.
fn rounded(z: f32) -> u16 {
    if (0.5..65_535.5).contains(&z) { u16::from_f32(z) } else { 0 }
}

/// Replaces numbers that are not finite by `missing`.
fn finite_or(missing: f32) -> impl Fn(f32) -> f32 {
    move |d| if d.is_finite() { d } else { missing }
}

fn level(d: f32) -> u16 {
    if d.is_finite() { u16::from_f32(d * STEPS).max(1) } else { 0 }
}

options! {
    /// What the numbers in a file mean.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct DisparityReading {
        /// A stored number is this many times the disparity; by default 256 for 16 bits, else 1; required for 16 bits with a sign.
        scale / with_scale: Option<f32> = None => Above(0.0), unit "S";
        /// Whether floats of 0 and below are disparities; otherwise they are unknown.
        ///
        /// By default they are disparities in a map that marks others as unknown by NaN, infinity or the no-data value of its
        /// file, or that has more of them than 0 and one other number. 0 among whole numbers is always unknown.
        signed / with_signed: Option<bool> = None;
    }
    tables {
        /// How large the image may be.
        limits / with_limits: ReadOptions = ReadOptions::default();
    }
}

/// The disparity map in the image file at `path`, [`INVALID`](super::INVALID) where it holds none.
///
/// # Errors
/// As [`read_with_note`].
pub fn read(path: impl AsRef<Path>, reading: &DisparityReading) -> Result<Image<f32>> {
    Ok(read_with_note(path, reading)?.0)
}

/// As [`read`], with a note where many values, or values below −1, are taken for unknown without being asked to.
///
/// # Errors
/// As [`image::read`]; [`Error::Format`] when the channels of a colour image differ, and for 16-bit integers with a sign
/// without a scale; as [`DisparityReading::check`].
pub fn read_with_note(
    path: impl AsRef<Path>,
    reading: &DisparityReading,
) -> Result<(Image<f32>, Option<String>)> {
    reading.check()?;
    let path = path.as_ref();
    let file = image::read_file(path, &reading.limits)?;
    if reading.scale.is_none() && path.is_file() && image::stored(path)?.kind == Some("Int16") {
        let reason = "holds whole numbers of 16 bits with a sign, which may be multiples of disparities: expected their \
                      scale, 16 for OpenCV's StereoSGBM and StereoBM, 1 for pixels";
        return Err(Error::format(path, reason));
    }
    let white = file.white;
    let (image, shown) = file.into_seen();
    let scale = |usual: f32| reading.scale.unwrap_or(usual);
    let map = match &image {
        AnyImage::U8(i) => convert(i, white, scale(1.0), false),
        AnyImage::U16(i) => convert(i, white, scale(STEPS), false),
        AnyImage::F32(i) => convert(i, None, scale(1.0), true),
    };
    let mut map = map.map_err(|reason| Error::format(path, reason))?;
    if let Some(shown) = shown {
        let hidden = map.data_mut().iter_mut().zip(shown.data()).filter(|(_, shown)| **shown == 0);
        hidden.for_each(|(d, _)| *d = super::INVALID);
    }
    let low = || map.data().iter().copied().filter(|d| *d <= 0.0);
    let (count, least) = (low().count(), low().fold(0.0, f32::min));
    let is_marked = || map.data().iter().any(|d| !d.is_finite()) || low().any(|d| d != 0.0 && d != least);
    if count == 0 || reading.signed.unwrap_or_else(is_marked) {
        return Ok((map, None));
    }
    let (all, zero) = (map.data().len(), if least < 0.0 && low().any(|d| d == 0.0) { " and 0" } else { "" });
    let note = (reading.signed.is_none() && (least < -1.0 || 2 * count > all)).then(|| {
        let path = path.display();
        format!("{path}: {count} of {all} values are {least}{zero}, which is taken for unknown")
    });
    map.data_mut().iter_mut().filter(|d| **d <= 0.0).for_each(|d| *d = super::INVALID);
    Ok((map, note))
}

/// The disparities in an image, whose numbers were scaled from 0 to `white` in the file; `None` if they were not
/// scaled.
fn convert<T: Pixel>(
    image: &Image<T>,
    white: Option<u16>,
    scale: f32,
    signed: bool,
) -> std::result::Result<Image<f32>, String> {
    let channels = image.channels();
    // An even count ends in alpha, which is ignored.
    let colours = channels - usize::from(channels.is_multiple_of(2));
    // The reader stretched the stored numbers to the type's whole range; this recovers them exactly.
    let stored = |v: f32| white.map_or(v, |white| (v * f32::from(white) / T::WHITE).round_ties_even());
    let disparity = |p: &[T]| {
        let d = stored(p[0].to_f32()) / scale;
        if d.is_finite() && (signed || d > 0.0) { d } else { super::INVALID }
    };
    let pixels = || image.data().chunks_exact(channels);
    let same = |p: &[T]| p[..colours].iter().all(|v| *v == p[0] || v.to_f32().is_nan());
    if colours > 1 && !pixels().all(same) {
        return Err("a colour picture, not a disparity map: its channels differ".into());
    }
    let data = pixels().map(disparity).collect();
    Image::from_vec(data, image.size(), 1).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::INVALID;
    use super::*;
    use crate::files::tests::Folder;
    use crate::image::Size;

    const SIGNED: DisparityReading = DisparityReading {
        scale: None,
        signed: Some(true),
        limits: ReadOptions { max_pixels: 1 << 20, max_bytes: 1 << 24, orient: true, band: None },
    };

    fn map(values: &[f32]) -> Image<f32> {
        Image::from_vec(values.to_vec(), Size::new(values.len() / 2, 2), 1).unwrap()
    }

    fn sixteen_bits(path: &Path) -> Image<u16> {
        match image::read(path, &ReadOptions::default()).unwrap() {
            AnyImage::U16(stored) => stored,
            other => panic!("{:?} pixels in place of 16 bits", other.pixel()),
        }
    }

    #[test]
    fn floats_come_back_as_they_were() {
        let folder = Folder::new("disparity-floats");
        let there = map(&[0.0, -3.25, 1e-20, INVALID, 4000.125, 17.3]);
        let odd = map(&[0.0, -3.25, 1e-20, f32::NAN, 4000.125, 17.3]);
        for name in ["d.pfm", "d.tif", "D.TIFF", "d.exr", "d.npy"] {
            let path = folder.0.join(name);
            for map in [&there, &odd] {
                write(&path, map.view(), Compression::None).unwrap();
                assert_eq!(read(&path, &SIGNED).unwrap(), there, "{name}: every invalid pixel is +∞ here");
            }
            let AnyImage::F32(stored) = image::read(&path, &ReadOptions::default()).unwrap() else {
                panic!("floats")
            };
            let hole = stored.data()[3];
            assert!(if name == "d.pfm" { hole == f32::INFINITY } else { hole.is_nan() }, "{name}: {hole}");
        }
    }

    #[test]
    fn png_is_kittis() {
        let folder = Folder::new("disparity-png");
        let path = folder.0.join("d.png");
        write(&path, map(&[0.0, 1.0, 17.3, INVALID, 255.998, 0.001]).view(), Compression::None).unwrap();
        let stored = sixteen_bits(&path);
        assert_eq!(stored.data(), [1, 256, 4429, 0, 65535, 1], "256 a pixel, 0 for none, at least 1");
        let back = read(&path, &DisparityReading::default()).unwrap();
        assert_eq!(back.data(), [1.0 / 256.0, 1.0, 4429.0 / 256.0, INVALID, 65535.0 / 256.0, 1.0 / 256.0]);
    }

    #[test]
    fn depths_become_millimetres() {
        let folder = Folder::new("depth-png");
        let path = folder.0.join("z.png");
        let metres = map(&[1.2344, 65.535, 65.536, INVALID, f32::NAN, 1e-4]);
        let lost = |path: &Path, scale| write_depth(path, metres.view(), scale, Compression::None).unwrap();
        assert_eq!(lost(&path, 1000.0), 2, "two are too far and too near");
        let stored = sixteen_bits(&path);
        assert_eq!(stored.data(), [1234, 65535, 0, 0, 0, 0]);
        assert_eq!(lost(&folder.0.join("z.exr"), 1.0), 0, "floats hold all");
        assert!(write_depth(&path, metres.view(), 0.0, Compression::None).is_err(), "no scale");
    }

    #[test]
    fn what_a_png_cannot_hold_is_refused() {
        let folder = Folder::new("disparity-refused");
        let path = folder.0.join("d.png");
        for d in [-0.25, 255.9981, 4000.0] {
            let message = write(&path, map(&[1.0, d]).view(), Compression::None).unwrap_err().to_string();
            assert!(message.contains("d.png") && message.contains(".pfm"), "{message}");
        }
        assert!(!path.exists(), "nothing is left");
        let png = DisparityFormat::of("x.PNG").unwrap();
        for (least, count, fits) in [(0, 256, true), (0, 257, false), (-1, 4, false), (200, 56, true)] {
            assert_eq!(png.check_range("x.png", least, count).is_ok(), fits, "{least} and {count}");
        }
        assert!(DisparityFormat::Tiff.check_range("x.tif", -500, 4096).is_ok(), "floats hold all");
        for name in ["d", "d.jpg", "d.ppm"] {
            let written = write(name, map(&[1.0, 2.0]).view(), Compression::None);
            assert!(DisparityFormat::of(name).is_err() && written.is_err(), "{name}");
        }
        let empty = Image::new(Size::new(0, 4));
        assert!(write(folder.0.join("d.pfm"), empty.view(), Compression::None).is_err(), "empty");
    }

    /// OpenCV's maps hold 16 times the disparity, and −16 where there is none.
    #[test]
    fn whole_numbers_with_a_sign_need_a_scale() {
        let folder = Folder::new("disparity-signed");
        let [npy, tiff] = ["d.npy", "d.tif"].map(|name| folder.join(name));
        let values = [-16_i16, 16, 40, 80];
        let mut array = b"\x93NUMPY\x01\x00".to_vec();
        let header = format!("{:<117}\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }");
        array.extend((header.len() as u16).to_le_bytes().into_iter().chain(header.into_bytes()));
        array.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        std::fs::write(&npy, array).unwrap();
        let mut encoder = ::tiff::encoder::TiffEncoder::new(std::fs::File::create(&tiff).unwrap()).unwrap();
        encoder.write_image::<::tiff::encoder::colortype::GrayI16>(2, 2, &values).unwrap();
        for path in [npy, tiff] {
            let refused = read(&path, &DisparityReading::default()).unwrap_err().to_string();
            assert!(refused.contains("16 for OpenCV's StereoSGBM"), "{refused}");
            let found = read(&path, &DisparityReading::default().with_scale(Some(16.0))).unwrap();
            assert_eq!(found.data()[1..], [1.0, 2.5, 5.0], "{}", path.display());
            assert!(!found.data()[0].is_finite());
        }
    }

    #[test]
    fn ground_truth_of_every_kind() {
        let folder = Folder::new("disparity-truth");
        let read_as = |image: AnyImage, scale, signed: bool| {
            let path = folder.0.join("t.tif");
            image::write(&path, &image).unwrap();
            let reading = DisparityReading::default().with_scale(scale);
            read(&path, &reading.with_signed(signed.then_some(true))).map(Image::into_vec)
        };
        let size = Size::new(2, 1);
        let bytes = |v: &[u8], n| AnyImage::from(Image::from_vec(v.to_vec(), size, n).unwrap());
        assert_eq!(read_as(bytes(&[0, 40], 1), Some(8.0), true).unwrap(), [INVALID, 5.0], "8 bits");
        assert_eq!(read_as(bytes(&[0, 40], 1), None, false).unwrap(), [INVALID, 40.0], "no scale");
        assert_eq!(read_as(bytes(&[9, 9, 9, 0, 0, 0], 3), None, false).unwrap(), [9.0, INVALID], "equal");
        assert_eq!(read_as(bytes(&[9, 255, 3, 0], 2), None, false).unwrap(), [9.0, 3.0], "alpha");
        let message = read_as(bytes(&[9, 9, 8, 0, 0, 0], 3), None, false).unwrap_err().to_string();
        assert!(message.contains("channels differ"), "{message}");
        let sixteen = Image::from_vec(vec![0_u16, 640], size, 1).unwrap();
        assert_eq!(read_as(sixteen.into(), None, false).unwrap(), [INVALID, 2.5], "KITTI");
        for (maximum, usual) in [(15, 1.0), (100, 1.0), (4095, STEPS)] {
            let path = folder.0.join("t.pgm");
            std::fs::write(&path, format!("P2 3 1 {maximum} 0 1 {maximum}")).unwrap();
            for (scale, unit) in [(Some(1.0), 1.0), (None, usual)] {
                let reading = DisparityReading::default().with_scale(scale);
                let expected = [INVALID, 1.0 / unit, maximum as f32 / unit];
                assert_eq!(read(&path, &reading).unwrap().data(), expected, "PGM up to {maximum}");
            }
        }
        let floats = |v: [f32; 2]| AnyImage::from(Image::from_vec(v.to_vec(), size, 1).unwrap());
        assert_eq!(read_as(floats([0.0, f32::NAN]), None, true).unwrap(), [0.0, INVALID], "signed");
        assert_eq!(read_as(floats([-1.0, 2.0]), None, false).unwrap(), [INVALID, 2.0], "unsigned");
        assert_eq!(
            read_as(floats([-1.0, f32::NAN]), None, false).unwrap(),
            [-1.0, INVALID],
            "NaN is the mark"
        );
        assert_eq!(
            read_as(floats([-1.0, -2.0]), None, false).unwrap(),
            [-1.0, -2.0],
            "no mark has two values"
        );
        let reading = DisparityReading::default().with_signed(Some(false));
        assert_eq!(
            read(folder.0.join("t.tif"), &reading).unwrap().data(),
            [INVALID; 2],
            "as it was asked for"
        );
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            let reading = DisparityReading::default().with_scale(Some(scale));
            assert!(reading.check().is_err(), "{scale}");
        }
    }
}
