//! Which pixels of an image count, from everything that is known: a mask, its alpha channel, a no-data value.

use super::{
    AnyImage, AnyView, Image, ImageView, Pixel, ReadOptions, Size, alpha_mask, check_mask, decode_grey_alpha,
    grey, no_data, range::far_from, read_grey,
};
use crate::{Error, Result, by_pixel, device::Cpu};
use std::path::Path;

/// Whether all numbers are finite. Tests every one without branches, so that the compiler can vectorise it.
pub(crate) fn are_finite(numbers: &[f32]) -> bool {
    numbers.iter().fold(true, |all, v| all & v.is_finite())
}

/// Why no features can be found in a grey image whose pixels count where `mask` is not 0; `None` if some may be.
///
/// # Panics
/// For a mask smaller than the image.
pub fn shows_nothing<'a>(
    image: impl Into<AnyView<'a>>,
    mask: Option<ImageView<'_, u8>>,
) -> Option<&'static str> {
    by_pixel!(image.into(), view => {
        let mut shown = (0..view.size().height).flat_map(|y| {
            let row = view.row(y).iter().enumerate();
            row.filter(move |(x, _)| mask.is_none_or(|mask| mask.row(y)[*x] != 0)).map(|(_, v)| v)
        });
        match shown.next() {
            None => Some("it has no data, or its mask leaves nothing"),
            Some(first) => shown.all(|v| v == first).then_some("all of its pixels have one value"),
        }
    })
}

/// Which pixels of an image count: all, or those where a mask of its size is not 0.
#[derive(Clone, Debug, Default)]
pub enum Mask<'a> {
    /// Every pixel.
    #[default]
    All,
    /// A mask that was given.
    Borrowed(ImageView<'a, u8>),
    /// A mask that was made.
    Owned(Image<u8>),
}

impl<'a> Mask<'a> {
    /// The pixels whose alpha is not 0 and whose channels are not all `no_data`.
    pub fn of_data<'i>(image: impl Into<AnyView<'i>>, no_data: Option<f32>) -> Self {
        let image = image.into();
        let mut shown = alpha_mask(image);
        if let Some(no_data) = no_data {
            let shown = shown.get_or_insert_with(|| Image::filled(image.size(), 1, 255));
            by_pixel!(image, view => no_data::hide(shown, view, no_data));
        }
        shown.into()
    }

    /// The pixels whose channels are all finite: float images mark missing data by NaN or infinity.
    pub fn of_finite<'i>(image: impl Into<AnyView<'i>>) -> Self {
        let AnyView::F32(image) = image.into() else { return Self::All };
        let (size, n) = (image.size(), image.channels());
        if (0..size.height).all(|y| are_finite(image.row(y))) {
            return Self::All;
        }
        let is_finite = |x: usize, y: usize| are_finite(&image.row(y)[x * n..][..n]);
        Image::from_fn(size, |x, y| if is_finite(x, y) { 255 } else { 0 }).into()
    }

    /// The mask in the file at `path`, of an image of this size: pixels count where it is neither 0 nor NaN. A colour mask is
    /// converted to grey.
    ///
    /// # Errors
    /// As [`read_grey`]; [`Error::Mismatch`] for a mask of another size.
    pub fn read(
        path: impl AsRef<Path>,
        image: Size,
        options: &ReadOptions,
        cpu: &Cpu,
    ) -> Result<Mask<'static>> {
        let path = path.as_ref();
        Self::of_size(&read_grey(path, options, cpu)?, path, image)
    }

    /// As [`read`](Self::read), from `bytes`, the content of the file at `path`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn decode(
        bytes: &[u8],
        path: impl AsRef<Path>,
        image: Size,
        options: &ReadOptions,
        cpu: &Cpu,
    ) -> Result<Mask<'static>> {
        let path = path.as_ref();
        let mask = decode_grey_alpha(bytes, path, options)?.image;
        let made = grey(&mask, cpu)?.into_owned();
        Self::of_size(&made.unwrap_or(mask), path, image)
    }

    pub(super) fn of_size(mask: &AnyImage, path: &Path, image: Size) -> Result<Mask<'static>> {
        fn counts<T: Pixel>(mask: ImageView<'_, T>) -> Image<u8> {
            let counts = |v: f32| v != 0.0 && !v.is_nan();
            Image::from_fn(mask.size(), |x, y| if counts(mask.row(y)[x].to_f32()) { 255 } else { 0 })
        }
        match mask.size() == image {
            true => Ok(by_pixel!(mask.view(), view => counts(view)).into()),
            false => {
                let (path, size) = (path.display(), mask.size());
                Err(Error::Mismatch(format!("{path}: the mask is {size}, its image {image}")))
            }
        }
    }

    /// The pixels that count in both masks.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for masks of two sizes.
    pub fn and(self, other: impl Into<Self>) -> Result<Self> {
        let (mut both, other) = match (self, other.into()) {
            (Self::All, mask) | (mask, Self::All) => return Ok(mask),
            (Self::Owned(both), other) | (other, Self::Owned(both)) => (both, other),
            (Self::Borrowed(view), other) => (view.to_image(), other),
        };
        let Some(other) = other.view() else { return Ok(both.into()) };
        check_mask(Some(other), both.size())?;
        for y in 0..other.size().height {
            let pixels = both.row_mut(y).iter_mut().zip(other.row(y));
            pixels.filter(|(_, o)| **o == 0).for_each(|(b, _)| *b = 0);
        }
        Ok(both.into())
    }

    /// The pixels that count and are more than `margin` rows or columns away from every pixel that does not.
    #[must_use]
    pub fn without_margin(self, margin: usize, cpu: &Cpu) -> Self {
        match self.view() {
            Some(view) if margin > 0 => far_from(view, |m| m == 0, margin, cpu).into(),
            _ => self,
        }
    }

    /// An image that is 0 where pixels do not count; `None` where all do.
    pub fn view(&self) -> Option<ImageView<'_, u8>> {
        match self {
            Self::All => None,
            Self::Borrowed(view) => Some(*view),
            Self::Owned(mask) => Some(mask.view()),
        }
    }

    /// As [`view`](Self::view), as an image of its own.
    pub fn into_image(self) -> Option<Image<u8>> {
        match self {
            Self::All => None,
            Self::Borrowed(view) => Some(view.to_image()),
            Self::Owned(mask) => Some(mask),
        }
    }
}

