//! The features of pictures on the device of the context.

use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::input::Picture;
use std::path::Path;
use tiepoint::feature::{Features, Finder};
use tiepoint::image::Image;

/// The features of the picture in the file `path`.
pub(super) fn find(picture: &Picture, path: &Path, finder: &Finder) -> Outcome<Features> {
    let found = finder.detect(picture.grey(), picture.mask.as_ref().map(Image::view));
    found.map_err(|e| Failure::from(e).about(path.display()))
}

/// The features of several pictures, which are searched together as far as possible.
pub(super) fn find_together(pictures: &[(&Picture, &Path)], finder: &Finder) -> Vec<Outcome<Features>> {
    let found = finder.detect_batch(pictures.iter().map(|(picture, _)| picture.grey()));
    let named = found.into_iter().zip(pictures);
    named.map(|(found, (_, path))| found.map_err(|e| Failure::from(e).about(path.display()))).collect()
}

/// Whether a GPU can search two pictures at once: they must have the same type and size, no masks, and not be too
/// large.
pub(super) fn together(a: &Picture, b: &Picture, finder: &Finder, context: &Context) -> bool {
    let (grey_a, grey_b) = (a.grey(), b.grey());
    let same_type = std::mem::discriminant(grey_a) == std::mem::discriminant(grey_b);
    let alike = same_type && grey_a.size() == grey_b.size() && a.mask.is_none() && b.mask.is_none();
    alike && context.processor.may_have_gpu() && finder.parts() == 1
}
