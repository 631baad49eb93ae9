//! Writing image files, in the format that the name's extension says.

use super::{
    AnyImage, AnyView, Georeference, Image, ImageView, Layout, Mask, Pixel, check_mask, exr, jpeg,
    no_data::{held, with_hidden},
    npy, pam, pfm, png, pnm, tiff, with_alpha, world_file,
};
use crate::device::Cpu;
use crate::files::{Opened, format_of, is_stdout, remove_if_there, write_atomically};
use crate::options::named;
use crate::{Error, Result, by_pixel};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// An image format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// `.png`: 8 or 16 bits, 1 to 4 channels; floats from 0 to 1 become 16 bits.
    Png,
    /// `.tif`, `.tiff`: every pixel type and channel count as it is; BigTIFF above 4 GiB.
    Tiff,
    /// `.pfm`: floats, 1 or 3 channels; integers keep their values.
    Pfm,
    /// `.pgm`: 8 or 16 bits, grey; floats from 0 to 1 become 16 bits, as in the next three formats.
    Pgm,
    /// `.ppm`: colour.
    Ppm,
    /// `.pnm`: grey or colour.
    Pnm,
    /// `.pam`: 1 to 4 channels.
    Pam,
    /// `.exr`: floats, 1 to 4 channels; integers keep their values.
    Exr,
    /// `.npy`: every pixel type and channel count as it is.
    Npy,
    /// `.jpg`, `.jpeg`: 8 bits, grey or colour, for pictures that are looked at.
    Jpeg,
}

impl OutputFormat {
    /// The format that `path`'s extension names. Call it before long work, so that a wrong name is reported at once.
    ///
    /// # Errors
    /// [`Error::Format`] listing the known extensions.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let known = [
            ("png", Self::Png),
            ("tif", Self::Tiff),
            ("tiff", Self::Tiff),
            ("pfm", Self::Pfm),
            ("pgm", Self::Pgm),
            ("ppm", Self::Ppm),
            ("pnm", Self::Pnm),
            ("pam", Self::Pam),
            ("exr", Self::Exr),
            ("npy", Self::Npy),
            ("jpg", Self::Jpeg),
            ("jpeg", Self::Jpeg),
        ];
        let what = "an image format that can be written; use .png, .tif, .tiff, .pfm, .pgm, .ppm, .pnm, .pam, .exr, .npy or .jpg";
        format_of(path.as_ref(), &known, what)
    }

    /// Whether it holds floats as they are: signs, fractions and NaN.
    pub fn holds_floats(self) -> bool {
        matches!(self, Self::Tiff | Self::Pfm | Self::Exr | Self::Npy)
    }

    /// How many values of an image this format clamps: finite floats outside 0 to 1, where it holds integers.
    pub fn cuts<'a>(self, image: impl Into<AnyView<'a>>) -> usize {
        let AnyView::F32(view) = image.into() else { return 0 };
        if self.holds_floats() {
            return 0;
        }
        let outside = |v: &&f32| v.is_finite() && !(0.0..=1.0).contains(*v);
        (0..view.size().height).map(|y| view.row(y).iter().filter(outside).count()).sum()
    }

    /// Why this format cannot hold `view`, if it cannot.
    fn check(self, view: &AnyView<'_>) -> std::result::Result<(), String> {
        let channels: &[usize] = match self {
            Self::Tiff => return tiff::check(view),
            Self::Npy => return npy::check(view),
            Self::Jpeg if !matches!(view, AnyView::U8(_)) => {
                return Err("a JPEG holds 8 bits: use .png or .tif for what has more".into());
            }
            Self::Jpeg => &[1, 3],
            Self::Png | Self::Pam | Self::Exr => &[1, 2, 3, 4],
            Self::Pfm | Self::Pnm => &[1, 3],
            Self::Pgm => &[1],
            Self::Ppm => &[3],
        };
        if !channels.contains(&view.channels()) {
            let counts: Vec<_> = channels.iter().map(usize::to_string).collect();
            let (counts, n) = (counts.join(" or "), view.channels());
            return Err(format!("is to hold {n} channels: expected {counts}; .tif and .npy hold any number"));
        }
        Ok(())
    }
}

