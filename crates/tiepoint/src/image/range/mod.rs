//! Which values are black and white, and which pixels hold no data.
//!
//! Detectors take an image from black (0) to white (255, 65535 or 1). Measured data keep to other ranges:
//! float rasters hold metres or reflectances and mark holes by NaN, 12-bit sensors fill a sixteenth of 16 bits.
//! [`prepare`] brings them to the scale that detectors expect and masks the holes.

mod gpu;
mod spread;

pub use gpu::prepare_on_device;

use super::{AnyCow, AnyView, Image, ImageView, Pixel, Size, check_mask};
use crate::{Error, Result, device::Cpu};

/// Which values become black and white.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Range {
    /// 8 bits: as they are. 16 bits and floats: from the 1st to the 99th percentile of what the image holds, widened on
    /// either side by a quarter of their distance, but not beyond the least and greatest value. NaN, infinities and
    /// masked pixels do not count; neither does the very least or greatest value where more than one pixel in a
    /// hundred holds it (marks of no data, saturation). Of 16 bits no fewer than 32 values are stretched.
    /// Percentiles are exact: the same for any number of threads.
    ///
    /// Each image of a pair has its own range: where the light changes (leuven 1–4 to 1–6, 8 bits stretched likewise) that
    /// gives 834, 735 and 609 inliers, one range for both 810, 694 and 509, and the corner error falls from 0.96 to
    /// 0.65 px; on boat and graf all are the same. 8 bits stay as they are for the sake of other programs' features and
    /// of speed; for dark pictures give [`Between`](Self::Between).
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

/// An image on the scale of its type, and where it holds something.
#[derive(Clone, Debug)]
pub struct Prepared<'a> {
    /// One channel, from black to white; f32 when it had to be stretched.
    pub image: AnyCow<'a>,
    /// 0 on pixels that are NaN or infinite and on those up to [`HOLE_MARGIN`] pixels from them, 255 elsewhere;
    /// `None` when there are no such pixels.
    pub mask: Option<Image<u8>>,
}

/// Pixels around a hole in which no keypoint is kept, because the filled pixels change the derivatives there.
pub const HOLE_MARGIN: usize = 5;

/// Brings a grey image to the scale that detectors expect. Holes (NaN, infinities) are filled with the mean of
/// the finite pixels, which keeps the edges that they add weak. Where `mask` is 0 pixels have no say in the range.
///
/// # Errors
/// [`Error::Image`] for several channels; as [`Range::check`]; [`Error::Mismatch`] for a mask of another size.
pub fn prepare<'a>(
    image: impl Into<AnyView<'a>>,
    mask: Option<ImageView<'_, u8>>,
    range: Range,
    cpu: &Cpu,
) -> Result<Prepared<'a>> {
    prepare_view(image.into(), mask, range, cpu)
}

fn prepare_view<'a>(
    image: AnyView<'a>,
    mask: Option<ImageView<'_, u8>>,
    range: Range,
    cpu: &Cpu,
) -> Result<Prepared<'a>> {
    range.check()?;
    check_mask(mask, image.size())?;
    if image.channels() != 1 {
        return Err(Error::Image(format!("expected one channel, found {}", image.channels())));
    }
    let _stage = cpu.stage("range");
    let unchanged = Prepared { image: AnyCow::Borrowed(image), mask: None };
    let stretched = |image: Image<f32>| Prepared { image: AnyCow::Owned(image.into()), mask: None };
    Ok(match (image, range) {
        (AnyView::U8(v), Range::Between(low, high)) => stretched(stretch(v, low, high, cpu)),
        (AnyView::U16(v), Range::Between(low, high)) => stretched(stretch(v, low, high, cpu)),
        (AnyView::U16(v), Range::Auto) => match spread::of(v, mask, cpu) {
            None | Some([0.0, 65535.0]) => unchanged,
            Some(ends) => {
                let [low, high] = no_narrower(ends, LEAST_LEVELS);
                stretched(stretch(v, low, high, cpu))
            }
        },
        (AnyView::F32(v), _) => prepare_float(v, mask, range, cpu),
        (AnyView::U8(_), Range::Auto) => unchanged,
    })
}

/// 16-bit values that are stretched from black to white at least: of fewer most is noise.
const LEAST_LEVELS: f32 = 32.0;

/// The range about the same middle, at least `width` wide.
fn no_narrower([low, high]: [f32; 2], width: f32) -> [f32; 2] {
    let more = (0.5 * (width - (high - low))).max(0.0);
    [low - more, high + more]
}

fn values<T: Pixel>(image: ImageView<'_, T>) -> impl Iterator<Item = T> {
    (0..image.size().height).flat_map(move |y| image.row(y).iter().copied())
}

