//! Copies between images on the host and a device's memory, whose rows have gaps.

use super::GpuImage;
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Pinned};
use crate::image::{Image, ImageView};
use tiepoint_gpu::{Element, Mark};

/// Rows that a thread copies at a time.
const ROWS: usize = 64;

/// Copies the rows of an image to `to`, where they lie `pitch` numbers apart.
fn spread<T: Element>(image: ImageView<'_, T>, to: &mut [T], pitch: usize, cpu: &Cpu) {
    let row = image.size().width * image.channels();
    cpu.for_chunks(to, ROWS * pitch, |task, to| {
        for (y, to) in (task * ROWS..).zip(to.chunks_exact_mut(pitch)) {
            to[..row].copy_from_slice(image.row(y));
        }
    });
}

/// The rows of an image `pitch` numbers apart.
pub(super) fn padded<T: Element>(image: ImageView<'_, T>, pitch: usize) -> Vec<T> {
    let mut rows = vec![T::default(); pitch * image.size().height];
    spread(image, &mut rows, pitch, &Cpu::sequential());
    rows
}

impl<T: Element> GpuImage<T> {
    /// An image on the host, of the `value` of each pixel in `numbers`, which are laid out as this image is.
    pub(crate) fn packed<U: Copy + Default + Send>(
        &self,
        numbers: &[T],
        value: impl Fn(T) -> U + Sync,
        cpu: &Cpu,
    ) -> Result<Image<U>> {
        let (size, row) = (self.size, self.size.width * self.channels);
        // The last row may have no padding.
        let rows = || numbers.chunks(self.pitch).take(size.height);
        let mut pixels = Vec::new();
        if cpu.threads() == 1 {
            // Written once: no zeros first.
            pixels.reserve_exact(row * size.height);
            rows().for_each(|from| pixels.extend(from[..row].iter().map(|&number| value(number))));
        } else {
            // The system gives zeros that are not yet mapped; each thread maps the pages of its own part.
            pixels.resize(row * size.height, U::default());
            cpu.for_chunks(&mut pixels, ROWS * row, |task, to| {
                for (to, from) in to.chunks_exact_mut(row).zip(rows().skip(task * ROWS)) {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = value(from));
                }
            });
        }
        Image::from_vec(pixels, size, self.channels)
    }
}

/// Sends images to a device: pinned host memory, and the device's memory to which it is copied.
#[derive(Debug)]
pub(crate) struct Staging<T: Element> {
    host: Pinned<T>,
    to: Buffer<T>,
    /// Numbers from the start of a row to the next.
    pitch: usize,
    /// Numbers from the start of an image to the next.
    step: usize,
}

impl<T: Element> Staging<T> {
    /// For images that lie in `to` one behind the other, each laid out as `image`.
    pub(crate) fn new(image: &GpuImage<T>, to: &Buffer<T>) -> Result<Self> {
        Self::with_rows(to, image.pitch, image.pitch * image.size.height)
    }

    /// For numbers that are not an image.
    pub(crate) fn of_numbers(to: &Buffer<T>) -> Result<Self> {
        Self::with_rows(to, to.len(), to.len())
    }

    fn with_rows(to: &Buffer<T>, pitch: usize, step: usize) -> Result<Self> {
        Ok(Self { host: to.gpu().pinned(to.len())?, to: to.clone(), pitch, step })
    }

    /// The host memory to be filled. Waits until the queue has reached `free`, a mark behind the last `send`.
    pub(crate) fn numbers(&mut self, free: &Mark) -> Result<&mut [T]> {
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: commands that read this memory are made and run once, by `send` and `fill`, before the mark.
        Ok(unsafe { self.host.numbers_mut_after(free) }?)
    }

    /// Copies image `i` to the host memory, once the queue has reached `free`.
    pub(crate) fn write(&mut self, i: usize, image: ImageView<'_, T>, free: &Mark, cpu: &Cpu) -> Result<()> {
        let (pitch, step) = (self.pitch, self.step);
        spread(image, &mut self.numbers(free)?[i * step..][..step], pitch, cpu);
        Ok(())
    }

    /// Starts the copy to the device once the queue has passed `free`, because work before it may still use the
    /// device's memory. The copy does not wait for work queued after `free`. Returns the mark of its end.
    pub(crate) fn send(&self, free: &Mark) -> Result<Mark> {
        Ok(self.to.gpu().upload_beside(&self.host, &self.to, free)?)
    }

    /// Copies images to the host memory, after waiting for the queue, and sends them as work of the queue.
    pub(crate) fn fill(&mut self, images: &[ImageView<'_, T>], cpu: &Cpu) -> Result<()> {
        let (pitch, step, mut commands) = (self.pitch, self.step, Commands::new());
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: as in `numbers`; what was sent before has been read.
        let to = unsafe { self.host.numbers_mut() }?;
        to.chunks_exact_mut(step).zip(images).for_each(|(to, image)| spread(*image, to, pitch, cpu));
        commands.upload(&self.host, &self.to)?;
        Ok(self.to.gpu().run(&commands)?)
    }

    /// The device's memory to which images are sent.
    pub(crate) fn to(&self) -> &Buffer<T> {
        &self.to
    }
}
