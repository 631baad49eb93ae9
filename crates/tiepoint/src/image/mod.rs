//! Images: owned and borrowed, 8-bit, 16-bit and float, one or more interleaved channels.
//!
//! Channel c of pixel (x, y) is element `y * stride + x * channels + c`. The centre of the top-left pixel is
//! (0, 0). Integer pixels use their whole range from black to white; f32 pixels run from 0 to 1.

mod alpha;
mod bmp;
mod by_pixel;
mod contents;
mod exif;
mod exr;
#[cfg(test)]
mod file_tests;
mod foreign;
mod gif;
pub mod gpu;
pub(crate) mod grey;
mod jpeg;
mod jpeg2000;
mod jpegxl;
mod mask;
mod no_data;
pub(crate) mod npy;
mod orientation;
mod pam;
mod pfm;
mod pixel;
mod pixels;
mod png;
mod pnm;
pub(crate) mod range;
mod read;
mod rows;
mod shades;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tiff;
mod view;
mod webp;
mod world_file;
mod write;

pub use alpha::{alpha_mask, spread_colours, with_alpha};
pub use by_pixel::{AnyImage, AnyView, ByPixel, PixelKind};
pub use contents::{FileImage, Layout};
#[cfg(any(fuzzing, test))]
pub(crate) use exif::of_exif as metadata_of;
pub use exif::{Focal, Metadata, Position};
pub(crate) use grey::{check_channels as check_grey_channels, grey_row, luma_for_kernels};
pub use grey::{grey, grey_on_device};
pub use mask::{Mask, shows_nothing};
pub use pixel::Pixel;
pub use pixels::{Made, MadeMask, Pixels};
pub(crate) use range::mapped;
pub use range::{HOLE_MARGIN, Prepared, Range, prepare, prepare_on_device};
#[cfg(any(fuzzing, test))]
pub(crate) use read::georeference_of;
pub use read::{
    ReadOptions, decode, decode_file, decode_grey_alpha, other_place, place_not_read, read, read_file,
    read_georeference, read_grey, read_grey_alpha, read_shape,
};
pub(crate) use read::{Stored, stored};
pub use shades::Shades;
pub use tiff::{CoordinateSystem, Georeference};
pub(crate) use view::check_mask;
pub use view::{AnyCow, ImageView, ImageViewMut};
#[cfg(any(fuzzing, test))]
pub(crate) use world_file::parse as parse_world_file;
pub use world_file::{new_world_file, world_file};
pub(crate) use write::write_values;
pub use write::{BESIDE, Compression, Known, OutputFormat, write, write_known};

use crate::error::Shortage;
use crate::options::named;
use crate::{Error, Result, by_pixel};

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

    /// The number, row by row, of the cell in which a place lies if the image is divided into `across` × `across` cells;
    /// places outside of the image lie in the nearest cell.
    pub(crate) fn cell(self, [x, y]: [f64; 2], across: usize) -> usize {
        let part =
            |at: f64, length: usize| ((across as f64 * at / length.max(1) as f64) as usize).min(across - 1);
        across * part(y, self.height) + part(x, self.width)
    }

    /// This size reduced, in the same shape, so that its longer side is `longest`; each side is rounded and at least 1.
    /// A size that is no longer than that is returned as it is.
    pub fn at_most(self, longest: usize) -> Self {
        let longer = self.width.max(self.height);
        if longer <= longest {
            return self;
        }
        let (to, from) = (longest as u128, longer as u128);
        let side = |side: usize| ((side as u128 * to + from / 2) / from).max(1) as usize;
        Self::new(side(self.width), side(self.height))
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

named! {
    /// What stands for pixels beyond the edge of the image.
    pub enum Border as "border" {
        #[default]
        "clamp": Clamp, "The edge pixel repeated: aaa|abcd|ddd";
        "reflect": Reflect, "The image mirrored about its edge pixel: dcb|abcd|cba";
        "zero": Zero, "Black";
        "skip": Skip, "Pixels whose window leaves the image keep their value";
    }
}

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
    /// For a size that comes from outside, from a file or an option, use [`try_filled`](Self::try_filled).
    ///
    /// # Panics
    /// When the image has more bytes than a `Vec` can hold. When the system lacks the memory, the process ends.
    pub fn filled(size: Size, channels: usize, value: T) -> Self {
        let channels = channels.max(1);
        Self { data: vec![value; size.area().saturating_mul(channels)], size, channels }
    }

    /// As [`filled`](Self::filled), with an error in place of a panic.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is not enough memory for the image.
    pub fn try_filled(size: Size, channels: usize, value: T) -> Result<Self> {
        let values = [size.height, channels.max(1)].iter().try_fold(size.width, |n, &m| n.checked_mul(m));
        // The memory is freed and allocated again by `vec!`, which gets zeroed pages instead of writing zeros.
        let fits = values.is_some_and(|n| Vec::<T>::new().try_reserve_exact(n).is_ok());
        if !fits {
            let needed = values.and_then(|n| n.checked_mul(size_of::<T>())).unwrap_or(usize::MAX) as u64;
            return Err(Error::Memory { what: "an image", needed, shortage: Shortage::Host });
        }
        Ok(Self::filled(size, channels, value))
    }

    /// An image made of `data`: row by row, channels interleaved.
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

impl AnyImage {
    /// Width and height.
    pub fn size(&self) -> Size {
        by_pixel!(self, i => i.size())
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        by_pixel!(self, i => i.channels())
    }

    /// The image borrowed.
    pub fn view(&self) -> AnyView<'_> {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn an_image_that_no_memory_holds_is_an_error() {
        for (width, height) in [(usize::MAX, 2), (1 << 40, 1 << 20), (usize::MAX, 1)] {
            let found = Image::<u16>::try_filled(Size::new(width, height), 3, 0);
            assert_eq!(found.unwrap_err().kind(), ErrorKind::HostMemory, "{width}x{height}");
        }
        let small = Image::try_filled(Size::new(3, 2), 0, 7_u8).unwrap();
        assert_eq!(small, Image::filled(Size::new(3, 2), 1, 7), "no channels count as one");
    }

    #[test]
    fn sizes_keep_their_shape() {
        assert_eq!(Size::new(6000, 4000).at_most(3200), Size::new(3200, 2133), "large");
        assert_eq!(Size::new(3200, 100).at_most(3200), Size::new(3200, 100), "as large as allowed");
        assert_eq!(Size::new(1, 100_000).at_most(16), Size::new(1, 16), "thin");
    }

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
