//! The pictures of a pair as they were handed over, for costs that compare more than grey.

use super::grey::{Bytes, Grey};
use crate::{
    Error, Result,
    device::Cpu,
    image::{AnyView, Image, ImageView, Size},
    stereo::View,
};

/// The two pictures, the left one first.
pub(in crate::stereo) struct Pictures<'a> {
    pub(super) views: [AnyView<'a>; 2],
    are_colour: [bool; 2],
}

impl<'a> Pictures<'a> {
    /// # Errors
    /// [`Error::Image`] for an empty left picture, [`Error::Mismatch`] when the sizes differ.
    pub(in crate::stereo) fn new(left: AnyView<'a>, right: AnyView<'a>) -> Result<Self> {
        let size = left.size();
        if size.is_empty() {
            return Err(Error::Image(format!("the left image is empty ({size})")));
        }
        require_size("right image", right.size(), size)?;
        Ok(Self { views: [left, right], are_colour: [left, right].map(is_colour) })
    }

    pub(in crate::stereo) fn size(&self) -> Size {
        self.views[0].size()
    }

    /// Which of the pictures, the left one first, have colour.
    pub(in crate::stereo) fn are_colour(&self) -> [bool; 2] {
        self.are_colour
    }

    /// Channels of one picture in 8 bits, interleaved, together on a scale of this picture alone. The picture must have
    /// them.
    pub(in crate::stereo) fn channels(&self, view: View, channels: &[usize], cpu: &Cpu) -> Result<Image<u8>> {
        let side_by_side = match self.views[view.index()] {
            AnyView::U8(v) => spread(v, channels).into(),
            AnyView::U16(v) => spread(v, channels).into(),
            AnyView::F32(v) => spread(v, channels).into(),
        };
        let grey = Grey::from_image(side_by_side);
        let bytes = Bytes::of([&grey, &grey]).image(&grey, cpu);
        Image::from_vec(bytes.into_vec(), self.size(), channels.len())
    }
}

/// Fails unless `found`, the size of `what`, is that of the left image.
pub(super) fn require_size(what: &str, found: Size, left: Size) -> Result<()> {
    if found == left {
        return Ok(());
    }
    let expected = "expected one size, as rectification gives it";
    Err(Error::Mismatch(format!("the {what} is {found} and the left image {left}: {expected}")))
}

/// Whether the channels of a pixel differ anywhere: grey may have been stored as colour.
fn is_colour(view: AnyView<'_>) -> bool {
    fn differ<T: Copy + PartialEq>(view: ImageView<'_, T>) -> bool {
        let channels = view.channels();
        let coloured = |p: &[T]| p[0] != p[1] || p[0] != p[2];
        channels > 2 && (0..view.size().height).any(|y| view.row(y).chunks_exact(channels).any(coloured))
    }
    match view {
        AnyView::U8(v) => differ(v),
        AnyView::U16(v) => differ(v),
        AnyView::F32(v) => differ(v),
    }
}

/// Channels as grey pixels side by side, so that they share one scale.
fn spread<T: Copy + Default>(view: ImageView<'_, T>, channels: &[usize]) -> Image<T> {
    let (Size { width, height }, of, n) = (view.size(), view.channels(), channels.len());
    let size = Size::new(width.saturating_mul(n), height);
    Image::from_fn(size, |x, y| view.row(y)[x / n * of + channels[x % n]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grey_stored_as_colour_is_grey() {
        let size = Size::new(3, 2);
        let grey = Image::from_vec(vec![9_u8; 18], size, 3).unwrap();
        let mut colour = grey.clone();
        colour.data_mut()[16] = 8;
        assert!(!is_colour((&grey).into()) && is_colour((&colour).into()), "by its values");
    }
}
