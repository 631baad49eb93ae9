//! Pictures as results.

use crate::context::Context;
use crate::failure::Outcome;
use std::path::Path;
use tiepoint::image::{self, AnyImage, Known, OutputFormat};

/// Writes a picture with what is known about it, and prints a note if values were clamped.
pub(crate) fn write_picture(
    path: &Path,
    picture: &AnyImage,
    known: &Known<'_>,
    context: &Context,
) -> Outcome {
    let cut = OutputFormat::of(path)?.cuts(picture);
    if cut > 0 {
        let (shown, all) = (path.display(), picture.size().area() * picture.channels());
        context.note(&format!(
            "{shown}: {cut} of {all} values lie outside 0 to 1 and are cut to it; .tif, .pfm, .exr and .npy keep them"
        ));
    }
    Ok(image::write_known(path, picture, &Known { cpu: Some(&context.processor.cpu), ..*known })?)
}
