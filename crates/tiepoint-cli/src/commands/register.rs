//! `tiepoint register`: MOVING warped onto REFERENCE.

use super::r#match::{Asked, Found};
use crate::arguments::matching::ModelName;
use crate::arguments::register::RegisterArguments;
use crate::context::Context;
use crate::draw::{Canvas, overlay};
use crate::failure::{Failure, Outcome};
use crate::input::{self, Picture};
use crate::output::{Clock, Object, Part};
use tiepoint::geometry::Homography;
use tiepoint::geometry::warp::coverage;
use tiepoint::image::{self, AnyImage, Image};
use tiepoint::register::lay;

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
    let laid = clock.time(Part::Compute, || Laid::of(&found, arguments, context))?;
    clock.time(Part::Write, || write(arguments, &found, &laid))?;
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
            .number("covered", laid.share())
            .object("seconds", &clock.seconds(&context.processor.cpu))
    })
}

/// The image as it is in its file.
fn original(picture: &Picture) -> &AnyImage {
    picture.original.as_ref().unwrap_or(&picture.image)
}

/// MOVING on the pixels of REFERENCE.
#[derive(Debug)]
struct Laid {
    image: AnyImage,
    /// 0 where MOVING shows nothing.
    valid: Image<u8>,
}

impl Laid {
    fn of(found: &Found, arguments: &RegisterArguments, context: &Context) -> Outcome<Self> {
        let no_model = || Failure::work("no model was found");
        let model = found.tie.model.ok_or_else(no_model)?;
        let [moving, reference] = [0, 1].map(|i| original(&found.pictures[i]));
        let image = lay(moving, reference, &model, arguments.interpolation.into(), &context.processor)?;
        let back = model.homography().as_ref().and_then(Homography::inverse).ok_or_else(no_model)?;
        let valid = coverage(moving.size(), &back, reference.size(), &context.processor.cpu)?;
        Ok(Self { image, valid })
    }

    /// The share of the reference that is covered.
    fn share(&self) -> f64 {
        let covered = self.valid.data().iter().filter(|v| **v != 0).count();
        covered as f64 / self.valid.data().len().max(1) as f64
    }
}

fn write(arguments: &RegisterArguments, found: &Found, laid: &Laid) -> Outcome {
    if let Some(path) = &arguments.output {
        image::write(path, &laid.image)?;
    }
    if let Some(path) = &arguments.overlay {
        let reference = Canvas::of(original(&found.pictures[1]));
        let picture = overlay(reference, &Canvas::of(&laid.image), &laid.valid, arguments.blend);
        image::write(path, &picture.into_image())?;
    }
    arguments.draw.as_deref().map_or(Ok(()), |path| found.draw(path))
}
