//! Blobs on a device.

use super::{Blob, HessianOptions, RADIUS, scale};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape, border_for_kernels};
use crate::image::gpu::{self, GpuImage, GpuPixel, Plane};
use tiepoint_gpu::{Kernel, KernelSource};

fn shape(options: &HessianOptions) -> Shape {
    let reach = [RADIUS; 2];
    Shape {
        rows: reach,
        columns: reach,
        channels: 1,
        border: options.border,
        sum: "i32",
        planes: 3,
        text: include_str!("hessian.cl"),
        local_memory: LOCAL_MEMORY,
    }
}

fn arithmetic<T: GpuPixel>(source: KernelSource, options: &HessianOptions) -> KernelSource {
    gpu::for_kernels::<T>(source)
        .define("READ(v)", "((i32)pixel_level(v))")
        .define("SKIPPED(v)", "0.0f")
        .define_f32("SCALE", scale::<T>())
        .define_f32("WEIGHT", options.weight)
}

impl<T: GpuPixel> GpuFilter<T, f32> {
    /// [`hessian::response`](super::response) on a device; the same bits.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for options out of range, [`Error::Device`](crate::Error::Device)
    /// when the device refuses.
    pub fn hessian(gpu: &Gpu, options: &HessianOptions) -> Result<Self> {
        options.check()?;
        Self::separable(gpu, "hessian", &shape(options), |source| arithmetic::<T>(source, options))
    }
}

/// Lanes of a group that looks for maxima.
const GROUP: [u32; 2] = [64, 4];

/// Words of a blob in the device's memory: x, y, response, laplacian.
const WORDS: usize = 4;

/// [`hessian::blobs`](super::blobs) for images of one pixel type, compiled for a device; the same blobs.
#[derive(Clone, Debug)]
pub struct GpuBlobs<T: GpuPixel> {
    gpu: Gpu,
    response: GpuFilter<T, f32>,
    maxima: Kernel<Maxima<'static, T>>,
    threshold: f32,
}

tiepoint_gpu::kernel! {
    /// The maxima of a response; the first `capacity` are stored.
    unsafe kernel blobs(groups) = Maxima<T: GpuPixel> {
        write count: u32 [1],
        write found: u32 as Blob [capacity * WORDS as i128],
        read det: f32 [det_plane.numbers(1)],
        read image: T [plane.numbers(1)],
    } {
        det_plane: Plane,
        plane: Plane,
        capacity: u32,
        threshold: f32,
        across: i32,
    }
}

/// Blobs in a device's memory, in any order. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct FoundBlobs {
    /// The number of blobs, which may be more than the memory holds.
    count: Buffer<u32>,
    words: Buffer<u32>,
}

fn maxima_source<T: GpuPixel>(options: &HessianOptions) -> KernelSource {
    let source = KernelSource::new("blobs").define("CHANNELS", 1);
    let reach = ["UP", "DOWN", "LEFT", "RIGHT"].into_iter();
    let source = reach.fold(source, |source, side| source.define(side, RADIUS));
    gpu::for_kernels::<T>(border_for_kernels(source, options.border))
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .structure::<Plane>()
        .kernel::<Maxima<'_, T>>(GROUP)
        .text(include_str!("blobs.cl"))
}

impl FoundBlobs {
    /// Memory for `capacity` blobs.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when the device's memory is too small.
    pub fn new(gpu: &Gpu, capacity: usize) -> Result<Self> {
        Ok(Self { count: gpu.buffer(1)?, words: gpu.buffer(capacity.max(1) * WORDS)? })
    }

    /// Waits for the device and returns the blobs in their order; or their number, if the memory did not hold all.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when it failed.
    pub fn download(&self) -> Result<std::result::Result<Vec<Blob>, usize>> {
        let count = self.count.first(1)?[0] as usize;
        if count * WORDS > self.words.len() {
            return Ok(Err(count));
        }
        let words = self.words.first(count * WORDS)?;
        let mut blobs: Vec<Blob> = words.chunks_exact(WORDS).map(blob).collect();
        blobs.sort_by(Blob::order);
        Ok(Ok(blobs))
    }
}

fn blob(words: &[u32]) -> Blob {
    Blob {
        x: words[0] as usize,
        y: words[1] as usize,
        response: f32::from_bits(words[2]),
        laplacian: words[3] as i32 as i8,
    }
}

impl<T: GpuPixel> GpuBlobs<T> {
    /// Compiles the search for a device.
    ///
    /// # Errors
    /// As [`GpuFilter::hessian`].
    pub fn new(gpu: &Gpu, options: &HessianOptions) -> Result<Self> {
        let response = GpuFilter::hessian(gpu, options)?;
        let maxima = gpu.program(&maxima_source::<T>(options))?.kernel::<Maxima<'_, T>>()?;
        let threshold = options.threshold;
        Ok(Self { gpu: gpu.clone(), response, maxima, threshold })
    }

