//! An image as detectors take it: grey, from black to white, and which of its pixels count.
//!
//! Detectors take an image from black (0) to white (255, 65535 or 1). Measured data have other ranges: float rasters
//! hold metres or reflectances and mark holes by NaN, 12-bit sensors fill a sixteenth of 16 bits.
//! [`prepare`] makes an image grey, brings it to this scale, and masks what is transparent or a hole.

pub(crate) mod gpu;
mod holes;
mod spread;

pub use gpu::prepare_on_device;
pub(crate) use spread::value as value_of_key;

use super::{
    AnyCow, AnyImage, AnyView, Image, ImageView, Mask, Pixel, PixelKind, Size, check_mask, grey, no_data,
};
use crate::{Error, Result, device::Cpu};
use holes::fill;
use spread::Floats;

/// Which values become black and white.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Range {
    /// 8 bits: as they are. 16 bits and floats: from the 1st to the 99th percentile of the image's values, widened on
    /// either side by a quarter of their distance, but not beyond the least and greatest value. NaN, infinities and
    /// masked pixels do not count; neither does the very least or greatest value if more than one pixel in a hundred
    /// holds it (no-data marks, saturation). A range of 16-bit values is widened to at least 32.
    /// Percentiles are exact: the same for any number of threads.
    ///
    /// Each image of a pair has its own range, which is better where the light changes (`docs/notebook/images.md`). 8
    /// bits stay as they are, for speed and so that features equal those of other programs; for dark pictures give
    /// [`Between`](Self::Between).
    #[default]
    Auto,
    /// From this value (black) to that (white); values beyond are clamped.
    Between(f32, f32),
}

impl Range {
    /// Checks the bounds.
    ///
    /// # Errors
    /// [`Error::Option`] unless both are finite and the first is below the second.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Between(low, high) if !(low < high && low.is_finite() && high.is_finite()) => {
                Err(Error::option("range", format!("{low}:{high}"), "LOW:HIGH, finite, LOW below HIGH"))
            }
            Self::Between(..) | Self::Auto => Ok(()),
        }
    }
}

/// An image as detectors take it.
#[derive(Clone, Debug)]
pub struct Prepared<'a> {
    /// One channel, from black to white, in the image's own pixel type; but 8 bits become floats when they are
    /// stretched.
    pub image: AnyCow<'a>,
    /// Which pixels count: those that the given mask lets count, and that are more than [`HOLE_MARGIN`] pixels from any
    /// that is transparent, NaN or infinite.
    pub mask: Mask<'a>,
}

/// Distance in pixels from a hole or a transparent pixel within which no keypoint is kept, because the value that
/// stands there changes the derivatives.
pub const HOLE_MARGIN: usize = 5;

/// Makes an image ready for a detector: [grey](grey()), on the scale that detectors expect, with the [`Mask`] of the
/// pixels that count. Pixels without data (transparent, NaN, infinite) are filled from those around them, so that the edges
/// around them are weak and no value that stands there has an influence. Pixels that `mask` excludes keep their
/// values, as in OpenCV, but have no influence on the range.
///
/// An image that is passed by value (an [`AnyImage`]) of 16 bits or floats is changed in its own memory, so that a
/// large one is never held twice.
///
/// # Errors
/// [`Error::Image`] for more than four channels; as [`Range::check`]; [`Error::Mismatch`] for a mask of another size.
pub fn prepare<'a>(
    image: impl Into<AnyCow<'a>>,
    mask: impl Into<Mask<'a>>,
    range: Range,
    cpu: &Cpu,
) -> Result<Prepared<'a>> {
    let image = image.into();
    let shown = Mask::of_data(image.view(), None);
    prepare_shown(image, &shown, mask.into(), range, cpu)
}

