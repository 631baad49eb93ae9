//! Images on their way from the host to a device.

use super::Pixels;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu, Pinned};
use crate::image::gpu::{AnyGpuImage, GpuImage, PixelKind};
use crate::image::{AnyView, ImageView, Rect, Size};
use crate::{Error, Result};
use tiepoint_gpu::{Element, Mark};

/// Rows that a thread copies at a time.
const ROWS_A_TASK: usize = 64;

/// A staging buffer, and the grey image on the device that it fills, of any type of pixel.
#[derive(Debug)]
pub(crate) enum Staging {
    U8(Typed<u8>),
    U16(Typed<u16>),
    F32(Typed<f32>),
}

/// Runs one expression for a staging buffer and a view of the same type of pixel.
macro_rules! for_same_type {
    ($staging:expr, $view:expr, $s:ident, $v:ident => $body:expr) => {
        match ($staging, $view) {
            (Staging::U8($s), AnyView::U8($v)) => $body,
            (Staging::U16($s), AnyView::U16($v)) => $body,
            (Staging::F32($s), AnyView::F32($v)) => $body,
            (staging, view) => Err(staging.refuse(view.pixel())),
        }
    };
}

impl Staging {
    pub(crate) fn new(gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        Ok(match pixel {
            PixelKind::U8 => Self::U8(Typed::new(gpu, size)?),
            PixelKind::U16 => Self::U16(Typed::new(gpu, size)?),
            PixelKind::F32 => Self::F32(Typed::new(gpu, size)?),
        })
    }

    /// The one that was `kept`, if it is for images of this type and size, or a new one.
    pub(crate) fn of(kept: Option<Self>, gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        match kept.filter(|kept| kept.serves(pixel, size)) {
            Some(kept) => Ok(kept),
            None => Self::new(gpu, pixel, size),
        }
    }

    pub(crate) fn serves(&self, pixel: PixelKind, size: Size) -> bool {
        self.pixel() == pixel && self.size() == size
    }

    fn pixel(&self) -> PixelKind {
        match self {
            Self::U8(_) => PixelKind::U8,
            Self::U16(_) => PixelKind::U16,
            Self::F32(_) => PixelKind::F32,
        }
    }

    fn size(&self) -> Size {
        match self {
            Self::U8(s) => s.image.size(),
            Self::U16(s) => s.image.size(),
            Self::F32(s) => s.image.size(),
        }
    }

    fn refuse(&self, pixel: PixelKind) -> Error {
        Error::Mismatch(format!("an image of {pixel:?} pixels: {:?} is needed", self.pixel()))
    }

    /// The same pixels on the device, once the work in its queue has come there.
    pub(crate) fn fill(&mut self, view: AnyView<'_>) -> Result<AnyGpuImage> {
        for_same_type!(self, view, staging, v => staging.fill(v).map(AnyGpuImage::from))
    }

    /// As [`fill`](Self::fill), beside the work in the queue, of which that up to `free` may read the image before.
    pub(crate) fn send(&mut self, view: AnyView<'_>, free: &Mark, cpu: &Cpu) -> Result<AnyGpuImage> {
        for_same_type!(self, view, staging, v => staging.send(v, free, cpu).map(AnyGpuImage::from))
    }

    /// The rows of an image from `first` on, as many as there is room for.
    pub(crate) fn rows(&mut self, image: &Pixels<'_>, first: usize) -> Result<AnyGpuImage> {
        match image {
            Pixels::Host(view) => {
                let rect = Rect { x: 0, y: first, size: self.size() };
                for_same_type!(self, *view, s, v => s.fill(v.crop(rect)?).map(AnyGpuImage::from))
            }
            Pixels::Device(image) => self.copy_rows(image, first),
        }
    }

    fn copy_rows(&mut self, image: &AnyGpuImage, first: usize) -> Result<AnyGpuImage> {
        match (self, image) {
            (Self::U8(s), AnyGpuImage::U8(i)) => s.copy_rows(i, first).map(AnyGpuImage::from),
            (Self::U16(s), AnyGpuImage::U16(i)) => s.copy_rows(i, first).map(AnyGpuImage::from),
            (Self::F32(s), AnyGpuImage::F32(i)) => s.copy_rows(i, first).map(AnyGpuImage::from),
            (staging, image) => Err(staging.refuse(image.pixel())),
        }
    }
}

/// The same for one type of pixel: images of one size that come one after the other share its memory.
#[derive(Debug)]
pub(crate) struct Typed<T: Element> {
    host: Pinned<T>,
    image: GpuImage<T>,
}

impl<T: Element> Typed<T> {
    fn new(gpu: &Gpu, size: Size) -> Result<Self> {
        let image = GpuImage::new(gpu, size)?;
        Ok(Self { host: gpu.pinned(image.buffer().len())?, image })
    }

    /// The same pixels on the device, once the work in its queue has come there.
    fn fill(&mut self, view: ImageView<'_, T>) -> Result<&GpuImage<T>> {
        let (pitch, width) = (self.image.pitch(), self.image.size().width);
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: commands that read this memory are made and run in this method and `send`, which borrow it mutably.
        let rows = unsafe { self.host.numbers_mut() }?;
        for (y, row) in rows.chunks_exact_mut(pitch).enumerate() {
            row[..width].copy_from_slice(view.row(y));
        }
        let mut commands = Commands::new();
        commands.upload(&self.host, self.image.buffer())?;
        self.image.gpu().run(&commands)?;
        Ok(&self.image)
    }

    /// As [`fill`](Self::fill), beside the work in the queue, of which that up to `free` may read the image before.
    fn send(&mut self, view: ImageView<'_, T>, free: &Mark, cpu: &Cpu) -> Result<&GpuImage<T>> {
        let (pitch, width) = (self.image.pitch(), self.image.size().width);
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: as in `fill`; what was sent before has been read where the queue has come to `free`.
        let rows = unsafe { self.host.numbers_mut_after(free) }?;
        cpu.for_chunks(rows, ROWS_A_TASK * pitch, |task, rows| {
            for (y, row) in (task * ROWS_A_TASK..).zip(rows.chunks_exact_mut(pitch)) {
                row[..width].copy_from_slice(view.row(y));
            }
        });
        let _arrived = self.image.gpu().upload_beside(&self.host, self.image.buffer(), free)?;
        Ok(&self.image)
    }

    /// The same rows as another image's on the device, which is as wide, from `first` on.
    fn copy_rows(&mut self, image: &GpuImage<T>, first: usize) -> Result<&GpuImage<T>> {
        let (to, pitch, rows) = (self.image.buffer(), self.image.pitch(), self.image.size().height);
        let mut commands = Commands::new();
        image.copy_rows(&mut commands, first, (to, 0, pitch), rows)?;
        image.gpu().run(&commands)?;
        Ok(&self.image)
    }
}
