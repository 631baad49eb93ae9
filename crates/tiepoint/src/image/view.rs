//! Borrowed images: rows that start a stride apart, to read or to write.

use super::{AnyImage, AnyView, Image, Rect, Size};
use crate::{Error, Result, by_pixel, device::Cpu};

/// A borrowed image whose rows start `stride` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct ImageView<'a, T> {
    data: &'a [T],
    size: Size,
    channels: usize,
    stride: usize,
}

impl<'a, T: Copy> ImageView<'a, T> {
    /// A view of rows without gaps, as many as the image has.
    pub(super) fn packed(data: &'a [T], size: Size, channels: usize) -> Self {
        Self { data, size, channels, stride: size.width * channels }
    }

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
        // Rows without pixels lie anywhere.
        Ok(Self { data, size, channels, stride: if size.is_empty() { 0 } else { stride } })
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Channels of a pixel, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Elements from the start of one row to the start of the next; 0 for an image without pixels.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Row `y`: width · channels elements.
    ///
    /// # Panics
    /// If there is no such row.
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

    /// Fails unless the image has one channel and at least one pixel, as every detector requires.
    pub(crate) fn require_grey(&self) -> Result<()> {
        match (self.channels, self.size.is_empty()) {
            (_, true) => Err(Error::Image(format!("the image is empty ({})", self.size))),
            (1, _) => Ok(()),
            (n, _) => Err(Error::Image(format!(
                "expected one channel, found {n}; make it ready with image::prepare first"
            ))),
        }
    }
}

/// A mutably borrowed image whose rows start `stride` elements apart. Elements between the rows are never written.
#[derive(Debug)]
pub struct ImageViewMut<'a, T> {
    data: &'a mut [T],
    size: Size,
    channels: usize,
    stride: usize,
}

impl<'a, T: Copy> ImageViewMut<'a, T> {
    /// A view of rows without gaps, as many as the image has.
    pub(super) fn packed(data: &'a mut [T], size: Size, channels: usize) -> Self {
        Self { data, size, channels, stride: size.width * channels }
    }

    /// A view of `data`.
    ///
    /// # Errors
    /// [`Error::Image`] when a row is longer than the stride or the data end before the last row does.
    pub fn new(data: &'a mut [T], size: Size, channels: usize, stride: usize) -> Result<Self> {
        let stride = ImageView::new(&*data, size, channels, stride)?.stride;
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

    /// Elements from the start of one row to the start of the next; 0 for an image without pixels.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Row `y`: width · channels elements.
    pub fn row(&self, y: usize) -> &[T] {
        &self.data[y * self.stride..][..self.size.width * self.channels]
    }

    /// Row `y`: width · channels elements.
    pub fn row_mut(&mut self, y: usize) -> &mut [T] {
        &mut self.data[y * self.stride..][..self.size.width * self.channels]
    }

    /// The image, read-only.
    pub fn view(&self) -> ImageView<'_, T> {
        ImageView { data: self.data, size: self.size, channels: self.channels, stride: self.stride }
    }

    /// The same view, borrowed for a shorter time.
    pub fn reborrow(&mut self) -> ImageViewMut<'_, T> {
        ImageViewMut { data: self.data, size: self.size, channels: self.channels, stride: self.stride }
    }

    /// All rows, top to bottom.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        let (row, height) = (self.size.width * self.channels, self.size.height);
        let rows = self.data.chunks_mut(self.stride.max(1)).take(if row == 0 { 0 } else { height });
        rows.map(move |r| &mut r[..row])
    }

    /// The image cut into bands of `rows` rows, the last of which may have fewer.
    pub fn bands(self, rows: usize) -> impl Iterator<Item = ImageViewMut<'a, T>> {
        let Self { data, size, channels, stride } = self;
        let (rows, height) = (rows.max(1), if size.width == 0 { 0 } else { size.height });
        let mut rest = data;
        (0..height).step_by(rows).map(move |y| {
            let rows = rows.min(height - y);
            let band = rest.split_off_mut(..(rows * stride).min(rest.len())).unwrap_or_default();
            ImageViewMut { data: band, size: Size::new(size.width, rows), channels, stride }
        })
    }

    /// Fails unless the image has this shape, as every function that writes into the caller's memory requires.
    pub(crate) fn require_shape(&self, what: &str, size: Size, channels: usize) -> Result<()> {
        if (self.size, self.channels) == (size, channels) {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "{what} is {} with {} channels: expected {size} with {channels}",
            self.size, self.channels
        )))
    }
}

