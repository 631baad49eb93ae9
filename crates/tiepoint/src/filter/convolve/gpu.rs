//! Filtering with any kernel on a device.

use super::Kernel;
use crate::Result;
use crate::device::gpu::Gpu;
use crate::filter::border::reach;
use crate::filter::gpu::{self, GpuFilter, LANES, Shape, Step, Steps, Weighted};
use crate::image::gpu::GpuPixel;
use crate::image::{Border, Size};
use tiepoint_gpu::{Element, KernelSource};

/// The number of outputs, one below the other, that a lane computes with a kernel that is not a product.
const ROWS: usize = 8;

/// Up to this many weights are constants of the program, all in one expression; more are read from memory.
const SMALL: usize = 81;

/// The filter of a kernel that is the product of a column and a row.
fn shape<O: GpuPixel>(
    (column, row): &(Vec<f32>, Vec<f32>),
    border: Border,
    channels: usize,
) -> Shape<impl Fn(KernelSource) -> KernelSource> {
    Shape {
        name: "convolve",
        rows: reach(column.len()),
        columns: reach(row.len()),
        channels,
        border,
        sum: "f32",
        planes: 1,
        text: include_str!("convolve.cl"),
        definitions: move |source| conversions::<O>(source).table_f32("COLUMN", column).table_f32("ROW", row),
        local_memory: gpu::LOCAL_MEMORY,
    }
}

fn conversions<O: GpuPixel>(source: KernelSource) -> KernelSource {
    crate::image::gpu::for_kernels::<O>(source)
        .define("READ(v)", "((f32)(v))")
        .define("SKIPPED(v)", "pixel_from((f32)(v))")
        .define("FINISH(v)", "pixel_from(v)")
}

/// The program of a kernel that is not a product.
fn whole<I: Element, O: GpuPixel>(kernel: &Kernel, border: Border, channels: usize) -> KernelSource {
    let (rows, columns) = (reach(kernel.size.height), reach(kernel.size.width));
    let source = gpu::for_kernels(KernelSource::new("convolve"), channels)
        .define("IN", I::NAME)
        .define("OUT", O::NAME)
        .define("V", ROWS)
        .define("SMALL", SMALL)
        .define("UP", rows[0])
        .define("DOWN", rows[1])
        .define("LEFT", columns[0] * channels)
        .define("RIGHT", columns[1] * channels);
    let source = conversions::<O>(gpu::border_for_kernels(source, border));
    let source = match kernel.weights.len() <= SMALL {
        true => source.table_f32("WEIGHTS", &kernel.weights),
        false => source,
    };
    source.kernel::<Weighted<'_, I, O>>([LANES, 1]).text(include_str!("whole.cl"))
}

impl<I: GpuPixel, O: GpuPixel> GpuFilter<I, O> {
    /// [`convolve()`](super::convolve()) on a device; the same bits, except for those of a NaN.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when the device refuses.
    pub fn convolve(gpu: &Gpu, kernel: &Kernel, border: Border, channels: usize) -> Result<Self> {
        if let Some(factors) = &kernel.factors {
            return Self::separable(gpu, shape::<O>(factors, border, channels));
        }
        let weighted =
            gpu.program(&whole::<I, O>(kernel, border, channels))?.kernel::<Weighted<'_, I, O>>()?;
        let step = Step::new(weighted, Size::new(LANES as usize, ROWS));
        let step = Steps::Weighted(step, gpu.upload(&kernel.weights)?);
        Ok(Self::new(gpu, "convolve", step, [channels; 2], |size| size))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::filter::convolve::convolve;
    use crate::filter::gpu::testing;
    use crate::filter::testing::{BORDERS, noise};

    fn weights(n: usize, seed: u32) -> Vec<f32> {
        noise::<f32>(n, seed, 0.4).into_iter().map(|w| w - 0.15).collect()
    }

    fn random(width: usize, height: usize) -> Kernel {
        Kernel::new(weights(width * height, 5), Size::new(width, height)).unwrap()
    }

    fn product(width: usize, height: usize) -> Kernel {
        Kernel::separable(weights(height, 1), weights(width, 2)).unwrap()
    }

    fn twins<I: GpuPixel, O: GpuPixel>(channels: usize, kernels: &[Kernel]) {
        for (k, kernel) in kernels.iter().enumerate() {
            let border = BORDERS[(k + channels) % 4];
            let plan = |gpu: &Gpu| GpuFilter::<I, O>::convolve(gpu, kernel, border, channels);
            let context = format!("{}, {border:?}", kernel.size);
            testing::twins(channels, plan, |view, cpu| convolve(view, kernel, border, cpu), context);
        }
    }

    #[test]
    fn products_and_whole_kernels_are_those_of_the_cpu() {
        twins::<f32, f32>(1, &[product(4, 7), product(2, 1), product(1, 6), product(71, 5)]);
        twins::<u8, f32>(3, &[product(3, 80)]);
        twins::<u16, u8>(2, &[product(3, 3)]);
        twins::<f32, f32>(1, &[random(3, 3), random(1, 4), random(5, 2), random(11, 12)]);
        twins::<u8, u8>(3, &[random(3, 3)]);
        twins::<u16, f32>(1, &[random(9, 10)]);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let far = product(255, 255);
        vec![
            whole::<u8, f32>(&random(3, 3), Border::Clamp, 1),
            whole::<f32, f32>(&random(255, 255), Border::Clamp, 3),
            shape::<f32>(far.factors.as_ref().unwrap(), Border::Clamp, 1).source::<u16, f32>(),
        ]
    }
}
