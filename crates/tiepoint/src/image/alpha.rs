//! The alpha channel as a mask, the last of two channels (after grey) or four; and the colours of transparent pixels.

use super::{AnyImage, AnyView, Image, ImageView, Pixel, Size, check_mask};
use crate::{Result, by_pixel};

/// A mask of the pixels that are not transparent: 255 where alpha is above 0, 0 elsewhere. `None` when the image has no
/// alpha channel, or no transparent pixel.
pub fn alpha_mask<'a>(image: impl Into<AnyView<'a>>) -> Option<Image<u8>> {
    let image = image.into();
    if !matches!(image.channels(), 2 | 4) {
        return None;
    }
    let (size, n) = (image.size(), image.channels());
    let mask = by_pixel!(image, view => Image::from_fn(size, |x, y| {
        255 * u8::from(view.row(y)[n * x + n - 1].to_f32() > 0.0)
    }));
    mask.data().contains(&0).then_some(mask)
}

/// The image with `mask` as its alpha channel: opaque, or 0 where the mask is 0. An alpha channel that is there already
/// keeps its values where the mask is not 0. An image of more than four channels is returned unchanged.
///
/// # Errors
/// [`Error::Mismatch`](crate::Error::Mismatch) for a mask of another size.
pub fn with_alpha<'a>(image: impl Into<AnyView<'a>>, mask: &Image<u8>) -> Result<AnyImage> {
    let image = image.into();
    check_mask(Some(mask.view()), image.size())?;
    Ok(by_pixel!(image, view => with_channel(view, mask).into()))
}

fn with_channel<T: Pixel>(image: ImageView<'_, T>, mask: &Image<u8>) -> Image<T> {
    let (n, opaque) = (image.channels(), T::from_f32(T::WHITE));
    let colours = if n.is_multiple_of(2) { n - 1 } else { n };
    if !matches!(n, 1..=4) {
        return image.to_image();
    }
    let mut out = Image::filled(image.size(), colours + 1, T::default());
    for y in 0..image.size().height {
        let pixels = image.row(y).chunks_exact(n).zip(mask.row(y));
        for (to, (from, m)) in out.row_mut(y).chunks_exact_mut(colours + 1).zip(pixels) {
            to[..colours].copy_from_slice(&from[..colours]);
            to[colours] = match m {
                0 => T::default(),
                _ => from.get(colours).copied().unwrap_or(opaque),
            };
        }
    }
    out
}

/// The greatest distance, along an axis, between two pixels from which one output pixel is interpolated.
const REACH: usize = 5;

/// The image, made ready for a warp: transparent pixels near visible ones have the mean of these as their colour, because
/// interpolation mixes the colours of neighbours. `None` if no pixel is transparent.
pub fn spread_colours<'a>(image: impl Into<AnyView<'a>>) -> Option<AnyImage> {
    let image = image.into();
    let (valid, mut spread) = (alpha_mask(image)?, image.to_image());
    let alpha = spread.channels() - 1;
    by_pixel!(&mut spread, spread => spread_values(spread, alpha, valid));
    Some(spread)
}

/// Gives transparent pixels within [`REACH`] of valid ones the mean of valid neighbours in every channel but alpha.
pub(super) fn spread_values<T: Pixel>(image: &mut Image<T>, alpha: usize, mut valid: Image<u8>) {
    let (Size { width, height }, n) = (image.size(), image.channels());
    let around = |(x, y): (usize, usize)| {
        let columns = x.saturating_sub(1)..(x + 2).min(width);
        (y.saturating_sub(1)..(y + 2).min(height)).flat_map(move |y| columns.clone().map(move |x| (x, y)))
    };
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let is_valid = |valid: &Image<u8>, (x, y): (usize, usize)| valid.row(y)[x] != 0;
    let mut edge: Vec<_> =
        places.filter(|&at| !is_valid(&valid, at) && around(at).any(|at| is_valid(&valid, at))).collect();
    for _ in 0..REACH {
        edge.retain(|&(x, y)| !is_valid(&valid, (x, y)) && image.row(y)[x * n + alpha].to_f32() <= 0.0);
        for &at in &edge {
            for channel in (0..n).filter(|channel| *channel != alpha) {
                let near = around(at).filter(|&at| is_valid(&valid, at));
                let sum = |(sum, count), (x, y): (usize, usize)| {
                    (sum + image.row(y)[x * n + channel].to_f32(), count + 1.0)
                };
                let (sum, count) = near.fold((0.0, 0.0), sum);
                image.row_mut(at.1)[at.0 * n + channel] = T::from_f32(sum / count);
            }
        }
        edge.iter().for_each(|&(x, y)| valid.row_mut(y)[x] = 255);
        edge = edge.iter().flat_map(|&at| around(at)).collect();
        edge.sort_unstable();
        edge.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;

    #[test]
    fn a_mask_becomes_alpha_and_comes_back() {
        let size = Size::new(5, 3);
        let mask = Image::from_fn(size, |x, y| if x == y { 0_u8 } else { 255 });
        for channels in 1..=4 {
            let images: [AnyImage; 3] = [
                Image::filled(size, channels, 9_u8).into(),
                Image::filled(size, channels, 900_u16).into(),
                Image::filled(size, channels, 0.5_f32).into(),
            ];
            for image in &images {
                assert_eq!(alpha_mask(image), None, "opaque, or none");
                let masked = with_alpha(image, &mask).unwrap();
                assert_eq!(masked.channels(), if channels < 3 { 2 } else { 4 }, "{channels}");
                assert_eq!(alpha_mask(&masked).unwrap(), mask, "{channels}");
                let again = with_alpha(&masked, &Image::filled(size, 1, 255)).unwrap();
                assert_eq!(again, masked, "transparent pixels became opaque");
            }
        }
        let small = Image::<u8>::new(Size::new(1, 1));
        assert!(with_alpha(&Image::<u8>::new(size), &small).is_err(), "another size");
    }
}
