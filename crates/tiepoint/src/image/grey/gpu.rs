//! Grey on a device.

use super::check_channels;
use crate::device::gpu::Gpu;
use crate::filter::gpu::{self, Filter, GpuFilter, LANES, Step, Steps};
use crate::image::Size;
use crate::image::gpu::{AnyGpuImage, GpuPixel};
use crate::{Result, by_pixel};
use tiepoint_gpu::KernelSource;

/// Adds `luma_level` and `luma_float` to a kernel's source.
pub(crate) fn luma_for_kernels(source: KernelSource) -> KernelSource {
    source
        .define_f32("RED", super::LUMA[0])
        .define_f32("GREEN", super::LUMA[1])
        .define_f32("BLUE", super::LUMA[2])
        .text(include_str!("luma.h"))
}

pub(crate) fn source<T: GpuPixel>(channels: usize) -> KernelSource {
    let source = crate::image::gpu::for_kernels::<T>(gpu::for_kernels(KernelSource::new("grey"), channels));
    luma_for_kernels(source).kernel::<Filter<'_, T, T>>([LANES, 1]).text(include_str!("grey.cl"))
}

impl<T: GpuPixel> GpuFilter<T, T> {
    /// [`grey()`](crate::image::grey()) on a device, of images of 1 to 4 channels: the same bits, except that NaNs may
    /// have others.
    ///
    /// # Errors
    /// [`Error::Image`](crate::Error::Image) for more than four channels, [`Error::Device`](crate::Error::Device)
    /// when the device refuses.
    pub fn grey(gpu: &Gpu, channels: usize) -> Result<Self> {
        check_channels(channels)?;
        let kernel = gpu.program(&source::<T>(channels))?.kernel::<Filter<'_, T, T>>()?;
        let step = Steps::One(Step::new(kernel, Size::new(4 * LANES as usize, 1)));
        Ok(Self::new(gpu, "grey", step, [channels, 1], |size| size))
    }
}

/// [`grey()`](crate::image::grey()) of an image in a device's memory; a grey image is returned as it is.
///
/// # Errors
/// As [`GpuFilter::grey`].
pub fn grey_on_device(image: &AnyGpuImage) -> Result<AnyGpuImage> {
    match image.channels() {
        1 => Ok(image.clone()),
        n => Ok(by_pixel!(map image, image => GpuFilter::grey(image.gpu(), n)?.filter(image)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::gpu::testing;
    use crate::image::grey::grey_view;

    fn twins<T: GpuPixel>() {
        for channels in 1..=4 {
            let plan = |gpu: &Gpu| GpuFilter::<T, T>::grey(gpu, channels);
            testing::twins(channels, plan, grey_view, "grey");
        }
    }

    #[test]
    fn grey_is_that_of_the_cpu() {
        twins::<u8>();
        twins::<u16>();
        twins::<f32>();
    }
}
