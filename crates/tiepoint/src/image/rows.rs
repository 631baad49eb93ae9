//! Reading an image row by row, within the limits on memory.

use super::{AnyImage, FileImage, Image, Layout, Pixel, ReadOptions, Size, grey};
use crate::files::Fault;
use crate::image::PixelKind;
use std::cell::Cell;
use std::io::{BufRead, Seek};

/// The bytes of an image file.
pub(super) trait Source: BufRead + Seek {}
impl<S: BufRead + Seek> Source for S {}

/// Which channels of an image are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    All,
    /// Colour becomes grey row by row; an alpha channel stays.
    GreyAndAlpha,
}

impl Channels {
    /// How many channels of an image with this layout are kept.
    pub(super) fn kept(self, layout: Layout) -> usize {
        match self {
            Self::All => layout.channels,
            Self::GreyAndAlpha => 1 + usize::from(layout.alpha.is_some()),
        }
    }
}

impl FileImage {
    /// The image of a format that is decoded as a whole. The caller has called `begin` and checked the limits.
    pub(super) fn whole<T: Pixel>(
        pixels: Vec<T>,
        size: Size,
        layout: Layout,
        request: &Request<'_>,
    ) -> Result<Self, Fault> {
        if request.channels.kept(layout) != layout.channels || request.no_data.is_some() {
            let mut rows = Rows::new(request, size, layout, request.no_data)?;
            rows.push(&pixels)?;
            return rows.finish();
        }
        layout.check()?;
        let image = Image::from_vec(pixels, size, layout.channels).map_err(|e| e.to_string())?;
        Ok(Self { layout, ..AnyImage::from(image).into() })
    }
}

/// A request to the reader of a format.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) channels: Channels,
    /// Bytes in the file.
    pub(super) file_len: u64,
    /// The value of pixels that hold no data, as it is stored, if it is known from elsewhere.
    pub(super) no_data: Option<f64>,
    /// Set if only the size and the pixel type are asked for: reading then stops once it holds them.
    pub(super) shape: Option<&'a Cell<Option<(Size, PixelKind)>>>,
}

impl Request<'_> {
    /// The whole file, for decoders that need it in memory.
    pub(super) fn bytes(&self, mut source: impl Source) -> Result<Vec<u8>, Fault> {
        if self.file_len > self.options.max_bytes {
            return Err(format!("{} bytes are more than the limit of max_bytes", self.file_len).into());
        }
        let mut bytes = reserve(self.file_len as usize)?;
        source.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// This request with its no-data value stretched as the pixels are: from the file's `white`, if any, to `to`.
    pub(super) fn stretched(self, white: Option<u16>, to: f64) -> Self {
        let stretched = |value: f64| white.map_or(value, |white| (value * to / f64::from(white)).round());
        Self { no_data: self.no_data.map(stretched), ..self }
    }

    /// The layout of an image whose file gives only the number of channels.
    pub(super) fn layout(&self, channels: usize) -> Layout {
        Layout::usual(channels).with_band(self.options.band)
    }

    /// Readers call it between the header and pixels of type `T`. If only `shape` is wanted, it stores that and fails,
    /// which ends the reading.
    pub(super) fn begin<T: Pixel>(&self, size: Size) -> Result<(), Fault> {
        let Some(shape) = self.shape else { return Ok(()) };
        shape.set(Some((size, T::KIND)));
        Err("the pixels were not asked for".into())
    }

    /// Fails when this file is too short for `bytes` of decoded data, at `ratio` for each byte of the file at most.
    pub(super) fn plausible(&self, size: Size, bytes: u64, ratio: u64) -> Result<(), Fault> {
        // A file of nothing but a header passes, thanks to the constant: the decoder's error says more about it.
        if bytes / ratio > self.file_len.saturating_add(64) {
            return Err(Fault::Bad(format!(
                "the header promises {size} pixels, which a file of {} bytes cannot hold; it is truncated or \
                 not what it says",
                self.file_len
            )));
        }
        Ok(())
    }

    /// Fails when `size` is empty or `bytes` of memory are above the limits.
    pub(super) fn affordable(&self, size: Size, bytes: Option<usize>) -> Result<(), Fault> {
        let limits = self.options;
        if size.is_empty() {
            return Err(Fault::Bad(format!("the image is empty ({size})")));
        }
        if size.area() as u64 > limits.max_pixels {
            return Err(Fault::Bad(format!(
                "{size} pixels are more than the limit of {} pixels; raise max_pixels to read it",
                limits.max_pixels
            )));
        }
        match bytes {
            Some(bytes) if bytes as u64 <= limits.max_bytes => Ok(()),
            _ => Err(Fault::Bad(format!(
                "{size} pixels need {} bytes of memory, more than the limit of {}; raise max_bytes to read it",
                bytes.map_or("too many".into(), |b| b.to_string()),
                limits.max_bytes
            ))),
        }
    }
}

/// A vector with room for `len` elements, or a fault instead of an abort.
pub(super) fn reserve<T>(len: usize) -> Result<Vec<T>, Fault> {
    let mut data = Vec::new();
    data.try_reserve_exact(len)
        .map_err(|_| format!("cannot allocate memory for {len} values of {} bytes", size_of::<T>()))?;
    Ok(data)
}

