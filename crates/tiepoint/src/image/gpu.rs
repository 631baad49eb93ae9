//! Images in a device's memory.

mod staging;

pub(crate) use staging::Staging;

use super::{AnyImage, AnyView, ByPixel, Image, ImageView, Pixel, Size};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::{Error, Result, by_pixel};
use std::any::Any;
use std::ops::Deref;
use tiepoint_gpu::{Element, KernelSource, Laid};

/// A pixel type that a device can hold.
pub trait GpuPixel: Pixel + Element {}

impl<T: Pixel + Element> GpuPixel for T {}

/// Adds to a kernel's source the type `PIXEL` and its conversions `pixel_unit`, `pixel_level` and `pixel_from`.
pub(crate) fn for_kernels<T: GpuPixel>(source: KernelSource) -> KernelSource {
    source
        .define("PIXEL", T::NAME)
        .define("PIXEL_IS_FLOAT", u8::from(T::WHITE == 1.0))
        .define_f32("WHITE", T::WHITE)
        .text(include_str!("pixel.h"))
}

/// An image in a device's memory: rows of `pitch` numbers, of which the first width · channels are pixels. The rest of
/// a row is undefined; in memory of another program, the last row may lack it. Clones share the memory.
#[derive(Clone, Debug)]
pub struct GpuImage<T> {
    buffer: Buffer<T>,
    size: Size,
    channels: usize,
    pitch: usize,
    /// Rows begin at multiples of [`Self::ALIGNMENT`], and all are `pitch` long.
    aligned: bool,
}

impl<T: Element> GpuImage<T> {
    /// Rows begin at multiples of this many bytes, so that wide accesses are aligned.
    const ALIGNMENT: usize = 128;

    /// Memory for a grey image; the pixels are undefined.
    ///
    /// # Errors
    /// [`Error::Image`] when the size has no pixels, [`Error::Unsupported`] for 2³⁰ numbers or more in a row or column,
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn new(gpu: &Gpu, size: Size) -> Result<Self> {
        Self::with_channels(gpu, size, 1)
    }

