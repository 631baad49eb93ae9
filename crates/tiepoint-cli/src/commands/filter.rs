//! `tiepoint filter`: one filter on one image.

use crate::arguments::Filter;
use crate::failure::Outcome;
use crate::input;
use crate::report::{Clock, Object, Part};
use crate::session::Session;
use std::path::Path;
use tiepoint::filter::gauss::{GaussOptions, Taps, gauss};
use tiepoint::for_any_image;
use tiepoint::image::{self, AnyImage, ReadOptions};

pub(crate) fn run(filter: &Filter, session: &Session) -> Outcome {
    let (name, input, output) = match filter {
        Filter::Gauss { input, output, .. } => ("gauss", input, output),
        Filter::Sobel { input, output, .. } => ("sobel", input, output),
        Filter::Hessian { input, output, .. } => ("hessian", input, output),
        Filter::Convolve { input, output, .. } => ("convolve", input, output),
    };
    input::writable_image(output)?;
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
        _ => Err(crate::failure::Failure::work("not yet")),
    }
}