impl<'a> From<ImageView<'a, u8>> for Mask<'a> {
    fn from(view: ImageView<'a, u8>) -> Self {
        Self::Borrowed(view)
    }
}

impl From<Image<u8>> for Mask<'_> {
    fn from(mask: Image<u8>) -> Self {
        Self::Owned(mask)
    }
}

impl<'a, M: Into<Self>> From<Option<M>> for Mask<'a> {
    fn from(mask: Option<M>) -> Self {
        mask.map_or(Self::All, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(mask: &Image<u8>) -> [Mask<'_>; 2] {
        [mask.view().into(), mask.clone().into()]
    }

    #[test]
    fn a_pixel_counts_if_all_combined_masks_count_it() {
        let size = Size::new(12, 9);
        let every =
            |n: usize| Image::from_fn(size, move |x, y| if (x + y) % n == 0 { 0_u8 } else { n as u8 });
        let (two, three) = (every(2), every(3));
        let expected = two.data().iter().zip(three.data()).map(|(a, b)| *a > 0 && *b > 0);
        for (a, b) in forms(&two).into_iter().flat_map(|a| forms(&three).map(|b| (a.clone(), b))) {
            let both = a.clone().and(b).unwrap().into_image().unwrap();
            assert!(both.data().iter().map(|v| *v > 0).eq(expected.clone()), "{both:?}");
            for same in [a.clone().and(Mask::All), Mask::All.and(a.clone())] {
                assert_eq!(same.unwrap().into_image().as_ref(), Some(&two), "with all");
            }
            assert!(
                matches!(a.and(Image::<u8>::new(Size::new(9, 12))), Err(Error::Mismatch(_))),
                "two sizes"
            );
        }
        assert!(Mask::All.and(Mask::All).unwrap().view().is_none(), "all");
    }

    #[test]
    fn opaque_pixels_without_the_no_data_value_hold_data() {
        let size = Size::new(4, 1);
        let grey_and_alpha = Image::from_vec(vec![5_u8, 255, 5, 0, 7, 7, 7, 255], size, 2).unwrap();
        let floats =
            Image::from_vec(vec![1.0, f32::NAN, 2.0, 3.0, f32::INFINITY, 0.0], Size::new(3, 1), 2).unwrap();
        assert_eq!(Mask::of_finite(&floats).into_image().unwrap().data(), [0, 255, 0], "floats");
        assert!(Mask::of_finite(&grey_and_alpha).view().is_none(), "integers");
        let opaque: AnyImage = Image::from_vec(vec![7_u16, 5, 7, 9], size, 1).unwrap().into();
        let of =
            |image: AnyView<'_>, no_data| Mask::of_data(image, no_data).into_image().map(Image::into_vec);
        assert_eq!(of((&grey_and_alpha).into(), None), Some(vec![255, 0, 255, 255]), "alpha");
        assert_eq!(
            of((&grey_and_alpha).into(), Some(7.0)),
            Some(vec![255, 0, 0, 255]),
            "marked in all channels"
        );
        assert_eq!(of(opaque.view(), Some(7.0)), Some(vec![0, 255, 0, 255]), "16 bits");
        assert_eq!(of(opaque.view(), None), None, "everywhere");
    }
}
