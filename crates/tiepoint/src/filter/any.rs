//! Filters of images of any pixel type, on the GPU of a processor or on its CPU, with the same bits.
//!
//! Where the GPU lacks memory or a feature the CPU computes the same, and a note of the processor says so.

use super::convolve::{self, ConvolveOptions, Kernel};
use super::gauss::{self, GaussOptions};
use super::gpu::GpuFilter;
use super::hessian::{self, Blob, GpuBlobs, HessianOptions};
use super::sobel::{self, Sobel, SobelOptions};
use crate::device::gpu::{Element, Gpu};
use crate::device::{Cpu, Processor};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{AnyImage, AnyView, Image, ImageView, grey};
use crate::options::named;
use crate::{Result, by_pixel};

named! {
    /// Which gradient of an image: a magnitude has the type of the image, a derivative is in floats.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Gradient as "part" {
        #[default]
        "magnitude": Magnitude, "√(gx² + gy²)";
        "gx": X, "Derivative along x";
        "gy": Y, "Derivative along y";
    }
}

/// [`gauss()`](gauss::gauss()) of an image of any type.
///
/// # Errors
/// As [`gauss()`](gauss::gauss()), and [`Error::Device`](crate::Error::Device) when a GPU fails.
pub fn gauss(image: AnyView<'_>, options: &GaussOptions, processor: &Processor) -> Result<AnyImage> {
    by_pixel!(image, view => {
        let on_gpu = |gpu: &Gpu, channels| GpuFilter::gauss(gpu, options, channels);
        filtered("gauss", view, processor, on_gpu, |cpu| gauss::gauss(view, options, cpu)).map(AnyImage::from)
    })
}

/// A gradient by [`mod@sobel`] of an image of any type: magnitudes in its type, derivatives as floats.
///
/// # Errors
/// As [`sobel::magnitude`], and [`Error::Device`](crate::Error::Device) when a GPU fails.
pub fn sobel(
    image: AnyView<'_>,
    part: Gradient,
    options: &SobelOptions,
    processor: &Processor,
) -> Result<AnyImage> {
    by_pixel!(image, view => gradient(view, part, options, processor))
}

/// The [response](hessian::response) of the grey of an image of any type.
///
/// # Errors
/// As [`hessian::response`], and [`Error::Device`](crate::Error::Device) when a GPU fails.
pub fn hessian(image: AnyView<'_>, options: &HessianOptions, processor: &Processor) -> Result<Image<f32>> {
    let grey = grey(image, &processor.cpu)?.into_image();
    by_pixel!(grey.view(), view => {
        let on_gpu = |gpu: &Gpu, _| GpuFilter::hessian(gpu, options);
        filtered("hessian", view, processor, on_gpu, |cpu| hessian::response(view, options, cpu))
    })
}

/// The [blobs](hessian::blobs) of the grey of an image of any type.
///
/// # Errors
/// As [`hessian::blobs`], and [`Error::Device`](crate::Error::Device) when a GPU fails.
pub fn blobs(image: AnyView<'_>, options: &HessianOptions, processor: &Processor) -> Result<Vec<Blob>> {
    let grey = grey(image, &processor.cpu)?.into_image();
    by_pixel!(grey.view(), view => processor.gpu_or_cpu(
        "blobs",
        |gpu| GpuBlobs::new(gpu, options)?.blobs(&GpuImage::upload(gpu, view)?),
        |cpu| hessian::blobs(view, options, cpu),
    ))
}

/// [`convolve()`](convolve::convolve()) of an image of any type, in its type.
///
/// # Errors
/// As [`convolve()`](convolve::convolve()), and [`Error::Device`](crate::Error::Device) when a GPU fails.
pub fn convolve(
    image: AnyView<'_>,
    kernel: &Kernel,
    options: &ConvolveOptions,
    processor: &Processor,
) -> Result<AnyImage> {
    Ok(match image {
        AnyView::U8(view) => convolved::<_, u8>(view, kernel, options, processor)?.into(),
        AnyView::U16(view) => convolved::<_, u16>(view, kernel, options, processor)?.into(),
        AnyView::F32(view) => convolved::<_, f32>(view, kernel, options, processor)?.into(),
    })
}

/// [`convolve()`] with a result in floats, which keep signs and fractions.
///
/// # Errors
/// As [`convolve()`].
pub fn convolve_f32(
    image: AnyView<'_>,
    kernel: &Kernel,
    options: &ConvolveOptions,
    processor: &Processor,
) -> Result<Image<f32>> {
    by_pixel!(image, view => convolved(view, kernel, options, processor))
}

fn convolved<I: GpuPixel, O: GpuPixel>(
    view: ImageView<'_, I>,
    kernel: &Kernel,
    options: &ConvolveOptions,
    processor: &Processor,
) -> Result<Image<O>> {
    let on_gpu = |gpu: &Gpu, channels| GpuFilter::convolve(gpu, kernel, options, channels);
    filtered("convolve", view, processor, on_gpu, |cpu| convolve::convolve(view, kernel, options, cpu))
}

fn gradient<T: Sobel + GpuPixel>(
    view: ImageView<'_, T>,
    part: Gradient,
    options: &SobelOptions,
    processor: &Processor,
) -> Result<AnyImage>
where
    AnyImage: From<Image<T>>,
    T::Gradient: Into<f64> + Element,
{
    let signed = |image: Image<T::Gradient>| {
        let (size, channels) = (image.size(), image.channels());
        let values = image.into_vec().into_iter().map(|v| Into::<f64>::into(v) as f32).collect();
        Image::from_vec(values, size, channels).map(AnyImage::F32)
    };
    match part {
        Gradient::Magnitude => {
            let on_gpu = |gpu: &Gpu, channels| GpuFilter::sobel_magnitude(gpu, options, channels);
            filtered("sobel", view, processor, on_gpu, |cpu| sobel::magnitude(view, options, cpu))
                .map(AnyImage::from)
        }
        Gradient::X => {
            let on_gpu = |gpu: &Gpu, channels| GpuFilter::sobel_x(gpu, options, channels);
            signed(filtered("sobel", view, processor, on_gpu, |cpu| sobel::x(view, options, cpu))?)
        }
        Gradient::Y => {
            let on_gpu = |gpu: &Gpu, channels| GpuFilter::sobel_y(gpu, options, channels);
            signed(filtered("sobel", view, processor, on_gpu, |cpu| sobel::y(view, options, cpu))?)
        }
    }
}

/// A filter's result from the GPU, or from the CPU where there is no GPU or the GPU cannot compute it.
fn filtered<I: GpuPixel, O: Element + Copy + Default>(
    name: &str,
    view: ImageView<'_, I>,
    processor: &Processor,
    on_gpu: impl FnOnce(&Gpu, usize) -> Result<GpuFilter<I, O>>,
    on_cpu: impl FnOnce(&Cpu) -> Result<Image<O>>,
) -> Result<Image<O>> {
    let on_gpu = |gpu: &Gpu| on_gpu(gpu, view.channels())?.filter(&GpuImage::upload(gpu, view)?)?.download();
    processor.gpu_or_cpu(name, on_gpu, on_cpu)
}
