//! `tiepoint filter`: one filter on one image.

use crate::arguments::filter::{FilterArguments, Gradient};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::output::{Clock, Object, Part};
use std::io::Write;
use std::path::Path;
use tiepoint::device::Cpu;
use tiepoint::device::gpu::{Element, Gpu};
use tiepoint::filter::convolve::{ConvolveOptions, Kernel, convolve};
use tiepoint::filter::gauss::{GaussOptions, Taps, gauss};
use tiepoint::filter::gpu::GpuFilter;
use tiepoint::filter::hessian::{self, Blob, GpuBlobs, HessianOptions};
use tiepoint::filter::sobel::{self, Sobel, SobelOptions};
use tiepoint::for_any_image;
use tiepoint::image::gpu::{GpuImage, GpuPixel};
use tiepoint::image::{self, AnyImage, Image, ImageView, OutputFormat, ReadOptions, Size};

pub(crate) fn run(filter: &FilterArguments, context: &Context) -> Outcome {
    let (name, input, output) = match filter {
        FilterArguments::Gauss { input, output, .. } => ("gauss", input, output),
        FilterArguments::Sobel { input, output, .. } => ("sobel", input, output),
        FilterArguments::Hessian { input, output, .. } => ("hessian", input, output),
        FilterArguments::Convolve { input, output, .. } => ("convolve", input, output),
    };
    input::writable_image(output)?;
    keeps_sign(filter, output)?;
    if let FilterArguments::Hessian { blobs: Some(path), .. } = filter {
        input::writable(path)?;
    }
    let mut clock = Clock::start(&context.processor.cpu);
    let image = clock.time(Part::Read, || image::read(input, &ReadOptions::default()))?;
    let filtered = clock.time(Part::Compute, || apply(filter, &image, context))?;
    clock.time(Part::Write, || image::write(output, &filtered))?;
    let size = filtered.size();
    context.say(&format!("{}: {size}, {:.1} ms", output.display(), clock.compute() * 1e3))?;
    context.report(|| {
        Object::new()
            .text("image", &path_text(input))
            .text("output", &path_text(output))
            .text("filter", name)
            .count("width", size.width)
            .count("height", size.height)
            .count("channels", filtered.channels())
            .text("device", &context.device())
            .count("threads", context.processor.cpu.threads())
            .object("seconds", &clock.seconds(&context.processor.cpu))
    })
}

/// Derivatives are negative as often as not, which most formats cannot hold.
fn keeps_sign(filter: &FilterArguments, output: &Path) -> Outcome {
    let signed = matches!(
        filter,
        FilterArguments::Sobel { part: Gradient::Gx | Gradient::Gy, .. }
            | FilterArguments::Convolve { float: true, .. }
    );
    if signed && !holds_floats(output) {
        let path = output.display();
        return Err(Failure::usage(format!(
            "{path}: cannot hold signs and fractions (expected .tif or .pfm)"
        )));
    }
    Ok(())
}

fn holds_floats(output: &Path) -> bool {
    matches!(OutputFormat::of(output), Ok(OutputFormat::Tiff | OutputFormat::Pfm))
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn apply(filter: &FilterArguments, image: &AnyImage, context: &Context) -> Outcome<AnyImage> {
    let cpu = &context.processor.cpu;
    match filter {
        FilterArguments::Gauss { sigma, size, power_of_two, border, .. } => {
            let taps = match (*sigma, *size) {
                (_, Some(n)) if *power_of_two => Taps::PowerOfTwo(n),
                (Some(s), Some(n)) => Taps::SigmaAndSize(s, n),
                (None, Some(n)) => Taps::Size(n),
                (Some(s), None) => Taps::Sigma(s),
                (None, None) => Taps::default(),
            };
            let options = GaussOptions { taps, border: *border };
            Ok(for_any_image!(image, view => on_device(
                view,
                context,
                |gpu, channels| GpuFilter::gauss(gpu, &options, channels),
                |cpu| gauss(view, &options, cpu),
            )?.into()))
        }
        FilterArguments::Sobel { part, border, .. } => {
            let options = SobelOptions { border: *border };
            for_any_image!(image, view => gradient(view, *part, &options, context))
        }
        FilterArguments::Hessian { output, blobs, threshold, weight, border, .. } => {
            let start = HessianOptions::default();
            let (threshold, weight) = (threshold.unwrap_or(start.threshold), weight.unwrap_or(start.weight));
            let options = HessianOptions { threshold, weight, border: *border };
            let grey = image::grey(image.clone(), cpu)?;
            let response = for_any_image!(&grey, view => on_device(
                view,
                context,
                |gpu, _| GpuFilter::hessian(gpu, &options),
                |cpu| hessian::response(view, &options, cpu),
            )?);
            if let Some(path) = blobs {
                write_blobs(path, &for_any_image!(&grey, view => find_blobs(view, &options, context)?))?;
            }
            Ok(AnyImage::F32(if holds_floats(output) { response } else { magnitude(response) }))
        }
        FilterArguments::Convolve { kernel, normalise, float, border, .. } => {
            let kernel = parse_kernel(kernel, *normalise)?;
            let options = ConvolveOptions { border: *border };
            if *float {
                let out: Image<f32> =
                    for_any_image!(image, view => convolved(view, &kernel, &options, context)?);
                return Ok(out.into());
            }
            Ok(for_any_image!(image, view => same_type(view, &kernel, &options, context)?))
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
            context.note(&format!("{error}; the CPU takes this image"));
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

/// Rows parted by semicolons or lines, values by commas or blanks; or a file of such.
fn parse_kernel(text: &str, normalise: bool) -> Outcome<Kernel> {
    let file = Path::new(text).is_file().then(|| std::fs::read_to_string(text));
    let text = match file {
        Some(read) => read.map_err(|e| Failure::work(format!("{text}: {e}")))?,
        None => text.to_owned(),
    };
    let wrong = |what: String| {
        Failure::usage(format!("--kernel: {what} (expected rows such as \"0,1,0;1,4,1;0,1,0\")"))
    };
    let mut rows = Vec::new();
    for row in text.split([';', '\n']).map(str::trim).filter(|r| !r.is_empty()) {
        let words = row.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
        let values: Result<Vec<f32>, _> = words.map(|w| w.parse().map_err(|_| w.to_owned())).collect();
        rows.push(values.map_err(|w| wrong(format!("{w:?} is no number")))?);
    }
    let width = rows.first().map_or(0, Vec::len);
    if rows.iter().any(|r| r.len() != width) {
        return Err(wrong("its rows are of different length".to_owned()));
    }
    let size = Size::new(width, rows.len());
    let mut weights = rows.concat();
    if normalise {
        let sum: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        if sum.abs() < 1e-9 {
            return Err(wrong("a sum of 0 cannot be normalised".to_owned()));
        }
        weights.iter_mut().for_each(|w| *w = (f64::from(*w) / sum) as f32);
    }
    Ok(Kernel::new(weights, size)?)
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
