//! Filters for images of any pixel type, in the host's memory or on a GPU, with the same bits everywhere.
//!
//! An image in the host's memory is filtered by the processor's GPU, or by its CPU if it has none. If the GPU lacks
//! memory or a feature, the CPU does the work, and the processor gets a note. An image on a GPU is filtered there, and
//! its result stays there: the work is queued when a call returns, and the host does not wait, except for blobs.
//!
//! Each function calls an inner one without `impl Into`, which is compiled here and not again by every crate that calls
//! it.

use super::convolve::{self, Kernel};
use super::gauss::{self, GaussOptions};
use super::gpu::GpuFilter;
use super::hessian::{self, Blob, HessianOptions};
use super::sobel::{self, Form, Magnitude, Sobel, X, Y};
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Border, ByPixel, Image, ImageView, Made, Pixels, grey, grey_on_device};
use crate::options::named;
use crate::{Result, by_pixel};

named! {
    /// Which gradient of an image to compute. A magnitude has the image's pixel type, derivatives are floats.
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
/// As [`gauss()`](gauss::gauss()), [`Error::Device`](crate::Error::Device) when a GPU fails, and
/// [`Error::is_device_limit`](crate::Error::is_device_limit) if the image lies on a GPU that is too small.
pub fn gauss<'a>(
    image: impl Into<Pixels<'a>>,
    options: &GaussOptions,
    processor: &Processor,
) -> Result<Made> {
    fn inner(image: &Pixels<'_>, options: &GaussOptions, processor: &Processor) -> Result<Made> {
        by_pixel!(placed(image), image => {
            let on_gpu = |gpu: &Gpu, channels| GpuFilter::gauss(gpu, options, channels);
            filtered("gauss", image, processor, on_gpu, |view, cpu| gauss::gauss(view, options, cpu))
        })
    }
    inner(&image.into(), options, processor)
}

/// A gradient by [`mod@sobel`] of an image of any type: magnitudes in its type, derivatives as floats, which hold the
/// derivatives of integers exactly.
///
/// # Errors
/// As [`sobel::sobel`] and [`gauss()`].
pub fn sobel<'a>(
    image: impl Into<Pixels<'a>>,
    part: Gradient,
    border: Border,
    processor: &Processor,
) -> Result<Made> {
    fn inner(image: &Pixels<'_>, part: Gradient, border: Border, processor: &Processor) -> Result<Made> {
        by_pixel!(placed(image), image => match part {
            Gradient::Magnitude => {
                let on_gpu = |gpu: &Gpu, n| GpuFilter::sobel(gpu, Magnitude, border, n);
                filtered("sobel", image, processor, on_gpu, |view, cpu| {
                    sobel::sobel(view, Magnitude, border, cpu)
                })
            }
            Gradient::X => derivative(image, X, border, processor),
            Gradient::Y => derivative(image, Y, border, processor),
        })
    }
    inner(&image.into(), part, border, processor)
}

fn derivative<T: GpuPixel + Sobel<Gradient: Into<f64>>>(
    image: Placed<'_, T>,
    form: impl Form<T, Out = T::Gradient> + Sync,
    border: Border,
    processor: &Processor,
) -> Result<Made> {
    let on_gpu = |gpu: &Gpu, n| GpuFilter::<T, f32>::sobel(gpu, form, border, n);
    filtered("sobel", image, processor, on_gpu, |view, cpu| {
        let found = sobel::sobel(view, form, border, cpu)?;
        let (size, channels) = (found.size(), found.channels());
        Image::from_vec(found.into_vec().into_iter().map(|v| v.into() as f32).collect(), size, channels)
    })
}

