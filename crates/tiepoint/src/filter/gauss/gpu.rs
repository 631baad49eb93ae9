//! Smoothing on a device.

use super::{FIXED_SIZE, GaussOptions};
use crate::Result;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape};
use crate::image::gpu::{self, GpuPixel};
use tiepoint_gpu::KernelSource;

fn shape<T: GpuPixel>(
    options: &GaussOptions,
    channels: usize,
) -> Shape<impl Fn(KernelSource) -> KernelSource> {
    let eight_bit = T::u8s(&[]).is_some();
    let reach = [options.taps.radius(eight_bit); 2];
    let fixed = eight_bit && reach[0] <= FIXED_SIZE / 2;
    Shape {
        name: "gauss",
        rows: reach,
        columns: reach,
        channels,
        border: options.border,
        sum: if fixed { "i32" } else { "f32" },
        planes: 1,
        text: include_str!("gauss.cl"),
        definitions: move |source| {
            let source =
                gpu::for_kernels::<T>(source).define("READ(v)", "((MID)(v))").define("SKIPPED(v)", "(v)");
            if fixed {
                let taps: Vec<i32> = options.taps.to_q8().into_iter().map(i32::from).collect();
                source
                    .table_i32("TAPS", &taps)
                    .define("MULTIPLY_ADD(a, b, c)", "((a) * (b) + (c))")
                    .define("FINISH(v)", "((OUT)((v + 32768) >> 16))")
            } else {
                source
                    .table_f32("TAPS", &options.taps.to_f32(eight_bit))
                    .define("MULTIPLY_ADD(a, b, c)", "FMA(a, b, c)")
                    .define("FINISH(v)", "pixel_from(v)")
            }
        },
        local_memory: LOCAL_MEMORY,
    }
}

impl<T: GpuPixel> GpuFilter<T, T> {
    /// [`gauss()`](super::gauss()) on a device; the same bits, except for those of a NaN.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) for options out of range, [`Error::Device`](crate::Error::Device)
    /// when the device refuses.
    pub fn gauss(gpu: &Gpu, options: &GaussOptions, channels: usize) -> Result<Self> {
        options.check()?;
        Self::separable(gpu, shape::<T>(options, channels))
    }

    /// The program of [`gauss`](Self::gauss).
    pub(crate) fn gauss_source(gpu: &Gpu, options: &GaussOptions, channels: usize) -> KernelSource {
        shape::<T>(options, channels).fitting(gpu).source::<T, T>()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::filter::gauss::{Taps, gauss};
    use crate::filter::gpu::testing;
    use crate::filter::testing::BORDERS;
    use crate::image::Border;

    fn twins<T: GpuPixel>(channels: usize, taps: &[Taps]) {
        for (k, &taps) in taps.iter().enumerate() {
            let options = GaussOptions { taps, border: BORDERS[(k + channels) % 4] };
            let plan = |gpu: &Gpu| GpuFilter::<T, T>::gauss(gpu, &options, channels);
            testing::twins(channels, plan, |v, cpu| gauss(v, &options, cpu), format_args!("{options:?}"));
        }
    }

    const NEAR: [Taps; 4] =
        [Taps::Sigma(1.6), Taps::Size(3), Taps::PowerOfTwo(15), Taps::SigmaAndSize(2.0, 11)];

    #[test]
    fn floats_are_those_of_the_cpu() {
        twins::<f32>(1, &NEAR);
        twins::<f32>(3, &[Taps::Sigma(1.6)]);
    }

    #[test]
    fn integers_are_those_of_the_cpu() {
        twins::<u8>(1, &NEAR);
        twins::<u8>(3, &[Taps::Size(5), Taps::Size(1)]);
        twins::<u16>(1, &NEAR[..1]);
        twins::<u16>(4, &[Taps::Size(5)]);
    }

    #[test]
    fn far_taps_are_those_of_the_cpu() {
        twins::<f32>(1, &[Taps::Sigma(6.0), Taps::Size(95)]);
        twins::<u8>(1, &[Taps::Size(35), Taps::Size(67)]);
        twins::<u8>(4, &[Taps::Size(19), Taps::PowerOfTwo(31)]);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let source = |taps, border, channels| {
            let options = GaussOptions { taps, border };
            let bytes = shape::<u8>(&options, channels).source::<u8, u8>();
            [bytes, shape::<f32>(&options, channels).source::<f32, f32>()]
        };
        [source(Taps::Size(5), Border::Skip, 1), source(Taps::Sigma(20.0), Border::Reflect, 3)].concat()
    }
}