/// As [`prepare`], of an image whose pixels hold data where `shown` says so.
pub(super) fn prepare_shown<'a>(
    image: AnyCow<'a>,
    shown: &Mask<'_>,
    mut mask: Mask<'a>,
    range: Range,
    cpu: &Cpu,
) -> Result<Prepared<'a>> {
    range.check()?;
    check_mask(mask.view(), image.view().size())?;
    let mut image = match image {
        AnyCow::Borrowed(view) => grey(view, cpu)?,
        AnyCow::Owned(image) => AnyCow::Owned(grey(&image, cpu)?.into_owned().unwrap_or(image)),
    };
    if let Some(shown) = shown.view() {
        let mut filled = image.into_image();
        match &mut filled {
            AnyImage::U8(image) => fill(image, &|x, y, _| shown.row(y)[x] != 0, cpu),
            AnyImage::U16(image) => fill(image, &|x, y, _| shown.row(y)[x] != 0, cpu),
            // Filled with the other holes.
            floats @ AnyImage::F32(_) => no_data::to_nan(floats, shown),
        }
        image = AnyCow::Owned(filled);
        mask = mask.and(far_from(shown, |m| m == 0, HOLE_MARGIN, cpu))?;
    }
    let _stage = cpu.stage("range");
    let (image, holes) = scaled(image, mask.view(), range, cpu)?;
    Ok(Prepared { image, mask: mask.and(holes)? })
}

/// The narrowest range of 16-bit values that is stretched from black to white: a narrower one is mostly noise.
const LEAST_LEVELS: f32 = 32.0;

/// The values that become black and white; `None` if they already are. `counted` gives those of [`Range::Auto`].
fn ends(
    kind: PixelKind,
    range: Range,
    counted: impl FnOnce() -> Result<Option<[f32; 2]>>,
) -> Result<Option<[f32; 2]>> {
    Ok(match (kind, range) {
        (PixelKind::U8, Range::Auto) => None,
        (PixelKind::U8 | PixelKind::U16, Range::Between(low, high)) => Some([low, high]),
        (PixelKind::U16, Range::Auto) => {
            counted()?.filter(|ends| *ends != [0.0, 65535.0]).map(|[low, high]| {
                // Widened about its middle.
                let more = (0.5 * (LEAST_LEVELS - (high - low))).max(0.0);
                [low - more, high + more]
            })
        }
        (PixelKind::F32, Range::Between(low, high)) => Some([low, high]).filter(|ends| *ends != [0.0, 1.0]),
        (PixelKind::F32, Range::Auto) => counted()?.filter(|ends| *ends != [0.0, 1.0]),
    })
}

/// The image of one channel from black to white, and where it has holes the mask that excludes them.
fn scaled<'a>(
    mut image: AnyCow<'a>,
    mask: Option<ImageView<'_, u8>>,
    range: Range,
    cpu: &Cpu,
) -> Result<(AnyCow<'a>, Option<Image<u8>>)> {
    let view = image.view();
    let floats = if let AnyView::F32(image) = view { Some(Floats::count(image, mask, cpu)) } else { None };
    let ends = ends(view.pixel(), range, || match (view, &floats) {
        (AnyView::U16(image), _) => spread::of_levels(image, mask, cpu),
        (_, Some(floats)) => spread::of_counted(floats),
        (_, None) => Ok(None),
    })?;
    let has_holes = floats.is_some_and(|floats| floats.holes > 0);
    let stretch = match ends {
        None if !has_holes => return Ok((image, None)),
        None => None,
        Some(ends) => Some(Stretch::new(ends)),
    };
    let unit = |v: f32| stretch.map_or(v, |stretch| stretch.unit(v));
    let mut holes = None;
    if has_holes {
        let mut filled = image.into_image();
        if let AnyImage::F32(floats) = &mut filled {
            holes = Some(far_from(floats.view(), |v| !v.is_finite(), HOLE_MARGIN, cpu));
            fill(floats, &|_, _, v| v.is_finite(), cpu);
        }
        image = AnyCow::Owned(filled);
    }
    let level = |v: u16| u16::from_f32(unit(f32::from(v)) * u16::WHITE);
    let made: AnyImage = match image {
        AnyCow::Owned(AnyImage::U16(image)) => changed(image, level, cpu).into(),
        AnyCow::Owned(AnyImage::F32(image)) => changed(image, unit, cpu).into(),
        image => match image.view() {
            AnyView::U8(image) => mapped(image, |v| unit(f32::from(v)), cpu).into(),
            AnyView::U16(image) => mapped(image, level, cpu).into(),
            AnyView::F32(image) => mapped(image, unit, cpu).into(),
        },
    };
    Ok((AnyCow::Owned(made), holes))
}