    /// The blobs of an image, by descending |response|, then y, then x.
    ///
    /// # Errors
    /// [`Error::Image`](crate::Error::Image) for more than one channel, [`Error::Device`](crate::Error::Device)
    /// when the device's memory is too small.
    pub fn blobs(&self, image: &GpuImage<T>) -> Result<Vec<Blob>> {
        let response = GpuImage::new(&self.gpu, image.size())?;
        let mut capacity = image.size().area().min(1 << 16);
        loop {
            let found = FoundBlobs::new(&self.gpu, capacity)?;
            let mut commands = Commands::new();
            self.record(&mut commands, image, &response, &found)?;
            self.gpu.run(&commands)?;
            match found.download()? {
                Ok(blobs) => return Ok(blobs),
                Err(count) => capacity = count,
            }
        }
    }

    /// Records the work for an image. Every run starts with an empty list of blobs.
    ///
    /// # Errors
    /// As [`blobs`](Self::blobs), and [`Error::Image`](crate::Error::Image) when `response` has another size.
    pub fn record(
        &self,
        commands: &mut Commands,
        image: &GpuImage<T>,
        response: &GpuImage<f32>,
        found: &FoundBlobs,
    ) -> Result<()> {
        let image = &image.aligned(commands)?;
        self.response.record(commands, image, response)?;
        commands.stage("maxima");
        commands.zero(&found.count)?;
        let size = image.size();
        let inner = [size.width.saturating_sub(2), size.height.saturating_sub(2)];
        let across = inner[0].div_ceil(GROUP[0] as usize);
        let groups = across * inner[1].div_ceil(GROUP[1] as usize);
        let maxima = Maxima {
            count: &found.count,
            found: &found.words,
            det: response.buffer(),
            image: image.buffer(),
            det_plane: response.plane(),
            plane: image.plane(),
            capacity: (found.words.len() / WORDS) as u32,
            threshold: self.threshold,
            across: across as i32,
        };
        Ok(commands.launch(&self.maxima, [groups, 1, 1], maxima)?)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::all;
    use crate::filter::gpu::testing::{self, images};
    use crate::filter::hessian::{blobs, response};
    use crate::image::Border;

    fn twins<T: GpuPixel>(borders: &[Border]) {
        let images = images::<T>(1);
        let cpu = Cpu::default();
        for &border in borders {
            let options = HessianOptions { border, weight: 0.81, threshold: 0.0001 };
            let context = format!("{}, {border:?}", T::NAME);
            let plan = |gpu: &Gpu| GpuFilter::<T, f32>::hessian(gpu, &options);
            testing::twins(&images, plan, |view| response(view, &options, &cpu).unwrap(), &context);
            for gpu in all() {
                let plan = GpuBlobs::<T>::new(gpu, &options).unwrap();
                let mut most = 0;
                for image in &images {
                    let on_device = GpuImage::upload(gpu, image.view()).unwrap();
                    let expected = blobs(image.view(), &options, &cpu).unwrap();
                    assert_eq!(plan.blobs(&on_device).unwrap(), expected, "{gpu:?}, {context}");
                    most = most.max(expected.len());
                }
                assert!(most > 100, "{context}: {most} blobs at most prove little");
            }
        }
    }

    #[test]
    fn blobs_are_those_of_the_cpu() {
        twins::<u8>(&[Border::Clamp, Border::Skip]);
        twins::<u16>(&[Border::Reflect]);
        twins::<f32>(&[Border::Zero]);
    }

    #[test]
    fn too_little_memory_is_reported() {
        for gpu in all() {
            let image = &images::<u8>(1)[7];
            let options = HessianOptions::default();
            let expected = blobs(image.view(), &options, &Cpu::default()).unwrap();
            let plan = GpuBlobs::<u8>::new(gpu, &options).unwrap();
            let on_device = GpuImage::upload(gpu, image.view()).unwrap();
            let response = GpuImage::new(gpu, image.size()).unwrap();
            for capacity in [expected.len() - 1, expected.len()] {
                let found = FoundBlobs::new(gpu, capacity).unwrap();
                let mut commands = Commands::new();
                plan.record(&mut commands, &on_device, &response, &found).unwrap();
                gpu.run(&commands).unwrap();
                let all = capacity == expected.len();
                let answer = if all { Ok(expected.clone()) } else { Err(expected.len()) };
                assert_eq!(found.download().unwrap(), answer, "{gpu:?}: room for {capacity}");
            }
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let options = HessianOptions::default();
        let response = |_| shape(&options).source::<f32, f32>("hessian", |s| arithmetic::<f32>(s, &options));
        vec![response(()), maxima_source::<u8>(&options)]
    }
}
