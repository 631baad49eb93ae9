//! Sending images from the host to a device.

use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::image::gpu::{self, AnyGpuImage, GpuImage};
use crate::image::{AnyView, ByPixel, PixelKind, Pixels, Rect, Size};
use crate::{Result, by_pixel};
use tiepoint_gpu::Mark;

/// A grey image on the device, and the host memory from which it is filled. Successive images of one size and type of
/// pixel share both.
#[derive(Debug)]
pub(crate) struct Staging {
    image: AnyGpuImage,
    host: ByPixel<gpu::Staging<u8>, gpu::Staging<u16>, gpu::Staging<f32>>,
}

impl Staging {
    pub(crate) fn new(gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        let image = by_pixel!(make pixel, GpuImage::new(gpu, size)?);
        let host = by_pixel!(map &image, image => gpu::Staging::new(image, image.buffer())?);
        Ok(Self { image, host })
    }

    /// `kept`, if it is for images of this type and size, or a new one.
    pub(crate) fn of(kept: Option<Self>, gpu: &Gpu, pixel: PixelKind, size: Size) -> Result<Self> {
        kept.filter(|kept| kept.serves(pixel, size)).map_or_else(|| Self::new(gpu, pixel, size), Ok)
    }

    pub(crate) fn serves(&self, pixel: PixelKind, size: Size) -> bool {
        self.image.pixel() == pixel && self.image.size() == size
    }

    /// The same pixels on the device, once its queue has reached that point.
    pub(crate) fn fill(&mut self, view: AnyView<'_>) -> Result<AnyGpuImage> {
        by_pixel!((&mut self.host, view), (host, view) => host.fill(&[view], &Cpu::sequential()))?;
        Ok(self.image.clone())
    }

    /// As [`fill`](Self::fill), while queued work goes on; only work queued before `free` may still read the image.
    pub(crate) fn send(&mut self, view: AnyView<'_>, free: &Mark, cpu: &Cpu) -> Result<AnyGpuImage> {
        by_pixel!((&mut self.host, view), (host, view) => {
            host.write(0, view, free, cpu).and_then(|()| host.send(free))
        })?;
        Ok(self.image.clone())
    }

    /// As many rows of an image from `first` on as fit.
    pub(crate) fn rows(&mut self, image: &Pixels<'_>, first: usize) -> Result<AnyGpuImage> {
        match image {
            Pixels::Host(view) => {
                let rect = Rect { x: 0, y: first, size: self.image.size() };
                self.fill(by_pixel!(map view, view => view.crop(rect)?))
            }
            Pixels::Device(from) => {
                let mut commands = Commands::new();
                copy_rows(&mut commands, (from, first), (&self.image, 0), self.image.size().height)?;
                from.gpu().run(&commands)?;
                Ok(self.image.clone())
            }
        }
    }
}

/// Copies `rows` rows of an image from row `first` on to another from row `row` on; both have one width and type of
/// pixel.
pub(crate) fn copy_rows(
    commands: &mut Commands,
    (image, first): (&AnyGpuImage, usize),
    (to, row): (&AnyGpuImage, usize),
    rows: usize,
) -> Result<()> {
    by_pixel!((to, image), (to, image) => {
        image.copy_rows(commands, first, (to.buffer(), row * to.pitch(), to.pitch()), rows)
    })
}
