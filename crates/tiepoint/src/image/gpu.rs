//! Images in a device's memory.

use super::{AnyImage, Image, ImageView, Pixel, Size};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::{Error, Result};
use std::any::Any;
use tiepoint_gpu::{Element, KernelSource};

/// A pixel that lies in a device's memory.
pub trait GpuPixel: Pixel + Element {}

impl<T: Pixel + Element> GpuPixel for T {}

/// For kernels: the type `PIXEL`, and its conversions `pixel_unit`, `pixel_level` and `pixel_from`.
pub(crate) fn for_kernels<T: GpuPixel>(source: KernelSource) -> KernelSource {
    source
        .define("PIXEL", T::NAME)
        .define("PIXEL_IS_FLOAT", u8::from(T::WHITE == 1.0))
        .define_f32("WHITE", T::WHITE)
        .text(include_str!("pixel.h"))
}

/// Rows that a thread copies at a time.
const ROWS_A_TASK: usize = 64;

/// An image in a device's memory: rows of `pitch` numbers, of which the first width · channels are pixels; what
/// follows them is undefined, and missing after the last row of an image that another program made. A clone is the
/// same memory.
#[derive(Clone, Debug)]
pub struct GpuImage<T> {
    buffer: Buffer<T>,
    size: Size,
    channels: usize,
    pitch: usize,
    /// Rows begin where wide accesses may, and all are `pitch` long.
    aligned: bool,
}

impl<T: Element> GpuImage<T> {
    /// Rows begin at multiples of this many bytes, so that wide accesses are aligned.
    const ALIGNMENT: usize = 128;

    /// Memory for a grey image; the pixels are undefined.
    ///
    /// # Errors
    /// [`Error::Image`] when the size has no pixels, [`Error::Unsupported`] when it has 2³⁰ numbers a row or column,
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn new(gpu: &Gpu, size: Size) -> Result<Self> {
        Self::with_channels(gpu, size, 1)
    }

    /// As [`new`](Self::new), for several channels.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_channels(gpu: &Gpu, size: Size, channels: usize) -> Result<Self> {
        let pitch = Self::pitch_for(size, channels)?;
        let len =
            pitch.checked_mul(size.height).ok_or_else(|| Error::Image(format!("{size} exceeds memory")))?;
        Ok(Self { buffer: gpu.buffer(len)?, size, channels, pitch, aligned: true })
    }

    /// An image in memory of another program, which is only read. Nothing is copied: rows lie `pitch` numbers apart,
    /// the first at `address`. `owner` keeps the memory; see [`Gpu::foreign`], and [`Gpu::wait_for`] for the order of
    /// work.
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

    /// The image with rows as [`new`](Self::new) lays them out: itself where it has such, otherwise a copy, which
    /// `commands` make.
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

    /// An image whose rows lie without gaps at the start of a buffer.
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

    /// The pixels without gaps between rows: this memory where it has none, otherwise a copy, which the queue makes.
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

    /// Whether rows lie as [`new`](Self::new) lays them out, so that kernels may read several numbers at a time.
    pub fn is_aligned(&self) -> bool {
        self.aligned
    }

    /// Copies `rows` rows from `first` on to a buffer, from a number on and with a pitch of its own.
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

    /// Where the image lies, for kernels.
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

    /// The pitch of rows of this many numbers.
    pub(crate) const fn pitch_of(row: usize) -> usize {
        row.next_multiple_of(Self::ALIGNMENT / size_of::<T>())
    }

    /// The image's size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Numbers a pixel.
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
}

