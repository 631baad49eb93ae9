//! The options of dense stereo as flags, and where its results go.

use crate::arguments::range;
use crate::failure::{Failure, Outcome};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use tiepoint::image::Range;
use tiepoint::options::Named;
use tiepoint::stereo::{CensusWindow, Cost, Learning, Paths, Penalties, RightView, StereoOptions, Subpixel};

#[derive(Debug, Args)]
pub(crate) struct StereoCommand {
    /// A rectified pair, or several pairs; %d or %04d in both names stands for the numbers of a sequence
    #[arg(required_unless_present = "list", num_args = 2.., value_names = ["LEFT", "RIGHT"])]
    pub(super) images: Vec<PathBuf>,
    /// A file with a pair a line: LEFT RIGHT and, if wanted, the output, parted by tabs or else by spaces; -
    /// reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(super) list: Option<PathBuf>,
    /// Disparities to FILE: .pfm (none: +inf), .tif (none: NaN), .png (16 bits: 256 times the disparity, none: 0).
    /// For several pairs a folder (LEFT.pfm in it), or a pattern: {} stands for the left image's name, %04d for its
    /// number
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<String>,
    /// Disparities of the right image; named as --output is
    #[arg(long, value_name = "FILE")]
    pub(super) output_right: Option<String>,
    /// Confidence from 0 to 1: .pfm .tif .png; named as --output is
    #[arg(long, value_name = "FILE")]
    pub(super) confidence: Option<String>,
    /// A picture of the disparities with a scale, at most 4096 pixels wide and high; named as --output is
    #[arg(long, value_name = "PNG")]
    pub(super) preview: Option<String>,
    /// Which disparities the colours of the preview begin and end with: auto or LOW:HIGH
    #[arg(
        long,
        value_name = "RANGE",
        default_value = "auto",
        value_parser = range,
        allow_hyphen_values = true
    )]
    pub(super) preview_range: Range,
    /// Depth to FILE: .pfm .tif, in the unit of the baseline of --calibration; named as --output is
    #[arg(long, value_name = "FILE", requires = "calibration")]
    pub(super) depth: Option<String>,
    /// Points in colour, x right, y down, z forward from the left camera, in the unit of the baseline of
    /// --calibration; named as --output is
    #[arg(long, value_name = "PLY", requires = "calibration")]
    pub(super) cloud: Option<String>,
    /// Write the points as text
    #[arg(long, requires = "cloud")]
    pub(super) ascii: bool,
    /// Leave out points with a greater z [default: none]
    #[arg(long, value_name = "Z", requires = "cloud", allow_negative_numbers = true)]
    pub(super) max_depth: Option<f64>,
    /// What the rectified pair is: Middlebury calib.txt, what `rectify --output-calibration` wrote, OpenCV .yml or .xml
    /// with P1 and P2 or Q
    #[arg(long, value_name = "FILE")]
    pub(super) calibration: Option<PathBuf>,
    /// Only where this image is not 0. {} stands for the left image's name
    #[arg(long, value_name = "IMAGE")]
    pub(super) mask: Option<String>,
    /// As --mask, for the right image; {} stands for its name
    #[arg(long, value_name = "IMAGE")]
    pub(super) mask_right: Option<String>,
    /// Pixels of this value hold no data, in either image; NaN and infinities never do
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pub(super) no_data: Option<f32>,
    #[command(flatten)]
    pub(super) options: StereoArguments,
}

/// How disparities are found.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stereo")]
pub(crate) struct StereoArguments {
    /// How many whole disparities to search, 1 to 4096. With neither this nor --min-disparity the calibration's
    /// range is searched, if it has one [default: 128]
    #[arg(long, value_name = "N")]
    disparities: Option<usize>,
    /// The least disparity searched; left(x, y) shows what right(x - d, y) shows [default: 0]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    min_disparity: Option<i32>,
    /// What pixels are compared by
    #[arg(long, value_parser = named::<Cost>(), default_value_t)]
    cost: Cost,
    /// census: the window of pixels compared with its centre [default: 5x5]
    #[arg(long, value_parser = named::<CensusWindow>(), value_name = "WINDOW")]
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
    /// Difference of 8-bit grey, from pixel to pixel, beyond which P2 falls, 1 to 255 [default: 4]
    #[arg(long, value_name = "G")]
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
    /// Keep the work's memory, images and results aside, to this: 300M, 2G, or bytes; the result is the same
    /// [default: 1G]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<u64>,
}

impl StereoArguments {
    /// The options, checked. `range` is that of the calibration.
    pub(super) fn options(&self, range: Option<[f64; 2]>) -> Outcome<StereoOptions> {
        let start = StereoOptions::default();
        let cost = self.cost()?;
        if self.iterations.is_some() && cost != Cost::MutualInformation {
            return Err(Failure::usage("--iterations is an option of --cost mi"));
        }
        let range = range.filter(|_| self.disparities.is_none() && self.min_disparity.is_none());
        let [least, greatest] = range.map_or([0.0, 127.0], |[low, high]| [low.floor(), high.ceil()]);
        let options = start
            .with_min_disparity(self.min_disparity.unwrap_or(least as i32))
            .with_disparities(self.disparities.unwrap_or((greatest - least + 1.0) as usize))
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
            .with_memory(self.memory.or(start.memory));
        options.check()?;
        Ok(options)
    }

    fn cost(&self) -> Outcome<Cost> {
        match (self.cost, self.census_window) {
            (cost, None) => Ok(cost),
            (Cost::Census(_), Some(window)) => Ok(Cost::Census(window)),
            (_, Some(_)) => Err(Failure::usage("--census-window is an option of --cost census")),
        }
    }

    /// Those given; the others follow where the given ones would not let them stand.
    fn penalties(&self, cost: Cost) -> Penalties {
        let start = cost.penalties();
        let p1 = self.p1.unwrap_or(start.p1);
        let p2 = self.p2.unwrap_or_else(|| start.p2.max(p1));
        let p2_least = self.p2_least.unwrap_or_else(|| start.p2_least.max(p1).min(p2));
        Penalties { p1, p2, p2_least, gradient: self.gradient.unwrap_or(start.gradient) }
    }
}

/// Reads a value by its name; the help lists all of them.
fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let values = T::ALL.iter().map(|choice| PossibleValue::new(choice.name).help(choice.help));
    PossibleValuesParser::new(values).try_map(|name| T::from_name(&name))
}

/// A number of bytes: plain, or with K, M, G or T for powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let digits = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &bare[digits.len()..] {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        "T" => Some(40),
        _ => None,
    };
    let number: Option<f64> = digits.trim().parse().ok().filter(|n| *n > 0.0);
    let product = shift.zip(number).map(|(s, n)| n * (1_u64 << s) as f64).filter(|p| (1.0..1e18).contains(p));
    product.map(|p| p as u64).ok_or_else(|| "expected bytes above 0 such as 300M, 2G or 1000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("1000000", 1_000_000),
            ("300M", 300 << 20),
            ("2g", 2 << 30),
            ("1.5GiB", 3 << 29),
            ("64KB", 65536),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "-1G", "0", "2X", "nan", "inf", "1e99", "2GG"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
