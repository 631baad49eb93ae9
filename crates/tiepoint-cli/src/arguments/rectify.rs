//! `tiepoint rectify`.

use super::compress::CompressArguments;
use super::detector::DetectorArguments;
use super::matching::{MatchFlags, MatchingArguments, SensorArguments};
use super::report::ReportArguments;
use super::table::{Given, flags};
use super::values::{OrNone, named};
use crate::failure::{Failure, Outcome};
use crate::output::{Files, check_image};
use clap::Args;
use std::path::PathBuf;
use tiepoint::geometry::calibration::{Projection, RectifiedCalibration};
use tiepoint::geometry::rectify::{OutputFrame, SelfCalibrationOptions};
use tiepoint::geometry::warp::Interpolation;
use tiepoint::geometry::{ModelKind, RobustOptions};
use tiepoint::image::Size;
use tiepoint::register::Views;

// What is known about the cameras without a calibration.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CameraArguments {
    /// Focal length of LEFT in pixels, if no calibration is given: of a photograph, or of a rectified pair, whose principal
    /// points are then taken to be in the middle [default: from the photographs' camera data (EXIF), as in `collect`;
    /// without these found from the tie points, which may be wrong by a factor of two or three]
    #[arg(long, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) focal: Option<f64>,
    /// Distance between the two cameras, if no calibration is given; depth has its unit [default: 1]
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    pub(crate) baseline: Option<f64>,
}

impl CameraArguments {
    pub(crate) fn are_given(&self) -> bool {
        self.focal.is_some() || self.baseline.is_some()
    }

    /// A rectified pair of this size whose principal points are in the middle; `None` where no focal length is given.
    pub(crate) fn rectified(&self, size: Size) -> Option<RectifiedCalibration> {
        self.focal.map(|focal| RectifiedCalibration {
            size: Some(size),
            focal,
            principal: [size.width, size.height].map(|n| (n as f64 - 1.0) / 2.0),
            doffs: 0.0,
            baseline: self.baseline.unwrap_or(1.0),
            range: None,
            projection: Projection::Perspective,
        })
    }

