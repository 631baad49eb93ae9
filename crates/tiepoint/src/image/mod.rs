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
mod png;
mod pnm;
mod range;
mod read;
mod rows;
#[cfg(test)]
pub(crate) mod testing;
mod tiff;
mod write;

pub use grey::grey;
pub use range::{HOLE_MARGIN, Prepared, Range, prepare};
pub use read::{ReadOptions, decode, decode_grey, read, read_grey};
pub(crate) use write::write_values;
pub use write::{AnyView, OutputFormat, write};

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

pub(crate) mod sealed {
    /// Tells what a pixel type is: a slice as itself, for code with a faster form for one type.
    pub trait Sealed: Copy {
        /// 0.5 · (a + b), rounded once: to nearest even.
        fn mean_of_two(a: Self, b: Self) -> Self;
        /// The mean of the means of a and of b, rounded once for integers.
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self;
        fn u8s(_: &[Self]) -> Option<&[u8]> {
            None
        }
        fn u8s_mut(_: &mut [Self]) -> Option<&mut [u8]> {
            None
        }
        fn u16s(_: &[Self]) -> Option<&[u16]> {
            None
        }
        fn u16s_mut(_: &mut [Self]) -> Option<&mut [u16]> {
            None
        }
        fn f32s(_: &[Self]) -> Option<&[f32]> {
            None
        }
        fn f32s_mut(_: &mut [Self]) -> Option<&mut [f32]> {
            None
        }
    }
    impl Sealed for u8 {
        #[inline(always)]
        fn mean_of_two(a: Self, b: Self) -> Self {
            let sum = u16::from(a) + u16::from(b);
            ((sum + (sum >> 1 & 1)) >> 1) as Self
        }
        #[inline(always)]
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self {
            let sum = u16::from(a[0]) + u16::from(a[1]) + u16::from(b[0]) + u16::from(b[1]);
            ((sum + 1 + (sum >> 2 & 1)) >> 2) as Self
        }
        fn u8s(values: &[Self]) -> Option<&[u8]> {
            Some(values)
        }
        fn u8s_mut(values: &mut [Self]) -> Option<&mut [u8]> {
            Some(values)
        }
    }
    impl Sealed for u16 {
        #[inline(always)]
        fn mean_of_two(a: Self, b: Self) -> Self {
            let sum = u32::from(a) + u32::from(b);
            ((sum + (sum >> 1 & 1)) >> 1) as Self
        }
        #[inline(always)]
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self {
            let sum = u32::from(a[0]) + u32::from(a[1]) + u32::from(b[0]) + u32::from(b[1]);
            ((sum + 1 + (sum >> 2 & 1)) >> 2) as Self
        }
        fn u16s(values: &[Self]) -> Option<&[u16]> {
            Some(values)
        }
        fn u16s_mut(values: &mut [Self]) -> Option<&mut [u16]> {
            Some(values)
        }
    }
    impl Sealed for f32 {
        #[inline(always)]
        fn mean_of_two(a: Self, b: Self) -> Self {
            0.5 * (a + b)
        }
        #[inline(always)]
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self {
            0.5 * (0.5 * (a[0] + a[1]) + 0.5 * (b[0] + b[1]))
        }
        fn f32s(values: &[Self]) -> Option<&[f32]> {
            Some(values)
        }
        fn f32s_mut(values: &mut [Self]) -> Option<&mut [f32]> {
            Some(values)
        }
    }
}

/// The type of one channel of a pixel: `u8`, `u16` or `f32`.
pub trait Pixel:
    Copy + Default + PartialOrd + PartialEq + Send + Sync + std::fmt::Debug + sealed::Sealed + 'static
{
    /// The value of white: 255, 65535 or 1.
    const WHITE: f32;

    /// The value as it is.
    fn to_f32(self) -> f32;

    /// The nearest value of this type, ties to even; integers saturate and take NaN as 0.
    fn from_f32(v: f32) -> Self;

    /// The value on the scale from 0 (black) to 1 (white). For f32: clamped to it, NaN as 0.
    fn unit(self) -> f32;

    /// The value on an integer scale of 0 to 65535 (8-bit: 0 to 255), for exact sums. f32: rounded to nearest
    /// even from 0 to 1 onto 0 to 65535, NaN as 0.
    fn level(self) -> u32;
}

