//! Grey images, in their own type and in 8 bits, and which pixels hold data.

use super::mirrored;
use crate::device::Cpu;
use crate::image::{AnyImage, AnyView, Image, ImageView, Pixel, grey, grey_row};
use crate::{Result, by_pixel};

/// A grey image in its own type, which suffices for a census: it only compares which of two pixels is darker.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct Grey {
    pub(super) image: AnyImage,
    /// The number of bits beyond 8 of 16-bit grey made from 8-bit colour; `None` for other images.
    shift: Option<u32>,
}

impl Grey {
    /// The grey of an image; pixels that are not finite become 0. 8-bit colour gives 16-bit grey, 256 times as large,
    /// because rounding to 8 bits would make more pixels equal.
    pub(in crate::stereo) fn new(view: AnyView<'_>, cpu: &Cpu) -> Result<Self> {
        match view {
            AnyView::U8(v) if matches!(v.channels(), 3 | 4) => {
                Ok(Self { image: fine_grey(v, cpu)?.into(), shift: Some(8) })
            }
            view => Ok(Self::from_image(grey(view, cpu)?.into_image())),
        }
    }

    /// Differences up to this may be due to the rounding of 8-bit colours: half a step; 0 for grey images.
    pub(in crate::stereo) fn rounding(&self) -> u8 {
        self.shift.map_or(0, |shift| 1 << (shift - 1))
    }

    /// Takes a grey image as it is; floats that are not finite become 0.
    pub(in crate::stereo) fn from_image(mut image: AnyImage) -> Self {
        if let AnyImage::F32(i) = &mut image {
            i.data_mut().iter_mut().for_each(|v| *v = if v.is_finite() { *v } else { 0.0 });
        }
        Self { image, shift: None }
    }

    pub(in crate::stereo) fn mirrored(&self) -> Self {
        Self { image: by_pixel!(map &self.image, i => mirrored(i)), shift: self.shift }
    }
}

/// Rows that one task makes grey.
const ROWS: usize = 64;

/// The grey of colour in 8 bits, 256 times as large.
fn fine_grey(view: ImageView<'_, u8>, cpu: &Cpu) -> Result<Image<u16>> {
    let mut out = Image::new(view.size());
    cpu.for_bands(out.view_mut(), ROWS, |first, band| {
        let mut wide = vec![0; view.size().width * view.channels()];
        for (y, row) in (first..).zip(band.rows_mut()) {
            wide.iter_mut().zip(view.row(y)).for_each(|(o, &v)| *o = u16::from(v) << 8);
            grey_row(&wide, view.channels(), row);
        }
    })?;
    Ok(out)
}

/// Extends the range [low, high] to an image's values where the mask is not 0. Sixteen minima and maxima are kept side
/// by side, which the compiler turns into SIMD.
fn extremes<T: Pixel + PartialOrd>(
    image: &Image<T>,
    mask: Option<&Image<u8>>,
    [low, high]: [T; 2],
) -> [T; 2] {
    let less = |a: T, b: T| if b < a { b } else { a };
    let greater = |a: T, b: T| if b > a { b } else { a };
    if let Some(mask) = mask {
        let n = image.size().width / mask.size().width;
        let rows = (0..mask.size().height).map(|y| image.row(y).chunks_exact(n).zip(mask.row(y)));
        let held = rows.flatten().filter(|(_, m)| **m != 0).flat_map(|(values, _)| values.iter().copied());
        return held.fold([low, high], |[low, high], v| [less(low, v), greater(high, v)]);
    }
    let (sixteens, rest) = image.data().as_chunks::<16>();
    let (mut least, mut greatest) = ([low; 16], [high; 16]);
    for numbers in sixteens {
        least.iter_mut().zip(numbers).for_each(|(least, v)| *least = less(*least, *v));
        greatest.iter_mut().zip(numbers).for_each(|(greatest, v)| *greatest = greater(*greatest, *v));
    }
    [
        least.iter().chain(rest).copied().fold(low, less),
        greatest.iter().chain(rest).copied().fold(high, greater),
    ]
}

/// Grey in 8 bits, for costs that compare values and for the gradient.
///
/// 8-bit values do not change. 16-bit values are divided by 256, or by 4, 8 or 16 if no value of the pair exceeds 10,
/// 11 or 12 bits. Floats are mapped linearly to 0 to 255, from the range 0 to 1, extended to lesser and greater values
/// of the pair if there are any. If all values lie within a quarter of their range from 0, as temperatures in kelvins
/// do, the range from the least to the greatest value is used instead. Pixels without data do not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::stereo) struct Bytes {
    /// What is subtracted from 16-bit values, and by how many bits the difference is shifted right.
    least: u16,
    shift: u32,
    /// What is subtracted from floats, and the factor by which the difference is multiplied.
    low: f32,
    scale: f32,
}

impl Bytes {
    /// The scale for all of these images, which may have several values for each pixel of their masks.
    pub(in crate::stereo) fn of<'a>(
        greys: impl IntoIterator<Item = (&'a Grey, Option<&'a Image<u8>>)>,
    ) -> Self {
        let (mut words, mut floats) = ([u16::MAX, 0], [f32::INFINITY, f32::NEG_INFINITY]);
        for (grey, mask) in greys {
            match &grey.image {
                AnyImage::U16(i) if grey.shift.is_none() => words = extremes(i, mask, words),
                AnyImage::F32(i) => floats = extremes(i, mask, floats),
                AnyImage::U8(_) | AnyImage::U16(_) => {}
            }
        }
        let [least, most] = if words[0] > words[1] { [0, 0] } else { words };
        let least = if u32::from(most - least) < u32::from(most) / 4 { least } else { 0 };
        let shift = [(1023, 2), (2047, 3), (4095, 4)].iter().find(|s| most - least <= s.0).map_or(8, |s| s.1);
        // Halved: the difference of two finite floats may overflow.
        let apart = |[low, high]: [f32; 2]| 0.5 * high - 0.5 * low;
        let whole = [floats[0].min(0.0), floats[1].max(1.0)];
        let is_narrow = floats[0] < floats[1] && apart(floats) < 0.25 * apart(whole);
        let range = if is_narrow { floats } else { whole };
        Self { least, shift, low: range[0], scale: 127.5 / apart(range) }
    }

    /// As [`image`](Self::image), without copying 8-bit images.
    pub(in crate::stereo) fn convert(self, grey: Grey, cpu: &Cpu) -> Image<u8> {
        match grey.image {
            AnyImage::U8(image) => image,
            AnyImage::U16(_) | AnyImage::F32(_) => self.image(&grey, cpu),
        }
    }

    /// The image on this scale.
    pub(in crate::stereo) fn image(self, grey: &Grey, cpu: &Cpu) -> Image<u8> {
        let mut out = Image::new(grey.image.size());
        let width = out.size().width;
        cpu.for_chunks(out.data_mut(), width, |y, row| match &grey.image {
            AnyImage::U8(i) => row.copy_from_slice(i.row(y)),
            AnyImage::U16(i) => {
                let (least, shift) = grey.shift.map_or((self.least, self.shift), |shift| (0, shift));
                let byte = |v: u16| (v.saturating_sub(least) >> shift).min(255) as u8;
                row.iter_mut().zip(i.row(y)).for_each(|(o, &v)| *o = byte(v));
            }
            AnyImage::F32(i) => {
                let byte = |v: f32| ((v - self.low) * self.scale).clamp(0.0, 255.0) as u8;
                row.iter_mut().zip(i.row(y)).for_each(|(o, &v)| *o = byte(v));
            }
        });
        out
    }
}
