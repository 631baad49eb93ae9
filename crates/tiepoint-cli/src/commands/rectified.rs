//! Two photographs rectified by their tie points, for `rectify` and `stereo`: the focal lengths and their
//! source, the baseline, and the rectification.

use crate::arguments::rectify::CameraArguments;
use crate::failure::{Failure, Outcome};
use serde_json::{Value, json};
use std::path::Path;
use tiepoint::ErrorKind;
use tiepoint::device::Cpu;
use tiepoint::geometry::calibration::Projection;
use tiepoint::geometry::rectify::{
    FromTiePoints, OutputFrame, Rectification, SelfCalibrationOptions, from_tie_points,
};
use tiepoint::geometry::{Correspondence, Model};
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

pub(crate) struct Tied<'a> {
    pub(crate) paths: [&'a Path; 2],
    pub(crate) sizes: [Size; 2],
    pub(crate) tie: &'a TiePoints,
    pub(crate) pairs: &'a [Correspondence],
}

impl Tied<'_> {
    /// The rectified pair. The focal lengths are the given ones, or else those in the camera data of the files, or else
    /// found from the tie points.
    pub(crate) fn rectified(
        &self,
        cameras: CameraArguments,
        frame: OutputFrame,
        cpu: &Cpu,
    ) -> Outcome<(FromTiePoints, FocalSource)> {
        let Some(Model::Fundamental(f)) = self.tie.b_from_a else {
            return Err(Failure::work("the tie points gave no epipolar geometry"));
        };
        let inliers: Vec<_> = self.tie.inliers.iter().map(|&i| self.pairs[i]).collect();
        let by =
            |options: &SelfCalibrationOptions| from_tie_points(&f, &inliers, self.sizes, options, frame, cpu);
        let found = SelfCalibrationOptions::default();
        let exif = match cameras.focal {
            Some(_) => [None; 2],
            None => self.exif()?,
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

    /// The focal lengths in the files, in pixels.
    fn exif(&self) -> Outcome<[Option<f64>; 2]> {
        let mut focal = [None; 2];
        for ((focal, path), size) in focal.iter_mut().zip(self.paths).zip(self.sizes) {
            *focal = Metadata::read(path)?.focal_px(size);
        }
        Ok(focal)
    }
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
    let weak = "the focal length is weakly determined: found from two pictures alone it can be wrong by two or three times, \
                and depth with it; --focal PX gives it";
    let weak = match source {
        FocalSource::TiePoints { refused: Some(px) } => Some(format!(
            "the focal length in the camera data, {px:.0} px, fits no rectification by these tie points, so their geometry may be wrong; {weak}"
        )),
        FocalSource::TiePoints { refused: None } => Some(weak.to_owned()),
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