/// The [response](hessian::response) of the grey of an image of any type, in floats.
///
/// # Errors
/// As [`hessian::response`] and [`gauss()`].
pub fn hessian<'a>(
    image: impl Into<Pixels<'a>>,
    options: &HessianOptions,
    processor: &Processor,
) -> Result<Made> {
    fn inner(image: &Pixels<'_>, options: &HessianOptions, processor: &Processor) -> Result<Made> {
        of_grey(image, &processor.cpu, |grey| {
            by_pixel!(placed(grey), grey => {
                let on_gpu = |gpu: &Gpu, _| GpuFilter::hessian(gpu, options);
                filtered("hessian", grey, processor, on_gpu, |view, cpu| hessian::response(view, options, cpu))
            })
        })
    }
    inner(&image.into(), options, processor)
}

/// The [blobs](hessian::blobs) of the grey of an image of any type.
///
/// # Errors
/// As [`hessian::blobs`] and [`gauss()`].
pub fn blobs<'a>(
    image: impl Into<Pixels<'a>>,
    options: &HessianOptions,
    processor: &Processor,
) -> Result<Vec<Blob>> {
    fn inner(image: &Pixels<'_>, options: &HessianOptions, processor: &Processor) -> Result<Vec<Blob>> {
        of_grey(image, &processor.cpu, |grey| {
            by_pixel!(placed(grey), grey => match grey {
                Placed::Host(view) => processor.gpu_or_cpu(
                    "blobs",
                    |gpu| hessian::gpu::blobs(&GpuImage::upload(gpu, view)?, options),
                    |cpu| hessian::blobs(view, options, cpu),
                ),
                Placed::Device(image) => hessian::gpu::blobs(image, options),
            })
        })
    }
    inner(&image.into(), options, processor)
}

/// [`convolve()`](convolve::convolve()) of an image of any type, in its type.
///
/// # Errors
/// As [`convolve()`](convolve::convolve()) and [`gauss()`].
pub fn convolve<'a>(
    image: impl Into<Pixels<'a>>,
    kernel: &Kernel,
    border: Border,
    processor: &Processor,
) -> Result<Made> {
    fn same<T: GpuPixel>(image: Placed<'_, T>, by: (&Kernel, Border), processor: &Processor) -> Result<Made> {
        convolved::<T, T>(image, by, processor)
    }
    fn inner(image: &Pixels<'_>, by: (&Kernel, Border), processor: &Processor) -> Result<Made> {
        by_pixel!(placed(image), image => same(image, by, processor))
    }
    inner(&image.into(), (kernel, border), processor)
}

/// [`convolve()`] with a result in floats, which keep signs and fractions.
///
/// # Errors
/// As [`convolve()`].
pub fn convolve_f32<'a>(
    image: impl Into<Pixels<'a>>,
    kernel: &Kernel,
    border: Border,
    processor: &Processor,
) -> Result<Made> {
    fn inner(image: &Pixels<'_>, by: (&Kernel, Border), processor: &Processor) -> Result<Made> {
        by_pixel!(placed(image), image => convolved::<_, f32>(image, by, processor))
    }
    inner(&image.into(), (kernel, border), processor)
}

fn convolved<I: GpuPixel, O: GpuPixel>(
    image: Placed<'_, I>,
    (kernel, border): (&Kernel, Border),
    processor: &Processor,
) -> Result<Made> {
    let on_gpu = |gpu: &Gpu, channels| GpuFilter::<_, O>::convolve(gpu, kernel, border, channels);
    filtered("convolve", image, processor, on_gpu, |view, cpu| convolve::convolve(view, kernel, border, cpu))
}

/// Pixels of one type, in the host's memory or on a device.
#[derive(Clone, Copy)]
enum Placed<'a, T> {
    Host(ImageView<'a, T>),
    Device(&'a GpuImage<T>),
}

fn placed<'a>(image: &'a Pixels<'_>) -> ByPixel<Placed<'a, u8>, Placed<'a, u16>, Placed<'a, f32>> {
    match image {
        Pixels::Host(view) => by_pixel!(map *view, view => Placed::Host(view)),
        Pixels::Device(image) => by_pixel!(map image, image => Placed::Device(image)),
    }
}

/// Runs `work` on the grey of an image, in the memory in which the image lies.
fn of_grey<R>(image: &Pixels<'_>, cpu: &Cpu, work: impl FnOnce(&Pixels<'_>) -> Result<R>) -> Result<R> {
    match image {
        Pixels::Host(view) => work(&grey(view, cpu)?.view().into()),
        Pixels::Device(image) => work(&grey_on_device(image)?.into()),
    }
}

