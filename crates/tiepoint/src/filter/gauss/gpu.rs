//! Smoothing on a device.

use super::{FIXED_SIZE, GaussOptions};
use crate::Result;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{GpuFilter, LOCAL_MEMORY, Shape};
use crate::image::gpu::{self, GpuPixel};
use tiepoint_gpu::KernelSource;

fn shape<T: GpuPixel>(options: &GaussOptions, channels: usize) -> (Shape, bool) {
    let eight_bit = T::u8s(&[]).is_some();
    let radius = options.taps.radius(eight_bit);
    let fixed = eight_bit && radius <= FIXED_SIZE / 2;
    let sum = if fixed { "i32" } else { "f32" };
    let (rows, border) = ([radius; 2], options.border);
    let text = include_str!("gauss.cl");
    (Shape { rows, columns: rows, channels, border, sum, planes: 1, text, local_memory: LOCAL_MEMORY }, fixed)
}

fn arithmetic<T: GpuPixel>(source: KernelSource, options: &GaussOptions, fixed: bool) -> KernelSource {
    let source = gpu::for_kernels::<T>(source).define("READ(v)", "((MID)(v))").define("SKIPPED(v)", "(v)");
    if fixed {
        let taps: Vec<i32> = options.taps.to_q8().into_iter().map(i32::from).collect();
        source
            .table_i32("TAPS", &taps)
            .define("MULTIPLY_ADD(a, b, c)", "((a) * (b) + (c))")
            .define("FINISH(v)", "((OUT)((v + 32768) >> 16))")
    } else {
        source
            .table_f32("TAPS", &options.taps.to_f32(T::u8s(&[]).is_some()))
            .define("MULTIPLY_ADD(a, b, c)", "FMA(a, b, c)")
            .define("FINISH(v)", "pixel_from(v)")
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
        let (shape, fixed) = shape::<T>(options, channels);
        Self::separable(gpu, "gauss", &shape, |source| arithmetic::<T>(source, options, fixed))
    }

    /// The program of [`gauss`](Self::gauss).
    pub(crate) fn gauss_source(gpu: &Gpu, options: &GaussOptions, channels: usize) -> KernelSource {
        let (shape, fixed) = shape::<T>(options, channels);
        shape.fitting(gpu).source::<T, T>("gauss", |source| arithmetic::<T>(source, options, fixed))
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
    fn bytes_are_those_of_the_cpu() {
        twins::<u8>(1, &NEAR);
        twins::<u8>(3, &[Taps::Size(5), Taps::Size(1)]);
    }

    #[test]
    fn sixteen_bits_are_those_of_the_cpu() {
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
        let mut sources = vec![];
        let source = |taps, border, channels| {
            let options = GaussOptions { taps, border };
            let (shape, fixed) = shape::<u8>(&options, channels);
            let bytes = shape.source::<u8, u8>("gauss", |s| arithmetic::<u8>(s, &options, fixed));
            let (shape, fixed) = super::shape::<f32>(&options, channels);
            [bytes, shape.source::<f32, f32>("gauss", |s| arithmetic::<f32>(s, &options, fixed))]
        };
        sources.extend(source(Taps::Size(5), Border::Skip, 1));
        sources.extend(source(Taps::Sigma(20.0), Border::Reflect, 3));
        sources
    }
}
