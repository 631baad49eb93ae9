//! Filters of images of any pixel type that lie in a device's memory, and whose results stay there: the bits of
//! [`any`](super::any).
//!
//! The queue of the image's device has the work when a call returns; the host does not wait, but for blobs.

use super::any::Gradient;
use super::convolve::{ConvolveOptions, Kernel};
use super::gauss::GaussOptions;
use super::gpu::GpuFilter;
use super::hessian::{Blob, GpuBlobs, HessianOptions};
use super::sobel::SobelOptions;
use super::sobel::gpu::Form;
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
use crate::image::grey_on_device;
use crate::{Result, by_pixel};

/// [`gauss()`](super::gauss::gauss()).
///
/// # Errors
/// As [`any::gauss`](super::any::gauss), and [`Error::is_device_limit`](crate::Error::is_device_limit) where the device
/// is too small.
pub fn gauss(image: &AnyGpuImage, options: &GaussOptions) -> Result<AnyGpuImage> {
    by_pixel!(image, image => {
        Ok(GpuFilter::gauss(image.gpu(), options, image.channels())?.filter(image)?.into())
    })
}

/// A gradient: magnitudes in the image's type, derivatives as floats.
///
/// # Errors
/// As [`gauss()`].
pub fn sobel(image: &AnyGpuImage, part: Gradient, options: &SobelOptions) -> Result<AnyGpuImage> {
    by_pixel!(image, image => {
        let (gpu, channels) = (image.gpu(), image.channels());
        // Floats hold the derivatives of integers exactly.
        let derivative = |form| GpuFilter::<_, f32>::sobel(gpu, options, channels, form)?.filter(image);
        Ok(match part {
            Gradient::Magnitude => GpuFilter::sobel_magnitude(gpu, options, channels)?.filter(image)?.into(),
            Gradient::X => derivative(Form::X)?.into(),
            Gradient::Y => derivative(Form::Y)?.into(),
        })
    })
}

/// The [response](super::hessian::response) of the grey of an image.
///
/// # Errors
/// As [`gauss()`].
pub fn hessian(image: &AnyGpuImage, options: &HessianOptions) -> Result<GpuImage<f32>> {
    let grey = grey_on_device(image)?;
    by_pixel!(&grey, grey => GpuFilter::hessian(grey.gpu(), options)?.filter(grey))
}

/// The [blobs](super::hessian::blobs) of the grey of an image, in the host's memory.
///
/// # Errors
/// As [`gauss()`].
pub fn blobs(image: &AnyGpuImage, options: &HessianOptions) -> Result<Vec<Blob>> {
    let grey = grey_on_device(image)?;
    by_pixel!(&grey, grey => GpuBlobs::new(grey.gpu(), options)?.blobs(grey))
}

/// [`convolve()`](super::convolve::convolve()) in the image's type.
///
/// # Errors
/// As [`gauss()`].
pub fn convolve(image: &AnyGpuImage, kernel: &Kernel, options: &ConvolveOptions) -> Result<AnyGpuImage> {
    fn of<T: GpuPixel>(
        image: &GpuImage<T>,
        kernel: &Kernel,
        options: &ConvolveOptions,
    ) -> Result<GpuImage<T>> {
        GpuFilter::<T, T>::convolve(image.gpu(), kernel, options, image.channels())?.filter(image)
    }
    by_pixel!(image, image => of(image, kernel, options).map(AnyGpuImage::from))
}

/// [`convolve()`] with a result in floats, which keep signs and fractions.
///
/// # Errors
/// As [`gauss()`].
pub fn convolve_f32(
    image: &AnyGpuImage,
    kernel: &Kernel,
    options: &ConvolveOptions,
) -> Result<GpuImage<f32>> {
    by_pixel!(image, image => {
        GpuFilter::convolve(image.gpu(), kernel, options, image.channels())?.filter(image)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::device::{Cpu, Processor};
    use crate::filter::any;
    use crate::filter::gpu::testing::images;
    use crate::image::testing::assert_same;
    use crate::image::{AnyImage, AnyView, Border, Image, Size};
    use crate::options::Named;

    fn assert_same_any(found: &AnyGpuImage, expected: &AnyImage, context: &str) {
        match (found.download().unwrap(), expected) {
            (AnyImage::U8(found), AnyImage::U8(expected)) => assert_same(&found, expected, context),
            (AnyImage::U16(found), AnyImage::U16(expected)) => assert_same(&found, expected, context),
            (AnyImage::F32(found), AnyImage::F32(expected)) => assert_same(&found, expected, context),
            (found, expected) => panic!("{context}: {found:?} is not of the type of {expected:?}"),
        }
    }

    fn twins<T: GpuPixel>(channels: usize, border: Border)
    where
        for<'a> AnyView<'a>: From<&'a Image<T>>,
        AnyGpuImage: From<GpuImage<T>>,
    {
        let cpu = Processor::from(Cpu::default());
        let gauss_options = GaussOptions::sigma(2.3).with_border(border);
        let sobel_options = SobelOptions::default().with_border(border);
        let convolve_options = ConvolveOptions::default().with_border(border);
        let hessian_options = HessianOptions::default().with_border(border);
        let weights = [0.5, -1.0, 2.0, 0.25, 1.0, -0.5, 0.0, 3.0, -2.0];
        let kernel = Kernel::new(weights.to_vec(), Size::new(3, 3)).unwrap();
        for gpu in all() {
            for (i, image) in images::<T>(channels).iter().enumerate() {
                let context = format!("{gpu:?}, {} x {channels}, image {i}, {border:?}", T::NAME);
                let view = AnyView::from(image);
                let there = AnyGpuImage::from(GpuImage::upload(gpu, image.view()).unwrap());
                let expected = any::gauss(view, &gauss_options, &cpu).unwrap();
                assert_same_any(&gauss(&there, &gauss_options).unwrap(), &expected, &context);
                for part in Gradient::ALL.iter().map(|choice| choice.value) {
                    let expected = any::sobel(view, part, &sobel_options, &cpu).unwrap();
                    assert_same_any(&sobel(&there, part, &sobel_options).unwrap(), &expected, &context);
                }
                let expected = any::convolve(view, &kernel, &convolve_options, &cpu).unwrap();
                assert_same_any(&convolve(&there, &kernel, &convolve_options).unwrap(), &expected, &context);
                let expected = any::convolve_f32(view, &kernel, &convolve_options, &cpu).unwrap();
                let found = convolve_f32(&there, &kernel, &convolve_options).unwrap();
                assert_same(&found.download().unwrap(), &expected, &context);
                let expected = any::hessian(view, &hessian_options, &cpu).unwrap();
                let found = hessian(&there, &hessian_options).unwrap();
                assert_same(&found.download().unwrap(), &expected, &context);
                let expected = any::blobs(view, &hessian_options, &cpu).unwrap();
                assert_eq!(blobs(&there, &hessian_options).unwrap(), expected, "{context}");
            }
        }
    }

    #[test]
    fn filters_are_those_of_the_cpu() {
        twins::<u8>(1, Border::Clamp);
        twins::<u8>(3, Border::Skip);
        twins::<u16>(1, Border::Reflect);
        twins::<f32>(4, Border::Zero);
    }
}
