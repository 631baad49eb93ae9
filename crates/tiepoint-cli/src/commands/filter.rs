//! `tiepoint filter`: one filter on one image.

use crate::arguments::filter::{FilterArguments, FilterFiles, holds_floats, parse_kernel};
use crate::context::Context;
use crate::failure::Outcome;
use crate::input::Reader;
use crate::output::{Clock, Part, place_of, write_picture};
use serde_json::json;
use std::io::Write;
use std::path::Path;
use tiepoint::filter::any;
use tiepoint::filter::gauss::{GaussOptions, Taps};
use tiepoint::filter::hessian::Blob;
use tiepoint::image::{AnyImage, Known, OutputFormat};

pub(crate) fn run(filter: &FilterArguments, context: &Context) -> Outcome {
    let FilterFiles { input, output, limits, tiff, .. } = filter.files();
    let mut clock = Clock::start(&context.processor.cpu);
    let options = limits.options();
    let file =
        clock.time(Part::Read, || Reader { limits: options, cpu: &context.processor.cpu }.image(input))?;
    let file = if options.band.is_some() { file.seen_alone() } else { file };
    if file.valid()?.is_some() {
        let input = input.display();
        context.note(&format!(
            "{input}: transparent pixels and those without data are filtered like others, and change those around them"
        ));
    }
    let place = place_of(input, context)?.filter(|place| {
        let is_tiff = OutputFormat::of(output).is_ok_and(|format| format == OutputFormat::Tiff);
        is_tiff || place.transform().is_some()
    });
    let filtered = clock.time(Part::Compute, || apply(filter, &file.image, context))?;
    let filtered = file.filtered(filtered)?;
    // The bands' metadata, such as units, still holds for smoothed values.
    let bands = file.bands.as_deref().filter(|_| matches!(filter, FilterArguments::Gauss { .. }));
    clock.time(Part::Write, || {
        let about = tiff.known();
        let known =
            Known { place: place.as_ref(), bands, compression: about.compression, ..filtered.known() };
        write_picture(output, &filtered.image, &known, context)
    })?;
    let filtered = filtered.image;
    context.print_notes();
    let size = filtered.size();
    context.say(&format!("{}: {size}, {:.1} ms", output.display(), clock.compute() * 1e3));
    context.report(|| {
        json!({
            "image": input.display().to_string(),
            "output": output.display().to_string(),
            "filter": filter.name(),
            "width": size.width,
            "height": size.height,
            "channels": filtered.channels(),
            "device": context.take_device(),
            "threads": context.processor.cpu.threads(),
            "seconds": clock.seconds(&context.processor.cpu),
        })
    });
    Ok(())
}

/// The filtered image. The signed response of `hessian` becomes its magnitude unless the output's format holds signs.
fn apply(filter: &FilterArguments, image: &AnyImage, context: &Context) -> Outcome<AnyImage> {
    let (image, processor) = (image.view(), &context.processor);
    let FilterFiles { output, border, .. } = filter.files();
    let made = match filter {
        FilterArguments::Gauss { sigma, size, power_of_two, .. } => {
            let taps = Taps::of(*sigma, *size, *power_of_two);
            any::gauss(image, &GaussOptions::default().with_taps(taps).with_border(*border), processor)?
        }
        FilterArguments::Sobel { part, .. } => any::sobel(image, *part, *border, processor)?,
        FilterArguments::Hessian { options, blobs, .. } => {
            let options = options.options().with_border(*border);
            let response = any::hessian(image, &options, processor)?.into_host()?;
            if let Some(path) = blobs {
                write_blobs(path, &any::blobs(image, &options, processor)?)?;
            }
            return Ok(if holds_floats(output) { response } else { magnitude(response) });
        }
        FilterArguments::Convolve { kernel, normalise, float, .. } => {
            let kernel = parse_kernel(kernel, *normalise)?;
            match float {
                true => any::convolve_f32(image, &kernel, *border, processor)?,
                false => any::convolve(image, &kernel, *border, processor)?,
            }
        }
    };
    Ok(made.into_host()?)
}

/// The magnitudes of a float image, scaled so that the greatest is 1, for formats without signs.
pub(super) fn magnitude(mut image: AnyImage) -> AnyImage {
    if let AnyImage::F32(image) = &mut image {
        let most = image.data().iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        let scale = 1.0 / most.max(f32::MIN_POSITIVE);
        image.data_mut().iter_mut().for_each(|v| *v = v.abs() * scale);
    }
    image
}

fn write_blobs(path: &Path, blobs: &[Blob]) -> Outcome {
    Ok(tiepoint::files::write_atomically(path, |out| {
        writeln!(out, "x,y,response,sign")?;
        // The same sign as of keypoints: +1 is bright on dark.
        blobs.iter().try_for_each(|b| writeln!(out, "{},{},{:?},{}", b.x, b.y, b.response, -b.laplacian))
    })?)
}
