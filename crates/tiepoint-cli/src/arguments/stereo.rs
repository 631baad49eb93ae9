//! The options of dense stereo as flags, and where its results go.

use super::limits::LimitArguments;
use super::report::ReportArguments;
use super::values::{bytes, named, range, with_default};
use crate::failure::{Failure, Outcome};
use clap::Args;
use std::path::PathBuf;
use tiepoint::image::Range;
use tiepoint::stereo::cloud::{CloudOptions, PlyFormat};
use tiepoint::stereo::files::DisparityReading;
use tiepoint::stereo::{CensusWindow, Cost, Learning, Paths, Penalties, RightView, StereoOptions, Subpixel};

#[derive(Debug, Args)]
pub(crate) struct StereoArguments {
    /// A rectified pair, or several pairs; %d or %04d in both names stands for the numbers of a sequence
    #[arg(required_unless_present = "list", num_args = 2.., value_names = ["LEFT", "RIGHT"])]
    pub(crate) images: Vec<PathBuf>,
    /// A file with a pair a line: LEFT RIGHT and, if wanted, the output, separated by tabs or else by spaces; -
    /// reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Disparities to FILE: .pfm (none: +inf), .tif (none: NaN), .png (16 bits: 256 times the disparity, none: 0).
    /// For several pairs a folder (LEFT.pfm in it), or a pattern: {} stands for the left image's name, %04d for its
    /// number
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Disparities of the right image; named as --output is
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
    pub(crate) search: StereoSearchArguments,
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

/// How disparities are found.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stereo")]
pub(crate) struct StereoSearchArguments {
    #[arg(
        long,
        value_name = "N",
        help = with_default(
            "How many whole disparities to search, 1 to 4096. With neither this nor --min-disparity the calibration's \
             range is searched, if it has one",
            StereoOptions::default().disparities
        )
    )]
    disparities: Option<usize>,
    #[arg(
        long,
        value_name = "D",
        allow_negative_numbers = true,
        help = with_default(
            "The least disparity searched; left(x, y) shows what right(x - d, y) shows",
            StereoOptions::default().min_disparity
        )
    )]
    min_disparity: Option<i32>,
    #[arg(
        long,
        value_parser = named::<Cost>(),
        help = with_default("What pixels are compared by; with --census-window census", Cost::default())
    )]
    cost: Option<Cost>,
    #[arg(
        long,
        value_parser = named::<CensusWindow>(),
        value_name = "WINDOW",
        help = with_default("census: the window of pixels compared with its centre", CensusWindow::default())
    )]
    census_window: Option<CensusWindow>,
    /// mi: learn at full size only, N times, first from disparity 0 [default: from coarse to fine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    iterations: Option<u8>,
    /// Directions that costs are gathered along
    #[arg(long, value_parser = named::<Paths>(), default_value_t)]
    paths: Paths,
    /// Penalty of a change of disparity by one along a path, in units of the cost [default: what suits the cost]
    #[arg(long, value_name = "P")]
    p1: Option<u16>,
    /// Penalty of a larger change, where the image is smooth [default: what suits the cost]
    #[arg(long, value_name = "P")]
    p2: Option<u16>,
    /// P2 falls at edges of the image, but not below this; equal to P2 it does not fall [default: what suits the
    /// cost]
    #[arg(long, value_name = "P")]
    p2_least: Option<u16>,
    #[arg(
        long,
        value_name = "G",
        help = with_default(
            "Difference of 8-bit grey, from pixel to pixel, beyond which P2 falls, 1 to 255",
            Cost::default().penalties().gradient
        )
    )]
    gradient: Option<u8>,
    /// By how many percent the best sum must lie below all but its neighbours', 0 to 100; else the pixel is invalid
    #[arg(long, value_name = "PERCENT", default_value_t = StereoOptions::default().uniqueness)]
    uniqueness: u8,
    /// How disparities between whole ones are found
    #[arg(long, value_parser = named::<Subpixel>(), default_value_t)]
    subpixel: Subpixel,
    /// What the left view is checked against
    #[arg(long, value_parser = named::<RightView>(), default_value_t)]
    right_view: RightView,
    /// By how many pixels the two views' disparities may differ
    #[arg(
        long,
        value_name = "PX",
        default_value_t = StereoOptions::default().max_difference,
        allow_negative_numbers = true
    )]
    max_difference: f32,
    /// Remove regions of fewer pixels; 0 removes none
    #[arg(long, value_name = "N", default_value_t = StereoOptions::default().speckle_size)]
    speckle_size: usize,
    /// By how much neighbours of one region may differ
    #[arg(
        long,
        value_name = "PX",
        default_value_t = StereoOptions::default().speckle_difference,
        allow_negative_numbers = true
    )]
    speckle_difference: f32,
    /// Side of the last median filter: 0 (no filter at all), 3 or 5
    #[arg(long, value_name = "N", default_value_t = StereoOptions::default().median)]
    median: usize,
    /// Fill invalid pixels: occlusions from the background, mismatches from all around
    #[arg(long)]
    fill: bool,
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = bytes,
        help = with_default(
            "Memory to use at most beside images and results: 300M, 2G, or bytes; the result is the same",
            StereoOptions::default().memory.map_or("no limit".to_owned(), |m| format!("{}M", m >> 20))
        )
    )]
    memory: Option<u64>,
    /// A GPU's memory to use at most, about: 8G, or bytes; a larger pair is computed there in bands of rows, with the
    /// same result [default: what is free]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    device_memory: Option<u64>,
}

impl StereoSearchArguments {
    /// The options, checked. `range` is that of the calibration.
    pub(crate) fn options(&self, range: Option<[f64; 2]>) -> Outcome<StereoOptions> {
        let start = StereoOptions::default();
        let cost = self.cost()?;
        if self.iterations.is_some() && cost != Cost::MutualInformation {
            return Err(Failure::usage("--iterations is an option of --cost mi"));
        }
        let range = range.filter(|_| self.disparities.is_none() && self.min_disparity.is_none());
        let [least, count] = match range {
            Some([low, high]) => [low.floor(), high.ceil() - low.floor() + 1.0],
            None => [f64::from(start.min_disparity), start.disparities as f64],
        };
        let options = start
            .with_min_disparity(self.min_disparity.unwrap_or(least as i32))
            .with_disparities(self.disparities.unwrap_or(count as usize))
            .with_cost(cost)
            .with_learning(self.iterations.map_or(start.learning, Learning::Iterations))
            .with_paths(self.paths)
            .with_penalties(Some(self.penalties(cost)))
            .with_uniqueness(self.uniqueness)
            .with_subpixel(self.subpixel)
            .with_right_view(self.right_view)
            .with_max_difference(self.max_difference)
            .with_speckle_size(self.speckle_size)
            .with_speckle_difference(self.speckle_difference)
            .with_median(self.median)
            .with_fill(self.fill)
            .with_memory(self.memory.or(start.memory))
            .with_device_memory(self.device_memory);
        options.check()?;
        Ok(options)
    }

    fn cost(&self) -> Outcome<Cost> {
        match (self.cost, self.census_window) {
            (cost, None) => Ok(cost.unwrap_or_default()),
            (None | Some(Cost::Census(_)), Some(window)) => Ok(Cost::Census(window)),
            (_, Some(_)) => Err(Failure::usage("--census-window is an option of --cost census")),
        }
    }

    /// Those given; the others follow where the given ones would not let them stand.
    fn penalties(&self, cost: Cost) -> Penalties {
        cost.penalties().replaced(self.p1, self.p2, self.p2_least, self.gradient)
    }
}