    /// As [`new`](Self::new), for several channels.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_channels(gpu: &Gpu, size: Size, channels: usize) -> Result<Self> {
        Self::stacked(gpu, size, channels, 1)
    }

    /// The first of `count` images, in a buffer that has room for all of them.
    fn stacked(gpu: &Gpu, size: Size, channels: usize, count: usize) -> Result<Self> {
        let pitch = Self::pitch_for(size, channels)?;
        let len = pitch.checked_mul(size.height).and_then(|n| n.checked_mul(count));
        let len = len.ok_or_else(|| Error::Image(format!("{count} x {size} exceeds memory")))?;
        Ok(Self { buffer: gpu.buffer(len)?, size, channels, pitch, aligned: true })
    }

    /// A read-only image in memory of another program. Nothing is copied: rows lie `pitch` numbers apart, the first at
    /// `address`. `owner` keeps the memory alive; see [`Gpu::foreign`], and [`Gpu::wait_for`] for the order of work.
    ///
    /// # Safety
    /// As [`Gpu::foreign`].
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::Image`] when rows overlap, [`Error::Mismatch`] when the memory is not this
    /// device's, [`Error::Unsupported`] with OpenCL.
    #[expect(unsafe_code, reason = "an address says nothing of what lies there")]
    pub unsafe fn foreign(
        gpu: &Gpu,
        address: u64,
        (size, channels, pitch): (Size, usize, usize),
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let ours = Self::pitch_for(size, channels)?;
        let row = size.width * channels;
        if pitch < row || pitch >= 1 << 30 {
            return Err(Error::Image(format!(
                "rows of {row} numbers that lie {pitch} apart: expected {row} to 2³⁰"
            )));
        }
        let len = (size.height - 1).checked_mul(pitch).and_then(|n| n.checked_add(row));
        let len = len.ok_or_else(|| Error::Image(format!("{size} exceeds memory")))?;
        let aligned = ours == row && pitch == row && address.is_multiple_of(Self::ALIGNMENT as u64);
        // SAFETY: the caller's promise.
        let buffer = unsafe { gpu.foreign(address, len, owner) }?;
        Ok(Self { buffer, size, channels, pitch, aligned })
    }

    /// The image with rows as [`new`](Self::new) lays them out: this image if its rows already lie so, otherwise a copy
    /// that `commands` make.
    ///
    /// # Errors
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn aligned(&self, commands: &mut Commands) -> Result<Self> {
        if self.aligned {
            return Ok(self.clone());
        }
        let copy = Self::with_channels(self.gpu(), self.size, self.channels)?;
        self.copy_rows(commands, 0, (copy.buffer(), 0, copy.pitch), self.size.height)?;
        Ok(copy)
    }

    /// An image over the start of a buffer, in which rows follow each other without gaps.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::Mismatch`] when the buffer is too short.
    pub fn over(buffer: Buffer<T>, size: Size, channels: usize) -> Result<Self> {
        let pitch = Self::pitch_for(size, channels)?;
        let row = size.width * channels;
        if row.checked_mul(size.height).is_none_or(|n| n > buffer.len()) {
            let n = buffer.len();
            return Err(Error::Mismatch(format!("{n} numbers for {size} with {channels} channels")));
        }
        Ok(Self { buffer, size, channels, pitch: row, aligned: pitch == row })
    }

    /// The pixels without gaps between rows: this memory if it has none, otherwise a copy that is made in the queue.
    ///
    /// # Errors
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn without_gaps(&self) -> Result<Buffer<T>> {
        let row = self.size.width * self.channels;
        if self.pitch == row {
            return Ok(self.buffer.clone());
        }
        let (packed, mut commands) = (self.gpu().buffer(row * self.size.height)?, Commands::new());
        self.copy_rows(&mut commands, 0, (&packed, 0, row), self.size.height)?;
        self.gpu().run(&commands)?;
        Ok(packed)
    }

    /// Copies `rows` rows, from row `first` on, to a buffer, given with the index of its first number and its pitch.
    pub(crate) fn copy_rows(
        &self,
        commands: &mut Commands,
        first: usize,
        (to, to_first, to_pitch): (&Buffer<T>, usize, usize),
        rows: usize,
    ) -> Result<()> {
        let from = first * self.pitch;
        if self.aligned && to_pitch == self.pitch {
            return Ok(commands.copy((&self.buffer, from), (to, to_first), rows * to_pitch)?);
        }
        let row = self.size.width * self.channels;
        Ok(commands.copy_rows((&self.buffer, from, self.pitch), (to, to_first, to_pitch), [row, rows])?)
    }

    /// The numbers and their layout, as kernels take them.
    pub(crate) fn laid(&self) -> Laid<'_, T, Plane> {
        Laid { buffer: &self.buffer, layout: self.plane() }
    }

    /// The image's layout, as kernels take it.
    pub(crate) fn plane(&self) -> Plane {
        Plane {
            step: (self.pitch * self.size.height) as u64,
            row: (self.size.width * self.channels) as i32,
            height: self.size.height as i32,
            pitch: self.pitch as i32,
        }
    }

    fn pitch_for(size: Size, channels: usize) -> Result<usize> {
        if size.is_empty() || channels == 0 {
            return Err(Error::Image(format!("the image is empty ({size}, {channels} channels)")));
        }
        let row = size.width.checked_mul(channels).filter(|&n| n.max(size.height) < 1 << 30);
        row.map(Self::pitch_of).ok_or_else(|| Error::Unsupported {
            device: "a GPU".into(),
            feature: format!(
                "images of {size} with {channels} channels; rows and columns are below 2³⁰ numbers"
            ),
        })
    }

    /// The pitch of rows with this many numbers.
    pub(crate) const fn pitch_of(row: usize) -> usize {
        row.next_multiple_of(Self::ALIGNMENT / size_of::<T>())
    }

    /// The image's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Numbers from the start of a row to the start of the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        self.buffer.gpu()
    }

    /// The same pixels on the device.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn upload(gpu: &Gpu, view: ImageView<'_, T>) -> Result<Self> {
        let image = Self::with_channels(gpu, view.size(), view.channels())?;
        image.buffer.write(0, &staging::padded(view, image.pitch))?;
        Ok(image)
    }

    /// As [`upload`](Self::upload), by way of pinned memory, which all threads fill.
    pub(crate) fn upload_by(gpu: &Gpu, view: ImageView<'_, T>, cpu: &Cpu) -> Result<Self> {
        let image = Self::with_channels(gpu, view.size(), view.channels())?;
        Staging::new(&image, image.buffer())?.fill(&[view], cpu)?;
        Ok(image)
    }

    /// As [`download`](Self::download), by way of pinned memory, from which all threads copy. Each thread is the first
    /// to touch its part of the new image, so that the system's work of mapping pages is shared, too.
    pub(crate) fn download_by(&self, cpu: &Cpu) -> Result<Image<T>> {
        let mut host = self.gpu().pinned(self.buffer.len())?;
        let mut commands = Commands::new();
        commands.download(&self.buffer, &mut host)?;
        self.gpu().run(&commands)?;
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: the commands that write this memory are run once, above.
        let from = unsafe { host.numbers() }?;
        self.packed(from, |number| number, cpu)
    }

    /// The pixels in the host's memory, after waiting for the device.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<Image<T>> {
        let rows =
            self.buffer.first((self.size.height - 1) * self.pitch + self.size.width * self.channels)?;
        self.packed(&rows, |number| number, &Cpu::sequential())
    }
}