/// The linear map that takes two values to 0 and 1.
#[derive(Clone, Copy)]
struct Stretch {
    low: f32,
    scale: f32,
}

impl Stretch {
    fn new([low, high]: [f32; 2]) -> Self {
        // The difference of two finite floats may overflow; that of their halves does not.
        Self { low, scale: 0.5 / (0.5 * high - 0.5 * low) }
    }

    /// (v − low) / (high − low), clamped to 0…1.
    fn unit(self, v: f32) -> f32 {
        ((v - self.low) * self.scale).clamp(0.0, 1.0)
    }
}

/// `f` of every pixel, in the same memory.
fn changed<T: Pixel>(mut image: Image<T>, f: impl Fn(T) -> T + Sync, cpu: &Cpu) -> Image<T> {
    let width = image.size().width;
    cpu.for_chunks(image.data_mut(), width, |_, row| row.iter_mut().for_each(|v| *v = f(*v)));
    image
}

/// `f` of every pixel.
pub(crate) fn mapped<T: Pixel, U: Pixel>(
    image: ImageView<'_, T>,
    f: impl Fn(T) -> U + Sync + Send,
    cpu: &Cpu,
) -> Image<U> {
    let mut out = Image::new(image.size());
    cpu.for_chunks(out.data_mut(), image.size().width, |y, row| {
        row.iter_mut().zip(image.row(y)).for_each(|(o, v)| *o = f(*v));
    });
    out
}

