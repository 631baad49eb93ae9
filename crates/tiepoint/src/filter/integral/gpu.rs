//! Integral images on a GPU: one pass, in which every pixel is read once and every sum written once (`integral.cl`).

use super::{Integral, Sum};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use crate::image::gpu::{self, GpuImage, GpuPixel};
use crate::{Error, Result};
use tiepoint_gpu::{Element, Kernel, KernelSource};

/// A sum in a device's memory: `u32` or `u64`.
pub trait GpuSum: Sum + Element {}

impl GpuSum for u32 {}

impl GpuSum for u64 {}

/// Lanes of a group.
const GROUP: u32 = 256;

/// Pixels of a tile: as many columns as lanes.
const TILE: Size = Size { width: GROUP as usize, height: 32 };

tiepoint_gpu::kernel! {
    /// Computes integrals of images from row 1 and column 1 on; row 0 and column 0 are already zero. One group a tile.
    pub(crate) unsafe kernel integral(groups) = Arguments<T: GpuPixel, A: GpuSum> {
        write out: A [images * (height + 1) * out_pitch] aligned 16,
        read pixels: T [images * height * pitch] aligned 4 * size_of::<T>(),
        /// The counters of started groups, of finished groups and of runs; all zero before the first run.
        write state: u32 [3],
        /// The words that every tile publishes for its rows, and for its columns.
        shared row_words: u32 [groups[0] * TILE.height as i128],
        shared column_words: u64 [groups[0] * TILE.width as i128],
    } {
        /// The index of I(1, 1) of the first image, which is aligned.
        first: u64,
        width: i32,
        height: i32,
        images: i32,
        pitch: i32,
        out_pitch: i32,
    }
}

/// The integrals of one or more images of one size in a device's memory. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuIntegral<A> {
    buffer: Buffer<A>,
    size: Size,
    images: usize,
    pitch: usize,
    /// Counters of groups and runs.
    state: Buffer<u32>,
    /// Sums of a tile's rows and columns, which the groups of other tiles read while the kernel runs.
    row_words: Buffer<u32>,
    column_words: Buffer<u64>,
}

impl<A: GpuSum> GpuIntegral<A> {
    /// Sums in 128 bytes, to which column 1 of I, the first that is not zero, is aligned in every row.
    const ALIGNMENT: usize = 128 / size_of::<A>();

    /// Memory for the integrals of `images` images. Row 0 and column 0 are zero, the rest is undefined.
    ///
    /// # Errors
    /// [`Error::Image`] when the size has no pixels, [`Error::Unsupported`] for a side of 2³⁰ or an area of 2³⁸,
    /// [`Error::Memory`] when the device's memory is too small.
    pub fn new(gpu: &Gpu, size: Size, images: usize) -> Result<Self> {
        let too_large = || Error::Unsupported {
            device: "a GPU".into(),
            feature: format!(
                "integrals of {images} images of {size}: 2³⁰ or more pixels a side, or too many in all"
            ),
        };
        if size.width.max(size.height) >= 1 << 30 {
            return Err(too_large());
        }
        if size.is_empty() {
            return Err(Error::Image(format!("the image is empty ({size})")));
        }
        let pitch = Self::ALIGNMENT + size.width.next_multiple_of(Self::ALIGNMENT);
        let tiles = size.width.div_ceil(TILE.width) * size.height.div_ceil(TILE.height);
        // Sums of 16-bit pixels then stay below 2⁵⁴, which leaves 10 bits of a word for its kind and the run's mark.
        size.width.checked_mul(size.height).filter(|&n| n < 1 << 38).ok_or_else(too_large)?;
        let len = (pitch * (size.height + 1)).checked_mul(images).ok_or_else(too_large)?;
        let tiles = tiles.checked_mul(images).filter(|&n| n < i32::MAX as usize).ok_or_else(too_large)?;
        let integral = Self {
            buffer: gpu.buffer(len)?,
            size,
            images,
            pitch,
            state: gpu.buffer(3)?,
            row_words: gpu.buffer(tiles * TILE.height)?,
            column_words: gpu.buffer(tiles * TILE.width)?,
        };
        let mut zeros = Commands::new();
        zeros.zero(&integral.buffer)?;
        zeros.zero(&integral.state)?;
        zeros.zero(&integral.row_words)?;
        zeros.zero(&integral.column_words)?;
        gpu.run(&zeros)?;
        Ok(integral)
    }

    /// The bytes of device memory for the integrals of `images` images.
    pub(crate) fn taken(size: Size, images: usize) -> usize {
        let pitch = Self::ALIGNMENT + size.width.next_multiple_of(Self::ALIGNMENT);
        let tiles = size.width.div_ceil(TILE.width) * size.height.div_ceil(TILE.height);
        let tiles = tiles.saturating_mul(images);
        Buffer::<A>::taken((pitch * (size.height + 1)).saturating_mul(images))
            + Buffer::<u32>::taken(3)
            + Buffer::<u32>::taken(tiles.saturating_mul(TILE.height))
            + Buffer::<u64>::taken(tiles.saturating_mul(TILE.width))
    }