impl<T: Element> GpuImage<T> {
    /// The same pixels on the device.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn upload(gpu: &Gpu, view: ImageView<'_, T>) -> Result<Self> {
        let image = Self::with_channels(gpu, view.size(), view.channels())?;
        image.buffer.write(0, &padded(view, image.pitch))?;
        Ok(image)
    }

    /// As [`upload`](Self::upload), copied by all threads into memory that the device reads by itself.
    ///
    /// # Errors
    /// As [`upload`](Self::upload).
    pub(crate) fn upload_by(gpu: &Gpu, view: ImageView<'_, T>, cpu: &Cpu) -> Result<Self> {
        let image = Self::with_channels(gpu, view.size(), view.channels())?;
        let (pitch, row) = (image.pitch, view.size().width * view.channels());
        let mut host = gpu.pinned(image.buffer.len())?;
        #[expect(unsafe_code, reason = "memory that the device reads")]
        // SAFETY: no commands use this memory yet.
        let rows = unsafe { host.numbers_mut() }?;
        cpu.for_chunks(rows, ROWS_A_TASK * pitch, |task, rows| {
            for (y, to) in (task * ROWS_A_TASK..).zip(rows.chunks_exact_mut(pitch)) {
                to[..row].copy_from_slice(view.row(y));
            }
        });
        let mut commands = Commands::new();
        commands.upload(&host, &image.buffer)?;
        gpu.run(&commands)?;
        Ok(image)
    }

    /// As [`download`](Self::download), copied by all threads from memory that the device writes by itself: each takes
    /// the pages of its own part of the new image.
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub(crate) fn download_by(&self, cpu: &Cpu) -> Result<Image<T>> {
        let (pitch, row) = (self.pitch, self.size.width * self.channels);
        let mut host = self.gpu().pinned(self.buffer.len())?;
        let mut commands = Commands::new();
        commands.download(&self.buffer, &mut host)?;
        self.gpu().run(&commands)?;
        #[expect(unsafe_code, reason = "memory that the device writes")]
        // SAFETY: the commands that write this memory are run once, above.
        let from = unsafe { host.numbers() }?;
        let mut pixels = vec![T::default(); row * self.size.height];
        cpu.for_chunks(&mut pixels, ROWS_A_TASK * row, |task, to| {
            for (y, to) in (task * ROWS_A_TASK..).zip(to.chunks_exact_mut(row)) {
                to.copy_from_slice(&from[y * pitch..][..row]);
            }
        });
        Image::from_vec(pixels, self.size, self.channels)
    }

    /// The pixels, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<Image<T>> {
        let mut rows =
            vec![T::default(); (self.size.height - 1) * self.pitch + self.size.width * self.channels];
        self.buffer.read(0, &mut rows)?;
        packed(&rows, self.size, self.channels, self.pitch)
    }
}

tiepoint_gpu::kernel_struct! {
    /// Where the images of a [`GpuStack`] lie, for kernels.
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
    /// No image: rows of 0 numbers, by which kernels know that there is none.
    pub(crate) const NONE: Self = Self { step: 0, row: 0, height: 0, pitch: 0 };

    /// Numbers of this many images.
    pub(crate) fn numbers(self, images: i128) -> i128 {
        i128::from(self.step) * images
    }

    /// Numbers of this many images without what follows their rows.
    pub(crate) fn pixels(self, images: i128) -> i128 {
        i128::from(self.row) * i128::from(self.height) * images
    }
}

/// A type of pixel, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PixelKind {
    /// 8 bits a channel.
    U8,
    /// 16 bits a channel.
    U16,
    /// 32-bit float a channel.
    F32,
}

/// Runs one generic expression for a [`PixelKind`]: `for_pixel!(kind, T => T::WHITE)`.
macro_rules! for_pixel {
    ($kind:expr, $T:ident => $body:expr) => {
        match $kind {
            $crate::image::gpu::PixelKind::U8 => {
                type $T = u8;
                $body
            }
            $crate::image::gpu::PixelKind::U16 => {
                type $T = u16;
                $body
            }
            $crate::image::gpu::PixelKind::F32 => {
                type $T = f32;
                $body
            }
        }
    };
}
pub(crate) use for_pixel;

/// An image of any pixel type in a device's memory; made by `into()` from a [`GpuImage`]. A clone is the same memory.
#[derive(Clone, Debug)]
pub enum AnyGpuImage {
    /// 8 bits a channel.
    U8(GpuImage<u8>),
    /// 16 bits a channel.
    U16(GpuImage<u16>),
    /// 32-bit float a channel.
    F32(GpuImage<f32>),
}

/// Runs one generic expression for whichever pixel type an [`AnyGpuImage`] holds.
macro_rules! for_any_gpu_image {
    ($image:expr, $i:ident => $body:expr) => {
        match $image {
            $crate::image::gpu::AnyGpuImage::U8($i) => $body,
            $crate::image::gpu::AnyGpuImage::U16($i) => $body,
            $crate::image::gpu::AnyGpuImage::F32($i) => $body,
        }
    };
}

pub(crate) use for_any_gpu_image;

impl AnyGpuImage {
    /// Width and height.
    pub fn size(&self) -> Size {
        for_any_gpu_image!(self, i => i.size())
    }

    /// Numbers a pixel.
    pub fn channels(&self) -> usize {
        for_any_gpu_image!(self, i => i.channels())
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        for_any_gpu_image!(self, i => i.gpu())
    }

    /// The type of pixel.
    pub fn pixel(&self) -> PixelKind {
        match self {
            Self::U8(_) => PixelKind::U8,
            Self::U16(_) => PixelKind::U16,
            Self::F32(_) => PixelKind::F32,
        }
    }

    /// The pixels, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<AnyImage> {
        for_any_gpu_image!(self, i => Ok(i.download()?.into()))
    }
}