/// The nearest of 0, 1, …, `most`, ties to even, NaN as 0. Above 2²³ the values of f32 are the whole numbers: adding it
/// rounds, and leaves the number in the last bits. Unlike a conversion this has a vector form for every type.
#[inline(always)]
fn nearest(v: f32, most: f32) -> u32 {
    // Not `clamp`, which keeps NaN.
    let v = if v > 0.0 { v } else { 0.0 };
    let v = if v < most { v } else { most };
    (v + 8_388_608.0).to_bits() & 0xffff
}

impl Pixel for u8 {
    const WHITE: f32 = 255.0;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn from_f32(v: f32) -> Self {
        nearest(v, Self::WHITE) as Self
    }

    #[inline(always)]
    fn unit(self) -> f32 {
        f32::from(self) * (1.0 / 255.0)
    }

    #[inline(always)]
    fn level(self) -> u32 {
        u32::from(self)
    }
}

impl Pixel for u16 {
    const WHITE: f32 = 65535.0;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn from_f32(v: f32) -> Self {
        nearest(v, Self::WHITE) as Self
    }

    #[inline(always)]
    fn unit(self) -> f32 {
        f32::from(self) * (1.0 / 65535.0)
    }

    #[inline(always)]
    fn level(self) -> u32 {
        u32::from(self)
    }
}

impl Pixel for f32 {
    const WHITE: f32 = 1.0;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(v: f32) -> Self {
        v
    }

    #[inline(always)]
    fn unit(self) -> f32 {
        // NaN fails the comparison and becomes 0.
        if self > 0.0 { self.min(1.0) } else { 0.0 }
    }

    #[inline(always)]
    fn level(self) -> u32 {
        (self.unit() * 65535.0).round_ties_even() as u32
    }
}

/// An owned image, rows packed without gaps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image<T> {
    data: Vec<T>,
    size: Size,
    channels: usize,
}

impl<T: Copy + Default> Image<T> {
    /// A black image of one channel.
    pub fn new(size: Size) -> Self {
        Self::filled(size, 1, T::default())
    }

    /// An image with every element set to `value`. Zero channels count as one.
    pub fn filled(size: Size, channels: usize, value: T) -> Self {
        let channels = channels.max(1);
        Self { data: vec![value; size.area() * channels], size, channels }
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

    /// Makes this an image of the given shape, keeping the memory where it suffices; the contents are not
    /// defined. For an output that is used again frame after frame. Zero channels count as one.
    pub fn reshape(&mut self, size: Size, channels: usize) {
        (self.size, self.channels) = (size, channels.max(1));
        self.data.resize(size.area().saturating_mul(self.channels), T::default());
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
        ImageView { data: &self.data, size: self.size, channels: self.channels, stride: self.row_len() }
    }
}

/// A borrowed image whose rows start `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a, T> {
    data: &'a [T],
    size: Size,
    channels: usize,
    stride: usize,
}

impl<'a, T: Copy> ImageView<'a, T> {
    /// A view of `data`.
    ///
    /// # Errors
    /// [`Error::Image`] when a row is longer than the stride or the data end before the last row does.
    pub fn new(data: &'a [T], size: Size, channels: usize, stride: usize) -> Result<Self> {
        let row = size.width.checked_mul(channels).filter(|_| channels > 0);
        let fits = row.is_some_and(|row| {
            size.is_empty()
                || row <= stride
                    && (size.height - 1)
                        .checked_mul(stride)
                        .and_then(|n| n.checked_add(row))
                        .is_some_and(|n| n <= data.len())
        });
        if !fits {
            return Err(Error::Image(format!(
                "{} values with a stride of {stride} do not hold {size} pixels of {channels} channels",
                data.len()
            )));
        }
        Ok(Self { data, size, channels, stride })
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Channels of a pixel, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Elements from the start of one row to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Row `y`: width · channels elements.
    pub fn row(&self, y: usize) -> &'a [T] {
        &self.data[y * self.stride..y * self.stride + self.size.width * self.channels]
    }