    /// Width and height of an image.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The number of images.
    pub fn images(&self) -> usize {
        self.images
    }

    /// The memory: I(x, y) of image i lies at [`origin`](Self::origin) + (i · (height + 1) + y) ·
    /// [`pitch`](Self::pitch) + x.
    pub fn buffer(&self) -> &Buffer<A> {
        &self.buffer
    }

    /// The distance from a row to the next, in sums.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// The index of I(0, 0) of the first image.
    pub fn origin(&self) -> usize {
        Self::ALIGNMENT - 1
    }

    /// Copies an integral from the host to a device.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn upload(gpu: &Gpu, integral: &Integral<A>) -> Result<Self> {
        let to = Self::new(gpu, integral.size(), 1)?;
        for y in 0..=to.size.height {
            to.buffer.write(to.origin() + y * to.pitch, integral.row(y))?;
        }
        Ok(to)
    }

    /// Waits for the device and copies the sums of one image to the host.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed or there is no such image.
    pub fn download(&self, image: usize) -> Result<Integral<A>> {
        let rows = self.size.height + 1;
        let mut sums = vec![A::default(); rows * self.pitch];
        self.buffer.read(image * rows * self.pitch, &mut sums)?;
        let inside = self.origin()..self.origin() + self.size.width + 1;
        let values = sums.chunks_exact(self.pitch).flat_map(|row| &row[inside.clone()]).copied().collect();
        Ok(Integral { values, size: self.size })
    }
}

/// Computes the integrals of images of pixels `T` in sums `A`.
#[derive(Clone, Debug)]
pub struct GpuIntegrator<T: GpuPixel, A: GpuSum> {
    kernel: Kernel<Arguments<'static, T, A>>,
}

impl<T: GpuPixel, A: GpuSum> GpuIntegrator<T, A> {
    pub(crate) fn source() -> KernelSource {
        gpu::for_kernels::<T>(KernelSource::new("integral"))
            .define("PIXEL_X4", format_args!("{}x4", T::NAME))
            .define("SUM", A::NAME)
            .define("SUM_IS_WIDE", u8::from(size_of::<A>() == 8))
            .define("GROUP", GROUP)
            .define("TILE_WIDTH", TILE.width)
            .define("TILE_HEIGHT", TILE.height)
            .kernel_resident::<Arguments<'_, T, A>>([GROUP, 1], 4)
            .text(include_str!("integral.cl"))
    }

