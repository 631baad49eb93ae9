//! `tiepoint stereo`.

use super::compress::CompressArguments;
use super::limits::LimitArguments;
use super::rectify::CameraArguments;
use super::report::ReportArguments;
use super::table::{Flags, Given, flags};
use super::values::{OrAuto, or_auto, range};
use crate::failure::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use tiepoint::image::Range;
use tiepoint::stereo::files::DisparityReading;
use tiepoint::stereo::{CensusWindow, Cost, StereoOptions};

#[derive(Debug, Args)]
pub(crate) struct StereoArguments {
    /// A rectified pair, or several pairs; %d or %04d in both names stands for the numbers of a sequence
    #[arg(required_unless_present = "list", num_args = 2.., value_names = ["LEFT", "RIGHT"])]
    pub(crate) images: Vec<PathBuf>,
    /// A file with one pair a line: LEFT RIGHT and optionally the output, separated by tabs or, without tabs, by
    /// spaces; - reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Write disparities to FILE: .pfm (none: +inf), .tif .exr .npy (none: NaN), .png (16 bits: 256 times the disparity, none:
    /// 0). For several pairs a folder (LEFT.pfm in it), or a pattern: {} stands for the left image's name, %04d for its
    /// number
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Write offsets, which are added to x to get to the other image, as mgm, s2p and ASP do: minus the disparity for the
    /// left image, the disparity for the right image
    #[arg(long)]
    pub(crate) offsets: bool,
    /// Disparities of the right image; named as --output is. They are whole numbers, except with --right-view
    /// aggregated
    #[arg(long, value_name = "FILE")]
    pub(crate) output_right: Option<String>,
    /// Confidence from 0 to 1: .pfm .tif .exr .npy .png; named as --output is
    #[arg(long, value_name = "FILE")]
    pub(crate) confidence: Option<String>,
    #[command(flatten)]
    pub(crate) tiff: CompressArguments,
    /// A picture of the disparities with a scale, at most 4096 pixels wide and high; named as --output is
    #[arg(long, value_name = "PNG")]
    pub(crate) preview: Option<String>,
    /// The disparities at both ends of the preview's colour scale: auto or LOW:HIGH
    #[arg(
        long,
        value_name = "RANGE",
        requires = "preview",
        default_value = "auto",
        value_parser = range,
        allow_hyphen_values = true
    )]
    pub(crate) preview_range: Range,
    /// Write depth to FILE: .pfm .tif .exr .npy, in the unit of the baseline, or .png (16 bits, see --depth-scale); needs
    /// --calibration, --focal or --rectify; named as --output is
    #[arg(long, value_name = "FILE")]
    pub(crate) depth: Option<String>,
    /// A .png of depths holds S times the depth, and 0 where there is none; 1000 stores metres as millimetres
    #[arg(long, value_name = "S", requires = "depth", default_value_t = 1000.0, value_parser = depth_scale)]
    pub(crate) depth_scale: f32,
    /// Points in colour, x right, y down, z forward from the left camera, in the unit of the baseline; needs
    /// --calibration, --focal or --rectify; named as --output is
    #[arg(long, value_name = "PLY")]
    pub(crate) cloud: Option<String>,
    /// Write the points as text
    #[arg(long, requires = "cloud")]
    pub(crate) ascii: bool,
    /// Leave out points with a greater z: a number, auto (twice the z below which 98 % of the points lie, so that a few
    /// wrong points do not stretch the cloud), or none
    #[arg(
        long,
        value_name = "Z",
        requires = "cloud",
        default_value = "auto",
        value_parser = max_depth,
        allow_negative_numbers = true
    )]
    pub(crate) max_depth: OrAuto<f64>,
    /// The calibration of the rectified pair: Middlebury or KITTI calib.txt, a file of `rectify --output-calibration`, OpenCV
    /// .yml, .xml or .json with P1 and P2 or Q, or the right camera's `camera_info` of ROS
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Rectify the pair first, as `rectify` does without a calibration: for two photographs. Disparities are those of
    /// the rectified pair, at the size that --halve gives
    #[arg(long, conflicts_with = "calibration")]
    pub(crate) rectify: bool,
    #[command(flatten)]
    pub(crate) cameras: CameraArguments,
    /// The number of whole disparities that are searched: 1 to 4096, or auto: the range that tie points of the pair
    /// show [default: the calibration's range, else auto]. The least of the range is --min-disparity, else the calibration's
    #[arg(long, value_name = "N", value_parser = disparities, allow_negative_numbers = true)]
    pub(crate) disparities: Option<OrAuto<usize>>,
    /// Halve the pair this many times before matching: 0 to 5, or auto, which stops at the largest size whose texture
    /// can be matched (with --rectify at most 2000 pixels on the longer side). Results have the reduced size, in whose pixels
    /// --disparities and --min-disparity are given [default: auto with --rectify, else 0]
    #[arg(long, value_name = "TIMES", value_parser = halvings)]
    pub(crate) halve: Option<OrAuto<u32>>,
    /// Compute disparities only where this image is not 0. {} stands for the left image's name. Transparent pixels never count
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<String>,
    /// Like --mask, for the right image; {} stands for its name
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_right: Option<String>,
    /// Pixels of this value hold no data, in either image, and neither do NaN and infinities
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pub(crate) no_data: Option<f32>,
    /// The true disparities, which score the result in the verdict, the report and --json: floats (unknown: not finite;
    /// also 0 and below if nothing else marks unknown pixels and they are 0 and one other number at most), 8 or 16 bits
    /// (unknown: 0). {} stands for the left image's name
    #[arg(long, value_name = "FILE")]
    pub(crate) truth: Option<String>,
    /// The truth stores S times the disparity [default: 256 for 16 bits, else 1; needed for 16 bits with a sign]
    #[arg(long, value_name = "S", requires = "truth", allow_negative_numbers = true)]
    pub(crate) truth_scale: Option<f32>,
    /// All floats of 0 and below in the truth are disparities
    #[arg(long, requires = "truth")]
    pub(crate) truth_signed: bool,
    // With several pairs the reports are named as --output is.
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) search: Given<StereoFlags>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// A number of disparities; `auto` for the range that tie points show.
fn disparities(text: &str) -> Result<OrAuto<usize>, String> {
    let count = |text: &str| text.parse().ok().filter(|n| (1..=4096).contains(n)).map(OrAuto::Given);
    or_auto(text, OrAuto::Auto, count, "1 to 4096, or auto")
}