impl Cpu {
    /// Cuts an image into bands of `rows` rows (the last may have fewer) and runs `f(first row, band)`; after
    /// [`Error::Cancelled`] the remaining bands are left undone.
    pub(crate) fn for_bands<T: Copy + Send>(
        &self,
        image: ImageViewMut<'_, T>,
        rows: usize,
        f: impl Fn(usize, &mut ImageViewMut<'_, T>) + Sync,
    ) -> Result<()> {
        let mut bands: Vec<_> = image.bands(rows).collect();
        self.try_for_chunks(&mut bands, 1, |i, band| f(i * rows, &mut band[0]))
    }
}

impl<'a, T: Copy + Default> From<&'a mut Image<T>> for ImageViewMut<'a, T> {
    fn from(image: &'a mut Image<T>) -> Self {
        image.view_mut()
    }
}

impl<'a, T: Copy + Default> From<&'a Image<T>> for ImageView<'a, T> {
    fn from(image: &'a Image<T>) -> Self {
        image.view()
    }
}

/// Fails if there is a mask that does not have one value for each pixel of the image.
pub(crate) fn check_mask(mask: Option<ImageView<'_, u8>>, image: Size) -> Result<()> {
    match mask.map(|mask| (mask.size(), mask.channels())) {
        Some((size, channels)) if (size, channels) != (image, 1) => Err(Error::Mismatch(format!(
            "the mask is {size} with {channels} channels, the image {image}: one mask value a pixel is needed"
        ))),
        Some(_) | None => Ok(()),
    }
}

impl AnyView<'_> {
    /// Width and height.
    pub fn size(&self) -> Size {
        by_pixel!(self, v => v.size())
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        by_pixel!(self, v => v.channels())
    }

    /// A packed copy.
    pub fn to_image(&self) -> AnyImage {
        by_pixel!(map self, v => v.to_image())
    }
}

/// An image of any pixel type: borrowed where the given image is good as it is, owned where a new one was made.
#[derive(Clone, Debug)]
pub enum AnyCow<'a> {
    /// The image that was given.
    Borrowed(AnyView<'a>),
    /// A new image.
    Owned(AnyImage),
}

impl AnyCow<'_> {
    /// The image borrowed.
    pub fn view(&self) -> AnyView<'_> {
        match self {
            Self::Borrowed(view) => *view,
            Self::Owned(image) => image.view(),
        }
    }

    /// The new image, or `None` where the given one is good as it is.
    pub fn into_owned(self) -> Option<AnyImage> {
        match self {
            Self::Borrowed(_) => None,
            Self::Owned(image) => Some(image),
        }
    }

    /// The image, owned; a borrowed one is copied.
    pub fn into_image(self) -> AnyImage {
        match self {
            Self::Borrowed(view) => view.to_image(),
            Self::Owned(image) => image,
        }
    }
}

impl<'a, V: Into<AnyView<'a>>> From<V> for AnyCow<'a> {
    fn from(view: V) -> Self {
        Self::Borrowed(view.into())
    }
}

impl From<AnyImage> for AnyCow<'_> {
    fn from(image: AnyImage) -> Self {
        Self::Owned(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_checked() {
        let data = [0_u8; 10];
        assert!(ImageView::new(&data, Size::new(3, 3), 1, 3).is_ok(), "fits");
        assert!(ImageView::new(&data, Size::new(4, 3), 1, 3).is_err(), "row longer than stride");
        assert!(ImageView::new(&data, Size::new(2, 3), 1, 5).is_err(), "data too short");
        assert!(ImageView::new(&data, Size::new(usize::MAX, 3), 3, 5).is_err(), "overflow");
        let narrow = ImageView::new(&data[..0], Size::new(0, 3), 1, 5).unwrap();
        assert!(narrow.row(2).is_empty() && narrow.to_image().data().is_empty(), "rows without pixels");
        let view = ImageView::new(&data, Size::new(3, 3), 1, 3).unwrap();
        assert!(view.crop(Rect { x: 2, y: 0, size: Size::new(2, 1) }).is_err(), "leaves the image");
        assert_eq!(
            view.crop(Rect { x: 1, y: 1, size: Size::new(2, 2) }).unwrap().to_image().data().len(),
            4,
            "crop"
        );
    }
    #[test]
    fn bands_cover_the_rows_and_leave_the_gaps() {
        for (height, rows) in [(5, 2), (4, 4), (3, 7), (1, 1), (0, 2)] {
            // Two elements of a gap after each row of three, none after the last.
            let mut data = vec![9_u8; (height * 5_usize).saturating_sub(2)];
            let view = ImageViewMut::new(&mut data, Size::new(3, height), 1, 5).unwrap();
            let mut at = 0;
            for mut band in view.bands(rows) {
                for y in 0..band.size().height {
                    band.row_mut(y).fill(at);
                    at += 1;
                }
            }
            assert_eq!(usize::from(at), height, "every row once");
            let whole: Vec<u8> = (0..height as u8).flat_map(|y| [y, y, y, 9, 9]).take(data.len()).collect();
            assert_eq!(data, whole, "{height} rows in bands of {rows}");
        }
    }
}
