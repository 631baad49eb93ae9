//! Rows on their way between the host and a device, whose rows have gaps.

use super::GpuImage;
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Pinned};
use crate::image::{Image, ImageView};
use tiepoint_gpu::{Element, Mark};

/// Rows that a thread copies at a time.
const ROWS: usize = 64;

/// Copies the rows of an image to numbers, in which they lie `pitch` apart.
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
    /// An image whose rows lie in `numbers` as they lie in this one, with `value` of each number.
    pub(crate) fn packed<U: Copy + Default + Send>(
        &self,
        numbers: &[T],
        value: impl Fn(T) -> U + Sync,
        cpu: &Cpu,
    ) -> Result<Image<U>> {
        let (size, row) = (self.size, self.size.width * self.channels);
        // The last row may end with its pixels.
        let rows = || numbers.chunks(self.pitch).take(size.height);
        let mut pixels = Vec::new();
        if cpu.threads() == 1 {
            // Not zeroed first.
            pixels.reserve_exact(row * size.height);
            rows().for_each(|from| pixels.extend(from[..row].iter().map(|&number| value(number))));
        } else {
            // Each thread takes the pages of its own part of the new image.
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

/// Images on their way to a device: host memory that the device reads by itself, and the memory that it fills.
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
    /// For images that lie in `to` one behind the other, their rows as those of `image`.
    pub(crate) fn new(image: &GpuImage<T>, to: &Buffer<T>) -> Result<Self> {
        Self::with_rows(to, image.pitch, image.pitch * image.size.height)
    }

    /// For numbers that are no image.
    pub(crate) fn of_numbers(to: &Buffer<T>) -> Result<Self> {
        Self::with_rows(to, to.len(), to.len())
    }

    fn with_rows(to: &Buffer<T>, pitch: usize, step: usize) -> Result<Self> {
        Ok(Self { host: to.gpu().pinned(to.len())?, to: to.clone(), pitch, step })
    }

    /// The numbers in the host's memory, once the queue has come to `free`, after what was sent before.
    pub(crate) fn numbers(&mut self, free: &Mark) -> Result<&mut [T]> {
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: commands that read this memory are made and run once, by `send` and `fill`, before the mark.
        Ok(unsafe { self.host.numbers_mut_after(free) }?)
    }

    /// Takes image `i` once the queue has come to `free`.
    pub(crate) fn write(&mut self, i: usize, image: ImageView<'_, T>, free: &Mark, cpu: &Cpu) -> Result<()> {
        let (pitch, step) = (self.pitch, self.step);
        spread(image, &mut self.numbers(free)?[i * step..][..step], pitch, cpu);
        Ok(())
    }

    /// Sends what was taken, beside the work in the queue; what was put there up to `free` may still use the device's
    /// memory. Gives the point at which all has arrived.
    pub(crate) fn send(&self, free: &Mark) -> Result<Mark> {
        Ok(self.to.gpu().upload_beside(&self.host, &self.to, free)?)
    }

    /// Takes an image and sends it as part of the work in the queue, for which it waits first.
    pub(crate) fn fill(&mut self, image: ImageView<'_, T>, cpu: &Cpu) -> Result<()> {
        let (pitch, mut commands) = (self.pitch, Commands::new());
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: as in `numbers`; what was sent before has been read.
        spread(image, unsafe { self.host.numbers_mut() }?, pitch, cpu);
        commands.upload(&self.host, &self.to)?;
        Ok(self.to.gpu().run(&commands)?)
    }

    /// The device's memory that is filled.
    pub(crate) fn to(&self) -> &Buffer<T> {
        &self.to
    }
}
