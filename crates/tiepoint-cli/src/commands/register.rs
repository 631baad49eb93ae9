//! `tiepoint register`: MOVING warped onto REFERENCE.

use super::r#match::{Asked, Found};
use crate::arguments::matching::ModelName;
use crate::arguments::register::RegisterArguments;
use crate::context::Context;
use crate::draw::{Canvas, overlay};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Picture};
use crate::output::{Clock, Object, Part};
use tiepoint::image::{self, AnyImage};
use tiepoint::register::{Warped, warp_onto};

pub(crate) fn run(arguments: &RegisterArguments, context: &Context) -> Outcome {
    if matches!(arguments.matching.model, ModelName::Fundamental | ModelName::None) {
        return Err(Failure::usage(
            "--model: expected homography, affine or similarity; nothing else says where a pixel goes",
        ));
    }
    let pictures = [&arguments.output, &arguments.overlay, &arguments.draw];
    pictures.iter().filter_map(|p| p.as_deref()).try_for_each(input::writable_image)?;
    let mut clock = Clock::start(&context.processor.cpu);
    let asked = Asked { detector: &arguments.detector, matching: &arguments.matching };
    // A is MOVING, B is REFERENCE: the matrix leads from MOVING to REFERENCE.
    let found = asked.run([&arguments.moving, &arguments.reference], true, &mut clock, context)?;
    context.progress.say("warping");
    let warped = clock.time(Part::Compute, || warped(&found, arguments, context))?;
    clock.time(Part::Write, || write(arguments, &found, &warped))?;
    let between = format!("{} on {}", arguments.moving.display(), arguments.reference.display());
    context.say(&format!("{between}: {}, {:.1} ms", found.summary(), clock.compute() * 1e3))?;
    context.report(|| {
        let object = Object::new()
            .text("reference", &arguments.reference.display().to_string())
            .text("moving", &arguments.moving.display().to_string());
        let size = found.features[1].image;
        found
            .describe(object, &asked, context)
            .count("width", size.width)
            .count("height", size.height)
            .number("covered", covered(&warped))
            .object("seconds", &clock.seconds(&context.processor.cpu))
    })
}

/// The image as it is in its file.
fn original(picture: &Picture) -> &AnyImage {
    picture.original.as_ref().unwrap_or(&picture.image)
}

/// MOVING on the pixels of REFERENCE.
fn warped(found: &Found, arguments: &RegisterArguments, context: &Context) -> Outcome<Warped> {
    let reference_from_moving = found.tie.b_from_a.ok_or_else(|| Failure::work("no model was found"))?;
    let [moving, reference] = [0, 1].map(|i| original(&found.pictures[i]));
    let interpolation = arguments.interpolation.into();
    Ok(warp_onto(moving, reference.size(), &reference_from_moving, interpolation, &context.processor)?)
}

/// The share of REFERENCE that MOVING covers.
fn covered(warped: &Warped) -> f64 {
    let covered = warped.covered.data();
    covered.iter().filter(|v| **v != 0).count() as f64 / covered.len().max(1) as f64
}

fn write(arguments: &RegisterArguments, found: &Found, warped: &Warped) -> Outcome {
    if let Some(path) = &arguments.output {
        image::write(path, &warped.image)?;
    }
    if let Some(path) = &arguments.overlay {
        let reference = Canvas::of(original(&found.pictures[1]));
        let picture = overlay(reference, &Canvas::of(&warped.image), &warped.covered, arguments.blend);
        image::write(path, &picture.into_image())?;
    }
    arguments.draw.as_deref().map_or(Ok(()), |path| found.draw(path))
}
