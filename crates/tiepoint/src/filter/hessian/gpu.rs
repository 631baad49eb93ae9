//! Blobs on a device.

use super::{Blob, HessianOptions, RADIUS, scale};
use crate::Result;
use crate::device::gpu::{Commands, Gpu};
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape, border_for_kernels};
use crate::image::gpu::{self, GpuImage, GpuPixel, Plane};
use tiepoint_gpu::KernelSource;

fn shape<T: GpuPixel>(options: &HessianOptions) -> Shape<impl Fn(KernelSource) -> KernelSource> {
    let reach = [RADIUS; 2];
    Shape {
        name: "hessian",
        rows: reach,
        columns: reach,
        channels: 1,
        border: options.border,
        sum: "f32",
        planes: 3,
        text: include_str!("hessian.cl"),
        definitions: move |source| {
            gpu::for_kernels::<T>(source)
                .define("READ(v)", "((f32)(v))")
                .define("SKIPPED(v)", "0.0f")
                .define_f32("SCALE", scale::<T>())
                .define_f32("WEIGHT", options.weight)
        },
        local_memory: LOCAL_MEMORY,
    }
}

impl<T: GpuPixel> GpuFilter<T, f32> {
    /// [`hessian::response`](super::response) on a device; the same bits.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for options out of range, [`Error::Device`](crate::Error::Device)
    /// when the device refuses.
    pub fn hessian(gpu: &Gpu, options: &HessianOptions) -> Result<Self> {
        options.check()?;
        Self::separable(gpu, shape::<T>(options))
    }
}

/// Lanes of a group that looks for maxima.
const GROUP: [u32; 2] = [64, 4];

/// Words of a blob in the device's memory: x, y, response, laplacian.
const WORDS: usize = 4;

tiepoint_gpu::kernel! {
    /// The maxima of a response: all are counted, at most `capacity` of them are stored.
    unsafe kernel blobs(groups) = Maxima<T: GpuPixel> {
        write count: u32 [1],
        write found: u32 as Blob [capacity * WORDS as i128],
        read det (det_plane: Plane): f32 [det_plane.numbers(1)],
        read image (plane: Plane): T [plane.numbers(1)],
    } {
        capacity: u32,
        threshold: f32,
        across: i32,
    }
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

fn blob(words: &[u32]) -> Blob {
    Blob {
        x: words[0] as usize,
        y: words[1] as usize,
        response: f32::from_bits(words[2]),
        laplacian: words[3] as i32 as i8,
    }
}

/// [`hessian::blobs`](super::blobs) of an image on its device: the same blobs in the same order.
pub(crate) fn blobs<T: GpuPixel>(image: &GpuImage<T>, options: &HessianOptions) -> Result<Vec<Blob>> {
    with_room(image, options, image.size().area().min(1 << 16))
}

/// The same, with room for `capacity` blobs at first.
fn with_room<T: GpuPixel>(
    image: &GpuImage<T>,
    options: &HessianOptions,
    mut capacity: usize,
) -> Result<Vec<Blob>> {
    let (gpu, size) = (image.gpu(), image.size());
    let filter = GpuFilter::hessian(gpu, options)?;
    let maxima = gpu.program(&maxima_source::<T>(options))?.kernel::<Maxima<'_, T>>()?;
    let mut commands = Commands::new();
    let image = &image.aligned(&mut commands)?;
    let response = GpuImage::new(gpu, size)?;
    filter.record(&mut commands, image, &response)?;
    gpu.run(&commands)?;
    let count = gpu.buffer::<u32>(1)?;
    let across = size.width.saturating_sub(2).div_ceil(GROUP[0] as usize);
    let groups = across * size.height.saturating_sub(2).div_ceil(GROUP[1] as usize);
    loop {
        let found = gpu.buffer::<u32>(capacity.max(1) * WORDS)?;
        let mut commands = Commands::new();
        commands.stage("maxima");
        commands.zero(&count)?;
        let arguments = Maxima {
            count: &count,
            found: &found,
            det: response.laid(),
            image: image.laid(),
            capacity: (found.len() / WORDS) as u32,
            threshold: options.threshold,
            across: across as i32,
        };
        commands.launch(&maxima, [groups, 1, 1], arguments)?;
        gpu.run(&commands)?;
        let number = count.first(1)?[0] as usize;
        if number * WORDS <= found.len() {
            let words = found.first(number * WORDS)?;
            let mut blobs: Vec<Blob> = words.chunks_exact(WORDS).map(blob).collect();
            blobs.sort_by(Blob::order);
            return Ok(blobs);
        }
        capacity = number;
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
            testing::twins(1, plan, |view, cpu| response(view, &options, cpu), format_args!("{border:?}"));
            for gpu in all() {
                let mut most = 0;
                for image in &images {
                    let on_device = GpuImage::upload(gpu, image.view()).unwrap();
                    let expected = blobs(image.view(), &options, &cpu).unwrap();
                    assert_eq!(super::blobs(&on_device, &options).unwrap(), expected, "{gpu:?}, {context}");
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
    fn more_blobs_than_there_is_room_for_are_found() {
        for gpu in all() {
            let image = &images::<u8>(1)[7];
            let options = HessianOptions::default();
            let expected = blobs(image.view(), &options, &Cpu::default()).unwrap();
            let on_device = GpuImage::upload(gpu, image.view()).unwrap();
            for capacity in [0, expected.len() - 1, expected.len()] {
                let found = with_room(&on_device, &options, capacity).unwrap();
                assert_eq!(found, expected, "{gpu:?}: room for {capacity}");
            }
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let options = HessianOptions::default();
        vec![shape::<f32>(&options).source::<f32, f32>(), maxima_source::<u8>(&options)]
    }
}
