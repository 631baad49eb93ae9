//! How values are shown in 8 bits. Drawings, reports and the colours of points all use it.

use super::{AnyView, ImageView, Pixel};
use crate::by_pixel;

/// A linear map from the values of an image to shades, 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shades {
    low: f32,
    scale: f32,
}

/// Of a larger image at least this many pixels are sampled to find the lowest and the highest thousandth.
const COUNTED: usize = 1 << 17;

impl Shades {
    /// 8 bits are shown as they are. Otherwise black and white are the lowest and the highest thousandth of the finite
    /// values, in pixels that are not transparent and where `mask` is not 0. Floats that all lie between 0 and 1, and
    /// images of one value, keep the whole range of their type.
    ///
    /// # Panics
    /// For a mask smaller than the image.
    pub fn of<'a>(image: impl Into<AnyView<'a>>, mask: Option<ImageView<'_, u8>>) -> Self {
        by_pixel!(image.into(), view => Self::of_view(view, mask))
    }

    fn of_view<T: Pixel>(view: ImageView<'_, T>, mask: Option<ImageView<'_, u8>>) -> Self {
        let whole = Self { low: 0.0, scale: 255.0 / T::WHITE };
        if T::WHITE == 255.0 {
            return whole;
        }
        let (size, n) = (view.size(), view.channels());
        let alpha = matches!(n, 2 | 4);
        // One pixel in `every` is sampled; of these, the ones that are shown give the thousandths.
        let every = (size.area() / COUNTED).max(1);
        let mut values = Vec::new();
        for at in (0..size.area()).step_by(every) {
            let (x, y) = (at % size.width, at / size.width);
            let pixel = &view.row(y)[n * x..n * (x + 1)];
            let (colours, shown) = match alpha {
                true => (&pixel[..n - 1], pixel[n - 1].to_f32() > 0.0),
                false => (pixel, true),
            };
            if shown && mask.is_none_or(|mask| mask.row(y)[x] != 0) {
                values.extend(colours.iter().map(|v| v.to_f32()).filter(|v| v.is_finite()));
            }
        }
        values.sort_unstable_by(f32::total_cmp);
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return whole };
        if T::WHITE == 1.0 && *first >= 0.0 && *last <= 1.0 {
            return whole;
        }
        let at = |share: usize| values[(values.len() * share / 1000).min(values.len() - 1)];
        let (low, high) = (at(1), at(999));
        if low < high { Self { low, scale: 255.0 / (high - low) } } else { whole }
    }

    /// The shade of a value, not rounded; 0 to 255, and beyond for values beyond black and white.
    pub fn shade<T: Pixel>(self, value: T) -> f32 {
        (value.to_f32() - self.low) * self.scale
    }

    /// The shade of a value, rounded and clamped.
    pub fn byte<T: Pixel>(self, value: T) -> u8 {
        u8::from_f32(self.shade(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Image, Size};

    fn shown<T: Pixel>(image: &Image<T>, mask: Option<&Image<u8>>) -> Vec<u8> {
        let shades = Shades::of(image, mask.map(Image::view));
        image.data().iter().map(|v| shades.byte(*v)).collect()
    }

    #[test]
    fn words_and_floats_are_stretched() {
        let of = |values: &[f32]| Image::from_vec(values.to_vec(), Size::new(values.len(), 1), 1).unwrap();
        assert_eq!(shown(&of(&[0.0, 0.25, 0.5]), None), [0, 64, 128], "0 to 1 as it is");
        let wide = of(&[f32::NAN, -50.0, 150.0, f32::INFINITY]);
        assert_eq!(shown(&wide, None), [0, 0, 255, 255], "what is not finite is black or white");
        let words = Image::from_vec(vec![0_u16, 1000, 4000, 9], Size::new(4, 1), 1).unwrap();
        let mask = Image::from_vec(vec![0, 1, 1, 0], Size::new(4, 1), 1).unwrap();
        assert_eq!(shown(&words, Some(&mask)), [0, 0, 255, 0], "12 bits, where the mask says");
        let bytes = Image::from_vec(vec![3_u8, 9], Size::new(2, 1), 1).unwrap();
        assert_eq!(shown(&bytes, None), [3, 9], "bytes as they are");
        assert_eq!(shown(&Image::filled(Size::new(2, 1), 1, 0xabcd_u16), None), [0xab; 2], "one value");
        let clear = Image::from_vec(vec![500_u16, 0, 1000, 9, 3000, 9], Size::new(3, 1), 2).unwrap();
        assert_eq!(Shades::of(&clear, None).byte(1000_u16), 0, "not what is transparent");
    }
}
