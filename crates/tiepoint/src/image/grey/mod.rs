//! Grey by Rec. 709 luma: Y = 0.2126 R + 0.7152 G + 0.0722 B.
//!
//! Integers are computed exactly, as (2126 R + 7152 G + 722 B + 5000) / 10000 rounded down; floats as
//! fma(0.0722, B, fma(0.7152, G, 0.2126 · R)). An alpha channel is ignored: two channels are grey and alpha,
//! four are R, G, B and alpha.

pub(crate) mod gpu;

pub use gpu::grey_on_device;
pub(crate) use gpu::luma_for_kernels;

use crate::image::{AnyCow, AnyView, Image, ImageView, Pixel};
use crate::{Error, Result, by_pixel, device::Cpu};

/// Weights of red, green and blue.
pub(super) const LUMA: [f32; 3] = [0.2126, 0.7152, 0.0722];

/// Luma of integers, which never exceeds the largest of the three.
#[inline(always)]
pub(super) fn level([r, g, b]: [u32; 3]) -> u32 {
    (2126 * r + 7152 * g + 722 * b + 5000) / 10000
}

/// Luma of a row of `N` channels, of which the first three are red, green and blue.
fn luma_row<T: Pixel, const N: usize>(source: &[T], out: &mut [T]) {
    let pixels = source.as_chunks::<N>().0;
    out.iter_mut().zip(pixels).for_each(|(o, p)| *o = T::luma([p[0], p[1], p[2]]));
}

/// Converts a row of 1 to 4 channels to grey.
pub(crate) fn grey_row<T: Pixel>(source: &[T], channels: usize, out: &mut [T]) {
    match channels {
        1 | 2 => out.iter_mut().zip(source.chunks_exact(channels)).for_each(|(o, p)| *o = p[0]),
        3 => luma_row::<T, 3>(source, out),
        _ => luma_row::<T, 4>(source, out),
    }
}

/// Converts a row of R, G, B and alpha to grey and alpha.
pub(in crate::image) fn grey_alpha_row<T: Pixel>(source: &[T], out: &mut [T]) {
    for (o, p) in out.as_chunks_mut::<2>().0.iter_mut().zip(source.as_chunks::<4>().0) {
        grey_row(p, 4, &mut o[..1]);
        o[1] = p[3];
    }
}

/// Fails unless grey is defined for this many channels.
pub(crate) fn check_channels(channels: usize) -> Result<()> {
    match channels {
        1..=4 => Ok(()),
        _ => Err(Error::Image(format!(
            "{channels} channels: grey is defined for 1 to 4; choose bands, or of a stack of images one"
        ))),
    }
}

/// Rows that a task converts.
const ROWS: usize = 64;

fn grey_view<T: Pixel>(view: ImageView<'_, T>, cpu: &Cpu) -> Result<Image<T>> {
    let mut out = Image::new(view.size());
    cpu.for_bands(out.view_mut(), ROWS, |first, band| {
        for (y, row) in (first..).zip(band.rows_mut()) {
            grey_row(view.row(y), view.channels(), row);
        }
    })?;
    Ok(out)
}

/// `image` in grey, in the same pixel type. A grey image is returned as it is.
///
/// # Errors
/// [`Error::Image`] for more than four channels.
pub fn grey<'a>(image: impl Into<AnyView<'a>>, cpu: &Cpu) -> Result<AnyCow<'a>> {
    let image = image.into();
    check_channels(image.channels())?;
    if image.channels() == 1 {
        return Ok(AnyCow::Borrowed(image));
    }
    Ok(AnyCow::Owned(by_pixel!(image, view => grey_view(view, cpu)?.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{AnyImage, Size};

    #[test]
    fn luma_of_the_primaries() {
        let cpu = Cpu::sequential();
        let pixels = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [3, 3, 3]];
        for channels in [3, 4] {
            let data: Vec<u8> =
                pixels.iter().flat_map(|p| [&p[..], &[9]].concat()[..channels].to_vec()).collect();
            let image = Image::from_vec(data.clone(), Size::new(5, 1), channels).unwrap();
            let found = grey(&image, &cpu).unwrap().into_image();
            let expected = Image::from_vec(vec![54, 182, 18, 255, 3], Size::new(5, 1), 1).unwrap();
            assert_eq!(found, AnyImage::U8(expected), "8 bits, {channels} channels");

            let deep = data.iter().map(|v| u16::from(*v) * 257).collect();
            let image = Image::from_vec(deep, Size::new(5, 1), channels).unwrap();
            let found = grey(&image, &cpu).unwrap().into_image();
            let expected = vec![13933, 46871, 4732, 65535, 771];
            let expected = Image::from_vec(expected, Size::new(5, 1), 1).unwrap();
            assert_eq!(found, AnyImage::U16(expected), "16 bits, {channels} channels");

            let float = data.iter().map(|v| f32::from(*v) / 255.0).collect();
            let image = Image::from_vec(float, Size::new(5, 1), channels).unwrap();
            let AnyCow::Owned(AnyImage::F32(found)) = grey(&image, &cpu).unwrap() else {
                panic!("not float")
            };
            for (v, e) in found.data().iter().zip([0.2126, 0.7152, 0.0722, 1.0, 3.0 / 255.0]) {
                assert!((v - e).abs() < 1e-6, "float, {channels} channels: {v} for {e}");
            }
        }
        let five = Image::filled(Size::new(2, 2), 5, 0_u8);
        assert!(grey(&five, &cpu).is_err(), "five channels");
        let one = Image::filled(Size::new(2, 2), 1, 7_u8);
        assert!(matches!(grey(&one, &cpu), Ok(AnyCow::Borrowed(_))), "grey already");
    }
}
