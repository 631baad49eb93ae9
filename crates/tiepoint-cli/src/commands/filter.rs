//! `tiepoint filter`: one filter on one image.

use crate::arguments::filter::{FilterArguments, FilterFiles, FilterOptions, Gradient, holds_floats};
use crate::context::Context;
use crate::failure::Outcome;
use crate::output::{Clock, Part};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use tiepoint::device::Cpu;
use tiepoint::device::gpu::{Element, Gpu};
use tiepoint::filter::convolve::{ConvolveOptions, Kernel, convolve};
use tiepoint::filter::gauss::gauss;
use tiepoint::filter::gpu::GpuFilter;
use tiepoint::filter::hessian::{self, Blob, GpuBlobs, HessianOptions};
use tiepoint::filter::sobel::{self, Sobel, SobelOptions};
use tiepoint::for_any_image;
use tiepoint::image::gpu::{GpuImage, GpuPixel};
use tiepoint::image::{self, AnyImage, Image, ImageView, ReadOptions};

pub(crate) fn run(filter: &FilterArguments, context: &Context) -> Outcome {
    let FilterFiles { name, input, output } = filter.files();
    filter.check()?;
    let options = filter.options()?;
    let mut clock = Clock::start(&context.processor.cpu);
    let image = clock.time(Part::Read, || image::read(input, &ReadOptions::default()))?;
    let filtered = clock.time(Part::Compute, || apply(&options, holds_floats(output), &image, context))?;
    context.print_notes();
    clock.time(Part::Write, || image::write(output, &filtered))?;
    let size = filtered.size();
    context.say(&format!("{}: {size}, {:.1} ms", output.display(), clock.compute() * 1e3))?;
    context.report(|| {
        json!({
            "image": input.display().to_string(),
            "output": output.display().to_string(),
            "filter": name,
            "width": size.width,
            "height": size.height,
            "channels": filtered.channels(),
            "device": context.device(),
            "threads": context.processor.cpu.threads(),
            "seconds": clock.seconds(&context.processor.cpu),
        })
    })
}

/// The filtered image. A response with signs becomes its magnitude unless `keeps_floats`.
fn apply(
    options: &FilterOptions,
    keeps_floats: bool,
    image: &AnyImage,
    context: &Context,
) -> Outcome<AnyImage> {
    match options {
        FilterOptions::Gauss(options) => Ok(for_any_image!(image, view => on_device(
            view,
            context,
            |gpu, channels| GpuFilter::gauss(gpu, options, channels),
            |cpu| gauss(view, options, cpu),
        )?.into())),
        FilterOptions::Sobel { part, options } => {
            for_any_image!(image, view => gradient(view, *part, options, context))
        }
        FilterOptions::Hessian { options, blobs } => {
            let grey = image::grey(image, &context.processor.cpu)?.into_image();
            let response = for_any_image!(&grey, view => on_device(
                view,
                context,
                |gpu, _| GpuFilter::hessian(gpu, options),
                |cpu| hessian::response(view, options, cpu),
            )?);
            if let Some(path) = blobs {
                write_blobs(path, &for_any_image!(&grey, view => find_blobs(view, options, context)?))?;
            }
            Ok(AnyImage::F32(if keeps_floats { response } else { magnitude(response) }))
        }
        FilterOptions::Convolve { kernel, float, options } => {
            if *float {
                let out: Image<f32> =
                    for_any_image!(image, view => convolved(view, kernel, options, context)?);
                return Ok(out.into());
            }
            Ok(for_any_image!(image, view => same_type(view, kernel, options, context)?))
        }
    }
}