/// Writes `image` to `path` in the format of its extension, [whole or not at all](write_atomically). Floats are taken as 0
/// to 1 where the format holds integers, and others are clamped without a word: [`OutputFormat::cuts`] counts them.
///
/// # Errors
/// [`Error::Format`] when the extension is unknown or the format cannot hold the image, [`Error::Io`] when
/// the file cannot be written.
pub fn write<'a>(path: impl AsRef<Path>, image: impl Into<AnyView<'a>>) -> Result<()> {
    write_view(path.as_ref(), image.into(), &Known::default())
}

named! {
    /// How the pixels of a TIFF are compressed, always without loss.
    pub enum Compression as "compress" {
        #[default]
        "none": None, "Not compressed";
        "deflate": Deflate, "The smallest files, which every program reads";
        "zstd": Zstd, "Zstandard: read faster; by GDAL, tifffile and Pillow, not by OpenCV's packages";
    }
}

/// What is known about an image beside its pixels, to be written with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The meaning of its channels; by default the usual one of their number.
    pub layout: Option<Layout>,
    /// Where its pixels lie on a map.
    pub place: Option<&'a Georeference>,
    /// The value of pixels that hold no data.
    pub no_data: Option<f64>,
    /// What [`FileImage::bands`](super::FileImage::bands) holds, for a TIFF.
    pub bands: Option<&'a str>,
    /// 0 where pixels hold no data; `None` where all do.
    pub valid: Option<&'a Image<u8>>,
    /// How a TIFF is compressed; other formats ignore it.
    pub compression: Compression,
    /// What compresses a TIFF or a JPEG; by default the calling thread. The file is the same for any number of threads.
    pub cpu: Option<&'a Cpu>,
}