    /// The kernel for a device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if 64-bit words may be read in halves, [`Error::Device`] when it does not compile.
    pub fn new(gpu: &Gpu) -> Result<Self> {
        // Groups exchange the sums of their tiles through 64-bit words.
        gpu.require_waiting()?;
        Ok(Self { kernel: gpu.program(&Self::source())?.kernel::<Arguments<'_, T, A>>()? })
    }

    /// Sums `to.images()` images of size `to.size()`, which lie one after the other, their rows `pitch` pixels apart.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when `pixels` holds fewer or the rows do not begin at multiples of four pixels.
    pub fn record(
        &self,
        commands: &mut Commands,
        pixels: &Buffer<T>,
        pitch: usize,
        to: &GpuIntegral<A>,
    ) -> Result<()> {
        let Size { width, height } = to.size;
        if pixels.len() < pitch * height * to.images || pitch < width || !pitch.is_multiple_of(4) {
            return Err(Error::Mismatch(format!(
                "{} pixels in rows of {pitch} for {} images of {}: expected all rows, each of a multiple of 4 pixels",
                pixels.len(),
                to.images,
                to.size
            )));
        }
        commands.stage("integral");
        let tiles = width.div_ceil(TILE.width) * height.div_ceil(TILE.height) * to.images;
        let sizes = [width, height, to.images, pitch, to.pitch].map(|n| n as i32);
        let [width, height, images, pitch, out_pitch] = sizes;
        let arguments = Arguments {
            out: &to.buffer,
            pixels,
            state: &to.state,
            row_words: &to.row_words,
            column_words: &to.column_words,
            first: (to.pitch + to.origin() + 1) as u64,
            width,
            height,
            images,
            pitch,
            out_pitch,
        };
        commands.launch(&self.kernel, [tiles, 1, 1], arguments)?;
        Ok(())
    }

    /// The integral of one grey image.
    ///
    /// # Errors
    /// [`Error::Image`] for more than one channel, and as [`GpuIntegral::new`].
    pub fn integral(&self, image: &GpuImage<T>) -> Result<GpuIntegral<A>> {
        if image.channels() != 1 {
            return Err(Error::Image(format!("expected one channel, found {}", image.channels())));
        }
        let integral = GpuIntegral::new(image.gpu(), image.size(), 1)?;
        let mut commands = Commands::new();
        let image = image.aligned(&mut commands)?;
        self.record(&mut commands, image.buffer(), image.pitch(), &integral)?;
        image.gpu().run(&commands)?;
        Ok(integral)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::filter::testing::{noise, sizes};
    use crate::image::Image;
    use crate::image::testing::{Value, assert_same};

    fn picture<A: GpuSum>(integral: Integral<A>) -> Image<A> {
        let Integral { values, size } = integral;
        Image::from_vec(values, Size::new(size.width + 1, size.height + 1), 1).unwrap()
    }

    /// Compares the sums of a batch of three images with the CPU's.
    fn twins<T: GpuPixel, A: GpuSum + Value>(gpu: &Gpu, size: Size) {
        let images: Vec<Image<T>> = (0..3)
            .map(|seed| Image::from_vec(noise(size.area(), seed, T::WHITE), size, 1).unwrap())
            .collect();
        let one = GpuImage::upload(gpu, images[0].view()).unwrap();
        let room = one.pitch() * size.height;
        let all = gpu.buffer::<T>(3 * room).unwrap();
        let mut commands = Commands::new();
        for (i, image) in images.iter().enumerate() {
            let image = GpuImage::upload(gpu, image.view()).unwrap();
            commands.copy((image.buffer(), 0), (&all, i * room), room).unwrap();
        }
        let integrator = GpuIntegrator::<T, A>::new(gpu).unwrap();
        let integral = GpuIntegral::new(gpu, size, 3).unwrap();
        integrator.record(&mut commands, &all, one.pitch(), &integral).unwrap();
        gpu.run(&commands).unwrap();
        for (i, image) in images.iter().enumerate() {
            let expected = Integral::<A>::new(image.view(), &Cpu::sequential()).unwrap();
            let what = format_args!("{gpu:?}: image {i} of {size}, {}", T::NAME);
            assert_same(&picture(integral.download(i).unwrap()), &picture(expected), what);
        }
        let again = integrator.integral(&one).unwrap().download(0).unwrap();
        assert!(again == integral.download(0).unwrap(), "{gpu:?}: alone");
        // Flags of an earlier run must not be taken for those of this run.
        let mut rerun = Commands::new();
        rerun.zero(&all).unwrap();
        integrator.record(&mut rerun, &all, one.pitch(), &integral).unwrap();
        gpu.run(&rerun).unwrap();
        let black = integral.download(2).unwrap();
        assert!(black == Integral { values: vec![A::default(); black.values.len()], size }, "{gpu:?}: black");
    }

    #[test]
    fn sums_equal_the_cpu() {
        let more = [(257, 33), (255, 64), (1030, 100), (300, 700), (70_000, 3), (3, 70_000)];
        let more = more.map(|(w, h)| (Size::new(w, h), 1));
        for gpu in all() {
            for (size, _) in sizes().into_iter().chain(more) {
                twins::<u8, u32>(gpu, size);
                twins::<u16, u64>(gpu, size);
                twins::<f32, u64>(gpu, size);
                twins::<f32, u32>(gpu, size);
            }
        }
    }

    #[test]
    fn sums_pass_two_to_the_32() {
        // 300 · 400 pixels of 65535 sum to 7.9·10⁹.
        let image = Image::filled(Size::new(400, 300), 1, u16::MAX);
        for gpu in all() {
            let on_device = GpuImage::upload(gpu, image.view()).unwrap();
            let wide = GpuIntegrator::<u16, u64>::new(gpu).unwrap().integral(&on_device).unwrap();
            let wide = wide.download(0).unwrap();
            assert_eq!(wide.row(300)[400], 400 * 300 * 65535, "{gpu:?}");
            assert!(GpuIntegral::upload(gpu, &wide).unwrap().download(0).unwrap() == wide, "{gpu:?}: upload");
            let narrow = GpuIntegrator::<u16, u32>::new(gpu).unwrap().integral(&on_device).unwrap();
            let expected = Integral::<u32>::new(image.view(), &Cpu::sequential()).unwrap();
            assert!(narrow.download(0).unwrap() == expected, "{gpu:?}: wrapped");
        }
    }

    #[test]
    fn wrong_input_is_refused() {
        for gpu in all() {
            assert!(GpuIntegral::<u32>::new(gpu, Size::new(0, 5), 1).is_err(), "no pixels");
            let integral = GpuIntegral::<u32>::new(gpu, Size::new(8, 8), 1).unwrap();
            let integrator = GpuIntegrator::<u8, u32>::new(gpu).unwrap();
            let (small, commands) = (gpu.buffer(63).unwrap(), &mut Commands::new());
            assert!(integrator.record(commands, &small, 8, &integral).is_err(), "too few pixels");
            let colour = GpuImage::with_channels(gpu, Size::new(8, 8), 3).unwrap();
            assert!(integrator.integral(&colour).is_err(), "three channels");
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![
            GpuIntegrator::<u8, u32>::source(),
            GpuIntegrator::<f32, u32>::source(),
            GpuIntegrator::<u16, u64>::source(),
        ]
    }
}