tiepoint_gpu::kernel_struct! {
    /// The layout of the images of a [`GpuStack`], as kernels take it.
    pub(crate) struct Plane {
        /// Numbers from the start of an image to the next.
        step: u64,
        /// Numbers of a row.
        row: i32,
        /// Rows.
        height: i32,
        /// Numbers from the start of a row to the next.
        pitch: i32,
    }
}

impl Plane {
    /// No image. Kernels recognise it by its rows of 0 numbers.
    pub(crate) const NONE: Self = Self { step: 0, row: 0, height: 0, pitch: 0 };

    /// Numbers that this many images take.
    pub(crate) fn numbers(self, images: i128) -> i128 {
        i128::from(self.step) * images
    }

    /// Numbers up to the last pixel of one image.
    pub(crate) fn reach(self) -> i128 {
        i128::from(self.pitch) * (i128::from(self.height) - 1).max(0) + i128::from(self.row)
    }

    /// Numbers in the pixels of this many images, without padding.
    pub(crate) fn pixels(self, images: i128) -> i128 {
        i128::from(self.row) * i128::from(self.height) * images
    }
}

/// Enough work groups to fill the device, each with at least one row of an image of this size.
pub(crate) fn groups_of_rows(gpu: &Gpu, size: Size) -> [usize; 3] {
    const GROUPS_A_UNIT: usize = 8;
    [size.height.min(gpu.info().units as usize * GROUPS_A_UNIT).max(1), 1, 1]
}

/// The numbers of an optional image and their layout, for a kernel. Rows of 0 numbers mean that it is missing.
pub(crate) fn optional<T: GpuPixel>(gpu: &Gpu, image: Option<&GpuImage<T>>) -> Result<(Buffer<T>, Plane)> {
    match image {
        Some(image) => Ok((image.buffer().clone(), image.plane())),
        None => Ok((gpu.buffer(1)?, Plane::NONE)),
    }
}

/// An image of any pixel type in a device's memory; made by `into()` from a [`GpuImage`]. A clone is the same memory.
pub type AnyGpuImage = ByPixel<GpuImage<u8>, GpuImage<u16>, GpuImage<f32>>;

impl AnyGpuImage {
    /// The same pixels on the device.
    ///
    /// # Errors
    /// As [`GpuImage::upload`].
    pub fn upload(gpu: &Gpu, view: AnyView<'_>) -> Result<Self> {
        Ok(by_pixel!(map view, view => GpuImage::upload(gpu, view)?))
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        by_pixel!(self, i => i.size())
    }

    /// Channels of a pixel.
    pub fn channels(&self) -> usize {
        by_pixel!(self, i => i.channels())
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        by_pixel!(self, i => i.gpu())
    }

    /// The pixels, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<AnyImage> {
        Ok(by_pixel!(map self, i => i.download()?))
    }
}

