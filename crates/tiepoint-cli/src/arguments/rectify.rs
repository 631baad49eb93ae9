//! `tiepoint rectify`.

use super::detector::DetectorArguments;
use super::matching::{MatchFlags, MatchingArguments};
use super::report::ReportArguments;
use super::table::{Given, flags};
use super::values::{OrNone, named};
use crate::failure::{Failure, Outcome};
use crate::output::{Files, check_folder, check_image};
use clap::Args;
use std::path::PathBuf;
use tiepoint::geometry::rectify::{OutputFrame, SelfCalibrationOptions};
use tiepoint::geometry::warp::Interpolation;
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::register::{Modality, Views};

#[derive(Debug, Args)]
pub(crate) struct RectifyArguments {
    /// The picture taken from the left
    pub(crate) left: PathBuf,
    /// The picture taken from the right
    pub(crate) right: PathBuf,
    /// The cameras: OpenCV .yml or .xml (M1 D1 M2 D2 R T), or Middlebury calib.txt; give it again for a second
    /// file (extrinsics). Without, the cameras are found from tie points
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Vec<PathBuf>,
    /// Take the rectification of the calibration file (R1 R2 P1 P2) instead of computing one
    #[arg(long)]
    pub(crate) stored: bool,
    /// Focal length of LEFT in pixels, where no calibration is given [default: found from the tie points]
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) focal: Option<f64>,
    /// The rectified left picture: .png .tif .pfm. It is made of RIGHT where that was taken from the left. Where it
    /// shows nothing of its input it is transparent (.png .tif) or NaN (floats), which `stereo` heeds
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_left: Option<PathBuf>,
    /// The rectified right picture
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_right: Option<PathBuf>,
    /// Where the left output shows its input: 255, else 0
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_left: Option<PathBuf>,
    /// Where the right output shows its input
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_right: Option<PathBuf>,
    /// What the rectified pair is, for `stereo --calibration`: a Middlebury calib.txt. From tie points alone the
    /// baseline is 1
    #[arg(long, value_name = "FILE")]
    pub(crate) output_calibration: Option<PathBuf>,
    /// A picture of both outputs with lines along rows
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// What of the input to show. Without a calibration all but `valid` may be wider than said here, so that
    /// disparities begin at 0 [default: input with a calibration, fit without]
    #[arg(long, value_parser = named::<OutputFrame>())]
    pub(crate) crop: Option<OutputFrame>,
    /// How values between pixels are found
    #[arg(long, value_parser = named::<Interpolation>(), default_value_t)]
    pub(crate) interpolation: Interpolation,
    #[command(flatten)]
    matches: Given<MatchFlags>,
    /// With a calibration the inlier distance is that of rows from their median difference.
    #[command(flatten)]
    robust: Given<RectifyRobustFlags>,
    /// As --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

impl RectifyArguments {
    /// Fails where flags contradict each other, or a result could not be written or would replace an input.
    pub(crate) fn check(&self) -> Outcome {
        if self.calibration.is_empty() && self.stored {
            return Err(Failure::usage("--stored: the rectification of which file? Give --calibration FILE"));
        }
        if !self.calibration.is_empty() && self.focal.is_some() {
            return Err(Failure::usage("--focal: the calibration file says what the focal lengths are"));
        }
        self.self_calibration().check()?;
        self.matching().options()?;
        self.detector.detector()?;
        self.report.check()?;
        let pictures =
            [&self.output_left, &self.output_right, &self.valid_left, &self.valid_right, &self.draw];
        let images = [self.left.as_path(), self.right.as_path()];
        let files = Files::default().reads(images).reads(&self.calibration);
        let files = files.reads(self.detector.masks(images, self.mask_b.as_deref()));
        files
            .writes(pictures.into_iter().chain([&self.output_calibration]).flatten())
            .writes(&self.report.report)
            .check()?;
        pictures.into_iter().flatten().try_for_each(|path| check_image(path))?;
        self.output_calibration.as_deref().map_or(Ok(()), check_folder)
    }

    /// How the cameras are found where no calibration is given.
    pub(crate) fn self_calibration(&self) -> SelfCalibrationOptions {
        SelfCalibrationOptions::default().with_focal(self.focal)
    }

    /// With a calibration no model is estimated, because the cameras are known; without, matches must agree with a
    /// fundamental matrix.
    pub(crate) fn matching(&self) -> MatchingArguments {
        MatchingArguments {
            model: OrNone(self.calibration.is_empty().then_some(ModelKind::Fundamental)),
            matches: self.matches.clone(),
            robust: self.robust.with_defaults_of(),
            no_rematch: false,
            views: Views::Auto,
            modality: Modality::Same,
            mask_b: self.mask_b.clone(),
        }
    }

    /// How far a tie point may lie from its epipolar line; with a calibration, how far its difference of rows from the
    /// median of all.
    pub(crate) fn inlier_distance(&self) -> f64 {
        self.robust.options().threshold_px
    }
}

flags! {
    /// The options of estimation as flags: points that correspond must lie within a pixel of one row.
    RectifyRobustFlags: RobustOptions, "Matching", RobustOptions::default().with_threshold_px(1.0)
}