fn depth_scale(text: &str) -> Result<f32, String> {
    let scale = text.parse().ok().filter(|s: &f32| *s > 0.0 && s.is_finite());
    scale.ok_or_else(|| "expected a number above 0".to_owned())
}

/// A number of halvings; `auto` until the texture can be matched.
fn halvings(text: &str) -> Result<OrAuto<u32>, String> {
    let times = |text: &str| text.parse().ok().filter(|n| *n <= 5).map(OrAuto::Given);
    or_auto(text, OrAuto::Auto, times, "0 to 5, or auto")
}

/// The greatest z of a point; `auto` to choose it from the points.
fn max_depth(text: &str) -> Result<OrAuto<f64>, String> {
    let below = |text: &str| match text {
        "none" => Some(OrAuto::Given(f64::INFINITY)),
        _ => text.parse().ok().filter(|z| *z > 0.0).map(OrAuto::Given),
    };
    or_auto(text, OrAuto::Auto, below, "a number above 0, auto or none")
}

impl StereoArguments {
    /// Fails if flags contradict each other.
    pub(crate) fn check(&self) -> Outcome {
        let unknown = self.calibration.is_none() && !self.rectify && self.cameras.focal.is_none();
        if unknown && (self.depth.is_some() || self.cloud.is_some()) {
            return Err(Failure::usage(
                "--depth and --cloud need the cameras: give --calibration FILE, --focal and --baseline of a rectified \
                 pair, or --rectify for two photographs",
            ));
        }
        if self.calibration.is_some() && self.cameras.are_given() {
            return Err(Failure::usage(
                "--focal and --baseline cannot be combined with --calibration, whose file gives both",
            ));
        }
        if unknown && self.cameras.are_given() {
            return Err(Failure::usage("--baseline: goes with --focal, or with --rectify"));
        }
        if self.rectify && (self.mask.is_some() || self.mask_right.is_some() || self.truth.is_some()) {
            return Err(Failure::usage(
                "--mask, --mask-right and --truth apply to a rectified pair, so they cannot be combined with \
                 --rectify; run `tiepoint rectify` first",
            ));
        }
        self.cameras.check()
    }

    /// How often the pair is halved.
    pub(crate) fn halvings(&self) -> OrAuto<u32> {
        self.halve.unwrap_or(if self.rectify { OrAuto::Auto } else { OrAuto::Given(0) })
    }

    /// The options, checked, and whether the disparities to search are to be found from tie points. What no flag gives of
    /// them is that of the calibration's `range`.
    pub(crate) fn options(&self, range: Option<[f64; 2]>) -> Outcome<(StereoOptions, bool)> {
        let mut start = StereoFlags::start();
        if self.search.has("census_window") && !self.search.has("cost") {
            start.cost = Cost::Census(CensusWindow::default());
        }
        let range = range.filter(|_| self.disparities != Some(OrAuto::Auto));
        if let Some([low, _]) = range {
            start.min_disparity = low.floor() as i32;
        }
        let mut options = self.search.on(start)?;
        let up_to = |[_, high]: [f64; 2]| (high.ceil() - f64::from(options.min_disparity) + 1.0) as usize;
        let count = match self.disparities {
            Some(OrAuto::Given(count)) => Some(count),
            Some(OrAuto::Auto) | None => range.map(up_to).filter(|count| *count > 0),
        };
        options.disparities = count.unwrap_or(options.disparities);
        options.check()?;
        Ok((options, count.is_none()))
    }

    /// How the truth is read, checked.
    pub(crate) fn truth_reading(&self) -> Outcome<DisparityReading> {
        let reading = DisparityReading::default()
            .with_scale(self.truth_scale)
            .with_signed(self.truth_signed.then_some(true));
        let reading = reading.with_limits(self.limits.options());
        reading.check()?;
        Ok(reading)
    }
}

flags! {
    /// The options of stereo as flags.
    StereoFlags: StereoOptions, "Stereo", StereoOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["disparities"];
    }
}