/// Images of one size in a device's memory, one behind the other, for kernels that take many at once. It dereferences
/// to the first as a [`GpuImage`], whose buffer holds them all. Clones share the memory.
#[derive(Clone, Debug)]
pub struct GpuStack<T> {
    first: GpuImage<T>,
    count: usize,
}

/// Images of any pixel type.
pub(crate) type AnyGpuStack = ByPixel<GpuStack<u8>, GpuStack<u16>, GpuStack<f32>>;

impl<T> Deref for GpuStack<T> {
    type Target = GpuImage<T>;

    fn deref(&self) -> &GpuImage<T> {
        &self.first
    }
}

impl<T: Element> GpuStack<T> {
    /// A stack of one image, in the same memory if its rows are [aligned](GpuImage::aligned).
    ///
    /// # Errors
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn of(image: &GpuImage<T>, commands: &mut Commands) -> Result<Self> {
        Ok(Self { first: image.aligned(commands)?, count: 1 })
    }

    /// A stack of one image that is to be written.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for rows that are not [aligned](GpuImage::aligned), as those of other programs may be.
    pub(crate) fn result(image: &GpuImage<T>) -> Result<Self> {
        match image.aligned {
            true => Ok(Self { first: image.clone(), count: 1 }),
            false => Err(Error::Mismatch("a result needs aligned rows, as GpuImage::new makes them".into())),
        }
    }

    /// Memory for `count` images; the pixels are undefined.
    ///
    /// # Errors
    /// As [`GpuImage::new`], and [`Error::Image`] for 0 or more than 65535 images.
    pub fn new(gpu: &Gpu, size: Size, channels: usize, count: usize) -> Result<Self> {
        if !(1..=65_535).contains(&count) {
            return Err(Error::Image(format!("a stack of {count} images: a GPU takes 1 to 65535")));
        }
        Ok(Self { first: GpuImage::stacked(gpu, size, channels, count)?, count })
    }

