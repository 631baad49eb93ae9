//! The features of pictures on the device of the context.

use crate::arguments::detector::DetectorArguments;
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::Picture;
use crate::output::{Clock, Part, fill};
use std::path::{Path, PathBuf};
use tiepoint::feature::{Detector, Features, Finder};
use tiepoint::image::{AnyImage, Image};

/// Reads the image at `path` and finds its features; `colour` keeps the image as it is in the file too.
pub(super) fn read_and_find(
    path: &Path,
    colour: bool,
    arguments: &DetectorArguments,
    mask: Option<&str>,
    detector: &Detector,
    finder: &mut Finder,
    clock: &mut Clock,
    context: &Context,
) -> Outcome<(Picture, Features)> {
    let mask = mask.map(|m| PathBuf::from(fill(m, path)));
    let cpu = &context.processor.cpu;
    let picture = Picture::read(path, colour, mask.as_deref(), arguments.range, clock, cpu)?;
    let features = clock.time(Part::Compute, || find(&picture, path, detector, finder, context))?;
    Ok((picture, features))
}

/// The features of a picture of the file `path`. What is too large for a GPU is done by the CPU, with the same result.
pub(super) fn find(
    picture: &Picture,
    path: &Path,
    detector: &Detector,
    finder: &mut Finder,
    context: &Context,
) -> Outcome<Features> {
    let (image, mask) = (&picture.image, picture.mask.as_ref().map(Image::view));
    let processor = &context.processor;
    let found = match finder.detect(image, mask, processor) {
        Err(error) if error.is_device_limit() => {
            processor.note(format!("{error}; the CPU takes this image"));
            detector.detect(image, mask, &processor.cpu.clone().into())
        }
        found => found,
    };
    found.map_err(|e| Failure::from(e).about(path.display()))
}

/// The features of several pictures, or `None` when each is to be searched alone, which tells which of them fails.
pub(super) fn find_together(
    pictures: &[&Picture],
    finder: &mut Finder,
    context: &Context,
) -> Option<Vec<Features>> {
    let images: Vec<&AnyImage> = pictures.iter().map(|p| &p.image).collect();
    let found = finder.detect_many(&images, &context.processor).ok()?;
    Some(found).filter(|_| finder.parts() == 1)
}

/// Whether a GPU searches two pictures at once: they must be of one type and size, without masks, and not be too large.
pub(super) fn together(a: &Picture, b: &Picture, finder: &Finder, context: &Context) -> bool {
    let same_type = std::mem::discriminant(&a.image) == std::mem::discriminant(&b.image);
    let alike = same_type && a.image.size() == b.image.size() && a.mask.is_none() && b.mask.is_none();
    alike && context.processor.gpu.is_some() && finder.parts() == 1
}
