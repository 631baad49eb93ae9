//! Two photographs rectified by their tie points, for `rectify` and `stereo`: the focal lengths and their
//! source, the baseline, and the rectification.

use crate::arguments::rectify::CameraArguments;
use crate::failure::{Failure, Outcome};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::ErrorKind;
use tiepoint::device::Cpu;
use tiepoint::feature::Keypoint;
use tiepoint::geometry::calibration::Projection;
use tiepoint::geometry::rectify::{
    FromTiePoints, OutputFrame, Rectification, SelfCalibrationOptions, WEAK_FOCAL, from_tie_points,
};
use tiepoint::image::{Metadata, Size};
use tiepoint::register::TiePoints;

/// The source of the focal lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FocalSource {
    Calibration,
    Option,
    Exif,
    /// With the focal length in the camera data, in pixels, if that fits no rectification.
    TiePoints {
        refused: Option<f64>,
    },
}

impl FocalSource {
    fn name(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Option => "option",
            Self::Exif => "exif",
            Self::TiePoints { .. } => "tie points",
        }
    }
}

/// The pair, rectified by its tie points between these keypoints. The focal lengths are the given ones, or
/// else those in the camera data of the files, or else found from the tie points.
pub(crate) fn rectified(
    (paths, sizes): ([&Path; 2], [Size; 2]),
    (tie, keypoints): (&TiePoints, [&[Keypoint]; 2]),
    cameras: CameraArguments,
    frame: OutputFrame,
    cpu: &Cpu,
) -> Outcome<(FromTiePoints, FocalSource)> {
    let none = || Failure::work("the tie points gave no epipolar geometry");
    let ties = tie.epipolar(keypoints).ok_or_else(none)?;
    let by = |options: &SelfCalibrationOptions| from_tie_points(&ties, sizes, options, frame, cpu);
    let found = SelfCalibrationOptions::default();
    let of_file = |side: usize| Ok::<_, Failure>(Metadata::read(paths[side])?.focal_px(sizes[side]));
    let exif = match cameras.focal {
        Some(_) => [None; 2],
        None => [of_file(0)?, of_file(1)?],
    };
    let (mut pair, source) = if cameras.focal.is_some() {
        (by(&found.with_focal(cameras.focal))?, FocalSource::Option)
    } else if exif != [None; 2] {
        match by(&found.with_focal(exif[0]).with_focal_right(exif[1])) {
            // The camera data may be wrong: of a photograph that was cropped, or taken with another lens.
            Err(error) if error.kind() == ErrorKind::Degenerate => {
                let refused = exif[0].or(exif[1]);
                (by(&found)?, FocalSource::TiePoints { refused })
            }
            pair => (pair?, FocalSource::Exif),
        }
    } else {
        (by(&found)?, FocalSource::TiePoints { refused: None })
    };
    if let Some(baseline) = cameras.baseline {
        pair.rectification.baseline = baseline;
    }
    Ok((pair, source))
}

/// A line with the focal length of the left camera and its source, and a second one if it is uncertain.
pub(crate) fn focal_lines(rectification: &Rectification, source: FocalSource) -> [Option<String>; 2] {
    if rectification.projection == Projection::Affine {
        let line = "rectified without perspective (affine cameras): disparities tell no metric depth";
        return [Some(line.to_owned()), None];
    }
    let focal = rectification.left.camera.focal[0];
    let from = match source {
        FocalSource::Calibration => return [None, None],
        FocalSource::Option => "as given",
        FocalSource::Exif => "from the camera data of the photographs (EXIF)",
        FocalSource::TiePoints { .. } => "found from the tie points",
    };
    let weak = format!("{WEAK_FOCAL}; --focal PX gives it");
    let weak = match source {
        FocalSource::TiePoints { refused: Some(px) } => Some(format!(
            "the focal length in the camera data, {px:.0} px, fits no rectification by these tie points, so their geometry may be wrong; {weak}"
        )),
        FocalSource::TiePoints { refused: None } => Some(weak),
        _ => None,
    };
    [Some(format!("focal length {focal:.0} px, {from}")), weak]
}

pub(crate) fn describe_focal(rectification: &Rectification, source: FocalSource) -> Value {
    match rectification.projection {
        Projection::Affine => json!({ "camera_focal": null, "focal_source": null }),
        Projection::Perspective => json!({
            "camera_focal": [rectification.left.camera.focal[0], rectification.right.camera.focal[0]],
            "focal_source": source.name(),
        }),
    }
}
