//! `tiepoint filter`: one filter on one image.

use crate::arguments::{Filter, Gradient};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::report::{Clock, Object, Part};
use crate::session::Session;
use std::path::Path;
use tiepoint::filter::gauss::{GaussOptions, Taps, gauss};
use tiepoint::filter::sobel::{self, Sobel, SobelOptions};
use tiepoint::for_any_image;
use tiepoint::image::{self, AnyImage, Image, ImageView, OutputFormat, ReadOptions};

pub(crate) fn run(filter: &Filter, session: &Session) -> Outcome {
    let (name, input, output) = match filter {
        Filter::Gauss { input, output, .. } => ("gauss", input, output),
        Filter::Sobel { input, output, .. } => ("sobel", input, output),
        Filter::Hessian { input, output, .. } => ("hessian", input, output),
        Filter::Convolve { input, output, .. } => ("convolve", input, output),
    };
    input::writable_image(output)?;
    keeps_sign(filter, output)?;
    let mut clock = Clock::start(&session.cpu);
    let image = clock.time(Part::Read, || image::read(input, &ReadOptions::default()))?;
    let filtered = clock.time(Part::Compute, || apply(filter, &image, session))?;
    clock.time(Part::Write, || image::write(output, &filtered))?;
    let size = filtered.size();
    session.say(&format!("{}: {size}, {:.1} ms", output.display(), clock.compute() * 1e3))?;
    session.report(|| {
        Object::new()
            .text("image", &path_text(input))
            .text("output", &path_text(output))
            .text("filter", name)
            .count("width", size.width)
            .count("height", size.height)
            .count("channels", filtered.channels())
            .text("device", &session.device())
            .count("threads", session.cpu.threads())
            .object("seconds", &clock.seconds(&session.cpu))
    })
}

/// Derivatives are negative as often as not, which most formats cannot hold.
fn keeps_sign(filter: &Filter, output: &Path) -> Outcome {
    let signed = matches!(filter, Filter::Sobel { part: Gradient::Gx | Gradient::Gy, .. });
    let floats = matches!(OutputFormat::of(output), Ok(OutputFormat::Tiff | OutputFormat::Pfm));
    if signed && !floats {
        let path = output.display();
        return Err(Failure::usage(format!(
            "{path}: a derivative has a sign (expected .tif or .pfm, which keep it)"
        )));
    }
    Ok(())
}

fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn apply(filter: &Filter, image: &AnyImage, session: &Session) -> Outcome<AnyImage> {
    let cpu = &session.cpu;
    match filter {
        Filter::Gauss { sigma, size, power_of_two, border, .. } => {
            let taps = match (*sigma, *size) {
                (_, Some(n)) if *power_of_two => Taps::PowerOfTwo(n),
                (Some(s), Some(n)) => Taps::SigmaAndSize(s, n),
                (None, Some(n)) => Taps::Size(n),
                (Some(s), None) => Taps::Sigma(s),
                (None, None) => Taps::default(),
            };
            let options = GaussOptions { taps, border: (*border).into() };
            Ok(for_any_image!(image, view => gauss(view, &options, cpu)?.into()))
        }
        Filter::Sobel { part, border, .. } => {
            let options = SobelOptions { border: (*border).into() };
            for_any_image!(image, view => gradient(view, *part, &options, session))
        }
        _ => Err(Failure::work("not yet")),
    }
}

/// Magnitudes in the image's type, as they are shown; derivatives as floats, which keep their sign.
fn gradient<T: Sobel>(
    view: ImageView<'_, T>,
    part: Gradient,
    options: &SobelOptions,
    session: &Session,
) -> Outcome<AnyImage>
where
    Image<T>: Into<AnyImage>,
    T::Gradient: Into<f64>,
{
    let signed = |image: Image<T::Gradient>| {
        let (size, channels) = (image.size(), image.channels());
        let values = image.into_vec().into_iter().map(|v| Into::<f64>::into(v) as f32).collect();
        Ok::<_, tiepoint::Error>(AnyImage::F32(Image::from_vec(values, size, channels)?))
    };
    Ok(match part {
        Gradient::Magnitude => sobel::magnitude(view, options, &session.cpu)?.into(),
        Gradient::Gx => signed(sobel::x(view, options, &session.cpu)?)?,
        Gradient::Gy => signed(sobel::y(view, options, &session.cpu)?)?,
    })
}