macro_rules! conversions {
    ($($pixel:ty => $kind:ident),*) => {$(
        impl From<GpuImage<$pixel>> for AnyGpuImage {
            fn from(image: GpuImage<$pixel>) -> Self {
                Self::$kind(image)
            }
        }
        impl From<&GpuImage<$pixel>> for AnyGpuImage {
            fn from(image: &GpuImage<$pixel>) -> Self {
                Self::$kind(image.clone())
            }
        }
        impl<'a> TryFrom<&'a AnyGpuImage> for &'a GpuImage<$pixel> {
            type Error = Error;

            fn try_from(image: &'a AnyGpuImage) -> Result<Self> {
                match image {
                    AnyGpuImage::$kind(image) => Ok(image),
                    other => Err(Error::Mismatch(format!(
                        "an image of {:?} pixels: {:?} is needed", other.pixel(), PixelKind::$kind
                    ))),
                }
            }
        }
    )*};
}
conversions!(u8 => U8, u16 => U16, f32 => F32);

/// Images of one size in a device's memory, one behind the other, for kernels that take many at once. A clone is the
/// same memory.
#[derive(Clone, Debug)]
pub struct GpuStack<T> {
    buffer: Buffer<T>,
    count: usize,
    size: Size,
    channels: usize,
    pitch: usize,
}

impl<T: Element> GpuStack<T> {
    /// An image alone that is to be written.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for memory of another program, which is only read.
    pub(crate) fn result(image: &GpuImage<T>) -> Result<Self> {
        let GpuImage { buffer, size, channels, pitch, aligned } = image.clone();
        match aligned {
            true => Ok(Self { buffer, count: 1, size, channels, pitch }),
            false => Err(Error::Mismatch("a result in memory of another program, which is only read".into())),
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
        let pitch = GpuImage::<T>::pitch_for(size, channels)?;
        let len = pitch.checked_mul(size.height).and_then(|n| n.checked_mul(count));
        let len = len.ok_or_else(|| Error::Image(format!("{count} images of {size} exceed memory")))?;
        Ok(Self { buffer: gpu.buffer(len)?, count, size, channels, pitch })
    }

    /// The same pixels on the device.
    ///
    /// # Errors
    /// As [`new`](Self::new), and [`Error::Image`] for images of different shapes.
    pub fn upload(gpu: &Gpu, views: &[ImageView<'_, T>]) -> Result<Self> {
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
        for (i, view) in views.iter().enumerate() {
            stack.buffer.write(i * stack.step(), &padded(*view, stack.pitch))?;
        }
        Ok(stack)
    }

    /// The pixels of image `i`, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed, or there is no such image.
    pub fn download(&self, i: usize) -> Result<Image<T>> {
        let mut rows = vec![T::default(); self.step()];
        self.buffer.read(i.saturating_mul(self.step()), &mut rows)?;
        packed(&rows, self.size, self.channels, self.pitch)
    }

    /// How many images.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The size of each.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Numbers a pixel.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Numbers from the start of a row to the start of the next.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The same for kernels.
    pub(crate) fn plane(&self) -> Plane {
        Plane {
            step: self.step() as u64,
            row: (self.size.width * self.channels) as i32,
            height: self.size.height as i32,
            pitch: self.pitch as i32,
        }
    }

    /// Numbers from the start of an image to the start of the next.
    pub fn step(&self) -> usize {
        self.pitch * self.size.height
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        self.buffer.gpu()
    }
}

impl<T: Element> GpuStack<T> {
    /// The image alone, in the same memory where its rows are [aligned](GpuImage::aligned).
    ///
    /// # Errors
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn of(image: &GpuImage<T>, commands: &mut Commands) -> Result<Self> {
        let GpuImage { buffer, size, channels, pitch, .. } = image.aligned(commands)?;
        Ok(Self { buffer, count: 1, size, channels, pitch })
    }
}

/// The rows of a view, `pitch` numbers apart.
fn padded<T: Element>(view: ImageView<'_, T>, pitch: usize) -> Vec<T> {
    let mut rows = vec![T::default(); pitch * view.size().height];
    for (y, to) in rows.chunks_exact_mut(pitch).enumerate() {
        to[..view.size().width * view.channels()].copy_from_slice(view.row(y));
    }
    rows
}

/// The image whose rows are `pitch` numbers apart.
fn packed<T: Element>(rows: &[T], size: Size, channels: usize, pitch: usize) -> Result<Image<T>> {
    let row = size.width * channels;
    // The last row may end with its pixels.
    let mut pixels = Vec::with_capacity(row * size.height);
    rows.chunks(pitch).for_each(|r| pixels.extend_from_slice(&r[..row]));
    Image::from_vec(pixels, size, channels)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::gpu::{Commands, all};
    use crate::for_any_view;
    use crate::image::AnyView;

    pub(crate) fn uploaded(gpu: &Gpu, image: AnyView<'_>) -> AnyGpuImage {
        for_any_view!(image, view => GpuImage::upload(gpu, view).unwrap().into())
    }

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
    fn images_come_back_as_they_went() {
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
