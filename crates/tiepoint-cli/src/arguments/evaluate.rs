//! `tiepoint evaluate`.

use super::detector::DetectorArguments;
use super::matching::MatchingArguments;
use super::values::size;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use tiepoint::image::Size;

#[derive(Debug, Subcommand)]
pub(crate) enum EvaluateArguments {
    /// Images A B and the true homography: repeatability, matching accuracy, corner error.
    /// Or a FOUND homography and the true one with --size: the corner error
    Homography(EvaluateHomography),
    /// A FOUND disparity map and the true one: bad pixels, mean error, density
    Disparity(EvaluateDisparity),
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateDisparity {
    /// The disparity map to score: .pfm .tif, or .png of 16 bits
    pub(crate) found: PathBuf,
    /// The true one of the left image: floats (unknown: not finite or not above 0), 8 or 16 bits (unknown: 0)
    pub(crate) truth: PathBuf,
    /// The true one of the right image: pixels that it does not confirm within 1 px are occluded and not scored
    #[arg(long, value_name = "FILE")]
    pub(crate) truth_right: Option<PathBuf>,
    /// What is stored in the truth is S times the disparity [default: 256 for 16 bits, else 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) scale: Option<f32>,
    /// What is stored in FOUND is S times the disparity [default: 256 for 16 bits, else 1]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) found_scale: Option<f32>,
    /// Floats of 0 and below in the truth are disparities too
    #[arg(long)]
    pub(crate) signed: bool,
    /// Score only where this image is not 0
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<PathBuf>,
    /// A pixel is bad when it is off by more than this many pixels; several separated by commas
    #[arg(long, value_name = "T", default_value = "1", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) threshold: Vec<f32>,
    /// Fill invalid pixels with the smaller of their nearest valid neighbours in the row first; otherwise they
    /// are bad
    #[arg(long)]
    pub(crate) fill: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateHomography {
    /// A B TRUTH, or FOUND TRUTH. Homographies are nine numbers in a text file, an OpenCV .xml or .yml, or the
    /// output of `match --json`
    #[arg(required = true, num_args = 2..=3, value_names = ["A", "B", "TRUTH"])]
    pub(crate) files: Vec<PathBuf>,
    /// Size of image A, for FOUND TRUTH
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub(crate) size: Option<Size>,
    #[command(flatten)]
    pub(crate) matching: MatchingArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}