/// Writes an image with what is known about it, as far as the format can hold it.
///
/// | pixels without data | |
/// |---|---|
/// | TIFF | the no-data value and its tag where the image has one, NaN in floats, else a mask in the file |
/// | PNG, PAM of 8 bits | transparent |
/// | PFM, EXR, `.npy` of floats | NaN, also where one channel alone has the no-data value: these files cannot name it |
/// | the others | as they are (NaN as 0), with a mask in `PATH.msk` beside the file, where GDAL looks for it and [`read_file`](super::read_file) too |
/// | any with an alpha channel | transparent |
///
/// What an earlier file of this name left [beside it](BESIDE) is removed, as by every function that writes a picture. A
/// place on a map goes into a TIFF, and beside other formats into a world file, which names no coordinate system.
///
/// # Errors
/// As [`write()`]; [`Error::Mismatch`] for a mask or a layout of another image; [`Error::Format`] for a place without a
/// [transform](Georeference::transform) in another format than TIFF.
pub fn write_known<'a>(
    path: impl AsRef<Path>,
    image: impl Into<AnyView<'a>>,
    known: &Known<'_>,
) -> Result<()> {
    let (path, view) = (path.as_ref(), image.into());
    let layout = known.layout.unwrap_or(Layout::usual(view.channels()));
    let format = OutputFormat::of(path)?;
    check_mask(known.valid.map(Image::view), view.size())?;
    if layout.channels != view.channels() || layout.last() >= layout.channels {
        let n = view.channels();
        return Err(Error::Mismatch(format!(
            "{layout:?} is given for an image of {n} channels: expected its own"
        )));
    }
    // In these the last of two or four channels is alpha.
    let ends_with_alpha = matches!(format, OutputFormat::Png | OutputFormat::Pam | OutputFormat::Exr);
    if ends_with_alpha && layout.alpha.is_none() && Layout::usual(view.channels()).alpha.is_some() {
        let n = view.channels();
        let reason = format!(
            "is to hold {n} channels without alpha, the last of which would be read as alpha; .tif and .npy hold any channels"
        );
        return Err(Error::format(path, reason));
    }
    // No integer is NaN.
    let finite = match view {
        AnyView::F32(_) if !format.holds_floats() => {
            Mask::from(known.valid.map(Image::view)).and(Mask::of_finite(view))?.into_image()
        }
        _ => None,
    };
    let valid = finite.as_ref().or(known.valid).filter(|valid| valid.data().contains(&0));
    let is_tiff = format == OutputFormat::Tiff;
    let in_tag = known.no_data.filter(|_| is_tiff);
    let transparent = valid.filter(|_| layout.alpha.is_some());
    let transparent = transparent.and_then(|valid| with_hidden(&view, valid, in_tag, layout));
    let view = transparent.as_ref().map_or(view, AnyImage::view);
    let valid = valid.filter(|_| layout.alpha.is_none());
    let no_data = match view {
        AnyView::U8(_) => known.no_data.filter(|v| held::<u8>(*v).is_some()),
        AnyView::U16(_) => known.no_data.filter(|v| held::<u16>(*v).is_some()),
        AnyView::F32(_) => known.no_data.or(valid.map(|_| f64::NAN)),
    };
    let mut in_file = Known { place: known.place.filter(|_| is_tiff), no_data, valid: None, ..*known };
    let world = known.place.filter(|_| !is_tiff).map(|place| world_file::of(path, place)).transpose()?;
    let (mut beside, mut made) = (None, None);
    match (format, &view, valid) {
        // These files cannot say which value marks no data.
        (OutputFormat::Pfm | OutputFormat::Exr | OutputFormat::Npy, AnyView::F32(_), valid) => {
            let no_data = no_data.filter(|value| !value.is_nan());
            if valid.is_some() || no_data.is_some() {
                made = Some(with_nan(&view, valid, (no_data, layout.alpha)));
            }
        }
        (_, _, None) => {}
        (OutputFormat::Tiff, view, Some(valid)) if no_data.is_some() => {
            made = with_hidden(view, valid, no_data, layout);
        }
        (OutputFormat::Tiff, ..) => in_file.valid = valid,
        (OutputFormat::Png | OutputFormat::Pam, AnyView::U8(_), Some(valid)) if layout.is_usual() => {
            made = Some(with_alpha(view, valid)?);
        }
        (OutputFormat::Pfm | OutputFormat::Exr, view, valid) => {
            made = Some(with_nan(view, valid, (None, None)));
        }
        (_, _, Some(valid)) => beside = Some(valid),
    }
    write_view(path, made.as_ref().map_or(view, AnyImage::view), &in_file)?;
    if let Some((path, text)) = world {
        write_atomically(path, |out| out.write_all(text.as_bytes()))?;
    }
    beside.map_or(Ok(()), |valid| {
        write_atomically(path.with_added_extension(MASK), |out| tiff::write_mask(out, valid))
    })
}

/// The extension, after that of a picture, of GDAL's mask of it.
pub(super) const MASK: &str = "msk";

/// The extensions, after that of a picture, of what GDAL reads with it: its mask, overviews, statistics and place on the map.
/// What is there belongs to an earlier picture of this name and is removed when one is written.
pub const BESIDE: [&str; 3] = [MASK, "ovr", pam::EXTENSION];

/// Writes the file of a picture; everything else that writes one goes through this.
fn write_picture(path: &Path, content: impl FnOnce(&mut BufWriter<Opened>) -> io::Result<()>) -> Result<()> {
    write_atomically(path, content)?;
    match path.extension() {
        Some(_) => BESIDE.iter().try_for_each(|beside| remove_if_there(&path.with_added_extension(beside))),
        None => Ok(()),
    }
}