    /// Fails if a value is out of its range.
    pub(crate) fn check(&self) -> Outcome {
        SelfCalibrationOptions::default().with_focal(self.focal).check()?;
        match self.baseline {
            Some(baseline) if !(baseline > 0.0 && baseline.is_finite()) => {
                Err(Failure::usage(format!("--baseline is {baseline}: expected a distance above 0")))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RectifyArguments {
    /// The picture taken from the left
    pub(crate) left: PathBuf,
    /// The picture taken from the right
    pub(crate) right: PathBuf,
    /// The cameras: OpenCV .yml, .xml or .json (M1 D1 M2 D2 R T), ROS `camera_info`, Kalibr camchain.yaml, or Middlebury
    /// calib.txt; give it again for a second file (extrinsics; for `camera_info` the right camera's). Without it the
    /// cameras are found from tie points
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Vec<PathBuf>,
    /// Use the rectification in the calibration file (R1 R2 P1 P2) instead of computing one
    #[arg(long)]
    pub(crate) stored: bool,
    #[command(flatten)]
    pub(crate) cameras: CameraArguments,
    /// The rectified left picture: .png .tif .pfm .exr .npy. If RIGHT was taken from the left, it is made from RIGHT.
    /// Pixels without input are transparent (.png of 8 bits), NaN (floats), masked (.tif) or masked by FILE.msk beside it
    /// (.png of 16 bits); `stereo` takes account of all these
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_left: Option<PathBuf>,
    /// The rectified right picture
    #[arg(long, value_name = "IMAGE")]
    pub(crate) output_right: Option<PathBuf>,
    /// Write integer pictures of any format with an alpha channel, opaque where they show their input, instead of masks
    /// and no-data values
    #[arg(long)]
    pub(crate) alpha: bool,
    #[command(flatten)]
    pub(crate) tiff: CompressArguments,
    /// A mask of the left output: 255 where it shows its input, else 0
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_left: Option<PathBuf>,
    /// A mask of the right output
    #[arg(long, value_name = "IMAGE")]
    pub(crate) valid_right: Option<PathBuf>,
    /// The calibration of the rectified pair, for `stereo --calibration`: .txt (Middlebury), .yml, .xml or .json (OpenCV:
    /// P1, P2, Q), or with a name such as `camera_info.yaml` ROS's file of the right camera. Without a calibration the
    /// baseline is 1, unless --baseline gives it
    #[arg(long, value_name = "FILE")]
    pub(crate) output_calibration: Option<PathBuf>,
    /// A picture of both outputs with lines along rows
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// Which part of the input the output shows. Without a calibration every choice except `valid` may be wider than
    /// described, so that disparities start at 0 [default: input with a calibration, fit without]
    #[arg(long, value_parser = named::<OutputFrame>())]
    pub(crate) crop: Option<OutputFrame>,
    /// How values between pixels are interpolated
    #[arg(long, value_parser = named::<Interpolation>(), default_value_t)]
    pub(crate) interpolation: Interpolation,
    #[command(flatten)]
    matches: Given<MatchFlags>,
    /// With a calibration the inlier distance is that of rows from their median difference.
    #[command(flatten)]
    robust: Given<RectifyRobustFlags>,
    #[command(flatten)]
    sensors: SensorArguments,
    /// Like --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
    /// Use the tie points in FILE instead of a search; formats are those of `match --matches`
    #[arg(long = "matches", value_name = "FILE")]
    given: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

impl RectifyArguments {
    /// Fails if flags contradict each other, or a result could not be written or would replace an input.
    pub(crate) fn check(&self) -> Outcome {
        if self.calibration.is_empty() && self.stored {
            return Err(Failure::usage(
                "--stored needs the file that holds the rectification: give --calibration FILE",
            ));
        }
        if !self.calibration.is_empty() && self.cameras.are_given() {
            return Err(Failure::usage(
                "--focal, --baseline: the calibration file says what the focal lengths and the distance of the cameras are",
            ));
        }
        self.cameras.check()?;
        self.matching().options()?;
        self.matching().check_search(&self.detector)?;
        self.detector.detector()?;
        self.report.check()?;
        let pictures =
            [&self.output_left, &self.output_right, &self.valid_left, &self.valid_right, &self.draw];
        let images = [self.left.as_path(), self.right.as_path()];
        let files = Files::default().reads(images).reads(&self.calibration).reads(&self.given);
        let files = files.reads(self.detector.masks(images, self.mask_b.as_deref()));
        files
            .writes(pictures.into_iter().chain([&self.output_calibration]).flatten())
            .writes(&self.report.report)
            .check()?;
        pictures.into_iter().flatten().try_for_each(|path| check_image(path))?;
        let named = self.output_calibration.as_deref().map(RectifiedCalibration::check_name);
        named.unwrap_or(Ok(())).map_err(Failure::usage)
    }

    /// The options of matching. With a calibration no model is estimated, because the cameras are known; without it,
    /// matches must agree with a fundamental matrix.
    pub(crate) fn matching(&self) -> MatchingArguments {
        MatchingArguments {
            model: OrNone(self.calibration.is_empty().then_some(ModelKind::Fundamental)),
            matches: self.matches.clone(),
            robust: self.robust.with_defaults_of(),
            no_rematch: false,
            views: Views::Auto,
            sensors: self.sensors,
            mask_b: self.mask_b.clone(),
            given: self.given.clone(),
        }
    }

    /// How far a tie point may lie from its epipolar line; with a calibration, its row difference from the median.
    pub(crate) fn inlier_distance(&self) -> f64 {
        self.robust.options().threshold_px
    }
}

flags! {
    /// The options of estimation as flags. By default corresponding points must lie within a pixel of one row.
    RectifyRobustFlags: RobustOptions, "Matching", RobustOptions::default().with_threshold_px(1.0)
}