/// A vector of `len` zeros, or a fault instead of an abort.
pub(super) fn zeros<T: Copy + Default>(len: usize) -> Result<Vec<T>, Fault> {
    let mut data = reserve(len)?;
    data.resize(len, T::default());
    Ok(data)
}

/// Collects an image row by row, as it is or as grey. All memory is reserved at the start but touched as rows arrive.
#[derive(Debug)]
pub(super) struct Rows<T> {
    data: Vec<T>,
    size: Size,
    /// The layout of the rows in the file.
    layout: Layout,
    /// The number of channels that are kept.
    kept: usize,
    /// The no-data value, and for each pixel so far 0 if it has that value, otherwise 255.
    no_data: Option<(f64, Vec<u8>)>,
    /// Scratch for the colour and alpha channels of a row, for layouts that are not the usual one.
    seen: Vec<T>,
}

impl<T: Pixel> Rows<T> {
    /// Checks the limits and reserves memory for an image.
    pub(super) fn new(
        request: &Request<'_>,
        size: Size,
        layout: Layout,
        no_data: Option<f64>,
    ) -> Result<Self, Fault> {
        layout.check()?;
        let kept = request.channels.kept(layout);
        let len = size.area().checked_mul(kept);
        let marks = if no_data.is_some() { size.area() } else { 0 };
        let bytes = len.and_then(|n| n.checked_mul(size_of::<T>())?.checked_add(marks));
        request.affordable(size, bytes)?;
        request.begin::<T>(size)?;
        let no_data = no_data.map(|v| Ok::<_, Fault>((v, reserve(size.area())?))).transpose()?;
        Ok(Self { data: reserve(len.unwrap_or(usize::MAX))?, size, layout, kept, no_data, seen: Vec::new() })
    }

    /// Elements in a row of the file.
    pub(super) fn row_len(&self) -> usize {
        self.size.width * self.layout.channels
    }

    /// Whether rows are kept as they are in the file, so that their values need not be read.
    pub(super) fn direct(&self) -> bool {
        self.kept == self.layout.channels && self.no_data.is_none()
    }

    /// Appends whole rows.
    pub(super) fn push(&mut self, rows: &[T]) -> Result<(), Fault> {
        let (row_len, kept) = (self.row_len(), self.size.width * self.kept);
        let count = rows.len() / row_len;
        if !rows.len().is_multiple_of(row_len)
            || self.data.len() + count * kept > self.size.area() * self.kept
        {
            return Err("the rows in the file do not fit its header".into());
        }
        if let Some((value, shown)) = &mut self.no_data {
            let marked = |pixel: &[T]| self.layout.marked(pixel, *value);
            shown.extend(rows.chunks_exact(self.layout.channels).map(|pixel| 255 * u8::from(!marked(pixel))));
        }
        if self.kept == self.layout.channels {
            self.data.extend_from_slice(rows);
            return Ok(());
        }
        let start = self.data.len();
        self.data.resize(start + count * kept, T::default());
        for (out, row) in self.data[start..].chunks_exact_mut(kept).zip(rows.chunks_exact(row_len)) {
            let (row, channels) = match self.layout.is_usual() {
                true => (row, self.layout.channels),
                false => {
                    self.seen.clear();
                    self.layout.extract(row, &mut self.seen);
                    (self.seen.as_slice(), self.layout.seen())
                }
            };
            match (self.kept, channels) {
                (1, _) => grey::grey_row(row, channels, out),
                (_, 2) => out.copy_from_slice(row),
                _ => grey::grey_alpha_row(row, out),
            }
        }
        Ok(())
    }

    /// Appends one row, given as its values in order; `row` is scratch.
    pub(super) fn push_from(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        row: &mut Vec<T>,
    ) -> Result<(), Fault> {
        if self.direct() && values.len() == self.row_len() && self.data.len() < self.size.area() * self.kept {
            self.data.extend(values);
            return Ok(());
        }
        row.clear();
        row.extend(values);
        self.push(row)
    }

    /// The next `rows` rows, to be filled in place; an error unless the rows are [direct](Self::direct).
    pub(super) fn next_rows(&mut self, rows: usize) -> Result<&mut [T], Fault> {
        let start = self.data.len();
        let end = rows.checked_mul(self.row_len()).and_then(|n| n.checked_add(start));
        match end {
            Some(end) if self.direct() && end <= self.size.area() * self.kept => {
                self.data.resize(end, T::default());
                Ok(&mut self.data[start..])
            }
            _ => Err("the rows in the file do not fit its header".into()),
        }
    }

    /// The complete image.
    pub(super) fn finish(self) -> Result<FileImage, Fault> {
        let (size, kept) = (self.size, self.kept);
        let incomplete = |_| Fault::from("the file ends before the image does; it is truncated");
        let image = Image::from_vec(self.data, size, kept).map_err(incomplete)?;
        let layout = if kept == self.layout.channels { self.layout } else { Layout::usual(kept) };
        let (no_data, shown) = match self.no_data {
            None => (None, None),
            Some((value, shown)) => {
                let shown = shown.contains(&0).then_some(shown);
                let shown = shown.map(|shown| Image::from_vec(shown, size, 1)).transpose();
                (Some(value), shown.map_err(incomplete)?)
            }
        };
        Ok(FileImage { layout, no_data, shown, ..AnyImage::from(image).into() })
    }
}