/// A filter's result from the context's GPU, or from its CPU where it has none.
fn on_device<I: GpuPixel, O: Element + Copy + Default>(
    view: ImageView<'_, I>,
    context: &Context,
    on_gpu: impl FnOnce(&Gpu, usize) -> tiepoint::Result<GpuFilter<I, O>>,
    on_cpu: impl FnOnce(&Cpu) -> tiepoint::Result<Image<O>>,
) -> Outcome<Image<O>> {
    let Some(gpu) = &context.processor.gpu else { return Ok(on_cpu(&context.processor.cpu)?) };
    let run = || on_gpu(gpu, view.channels())?.filter(&GpuImage::upload(gpu, view)?)?.download();
    match run() {
        Err(error) if error.is_device_limit() => {
            context.processor.note(format!("{error}; the CPU takes this image"));
            Ok(on_cpu(&context.processor.cpu)?)
        }
        result => Ok(result?),
    }
}

fn find_blobs<T: GpuPixel>(
    view: ImageView<'_, T>,
    options: &HessianOptions,
    context: &Context,
) -> Outcome<Vec<Blob>> {
    Ok(match &context.processor.gpu {
        Some(gpu) => GpuBlobs::new(gpu, options)?.blobs(&GpuImage::upload(gpu, view)?)?,
        None => hessian::blobs(view, options, &context.processor.cpu)?,
    })
}

fn convolved<I: GpuPixel, O: GpuPixel>(
    view: ImageView<'_, I>,
    kernel: &Kernel,
    options: &ConvolveOptions,
    context: &Context,
) -> Outcome<Image<O>> {
    on_device(
        view,
        context,
        |gpu, channels| GpuFilter::convolve(gpu, kernel, options, channels),
        |cpu| convolve(view, kernel, options, cpu),
    )
}

/// The kernel applied in the image's own type.
fn same_type<T: GpuPixel>(
    view: ImageView<'_, T>,
    kernel: &Kernel,
    options: &ConvolveOptions,
    context: &Context,
) -> Outcome<AnyImage>
where
    Image<T>: Into<AnyImage>,
{
    Ok(convolved::<T, T>(view, kernel, options, context)?.into())
}

/// |v|, the greatest 1: what a picture without signs shows.
pub(super) fn magnitude(mut image: Image<f32>) -> Image<f32> {
    let most = image.data().iter().fold(0.0_f32, |m, v| m.max(v.abs()));
    let scale = 1.0 / most.max(f32::MIN_POSITIVE);
    image.data_mut().iter_mut().for_each(|v| *v = v.abs() * scale);
    image
}

fn write_blobs(path: &Path, blobs: &[Blob]) -> Outcome {
    Ok(tiepoint::files::write_atomically(path, |out| {
        writeln!(out, "x,y,response,sign")?;
        // The sign of keypoints: +1 is bright on dark.
        blobs.iter().try_for_each(|b| writeln!(out, "{},{},{:?},{}", b.x, b.y, b.response, -b.laplacian))
    })?)
}

/// Magnitudes in the image's type, as they are shown; derivatives as floats, which keep their sign.
fn gradient<T: Sobel + GpuPixel>(
    view: ImageView<'_, T>,
    part: Gradient,
    options: &SobelOptions,
    context: &Context,
) -> Outcome<AnyImage>
where
    Image<T>: Into<AnyImage>,
    T::Gradient: Into<f64> + Element,
{
    let signed = |image: Image<T::Gradient>| {
        let (size, channels) = (image.size(), image.channels());
        let values = image.into_vec().into_iter().map(|v| Into::<f64>::into(v) as f32).collect();
        Ok::<_, tiepoint::Error>(AnyImage::F32(Image::from_vec(values, size, channels)?))
    };
    Ok(match part {
        Gradient::Magnitude => on_device(
            view,
            context,
            |gpu, channels| GpuFilter::sobel_magnitude(gpu, options, channels),
            |cpu| sobel::magnitude(view, options, cpu),
        )?
        .into(),
        Gradient::Gx => signed(on_device(
            view,
            context,
            |gpu, channels| GpuFilter::sobel_x(gpu, options, channels),
            |cpu| sobel::x(view, options, cpu),
        )?)?,
        Gradient::Gy => signed(on_device(
            view,
            context,
            |gpu, channels| GpuFilter::sobel_y(gpu, options, channels),
            |cpu| sobel::y(view, options, cpu),
        )?)?,
    })
}
