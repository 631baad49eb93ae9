//! Reading an image row by row, within the limits on memory.

use super::{AnyImage, Image, Pixel, ReadOptions, Size, grey};
use crate::files::Fault;
use crate::image::gpu::PixelKind;
use std::cell::Cell;
use std::io::{BufRead, Seek};

/// The bytes of an image file.
pub(super) trait Source: BufRead + Seek {}
impl<S: BufRead + Seek> Source for S {}

/// What is kept of an image's channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    All,
    /// Colour becomes grey row by row; an alpha channel stays.
    GreyAndAlpha,
}

impl Channels {
    /// How many are kept of `source`.
    pub(super) fn kept(self, source: usize) -> usize {
        match self {
            Self::All => source,
            Self::GreyAndAlpha => 1 + usize::from(source.is_multiple_of(2)),
        }
    }
}

/// What a format's reader is asked for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) channels: Channels,
    /// Bytes in the file.
    pub(super) file_len: u64,
    /// Where size and type of pixel are wanted, and nothing more.
    pub(super) shape: Option<&'a Cell<Option<(Size, PixelKind)>>>,
}

impl Request<'_> {
    /// Notes what the header has said, before pixels of type `T` are read; fails where that is all that is wanted.
    pub(super) fn begin<T: Pixel>(&self, size: Size) -> Result<(), Fault> {
        let Some(shape) = self.shape else { return Ok(()) };
        let pixel = match (T::u8s(&[]), T::u16s(&[])) {
            (Some(_), _) => PixelKind::U8,
            (None, Some(_)) => PixelKind::U16,
            (None, None) => PixelKind::F32,
        };
        shape.set(Some((size, pixel)));
        Err("the pixels were not asked for".into())
    }

    /// Fails when `bytes` of decoded data cannot come from this file, a byte of which yields `ratio` at most.
    pub(super) fn plausible(&self, size: Size, bytes: u64, ratio: u64) -> Result<(), Fault> {
        // The constant lets a file with nothing but its header through: the decoder's error says more about
        // it.
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

/// Collects an image from the top, each row kept as it is or turned to grey. Memory is reserved at once but
/// touched only as rows arrive.
#[derive(Debug)]
pub(super) struct Rows<T> {
    data: Vec<T>,
    size: Size,
    /// Channels of the rows in the file.
    source: usize,
    /// Channels kept.
    kept: usize,
}

impl<T: Pixel> Rows<T> {
    /// An image about to be read.
    pub(super) fn new(request: &Request<'_>, size: Size, channels: usize) -> Result<Self, Fault> {
        if request.channels != Channels::All {
            grey::check_channels(channels).map_err(|e| e.to_string())?;
        }
        let kept = request.channels.kept(channels);
        let len = size.area().checked_mul(kept);
        request.affordable(size, len.and_then(|n| n.checked_mul(size_of::<T>())))?;
        request.begin::<T>(size)?;
        Ok(Self { data: reserve(len.unwrap_or(usize::MAX))?, size, source: channels, kept })
    }

    /// Elements in a row of the file.
    pub(super) fn row_len(&self) -> usize {
        self.size.width * self.source
    }

    /// Whether rows are kept as they are in the file.
    pub(super) fn direct(&self) -> bool {
        self.kept == self.source
    }

    /// Takes whole rows.
    pub(super) fn push(&mut self, rows: &[T]) -> Result<(), Fault> {
        let (row_len, kept) = (self.row_len(), self.size.width * self.kept);
        let count = rows.len() / row_len;
        if !rows.len().is_multiple_of(row_len)
            || self.data.len() + count * kept > self.size.area() * self.kept
        {
            return Err("the rows in the file do not fit its header".into());
        }
        if self.direct() {
            self.data.extend_from_slice(rows);
            return Ok(());
        }
        let start = self.data.len();
        self.data.resize(start + count * kept, T::default());
        for (out, row) in self.data[start..].chunks_exact_mut(kept).zip(rows.chunks_exact(row_len)) {
            match kept / self.size.width {
                1 => grey::grey_row(row, self.source, out),
                _ => grey::grey_alpha_row(row, out),
            }
        }
        Ok(())
    }

    /// Takes one row, given as values in order.
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

    /// The next `rows` rows, to be filled in place; only where rows are kept as they are in the file.
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
    pub(super) fn finish(self) -> Result<AnyImage, Fault>
    where
        AnyImage: From<Image<T>>,
    {
        let (size, kept) = (self.size, self.kept);
        let image = Image::from_vec(self.data, size, kept);
        Ok(image.map_err(|_| "the file ends before the image does; it is truncated")?.into())
    }
}