/// A filter's result: computed on the GPU on which the image lies, otherwise on the processor's GPU, or on its CPU if
/// there is no GPU or the GPU lacks memory or a feature.
fn filtered<I: GpuPixel, O: GpuPixel>(
    name: &str,
    image: Placed<'_, I>,
    processor: &Processor,
    filter: impl Fn(&Gpu, usize) -> Result<GpuFilter<I, O>> + Sync,
    on_cpu: impl FnOnce(ImageView<'_, I>, &Cpu) -> Result<Image<O>>,
) -> Result<Made> {
    match image {
        Placed::Host(view) => {
            let filter = |gpu: &Gpu| filter(gpu, view.channels())?.filter(&GpuImage::upload(gpu, view)?);
            let on_gpu = |gpu: &Gpu| filter(gpu)?.download();
            let found = processor.gpu_or_cpu(name, on_gpu, |cpu| on_cpu(view, cpu))?;
            Ok(Made::Host(found.into()))
        }
        Placed::Device(image) => {
            Ok(Made::Device(filter(image.gpu(), image.channels())?.filter(image)?.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::filter::gpu::testing::images;
    use crate::image::gpu::AnyGpuImage;
    use crate::image::testing::assert_same_any;
    use crate::image::{AnyView, Size};

    type Filter<'f> = &'f dyn Fn(Pixels<'_>, &Processor) -> Result<Made>;

    /// Compares filters on the CPU and on GPUs, for images in the host's memory and on the device.
    fn twins<T: GpuPixel>(channels: usize, border: Border) {
        let cpu = Processor::from(Cpu::default());
        let gauss_options = GaussOptions::sigma(2.3).with_border(border);
        let hessian_options = HessianOptions::default().with_border(border);
        let weights = [0.5, -1.0, 2.0, 0.25, 1.0, -0.5, 0.0, 3.0, -2.0];
        let kernel = Kernel::new(weights.to_vec(), Size::new(3, 3)).unwrap();
        for gpu in all() {
            let processor = Processor::with_gpu(Cpu::default(), gpu.clone());
            for (i, image) in images::<T>(channels).iter().enumerate() {
                let view = AnyView::from(image);
                let there = AnyGpuImage::from(GpuImage::upload(gpu, image.view()).unwrap());
                for (image, processor) in [(Pixels::from(view), &processor), (there.into(), &cpu)] {
                    let context =
                        format!("{gpu:?}, {} x {channels}, image {i}, {border:?}, {image:?}", T::NAME);
                    let filters: [Filter<'_>; 7] = [
                        &|image, by| gauss(image, &gauss_options, by),
                        &|image, by| sobel(image, Gradient::Magnitude, border, by),
                        &|image, by| sobel(image, Gradient::X, border, by),
                        &|image, by| sobel(image, Gradient::Y, border, by),
                        &|image, by| convolve(image, &kernel, border, by),
                        &|image, by| convolve_f32(image, &kernel, border, by),
                        &|image, by| hessian(image, &hessian_options, by),
                    ];
                    for (n, filter) in filters.into_iter().enumerate() {
                        let found = filter(image.clone(), processor).unwrap();
                        let stays = matches!(found, Made::Device(_)) == matches!(image, Pixels::Device(_));
                        assert!(stays, "filter {n}, {context}");
                        let both = [found, filter(view.into(), &cpu).unwrap()];
                        let [found, expected] = both.map(|made| made.into_host().unwrap());
                        assert_same_any(&found, &expected, format!("filter {n}, {context}"));
                    }
                    let expected = blobs(view, &hessian_options, &cpu).unwrap();
                    assert_eq!(blobs(image, &hessian_options, processor).unwrap(), expected, "{context}");
                }
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
