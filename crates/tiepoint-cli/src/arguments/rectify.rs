//! `tiepoint rectify`.

use super::detector::DetectorArguments;
use super::matching::default_ratio;
use super::values::named;
use clap::Args;
use std::path::PathBuf;
use tiepoint::geometry::rectify::OutputFrame;
use tiepoint::geometry::warp::Interpolation;

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
    /// The rectified left picture: .png .tif .pfm. It is made of RIGHT where that was taken from the left
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
    /// Keep a match when its distance is below this share of the second nearest's; 1 keeps all
    #[arg(long, default_value_t = default_ratio(), value_name = "SHARE", allow_negative_numbers = true)]
    pub(crate) ratio: f32,
    /// Largest distance of a tie point from its epipolar line, in pixels; with a calibration, of its difference of
    /// rows from the median of all
    #[arg(long, default_value_t = 1.0, value_name = "PX", allow_negative_numbers = true)]
    pub(crate) inlier_distance: f64,
    /// As --mask, for the second image
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}
