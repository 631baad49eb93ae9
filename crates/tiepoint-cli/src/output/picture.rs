//! Pictures as results.

use crate::context::Context;
use crate::failure::Outcome;
use std::path::Path;
use tiepoint::image::{self, AnyImage, Georeference, Known, OutputFormat};

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
    image::write_known(path, picture, &Known { cpu: Some(&context.processor.cpu), ..*known })?;
    if known.place.is_none() {
        note_world_file(path, context);
    }
    Ok(())
}

/// Where the picture at `path` lies on a map, with a note if that is not read, or if GDAL uses another place.
pub(crate) fn place_of(path: &Path, context: &Context) -> Outcome<Option<Georeference>> {
    let place = image::read_georeference(path)?;
    // A world file names no coordinate system, which GDAL keeps elsewhere.
    if place.as_ref().is_none_or(|place| !place.has_system())
        && let Some(reason) = image::place_not_read(path)
    {
        let missing = if place.is_some() { "coordinate system" } else { "place on the map" };
        context.note(&format!("results have no {missing}: {} {reason}", path.display()));
    }
    if place.as_ref().is_some_and(|place| image::other_place(path, place)) {
        context.note(&format!(
            "{}: its .aux.xml file, which is not read, has another place on the map than the picture itself; GDAL and QGIS use \
             that one: make a GeoTIFF of it (gdal_translate)",
            path.display()
        ));
    }
    Ok(place)
}

/// Prints a note if a world file is beside a picture that was written without a place on the map.
pub(crate) fn note_world_file(path: &Path, context: &Context) {
    if let Some(world) = image::world_file(path) {
        let (path, world) = (path.display(), world.display());
        context.note(&format!(
            "{path}: the world file {world} was there before and does not belong to it; remove it, or name another file"
        ));
    }
}
