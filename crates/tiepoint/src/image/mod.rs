//! Images: owned and borrowed, 8-bit, 16-bit and float, one or more interleaved channels.
//!
//! Pixel (x, y) of channel c is element `y * stride + x * channels + c`. The centre of the top-left pixel is
//! (0, 0). Integer pixels use their whole range from black to white; f32 pixels run from 0 to 1.

#[cfg(test)]
mod file_tests;
pub mod gpu;
mod grey;
mod jpeg;
mod pfm;
mod pixel;
mod png;
mod pnm;
mod range;
mod read;
mod rows;
#[cfg(test)]
pub(crate) mod testing;
mod tiff;
mod view;
mod write;

pub use grey::grey;
pub(crate) use grey::grey_row;
pub use pixel::Pixel;
pub use range::{HOLE_MARGIN, Prepared, Range, prepare};
pub use read::{ReadOptions, decode, decode_grey, read, read_grey};
pub(crate) use view::check_mask;
pub use view::{AnyCow, AnyView, ImageView, ImageViewMut};
pub(crate) use write::write_values;
pub use write::{OutputFormat, write};

use crate::options::named;
use crate::{Error, Result};

/// Width and height in pixels. Either may be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Size {
    /// A size of `width` by `height` pixels.
    pub const fn new(width: usize, height: usize) -> Self {
        Self { width, height }
    }

    /// The number of pixels; saturates instead of overflowing.
    pub const fn area(self) -> usize {
        self.width.saturating_mul(self.height)
    }

    /// True when there is no pixel.
    pub const fn is_empty(self) -> bool {
        self.width == 0 || self.height == 0
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// A rectangle of whole pixels; `x`, `y` is its top-left pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// Leftmost column.
    pub x: usize,
    /// Topmost row.
    pub y: usize,
    /// Width and height.
    pub size: Size,
}

/// What a filter sees beyond the edge of the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Border {
    /// The edge pixel repeated: `aaa|abcd|ddd`.
    #[default]
    Clamp,
    /// The image mirrored about its edge pixel: `dcb|abcd|cba`.
    Reflect,
    /// Black.
    Zero,
    /// Nothing: pixels whose window leaves the image keep their input value.
    Skip,
}

named!(Border as "border" {
    "clamp": Border::Clamp, "The edge pixel repeated: aaa|abcd|ddd";
    "reflect": Border::Reflect, "The image mirrored about its edge pixel: dcb|abcd|cba";
    "zero": Border::Zero, "Black";
    "skip": Border::Skip, "Pixels whose window leaves the image keep their value";
});

impl Border {
    /// The index inside `0..n` that stands for `i`, or `None` where the border rule gives no pixel.
    /// `n` must not be 0.
    pub fn index(self, i: isize, n: usize) -> Option<usize> {
        let last = n as isize - 1;
        match self {
            _ if (0..=last).contains(&i) => Some(i as usize),
            Self::Clamp => Some(i.clamp(0, last) as usize),
            Self::Reflect if last == 0 => Some(0),
            Self::Reflect => {
                let i = i.rem_euclid(2 * last);
                Some(if i > last { 2 * last - i } else { i } as usize)
            }
            Self::Zero | Self::Skip => None,
        }
    }
}

/// An owned image, rows packed without gaps.
#[derive(Clone, Debug, PartialEq)]
pub struct Image<T> {
    data: Vec<T>,
    size: Size,
    channels: usize,
}

impl<T> Default for Image<T> {
    /// An image without pixels, of one channel.
    fn default() -> Self {
        Self { data: Vec::new(), size: Size::default(), channels: 1 }
    }
}

impl<T: Copy + Default> Image<T> {
    /// A black image of one channel.
    pub fn new(size: Size) -> Self {
        Self::filled(size, 1, T::default())
    }

    /// An image with every element set to `value`. Zero channels count as one.
    ///
    /// The caller vouches for the size, as for that of a `Vec`: sizes from files and options are checked against limits
    /// before ([`ReadOptions`], [`Error::Memory`]).
    ///
    /// # Panics
    /// When the image has more bytes than a `Vec` can hold.
    pub fn filled(size: Size, channels: usize, value: T) -> Self {
        let channels = channels.max(1);
        Self { data: vec![value; size.area().saturating_mul(channels)], size, channels }
    }

    /// An image that takes over `data`, row by row, channels interleaved.
    ///
    /// # Errors
    /// [`Error::Image`] when the length is not width · height · channels.
    pub fn from_vec(data: Vec<T>, size: Size, channels: usize) -> Result<Self> {
        let needed = size.area().checked_mul(channels);
        if channels == 0 || needed != Some(data.len()) {
            return Err(Error::Image(format!(
                "{} values do not make {size} pixels of {channels} channels",
                data.len()
            )));
        }
        Ok(Self { data, size, channels })
    }

    /// A one-channel image from a function of (x, y).
    pub fn from_fn(size: Size, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(size.area());
        for y in 0..size.height {
            data.extend((0..size.width).map(|x| f(x, y)));
        }
        Self { data, size, channels: 1 }
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Channels of a pixel, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// All elements, row by row.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// All elements, row by row.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The elements, giving up the image.
    pub fn into_vec(self) -> Vec<T> {
        self.data
    }

    /// Elements of one row.
    pub fn row_len(&self) -> usize {
        self.size.width * self.channels
    }

    /// Row `y`.
    pub fn row(&self, y: usize) -> &[T] {
        let n = self.row_len();
        &self.data[y * n..(y + 1) * n]
    }

    /// Row `y`.
    pub fn row_mut(&mut self, y: usize) -> &mut [T] {
        let n = self.row_len();
        &mut self.data[y * n..(y + 1) * n]
    }

    /// The image borrowed.
    pub fn view(&self) -> ImageView<'_, T> {
        ImageView::packed(&self.data, self.size, self.channels)
    }

    /// The image borrowed to be written.
    pub fn view_mut(&mut self) -> ImageViewMut<'_, T> {
        ImageViewMut::packed(&mut self.data, self.size, self.channels)
    }
}

/// An image of any pixel type: what a file holds.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyImage {
    /// 8 bits a channel.
    U8(Image<u8>),
    /// 16 bits a channel.
    U16(Image<u16>),
    /// 32-bit float a channel.
    F32(Image<f32>),
}

/// Runs one generic expression for whichever pixel type an [`AnyImage`] holds:
/// `for_any_image!(image, view => view.size())`.
#[macro_export]
macro_rules! for_any_image {
    ($image:expr, $view:ident => $body:expr) => {
        match $image {
            $crate::image::AnyImage::U8(i) => {
                let $view = i.view();
                $body
            }
            $crate::image::AnyImage::U16(i) => {
                let $view = i.view();
                $body
            }
            $crate::image::AnyImage::F32(i) => {
                let $view = i.view();
                $body
            }
        }
    };
}

impl AnyImage {
    /// Width and height.
    pub fn size(&self) -> Size {
        for_any_image!(self, v => v.size())
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        for_any_image!(self, v => v.channels())
    }

    /// The image borrowed.
    pub fn view(&self) -> AnyView<'_> {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders() {
        let see = |b: Border| (-5..9).map(|i| b.index(i, 4)).collect::<Vec<_>>();
        let some = |v: [usize; 14]| v.map(Some).to_vec();
        assert_eq!(see(Border::Clamp), some([0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]), "clamp");
        assert_eq!(see(Border::Reflect), some([1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]), "reflect");
        assert_eq!(Border::Reflect.index(-7, 1), Some(0), "one pixel mirrors to itself");
        assert_eq!(Border::Zero.index(-1, 4), None, "zero has no pixel outside");
    }
}