/// The image as floats, with NaN where a pixel holds no data or a channel other than `alpha` has the value `no_data`.
fn with_nan(
    view: &AnyView<'_>,
    valid: Option<&Image<u8>>,
    (no_data, alpha): (Option<f64>, Option<usize>),
) -> AnyImage {
    let (size, n) = (view.size(), view.channels());
    let marks = |channel: usize, v: f32| Some(channel) != alpha && no_data.is_some_and(|no| v == no as f32);
    let is_empty =
        |i: usize, y: usize, v: f32| valid.is_some_and(|valid| valid.row(y)[i / n] == 0) || marks(i % n, v);
    let mut data = Vec::with_capacity(size.area() * n);
    by_pixel!(view, view => for y in 0..size.height {
        let row = view.row(y).iter().map(|v| v.to_f32()).enumerate();
        data.extend(row.map(|(i, v)| if is_empty(i, y, v) { f32::NAN } else { v }));
    });
    Image { data, size, channels: n }.into()
}

fn write_view(path: &Path, view: AnyView<'_>, known: &Known<'_>) -> Result<()> {
    let format = OutputFormat::of(path)?;
    let size = view.size();
    let side = size.width.max(size.height);
    if size.is_empty() || u32::try_from(side).is_err() {
        return Err(Error::format(path, format!("an image of {size} pixels cannot be written")));
    }
    format.check(&view).map_err(|reason| Error::format(path, reason))?;
    write_picture(path, |out| match format {
        OutputFormat::Png => by_pixel!(view, v => png::write(out, v, png::push_levels)),
        OutputFormat::Tiff => tiff::write(out, &view, known),
        OutputFormat::Pfm => by_pixel!(view, v => pfm::write(out, v, Pixel::to_f32)),
        OutputFormat::Pgm | OutputFormat::Ppm | OutputFormat::Pnm | OutputFormat::Pam => {
            by_pixel!(view, v => pnm::write(out, v, format == OutputFormat::Pam))
        }
        OutputFormat::Exr => by_pixel!(view, v => exr::write(out, v, Pixel::to_f32)),
        OutputFormat::Npy => npy::write(out, &view),
        OutputFormat::Jpeg => jpeg::write(out, &view, known.cpu),
    })
}

/// Writes these rows of an image, each as the bytes that `push` appends.
pub(super) fn write_rows<T: Copy>(
    mut out: impl Write,
    view: ImageView<'_, T>,
    rows: impl Iterator<Item = usize>,
    push: impl Fn(&[T], &mut Vec<u8>),
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for y in rows {
        bytes.clear();
        push(view.row(y), &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Adds the `bytes` of every number of a row to `out`.
pub(super) fn push_row<T: Copy, const N: usize>(row: &[T], out: &mut Vec<u8>, bytes: impl Fn(T) -> [u8; N]) {
    let start = out.len();
    out.resize(start + row.len() * N, 0);
    out[start..].as_chunks_mut().0.iter_mut().zip(row).for_each(|(place, v)| *place = bytes(*v));
}

/// [`write`] for one channel of floats as PFM, TIFF, EXR, `.npy` or PNG, for maps with their own file convention: files
/// of floats hold `value` of every float, a PNG its `level` in 16 bits. In place of PNG, standard output gets PFM.
pub(crate) fn write_values(
    path: &Path,
    view: ImageView<'_, f32>,
    value: impl Fn(f32) -> f32 + Sync,
    level: fn(f32) -> u16,
    compression: Compression,
) -> Result<()> {
    let format = OutputFormat::of(path)?;
    if view.size().is_empty() || view.channels() != 1 {
        let found = format!("{} pixels of {} channels", view.size(), view.channels());
        return Err(Error::format(path, format!("expected pixels of one channel, found {found}")));
    }
    if !format.holds_floats() && format != OutputFormat::Png {
        let reason = format!("{format:?} holds no floats; use .pfm, .png, .tif, .tiff, .exr or .npy");
        return Err(Error::format(path, reason));
    }
    let known = Known { compression, ..Known::default() };
    write_picture(path, |out| match format {
        OutputFormat::Png if !is_stdout(path) => {
            png::write(out, view, |row, bytes| push_row(row, bytes, |v| level(v).to_be_bytes()))
        }
        OutputFormat::Tiff => tiff::write_floats(out, view, value, &known),
        OutputFormat::Exr => exr::write(out, view, value),
        OutputFormat::Npy => npy::write_floats(out, view, value),
        _ => pfm::write(out, view, value),
    })
}