    /// The same pixels on the device.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::Image`] for images of different shapes.
    pub fn upload(gpu: &Gpu, views: &[ImageView<'_, T>]) -> Result<Self> {
        let stack = Self::for_images(gpu, views)?;
        views.iter().enumerate().try_for_each(|(i, view)| stack.write(i, *view))?;
        Ok(stack)
    }

    /// As [`upload`](Self::upload), by way of pinned memory, which all threads fill.
    pub(crate) fn upload_by(gpu: &Gpu, views: &[ImageView<'_, T>], cpu: &Cpu) -> Result<Self> {
        let stack = Self::for_images(gpu, views)?;
        Staging::new(&stack, stack.buffer())?.fill(views, cpu)?;
        Ok(stack)
    }

    /// Memory for images, which must have one shape.
    fn for_images(gpu: &Gpu, views: &[ImageView<'_, T>]) -> Result<Self> {
        let shape = |v: &ImageView<'_, T>| (v.size(), v.channels());
        let (size, channels) = views.first().map_or((Size::default(), 1), shape);
        let stack = Self::new(gpu, size, channels, views.len())?;
        if let Some(other) = views.iter().find(|v| shape(v) != (size, channels)) {
            return Err(Error::Image(format!(
                "the images of a stack have one shape: {size} with {channels} channels is not {} with {}",
                other.size(),
                other.channels()
            )));
        }
        Ok(stack)
    }

    /// Image `i` in memory of its own, to which `commands` copy it.
    pub(crate) fn copy_of(&self, i: usize, commands: &mut Commands) -> Result<GpuImage<T>> {
        let image = GpuImage::with_channels(self.gpu(), self.size, self.channels)?;
        commands.copy((&self.buffer, i * self.step()), (image.buffer(), 0), self.step())?;
        Ok(image)
    }

    /// Copies pixels of the stack's shape to image `i`.
    pub(crate) fn write(&self, i: usize, view: ImageView<'_, T>) -> Result<()> {
        Ok(self.buffer.write(i * self.step(), &staging::padded(view, self.pitch))?)
    }

    /// The pixels of image `i`, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed, or when there is no image `i`.
    pub fn download(&self, i: usize) -> Result<Image<T>> {
        let mut rows = vec![T::default(); self.step()];
        self.buffer.read(i.saturating_mul(self.step()), &mut rows)?;
        self.packed(&rows, |number| number, &Cpu::sequential())
    }

    /// How many images.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Numbers from the start of an image to the start of the next.
    pub fn step(&self) -> usize {
        self.pitch * self.size.height
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::{Commands, all};

    tiepoint_gpu::kernel! {
        unsafe kernel conversions(groups) = Conversions<T: GpuPixel> {
            write unit: f32 [n],
            write level: u32 [n],
            write back: T [n],
            read pixels: T [n],
            read values: f32 [n],
        } {
            n: i32,
        }
    }

    const CONVERSIONS: &str = "
KERNEL(conversions) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i >= args.n) return;
    unit[i] = pixel_unit(pixels[i]);
    level[i] = pixel_level(pixels[i]);
    back[i] = pixel_from(values[i]);
}";

    fn converts_alike<T: GpuPixel>(gpu: &Gpu) {
        let mut values: Vec<f32> = (-500..70_000).map(|i| i as f32 * 1.25 * T::WHITE / 65535.0).collect();
        values.extend([0.5, 1.5, 2.5, 254.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0]);
        let pixels: Vec<T> = values.iter().map(|&v| T::from_f32(v)).collect();
        let source = for_kernels::<T>(KernelSource::new("conversions"));
        let source = source.kernel::<Conversions<'_, T>>([64, 1]).text(CONVERSIONS);
        let kernel = gpu.program(&source).unwrap().kernel::<Conversions<'_, T>>().unwrap();
        let n = values.len();
        let unit = gpu.buffer::<f32>(n).unwrap();
        let level = gpu.buffer::<u32>(n).unwrap();
        let back = gpu.buffer::<T>(n).unwrap();
        let (on_device, floats) = (gpu.upload(&pixels).unwrap(), gpu.upload(&values).unwrap());
        let mut commands = Commands::new();
        let arguments = Conversions {
            unit: &unit,
            level: &level,
            back: &back,
            pixels: &on_device,
            values: &floats,
            n: n as i32,
        };
        commands.launch(&kernel, kernel.covering(n, 1), arguments).unwrap();
        gpu.run(&commands).unwrap();
        let (unit, level, back) = (unit.to_vec().unwrap(), level.to_vec().unwrap(), back.to_vec().unwrap());
        for (i, pixel) in pixels.into_iter().enumerate() {
            assert_eq!(unit[i].to_bits(), pixel.unit().to_bits(), "{gpu:?}: unit of {pixel:?}");
            assert_eq!(level[i], pixel.level(), "{gpu:?}: level of {pixel:?}");
            let (found, expected) = (back[i].to_f32(), pixel.to_f32());
            assert!(found == expected || found.is_nan() && expected.is_nan(), "{gpu:?}: from {}", values[i]);
        }
    }

    #[test]
    fn pixels_are_converted_as_on_the_cpu() {
        for gpu in all() {
            converts_alike::<u8>(gpu);
            converts_alike::<u16>(gpu);
            converts_alike::<f32>(gpu);
        }
    }

    #[test]
    fn images_are_downloaded_as_they_were_uploaded() {
        for gpu in all() {
            for (width, height, channels) in [(1, 1, 1), (33, 5, 1), (7, 40, 3), (129, 2, 4)] {
                let size = Size::new(width, height);
                let data = (0..width * height * channels).map(|i| (i * 7) as u16).collect();
                let image = Image::from_vec(data, size, channels).unwrap();
                let on_device = GpuImage::upload(gpu, image.view()).unwrap();
                assert_eq!(on_device.pitch() * 2 % 128, 0, "aligned rows");
                assert_eq!(on_device.download().unwrap(), image, "{gpu:?}: {size}");
            }
            assert!(GpuImage::<u8>::new(gpu, Size::new(0, 3)).is_err(), "no pixels");
            let wide = GpuImage::<u8>::new(gpu, Size::new(1 << 30, 1)).unwrap_err();
            assert!(wide.is_device_limit(), "too wide for kernels' integers, not for the CPU: {wide}");
        }
    }
}
