//! The caller's pictures of a pair, for costs that compare more than grey.

use super::grey::{Bytes, Grey};
use crate::device::Cpu;
use crate::image::{AnyView, Image, ImageView, Mask, Pixel, Size};
use crate::stereo::{Masks, View};
use crate::{Error, Result, by_pixel};
use std::sync::OnceLock;

/// The two pictures, the left one first, and the caller's masks.
pub(in crate::stereo) struct Pictures<'a> {
    pub(super) views: [AnyView<'a>; 2],
    pub(super) masks: [Option<ImageView<'a, u8>>; 2],
    /// Which pictures have colour; computed when first needed.
    are_colour: OnceLock<[bool; 2]>,
}

impl<'a> Pictures<'a> {
    /// Fails for an empty left picture and where the sizes differ.
    pub(in crate::stereo) fn new([left, right]: [AnyView<'a>; 2], masks: Masks<'a>) -> Result<Self> {
        let masks = [masks.left, masks.right];
        require_pair([left.size(), right.size()], masks.map(|mask| mask.map(|m| (m.size(), m.channels()))))?;
        Ok(Self { views: [left, right], masks, are_colour: OnceLock::new() })
    }

    pub(in crate::stereo) fn size(&self) -> Size {
        self.views[0].size()
    }

    /// Which of the pictures, the left one first, have colour.
    pub(in crate::stereo) fn are_colour(&self) -> [bool; 2] {
        *self.are_colour.get_or_init(|| self.views.map(is_colour))
    }

    /// Which pixels of each picture have data (not 0): those that are finite and not excluded by its mask. `None`: all.
    pub(super) fn validity(&self) -> Result<[Option<Image<u8>>; 2]> {
        let [left, right] = [0, 1].map(|i| Mask::from(self.masks[i]).and(Mask::of_finite(self.views[i])));
        Ok([left?.into_image(), right?.into_image()])
    }

    /// These channels of these views in 8 bits, interleaved, all on one scale ([`Bytes`]). A grey picture has the same
    /// values in every channel.
    pub(in crate::stereo) fn channels<const N: usize>(
        &self,
        views: [View; N],
        channels: &[usize],
        cpu: &Cpu,
    ) -> Result<[Image<u8>; N]> {
        let greys = views.map(|view| {
            Grey::from_image(by_pixel!(self.views[view.index()], v => side_by_side(v, channels, cpu).into()))
        });
        let masks = self.validity()?;
        let scale = Bytes::of(greys.iter().zip(views.map(|view| masks[view.index()].as_ref())));
        let mut images = greys.map(|grey| scale.convert(grey, cpu));
        for image in &mut images {
            *image = Image::from_vec(std::mem::take(image).into_vec(), self.size(), channels.len())?;
        }
        Ok(images)
    }
}

/// Fails for an empty left image, where the images and masks differ in size, and for masks of several channels.
pub(super) fn require_pair([left, right]: [Size; 2], masks: [Option<(Size, usize)>; 2]) -> Result<()> {
    if left.is_empty() {
        return Err(Error::Image(format!("the left image is empty ({left})")));
    }
    let [left_mask, right_mask] = masks;
    let all = [("right image", Some((right, 1))), ("left mask", left_mask), ("right mask", right_mask)];
    for (what, (found, channels)) in all.into_iter().filter_map(|(what, found)| Some((what, found?))) {
        if found != left {
            let expected = "expected one size, as rectification gives it";
            return Err(Error::Mismatch(format!(
                "the {what} is {found} and the left image {left}: {expected}"
            )));
        }
        if channels != 1 {
            return Err(Error::Mismatch(format!("the {what} has {channels} channels: expected one")));
        }
    }
    Ok(())
}

/// Whether the colour channels differ at any pixel: grey may be stored as colour.
fn is_colour(view: AnyView<'_>) -> bool {
    fn differ<T: Copy + PartialEq>(view: ImageView<'_, T>) -> bool {
        let channels = view.channels();
        let coloured = |p: &[T]| p[0] != p[1] || p[0] != p[2];
        channels > 2 && (0..view.size().height).any(|y| view.row(y).chunks_exact(channels).any(coloured))
    }
    by_pixel!(view, v => differ(v))
}

/// The channels of each pixel as grey pixels side by side.
fn side_by_side<T: Pixel>(view: ImageView<'_, T>, channels: &[usize], cpu: &Cpu) -> Image<T> {
    let (Size { width, height }, of, n) = (view.size(), view.channels(), channels.len());
    let channels: Vec<usize> = channels.iter().map(|&c| if of < 3 { 0 } else { c }).collect();
    let mut out = Image::new(Size::new(width.saturating_mul(n), height));
    cpu.for_chunks(out.data_mut(), width.saturating_mul(n), |y, row| {
        let pixels = view.row(y).chunks_exact(of);
        for (out, pixel) in row.chunks_exact_mut(n).zip(pixels) {
            out.iter_mut().zip(&channels).for_each(|(o, &c)| *o = pixel[c]);
        }
    });
    out
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