/// A mask that is 0 at every pixel with a hole within `margin` rows and columns, and 255 elsewhere.
pub(super) fn far_from<T: Pixel>(
    image: ImageView<'_, T>,
    is_hole: impl Fn(T) -> bool + Sync,
    margin: usize,
    cpu: &Cpu,
) -> Image<u8> {
    let Size { width, height } = image.size();
    let mut across = Image::filled(image.size(), 1, 255_u8);
    cpu.for_chunks(across.data_mut(), width, |y, row| {
        for (x, _) in image.row(y).iter().enumerate().filter(|(_, v)| is_hole(**v)) {
            row[x.saturating_sub(margin)..width.min(x + margin + 1)].fill(0);
        }
    });
    let mut out = Image::filled(image.size(), 1, 255_u8);
    cpu.for_chunks(out.data_mut(), width, |y, row| {
        for j in y.saturating_sub(margin)..height.min(y + margin + 1) {
            row.iter_mut().zip(across.row(j)).for_each(|(o, v)| *o &= v);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::with_alpha;

    fn floats(values: &[f32]) -> AnyImage {
        AnyImage::F32(Image::from_vec(values.to_vec(), Size::new(values.len(), 1), 1).unwrap())
    }

    fn prepared(image: &AnyImage, range: Range) -> (Vec<f32>, Option<Vec<u8>>) {
        let out = prepare(image, Mask::All, range, &Cpu::sequential()).unwrap();
        let values = match out.image.into_image() {
            AnyImage::U8(i) => i.data().iter().map(|v| v.unit()).collect(),
            AnyImage::U16(i) => i.data().iter().map(|v| v.unit()).collect(),
            AnyImage::F32(i) => i.into_vec(),
        };
        (values, out.mask.into_image().map(Image::into_vec))
    }

    #[test]
    fn scales() {
        assert_eq!(prepared(&floats(&[-10.0, 0.0, 30.0]), Range::Auto).0, [0.0, 0.25, 1.0], "stretched");
        assert_eq!(
            prepared(&floats(&[0.0, 5.0, 30.0]), Range::Between(0.0, 10.0)).0,
            [0.0, 0.5, 1.0],
            "given"
        );
        assert_eq!(prepared(&floats(&[7.0, 7.0]), Range::Auto).0, [7.0, 7.0], "flat: nothing to stretch");
        let middle = prepared(&floats(&[f32::MIN, 0.0, f32::MAX]), Range::Between(f32::MIN, f32::MAX)).0[1];
        assert!((middle - 0.5).abs() < 1e-6, "no overflow: {middle}");
        let sixteen =
            |v: &[u16]| AnyImage::U16(Image::from_vec(v.to_vec(), Size::new(v.len(), 1), 1).unwrap());
        assert_eq!(prepared(&sixteen(&[0, 65535]), Range::Auto).0, [0.0, 1.0], "16 bits");
        assert_eq!(prepared(&sixteen(&[0, 2047]), Range::Auto).0, [0.0, 1.0], "11 bits");
        let hardly = prepared(&sixteen(&[500, 508]), Range::Auto).0;
        assert_eq!(
            hardly,
            [24576.0 / 65535.0, 40959.0 / 65535.0],
            "hardly any contrast: 3/8 and 5/8 of white"
        );
        assert_eq!(prepared(&sixteen(&[700, 700]), Range::Auto).0, [700.0 / 65535.0; 2], "flat");
        let refused = |low, high| {
            prepare(floats(&[1.0]), Mask::All, Range::Between(low, high), &Cpu::sequential()).is_err()
        };
        assert!(refused(3.0, 3.0) && refused(f32::NAN, 3.0), "no width, NaN");
        let (image, mask) = (floats(&[1.0, 2.0]), Image::<u8>::new(Size::new(3, 1)));
        let refused = prepare(&image, mask.view(), Range::Auto, &Cpu::sequential());
        assert!(matches!(refused, Err(Error::Mismatch(_))), "a mask of another size");
    }

    #[test]
    fn holes() {
        let mut values = [0.5_f32; 20];
        values[3] = f32::NAN;
        values[2] = f32::INFINITY;
        let (filled, mask) = prepared(&floats(&values), Range::Auto);
        assert_eq!(filled, [0.5; 20], "filled");
        let mask = mask.unwrap();
        assert_eq!((&mask[..9], &mask[9..]), (&[0; 9][..], &[255; 11][..]), "five pixels around");
        let (empty, mask) = prepared(&floats(&[f32::NAN; 4]), Range::Auto);
        assert_eq!((empty, mask), (vec![0.0; 4], Some(vec![0; 4])), "nothing but holes");
    }

    #[test]
    fn colour_becomes_grey_and_transparent_pixels_do_not_count() {
        let (size, cpu) = (Size::new(30, 20), Cpu::sequential());
        let colour: AnyImage =
            Image::from_vec((0..1800).map(|i| (i * 37) as u16).collect(), size, 3).unwrap().into();
        let shown = Image::from_fn(size, |x, _| if x < 10 { 0_u8 } else { 255 });
        let given = Image::from_fn(size, |_, y| u8::from(y > 3));
        let both = Image::from_fn(size, |x, y| 255 * u8::from(x >= 15 && y > 3));
        let transparent = with_alpha(&colour, &shown).unwrap();
        for ours in [false, true] {
            let image = if ours { AnyCow::Owned(transparent.clone()) } else { (&transparent).into() };
            let found = prepare(image, given.view(), Range::Auto, &cpu).unwrap();
            assert_eq!(
                found.mask.view().map(|mask| mask.to_image()),
                Some(both.clone()),
                "neither masked nor near what is transparent"
            );
            let expected = prepare(&colour, both.view(), Range::Auto, &cpu).unwrap();
            let [AnyImage::U16(found), AnyImage::U16(expected)] =
                [found, expected].map(|made| made.image.into_image())
            else {
                panic!("16 bits stay")
            };
            for y in 0..size.height {
                assert_eq!(found.row(y)[10..], expected.row(y)[10..], "the range of what counts");
            }
        }
        let hidden = AnyImage::from(
            Image::from_vec(vec![9_u8, 255, 10, 255, 200, 0, 12, 255], Size::new(4, 1), 2).unwrap(),
        );
        let found = prepare(&hidden, Mask::All, Range::Auto, &cpu).unwrap().image.into_image();
        let filled = Image::from_vec(vec![9_u8, 10, 11, 12], Size::new(4, 1), 1).unwrap();
        assert_eq!(found, filled.into(), "from those beside");
        let opaque = with_alpha(&colour, &Image::filled(size, 1, 255)).unwrap();
        assert!(prepare(&opaque, Mask::All, Range::Auto, &cpu).unwrap().mask.view().is_none(), "opaque");
        let five = Image::<u8>::filled(size, 5, 1);
        assert!(
            matches!(prepare(&five, Mask::All, Range::Auto, &cpu), Err(Error::Image(_))),
            "five channels"
        );
    }

    #[test]
    fn an_owned_image_is_prepared_in_place() {
        let cpu = Cpu::with_threads(3).unwrap();
        let size = Size::new(37, 29);
        let noise = |x: usize, y: usize| (x * 7919 + y * 104_729 + x * y * 31) % 4001;
        let mask = Image::from_fn(size, |x, y| u8::from((x + y) % 5 != 0));
        let images: [AnyImage; 4] = [
            Image::from_fn(size, |x, y| noise(x, y) as u8).into(),
            Image::from_fn(size, |x, y| 300 + noise(x, y) as u16).into(),
            Image::from_fn(size, |x, y| noise(x, y) as f32 - 700.0).into(),
            Image::from_fn(size, |x, y| if noise(x, y) < 90 { f32::NAN } else { noise(x, y) as f32 }).into(),
        ];
        let address = |image: AnyView<'_>| match image {
            AnyView::U8(v) => v.row(0).as_ptr() as usize,
            AnyView::U16(v) => v.row(0).as_ptr() as usize,
            AnyView::F32(v) => v.row(0).as_ptr() as usize,
        };
        for (i, image) in images.iter().enumerate() {
            for range in [Range::Auto, Range::Between(20.0, 900.0)] {
                for mask in [None, Some(mask.view())] {
                    let expected = prepare(image, mask, range, &Cpu::sequential()).unwrap();
                    let ours = image.clone();
                    let before = address(ours.view());
                    let found = prepare(ours, mask, range, &cpu).unwrap();
                    let case = format!("image {i}, {range:?}, mask {}", mask.is_some());
                    let new = i == 0 && range != Range::Auto;
                    assert_eq!(address(found.image.view()) != before, new, "{case}: new memory");
                    assert_eq!(found.image.into_image(), expected.image.into_image(), "{case}");
                    assert_eq!(found.mask.into_image(), expected.mask.into_image(), "{case}");
                }
            }
        }
    }

    #[test]
    fn masks_grow_in_both_directions() {
        let mut image = Image::filled(Size::new(15, 13), 1, 0.5_f32);
        image.row_mut(6)[7] = f32::NAN;
        let mask = far_from(image.view(), |v| !v.is_finite(), 2, &Cpu::with_threads(2).unwrap());
        let expected = Image::from_fn(Size::new(15, 13), |x, y| {
            if (5..=9).contains(&x) && (4..=8).contains(&y) { 0 } else { 255 }
        });
        assert_eq!(mask, expected, "a square of 5 by 5");
    }
}