/// (v − low) / (high − low), clamped to 0…1.
fn stretch<T: Pixel>(image: ImageView<'_, T>, low: f32, high: f32, cpu: &Cpu) -> Image<f32> {
    let mut out = Image::new(image.size());
    // Halved first: the difference of two finite floats may overflow.
    let scale = 0.5 / (0.5 * high - 0.5 * low);
    cpu.for_chunks(out.data_mut(), image.size().width, |y, row| {
        let pixels = row.iter_mut().zip(image.row(y));
        pixels.for_each(|(o, v)| *o = ((v.to_f32() - low) * scale).clamp(0.0, 1.0));
    });
    out
}

fn prepare_float<'a>(
    view: ImageView<'a, f32>,
    mask: Option<ImageView<'_, u8>>,
    range: Range,
    cpu: &Cpu,
) -> Prepared<'a> {
    let (mut sum, mut count) = (0.0_f64, 0_usize);
    for v in values(view).filter(|v| v.is_finite()) {
        sum += f64::from(v);
        count += 1;
    }
    let holes = count < view.size().area();
    let valid = holes.then(|| far_from(view, |v| !v.is_finite(), HOLE_MARGIN, cpu));
    let filled = holes.then(|| {
        let mean = if count == 0 { 0.0 } else { (sum / count as f64) as f32 };
        let mut image = view.to_image();
        image.data_mut().iter_mut().filter(|v| !v.is_finite()).for_each(|v| *v = mean);
        image
    });
    let (low, high) = match range {
        Range::Between(low, high) => (low, high),
        Range::Auto => spread::of(view, mask, cpu).map_or((0.0, 1.0), |[low, high]| (low, high)),
    };
    let image = match filled {
        _ if (low, high) != (0.0, 1.0) => {
            let image = filled.as_ref().map_or(view, Image::view);
            AnyCow::Owned(stretch(image, low, high, cpu).into())
        }
        Some(filled) => AnyCow::Owned(filled.into()),
        None => AnyCow::Borrowed(view.into()),
    };
    Prepared { image, mask: valid }
}

/// The mask without the [`HOLE_MARGIN`] pixels next to those where it is 0: where a detector finds nothing that what the
/// mask hides brought about.
pub fn without_margin(mask: ImageView<'_, u8>, cpu: &Cpu) -> Image<u8> {
    far_from(mask, |m| m == 0, HOLE_MARGIN, cpu)
}

/// 255 where no pixel of the square of `margin` pixels around is a hole, 0 elsewhere.
fn far_from<T: Pixel>(
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
    use crate::image::AnyImage;

    fn floats(values: &[f32]) -> AnyImage {
        AnyImage::F32(Image::from_vec(values.to_vec(), Size::new(values.len(), 1), 1).unwrap())
    }

    fn prepared(image: &AnyImage, range: Range) -> (Vec<f32>, Option<Vec<u8>>) {
        let out = prepare(image, None, range, &Cpu::sequential()).unwrap();
        let values = match out.image.into_image() {
            AnyImage::U8(i) => i.data().iter().map(|v| v.unit()).collect(),
            AnyImage::U16(i) => i.data().iter().map(|v| v.unit()).collect(),
            AnyImage::F32(i) => i.into_vec(),
        };
        (values, out.mask.map(Image::into_vec))
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
        assert_eq!(prepared(&sixteen(&[500, 508]), Range::Auto).0, [0.375, 0.625], "hardly any contrast");
        assert_eq!(prepared(&sixteen(&[700, 700]), Range::Auto).0, [700.0 / 65535.0; 2], "flat");
        let refused = |low, high| {
            prepare(&floats(&[1.0]), None, Range::Between(low, high), &Cpu::sequential()).is_err()
        };
        assert!(refused(3.0, 3.0) && refused(f32::NAN, 3.0), "no width, NaN");
        let (image, mask) = (floats(&[1.0, 2.0]), Image::<u8>::new(Size::new(3, 1)));
        let refused = prepare(&image, Some(mask.view()), Range::Auto, &Cpu::sequential());
        assert!(matches!(refused, Err(Error::Mismatch(_))), "a mask of another size");
    }

    #[test]
    fn holes() {
        let mut values = [0.5_f32; 20];
        values[3] = f32::NAN;
        values[2] = f32::INFINITY;
        let (filled, mask) = prepared(&floats(&values), Range::Auto);
        assert_eq!(filled, [0.5; 20], "filled with the mean");
        let mask = mask.unwrap();
        assert_eq!((&mask[..9], &mask[9..]), (&[0; 9][..], &[255; 11][..]), "five pixels around");
        let (empty, mask) = prepared(&floats(&[f32::NAN; 4]), Range::Auto);
        assert_eq!((empty, mask), (vec![0.0; 4], Some(vec![0; 4])), "nothing but holes");
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