    /// The part of this view inside `rect`.
    ///
    /// # Errors
    /// [`Error::Image`] when the rectangle leaves the image.
    pub fn crop(&self, rect: Rect) -> Result<Self> {
        let inside = |at: usize, n: usize, of: usize| at.checked_add(n).is_some_and(|end| end <= of);
        if !inside(rect.x, rect.size.width, self.size.width)
            || !inside(rect.y, rect.size.height, self.size.height)
        {
            return Err(Error::Image(format!(
                "{} at ({}, {}) leaves an image of {}",
                rect.size, rect.x, rect.y, self.size
            )));
        }
        let start = if rect.size.is_empty() { 0 } else { rect.y * self.stride + rect.x * self.channels };
        Ok(Self { data: &self.data[start..], size: rect.size, ..*self })
    }

    /// A packed copy.
    pub fn to_image(&self) -> Image<T> {
        let mut data = Vec::with_capacity(self.size.area() * self.channels);
        for y in 0..self.size.height {
            data.extend_from_slice(self.row(y));
        }
        Image { data, size: self.size, channels: self.channels }
    }

    /// Fails unless the image has one channel and at least one pixel; what every detector asks of its input.
    pub(crate) fn require_grey(&self) -> Result<()> {
        match (self.channels, self.size.is_empty()) {
            (_, true) => Err(Error::Image(format!("the image is empty ({})", self.size))),
            (1, _) => Ok(()),
            (n, _) => {
                Err(Error::Image(format!("expected one channel, found {n}; convert with image::grey first")))
            }
        }
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

    #[test]
    fn views_are_checked() {
        let data = [0_u8; 10];
        assert!(ImageView::new(&data, Size::new(3, 3), 1, 3).is_ok(), "fits");
        assert!(ImageView::new(&data, Size::new(4, 3), 1, 3).is_err(), "row longer than stride");
        assert!(ImageView::new(&data, Size::new(2, 3), 1, 5).is_err(), "data too short");
        assert!(ImageView::new(&data, Size::new(usize::MAX, 3), 3, 5).is_err(), "overflow");
        let view = ImageView::new(&data, Size::new(3, 3), 1, 3).unwrap();
        assert!(view.crop(Rect { x: 2, y: 0, size: Size::new(2, 1) }).is_err(), "leaves the image");
        assert_eq!(
            view.crop(Rect { x: 1, y: 1, size: Size::new(2, 2) }).unwrap().to_image().data().len(),
            4,
            "crop"
        );
    }

    #[test]
    fn pixel_conversions() {
        assert_eq!(
            [u8::from_f32(-1.0), u8::from_f32(2.5), u8::from_f32(300.0), u8::from_f32(f32::NAN)],
            [0, 2, 255, 0]
        );
        let halves = (-9..=131_080).map(|i| i as f32 * 0.5);
        for v in halves.chain((0..=u32::MAX).step_by(9973).map(f32::from_bits)) {
            assert_eq!(u8::from_f32(v), v.round_ties_even() as u8, "{v}");
            assert_eq!(u16::from_f32(v), v.round_ties_even() as u16, "{v}");
        }
        assert_eq!(
            [f32::NAN.unit(), (-1.0_f32).unit(), 2.0_f32.unit(), f32::INFINITY.unit()],
            [0.0, 0.0, 1.0, 1.0]
        );
        assert_eq!([255_u8.unit(), 65535_u16.unit()], [1.0, 1.0]);
    }
}
