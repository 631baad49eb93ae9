//! Resampling to twice or half the size on a device.

use super::Scaling;
use crate::Result;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{self, Filter, GpuFilter, LANES, Step, Steps};
use crate::image::Size;
use crate::image::gpu::GpuPixel;
use tiepoint_gpu::KernelSource;

pub(crate) fn source<T: GpuPixel>(channels: usize, scaling: Scaling) -> KernelSource {
    crate::image::gpu::for_kernels::<T>(gpu::for_kernels(KernelSource::new("resample"), channels))
        .define("DOUBLE", Scaling::Double as u8)
        .define("HALVE", Scaling::Halve as u8)
        .define("HALVE_MEAN", Scaling::HalveMean as u8)
        .define("FORM", scaling as u8)
        .kernel::<Filter<'_, T, T>>([LANES, 1])
        .text(include_str!("resample.cl"))
}

impl<T: GpuPixel> GpuFilter<T, T> {
    /// [`resample`](super::resample()) on a device; the same bits, except for those of a NaN.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when the device refuses.
    pub fn resample(gpu: &Gpu, scaling: Scaling, channels: usize) -> Result<Self> {
        let kernel = gpu.program(&source::<T>(channels, scaling))?.kernel::<Filter<'_, T, T>>()?;
        let step = Steps::One(Step::new(kernel, Size::new(4 * LANES as usize, 1)));
        let resized: fn(Size) -> Size = match scaling {
            Scaling::Double => |size| Scaling::Double.resized(size),
            Scaling::Halve | Scaling::HalveMean => |size| Scaling::Halve.resized(size),
        };
        Ok(Self::new(gpu, scaling.stage(), step, [channels; 2], resized))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::filter::gpu::testing;
    use crate::filter::resample::resample;
    use crate::options::Named;

    fn twins<T: GpuPixel>(channels: usize) {
        for scaling in Scaling::ALL.iter().map(|choice| choice.value) {
            let plan = |gpu: &Gpu| GpuFilter::<T, T>::resample(gpu, scaling, channels);
            testing::twins(channels, plan, |view, cpu| resample(view, scaling, cpu), scaling);
        }
    }

    #[test]
    fn sizes_are_changed_as_on_the_cpu() {
        twins::<u8>(3);
        twins::<u16>(1);
        twins::<f32>(1);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let of_u16 = Scaling::ALL.iter().map(|choice| source::<u16>(3, choice.value));
        of_u16.chain([source::<f32>(1, Scaling::Double)]).collect()
    }
}
