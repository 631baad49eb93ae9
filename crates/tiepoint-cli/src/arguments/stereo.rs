//! The options of dense stereo as flags, and where its results go.

use super::limits::LimitArguments;
use super::report::ReportArguments;
use super::table::{Flags, Given, flags};
use super::values::range;
use crate::failure::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use tiepoint::image::Range;
use tiepoint::stereo::cloud::{CloudOptions, PlyFormat};
use tiepoint::stereo::files::DisparityReading;
use tiepoint::stereo::{CensusWindow, Cost, StereoOptions};

#[derive(Debug, Args)]
pub(crate) struct StereoArguments {
    /// A rectified pair, or several pairs; %d or %04d in both names stands for the numbers of a sequence
    #[arg(required_unless_present = "list", num_args = 2.., value_names = ["LEFT", "RIGHT"])]
    pub(crate) images: Vec<PathBuf>,
    /// A file with a pair a line: LEFT RIGHT and, if wanted, the output, separated by tabs or else by spaces; -
    /// reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Disparities to FILE: .pfm (none: +inf), .tif and .npy (none: NaN), .png (16 bits: 256 times the disparity, none: 0).
    /// For several pairs a folder (LEFT.pfm in it), or a pattern: {} stands for the left image's name, %04d for its
    /// number
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Disparities of the right image; named as --output is. Whole ones, unless --right-view aggregated finds them
    #[arg(long, value_name = "FILE")]
    pub(crate) output_right: Option<String>,
    /// Confidence from 0 to 1: .pfm .tif .png; named as --output is
    #[arg(long, value_name = "FILE")]
    pub(crate) confidence: Option<String>,
    /// A picture of the disparities with a scale, at most 4096 pixels wide and high; named as --output is
    #[arg(long, value_name = "PNG")]
    pub(crate) preview: Option<String>,
    /// Which disparities the colours of the preview begin and end with: auto or LOW:HIGH
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "auto",
        value_parser = range,
        allow_hyphen_values = true
    )]
    pub(crate) preview_range: Range,
    /// Depth to FILE: .pfm .tif, in the unit of the baseline of --calibration; named as --output is
    #[arg(long, value_name = "FILE", requires = "calibration")]
    pub(crate) depth: Option<String>,
    /// Points in colour, x right, y down, z forward from the left camera, in the unit of the baseline of
    /// --calibration; named as --output is
    #[arg(long, value_name = "PLY", requires = "calibration")]
    pub(crate) cloud: Option<String>,
    /// Write the points as text
    #[arg(long, requires = "cloud")]
    pub(crate) ascii: bool,
    /// Leave out points with a greater z [default: none]
    #[arg(long, value_name = "Z", requires = "cloud", allow_negative_numbers = true)]
    pub(crate) max_depth: Option<f64>,
    /// What the rectified pair is: Middlebury calib.txt, what `rectify --output-calibration` wrote, OpenCV .yml or .xml
    /// with P1 and P2 or Q
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// Only where this image is not 0. {} stands for the left image's name. Transparent pixels never count
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<String>,
    /// As --mask, for the right image; {} stands for its name
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_right: Option<String>,
    /// Pixels of this value hold no data, in either image; NaN and infinities never do
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pub(crate) no_data: Option<f32>,
    /// The true disparities, for the report: floats (unknown: not finite or not above 0), 8 or 16 bits (unknown: 0). {}
    /// stands for the left image's name
    #[arg(long, value_name = "FILE", requires = "report")]
    pub(crate) truth: Option<String>,
    /// What is stored in the truth is S times the disparity [default: 256 for 16 bits, else 1]
    #[arg(long, value_name = "S", requires = "truth", allow_negative_numbers = true)]
    pub(crate) truth_scale: Option<f32>,
    // For several pairs it is named as --output is.
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) search: Given<StereoFlags>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

impl StereoArguments {
    /// How the truth is read, checked.
    pub(crate) fn truth_reading(&self) -> Outcome<DisparityReading> {
        let reading = DisparityReading::default().with_scale(self.truth_scale);
        reading.check()?;
        Ok(reading)
    }

    /// Which points are written and how, checked.
    pub(crate) fn cloud_options(&self) -> Outcome<CloudOptions> {
        let options = CloudOptions::default()
            .with_format(if self.ascii { PlyFormat::Ascii } else { PlyFormat::Binary })
            .with_max_depth(self.max_depth.unwrap_or(f64::INFINITY));
        options.check()?;
        Ok(options)
    }
}

flags! {
    /// How disparities are found.
    StereoFlags: StereoOptions, "Stereo"
}

impl Given<StereoFlags> {
    /// The options, checked. Where no flag says which disparities are searched, they are the calibration's `range`.
    pub(crate) fn within(&self, range: Option<[f64; 2]>) -> Outcome<StereoOptions> {
        let mut start = StereoFlags::start();
        if let Some([low, high]) = range
            && !self.has("disparities")
            && !self.has("min_disparity")
        {
            start.min_disparity = low.floor() as i32;
            start.disparities = (high.ceil() - low.floor() + 1.0) as usize;
        }
        if self.has("census_window") && !self.has("cost") {
            start.cost = Cost::Census(CensusWindow::default());
        }
        let options = self.on(start)?;
        if self.has("learning") && options.cost != Cost::MutualInformation {
            return Err(Failure::usage("--iterations is an option of --cost mi"));
        }
        options.check()?;
        Ok(options)
    }
}
