//! Images on their way from the host to a device.

use super::Pixels;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Pinned};
use crate::image::gpu::{AnyGpuImage, GpuImage, PixelKind};
use crate::image::{AnyView, ImageView, Rect, Size};
use crate::{Error, Result};
use tiepoint_gpu::{Element, Mark};

const ROWS_A_TASK: usize = 64;

/// A grey image on the device, and memory of the host that it is filled from. Images of one size and type of pixel that
/// come one after the other share both.
#[derive(Debug)]
pub(crate) struct Staging {
    image: AnyGpuImage,
    host: Host,
}

/// Memory for the rows of the image, as they lie on the device.
#[derive(Debug)]
enum Host {
    U8(Pinned<u8>),
    U16(Pinned<u16>),
    F32(Pinned<f32>),
}

/// Runs one expression for a staging buffer and a view of the same type of pixel.
macro_rules! for_same_type {
    ($staging:expr, $view:expr, $host:ident, $image:ident, $v:ident => $body:expr) => {
        match (&mut $staging.host, &$staging.image, $view) {
            (Host::U8($host), AnyGpuImage::U8($image), AnyView::U8($v)) => $body,
            (Host::U16($host), AnyGpuImage::U16($image), AnyView::U16($v)) => $body,
            (Host::F32($host), AnyGpuImage::F32($image), AnyView::F32($v)) => $body,
            (_, image, view) => Err(unlike(view.pixel(), image)),
        }
    };
}

impl Staging {
    pub(crate) fn new(gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        fn pair<T: Element>(gpu: &Gpu, size: Size) -> Result<(GpuImage<T>, Pinned<T>)> {
            let image = GpuImage::new(gpu, size)?;
            let host = gpu.pinned(image.buffer().len())?;
            Ok((image, host))
        }
        let (image, host) = match pixel {
            PixelKind::U8 => pair(gpu, size).map(|(image, host)| (AnyGpuImage::U8(image), Host::U8(host)))?,
            PixelKind::U16 => {
                pair(gpu, size).map(|(image, host)| (AnyGpuImage::U16(image), Host::U16(host)))?
            }
            PixelKind::F32 => {
                pair(gpu, size).map(|(image, host)| (AnyGpuImage::F32(image), Host::F32(host)))?
            }
        };
        Ok(Self { image, host })
    }

    /// The one that was `kept`, if it is for images of this type and size, or a new one.
    pub(crate) fn of(kept: Option<Self>, gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        kept.filter(|kept| kept.serves(pixel, size)).map_or_else(|| Self::new(gpu, pixel, size), Ok)
    }

    pub(crate) fn serves(&self, pixel: PixelKind, size: Size) -> bool {
        self.image.pixel() == pixel && self.image.size() == size
    }

    /// The same pixels on the device, once the work in its queue has come there.
    pub(crate) fn fill(&mut self, view: AnyView<'_>) -> Result<AnyGpuImage> {
        for_same_type!(self, view, host, image, view => fill(host, image, view))?;
        Ok(self.image.clone())
    }

    /// As [`fill`](Self::fill), beside the work in the queue; what was put there up to `free` may still read the image.
    pub(crate) fn send(&mut self, view: AnyView<'_>, free: &Mark, cpu: &Cpu) -> Result<AnyGpuImage> {
        for_same_type!(self, view, host, image, view => send(host, image, view, free, cpu))?;
        Ok(self.image.clone())
    }

    /// The rows of an image from `first` on, as many as there is room for.
    pub(crate) fn rows(&mut self, image: &Pixels<'_>, first: usize) -> Result<AnyGpuImage> {
        match image {
            Pixels::Host(view) => {
                let rect = Rect { x: 0, y: first, size: self.image.size() };
                for_same_type!(self, *view, host, image, view => fill(host, image, view.crop(rect)?))?;
            }
            Pixels::Device(from) => {
                let mut commands = Commands::new();
                copy_rows(&mut commands, (from, first), (&self.image, 0), self.image.size().height)?;
                from.gpu().run(&commands)?;
            }
        }
        Ok(self.image.clone())
    }
}

/// Copies the rows of an image from a row on over those of another from a row on; both are of one width and type of
/// pixel.
pub(crate) fn copy_rows(
    commands: &mut Commands,
    (image, first): (&AnyGpuImage, usize),
    (to, row): (&AnyGpuImage, usize),
    rows: usize,
) -> Result<()> {
    fn at<T: Element>(to: &GpuImage<T>, row: usize) -> (&Buffer<T>, usize, usize) {
        (to.buffer(), row * to.pitch(), to.pitch())
    }
    match (image, to) {
        (AnyGpuImage::U8(image), AnyGpuImage::U8(to)) => image.copy_rows(commands, first, at(to, row), rows),
        (AnyGpuImage::U16(image), AnyGpuImage::U16(to)) => {
            image.copy_rows(commands, first, at(to, row), rows)
        }
        (AnyGpuImage::F32(image), AnyGpuImage::F32(to)) => {
            image.copy_rows(commands, first, at(to, row), rows)
        }
        (image, to) => Err(unlike(image.pixel(), to)),
    }
}

fn unlike(pixel: PixelKind, needed: &AnyGpuImage) -> Error {
    Error::Mismatch(format!("an image of {pixel:?} pixels: {:?} is needed", needed.pixel()))
}

fn fill<T: Element>(host: &mut Pinned<T>, image: &GpuImage<T>, view: ImageView<'_, T>) -> Result<()> {
    #[expect(unsafe_code, reason = "memory that the device reads")]
    // SAFETY: commands that read this memory are made and run here and in `send`, which borrow it mutably.
    let rows = unsafe { host.numbers_mut() }?;
    for (y, row) in rows.chunks_exact_mut(image.pitch()).enumerate() {
        row[..view.size().width].copy_from_slice(view.row(y));
    }
    let mut commands = Commands::new();
    commands.upload(host, image.buffer())?;
    Ok(image.gpu().run(&commands)?)
}

fn send<T: Element>(
    host: &mut Pinned<T>,
    image: &GpuImage<T>,
    view: ImageView<'_, T>,
    free: &Mark,
    cpu: &Cpu,
) -> Result<()> {
    let pitch = image.pitch();
    #[expect(unsafe_code, reason = "memory that the device reads")]
    // SAFETY: as in `fill`; what was sent before has been read where the queue has come to `free`.
    let rows = unsafe { host.numbers_mut_after(free) }?;
    cpu.for_chunks(rows, ROWS_A_TASK * pitch, |task, rows| {
        for (y, row) in (task * ROWS_A_TASK..).zip(rows.chunks_exact_mut(pitch)) {
            row[..view.size().width].copy_from_slice(view.row(y));
        }
    });
    let _arrived = image.gpu().upload_beside(host, image.buffer(), free)?;
    Ok(())
}
