//! `tiepoint register`: MOVING warped onto REFERENCE.

use super::matched_pair::{MatchedPair, PairSearch, write_model};
use super::report::{self, Page, file_name};
use crate::arguments::register::RegisterArguments;
use crate::context::Context;
use crate::draw::{Canvas, overlay};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Clock, Part, write_picture};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tiepoint::geometry::warp::WarpOptions;
use tiepoint::image::{self, AnyImage, FileImage, Image, Known, OutputFormat};
use tiepoint::register::{Warped, covered_by, warp_onto};
use tiepoint_report::{Section, View};

pub(crate) fn run(arguments: &RegisterArguments, context: &Context) -> Outcome {
    let mut clock = Clock::start(&context.processor.cpu);
    let search = PairSearch::new(&arguments.pair.detector, &arguments.pair.matching).exchanged();
    // A is MOVING, the second in the command line, B is REFERENCE: the matrix leads from MOVING to REFERENCE.
    let pair = search.run([&arguments.moving, &arguments.reference], true, &mut clock, context)?;
    context.progress.say("warping");
    let file = clock.time(Part::Compute, || warped(&pair, arguments, context))?;
    context.print_notes();
    let covered = file.shown.clone().unwrap_or_else(|| Image::filled(file.image.size(), 1, 255));
    let warped = Warped { image: file.seen()?.into_image(), covered };
    clock.time(Part::Write, || write(arguments, &pair, &file, &warped, context))?;
    let described = describe(arguments, &pair, &warped, &search, context);
    let between = format!("{} on {}", arguments.moving.display(), arguments.reference.display());
    context.say(&format!("{between}: {}, {:.1} ms", pair.summary(), clock.compute() * 1e3));
    let before = clock.clone();
    report::finish(&arguments.pair.report, &described, clock, context, || {
        page(arguments, &pair, &warped, &described, &before)
    })
}

/// For programs: all but the times.
fn describe(
    arguments: &RegisterArguments,
    pair: &MatchedPair,
    warped: &Warped,
    search: &PairSearch<'_>,
    context: &Context,
) -> Value {
    let names = json!({
        "reference": arguments.reference.display().to_string(),
        "moving": arguments.moving.display().to_string(),
    });
    let size = pair.features[1].image;
    let result = json!({ "width": size.width, "height": size.height, "covered": covered(warped) });
    output::joined([names, pair.describe(search, context), result])
}

fn page<'a>(
    arguments: &RegisterArguments,
    pair: &'a MatchedPair,
    warped: &'a Warped,
    described: &Value,
    clock: &Clock,
) -> Page<'a> {
    let names = || [&arguments.moving, &arguments.reference].map(|path| file_name(path));
    let [moving, reference] = names();
    let laid = Section::new("One on the other")
        .tile("covered", format!("{:.1} %", 100.0 * covered(warped)))
        .view(View::Registration(report::registration_view(pair, warped, names())));
    let matches = report::matches_view(pair, names(), arguments.pair.detector.detector);
    let matches = report::tiles(Section::new("Matches"), pair, clock)
        .view(View::Matches(matches))
        .figures(described.clone());
    (format!("{moving} on {reference}"), pair.summary(), vec![laid, matches])
}

/// MOVING on the pixels of REFERENCE.
fn warped(pair: &MatchedPair, arguments: &RegisterArguments, context: &Context) -> Outcome<FileImage> {
    let reference_from_moving = pair.tie.b_from_a.ok_or_else(|| Failure::work("no model was found"))?;
    let (moving, size) = (pair.pictures[0].file(), pair.pictures[1].seen().size());
    let moving = moving.ok_or_else(|| Failure::work("the moving image was not kept"))?;
    let options = WarpOptions::default().with_interpolation(arguments.interpolation);
    let on = |image: &AnyImage, fill: f32| {
        warp_onto(image.view(), size, &reference_from_moving, &options.with_fill(fill), &context.processor)
    };
    let covered = covered_by(moving.image.size(), size, &reference_from_moving, &context.processor)?;
    Ok(moving.resampled(&covered, |image, fill| Ok(on(image, fill)?.image))?)
}

/// The share of REFERENCE that MOVING covers.
fn covered(warped: &Warped) -> f64 {
    let covered = warped.covered.data();
    covered.iter().filter(|v| **v != 0).count() as f64 / covered.len().max(1) as f64
}

/// The file beside an image that says where it lies on a map: the name of the image with the first and last letter of its
/// extension and a w, or .wld.
fn world_file(image: &Path) -> Option<PathBuf> {
    let extension = image.extension()?.to_str()?.to_lowercase();
    let letters = [extension.chars().next()?, extension.chars().last()?, 'w'];
    let names = [letters.iter().collect(), "wld".to_owned()];
    names.iter().map(|name| image.with_extension(name)).find(|path| path.is_file())
}

/// The warped image, on REFERENCE's place on the map where that has one.
fn write_warped(path: &Path, reference: &Path, warped: &FileImage, context: &Context) -> Outcome {
    let place = image::read_georeference(reference)?;
    let holds = OutputFormat::of(path)? == OutputFormat::Tiff;
    if place.is_some() && !holds {
        let (shown, reference) = (path.display(), reference.display());
        context.note(&format!("{shown} does not hold the place of {reference} on the map; a .tif would"));
    }
    if let Some(world) = world_file(reference).filter(|_| place.is_none()) {
        let (world, shown) = (world.display(), path.display());
        context.note(&format!("{world} says where {shown} lies on the map, too: copy it beside that"));
    }
    write_picture(
        path,
        &warped.image,
        &Known { place: place.as_ref().filter(|_| holds), ..warped.known() },
        context,
    )
}

fn write(
    arguments: &RegisterArguments,
    pair: &MatchedPair,
    file: &FileImage,
    warped: &Warped,
    context: &Context,
) -> Outcome {
    if let Some(path) = &arguments.output {
        write_warped(path, &arguments.reference, file, context)?;
    }
    if let Some(path) = &arguments.overlay {
        let reference = Canvas::of(pair.pictures[1].seen(), None)?;
        let moved = Canvas::of(&warped.image, Some(&warped.covered))?;
        let picture = overlay(reference, &moved, &warped.covered, arguments.blend);
        image::write(path, &picture.into_image())?;
    }
    if let Some((path, model)) = arguments.output_model.as_ref().zip(pair.tie.b_from_a) {
        write_model(path, &model)?;
    }
    arguments.draw.as_deref().map_or(Ok(()), |path| pair.draw(path))
}
