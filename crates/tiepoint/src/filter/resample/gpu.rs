//! Twice and half the size on a device.

use crate::Result;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{self, Filter, GpuFilter, LANES, Step, Steps};
use crate::image::Size;
use crate::image::gpu::GpuPixel;
use tiepoint_gpu::KernelSource;

/// The kernel has the same names.
#[derive(Clone, Copy)]
enum Form {
    Double,
    Halve,
    HalveMean,
}

fn source<T: GpuPixel>(channels: usize, form: Form) -> KernelSource {
    crate::image::gpu::for_kernels::<T>(gpu::for_kernels(KernelSource::new("resample"), channels))
        .define("DOUBLE", 0)
        .define("HALVE", 1)
        .define("HALVE_MEAN", 2)
        .define("FORM", form as u8)
        .kernel::<Filter<'_, T, T>>([LANES, 1])
        .text(include_str!("resample.cl"))
}

impl<T: GpuPixel> GpuFilter<T, T> {
    fn resample(gpu: &Gpu, channels: usize, form: Form) -> Result<Self> {
        let kernel = gpu.program(&source::<T>(channels, form))?.kernel::<Filter<'_, T, T>>()?;
        let step = Steps::One(Step::new(kernel, Size::new(4 * LANES as usize, 1)));
        let (name, resized): (_, fn(Size) -> Size) = match form {
            Form::Double => ("double", |size| Size::new(2 * size.width, 2 * size.height)),
            Form::Halve | Form::HalveMean => ("halve", super::half),
        };
        Ok(Self::new(gpu, name, step, [channels; 2], resized))
    }

    /// [`double`](super::double) on a device; the same bits, but for those of a NaN.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when the device refuses.
    pub fn double(gpu: &Gpu, channels: usize) -> Result<Self> {
        Self::resample(gpu, channels, Form::Double)
    }

    /// [`halve`](super::halve), as [`double`](Self::double).
    ///
    /// # Errors
    /// As [`double`](Self::double).
    pub fn halve(gpu: &Gpu, channels: usize) -> Result<Self> {
        Self::resample(gpu, channels, Form::Halve)
    }

    /// [`halve_mean`](super::halve_mean), as [`double`](Self::double).
    ///
    /// # Errors
    /// As [`double`](Self::double).
    pub fn halve_mean(gpu: &Gpu, channels: usize) -> Result<Self> {
        Self::resample(gpu, channels, Form::HalveMean)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::filter::gpu::testing::{self, images};
    use crate::filter::resample;

    fn twins<T: GpuPixel>(channels: usize) {
        let images = images::<T>(channels);
        let cpu = Cpu::default();
        let context = format!("{} x {channels}", T::NAME);
        let double = |gpu: &Gpu| GpuFilter::<T, T>::double(gpu, channels);
        testing::twins(&images, double, |view| resample::double(view, &cpu).unwrap(), &context);
        let halve = |gpu: &Gpu| GpuFilter::<T, T>::halve(gpu, channels);
        testing::twins(&images, halve, |view| resample::halve(view, &cpu).unwrap(), &context);
        let means = |gpu: &Gpu| GpuFilter::<T, T>::halve_mean(gpu, channels);
        testing::twins(&images, means, |view| resample::halve_mean(view, &cpu).unwrap(), &context);
    }

    #[test]
    fn sizes_are_changed_as_on_the_cpu() {
        twins::<u8>(3);
        twins::<u16>(1);
        twins::<f32>(1);
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let mut sources = vec![];
        sources.extend([Form::Double, Form::Halve, Form::HalveMean].map(|f| source::<u16>(3, f)));
        sources.extend([source::<f32>(1, Form::Double)]);
        sources
    }
}
