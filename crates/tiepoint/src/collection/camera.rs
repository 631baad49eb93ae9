//! The cameras of a collection: which photographs share one, and what is known of it.
//!
//! The rules are COLMAP's. Photographs share a camera when make, model, focal length and size are the same; one whose
//! EXIF data lack any of these has a camera of its own. The focal length comes from the EXIF data of the first that tells
//! it in pixels; without it 1.2 times the longer side is assumed. The principal point is the centre of the image. A
//! cropped photograph, whose focal length no longer holds, shares no camera with one that was not cropped.

use crate::image::{Focal, Metadata, Size};
use std::collections::HashMap;

/// A camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Camera {
    /// The size of its images.
    pub size: Size,
    /// Its focal length in pixels.
    pub focal_px: f64,
    /// Whether the focal length is known; otherwise it is a guess.
    pub focal_known: bool,
}

/// The focal length that is assumed where it is not known, over the longer side.
const GUESS: f64 = 1.2;

impl Camera {
    pub(super) fn of(metadata: &Metadata, size: Size) -> Self {
        let known = metadata.focal_px(size);
        let guess = GUESS * size.width.max(size.height) as f64;
        Self { size, focal_px: known.unwrap_or(guess), focal_known: known.is_some() }
    }
}

/// Make, model, focal length, size, and whether it was cropped: photographs in which these are equal share a camera.
fn key(metadata: &Metadata, size: Size) -> Option<(String, String, u64, Size, bool)> {
    let focal = match metadata.focal? {
        Focal::Film35(focal) | Focal::Lens { focal, .. } | Focal::LensOnly(focal) => focal,
    };
    Some((metadata.make.clone()?, metadata.model.clone()?, focal.to_bits(), size, metadata.is_cropped(size)))
}

/// The cameras, in the order in which photographs first use them, and for each photograph the index of its camera.
pub(super) fn cameras<'m>(
    photographs: impl IntoIterator<Item = (&'m Metadata, Size)>,
) -> (Vec<Camera>, Vec<usize>) {
    let (mut cameras, mut of, mut known) = (Vec::new(), Vec::new(), HashMap::new());
    for (metadata, size) in photographs {
        let camera = Camera::of(metadata, size);
        let mut add = || {
            cameras.push(camera);
            cameras.len() - 1
        };
        let index = match key(metadata, size) {
            Some(key) => *known.entry(key).or_insert_with(add),
            None => add(),
        };
        if camera.focal_known && !cameras[index].focal_known {
            cameras[index] = camera;
        }
        of.push(index);
    }
    (cameras, of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_by(model: &str, focal: Focal) -> Metadata {
        let (make, model) = (Some("Acme".into()), Some(model.into()));
        Metadata { make, model, focal: Some(focal), ..Metadata::default() }
    }

    #[test]
    fn photographs_of_one_camera_share_it() {
        let [wide, tele] = [28.0, 100.0].map(|focal| taken_by("A", Focal::Film35(focal)));
        let none = Metadata::default();
        let (large, small) = (Size::new(400, 300), Size::new(40, 30));
        let photographs =
            [(&wide, large), (&tele, large), (&wide, large), (&wide, small), (&none, large), (&none, large)];
        let (cameras, of) = cameras(photographs);
        assert_eq!(of, [0, 1, 0, 2, 3, 4], "one camera for equal make, model, focal length and size");
        assert_eq!(cameras[3], Camera { size: large, focal_px: 480.0, focal_known: false }, "a guess");
        assert!(cameras[0].focal_known, "from the file");
    }

    #[test]
    fn a_focal_length_that_one_of_a_camera_tells_is_that_of_all_but_what_was_cropped() {
        let size = Size::new(640, 480);
        let unknown = taken_by("X1", Focal::LensOnly(10.0));
        let known = taken_by("X1", Focal::Lens { focal: 10.0, sensor_width: 6.4 });
        let cropped = Metadata { taken: Some([2560.0, 2560.0]), ..unknown.clone() };
        let photographs = [&unknown, &cropped, &known, &cropped].map(|metadata| (metadata, size));
        let (cameras, of) = cameras(photographs);
        assert_eq!(of, [0, 1, 0, 1], "what was cropped has a camera of its own");
        let first = (cameras[0].focal_px, cameras[0].focal_known);
        assert_eq!(first, (1000.0, true), "though the first has none");
        assert!(!cameras[1].focal_known, "the focal length is that of the whole picture");
    }
}
