//! `tiepoint evaluate`.

use super::limits::LimitArguments;
use super::matching::PairArguments;
use super::report::ReportArguments;
use super::values::size;
use crate::failure::{Failure, Outcome};
use crate::output::Files;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use tiepoint::evaluate::DisparityScoring;
use tiepoint::geometry::ModelKind;
use tiepoint::image::Size;
use tiepoint::stereo::files::DisparityReading;

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
    /// The disparity map to score: .pfm .tif .exr .npy, or .png of 16 bits
    pub(crate) found: PathBuf,
    /// The true map of the left image: floats (unknown: not finite; also 0 and below if nothing else marks unknown pixels and
    /// they are 0 and one other number at most), 8 or 16 bits (unknown: 0)
    pub(crate) truth: PathBuf,
    /// The true map of the right image: pixels that do not agree with it within 1 px are occluded and not scored
    #[arg(long, value_name = "FILE")]
    pub(crate) truth_right: Option<PathBuf>,
    /// The truth stores S times the disparity [default: 256 for 16 bits, else 1; needed for 16 bits with a sign]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) scale: Option<f32>,
    /// FOUND stores S times the disparity [default: 256 for 16 bits, else 1; needed for 16 bits with a sign]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub(crate) found_scale: Option<f32>,
    /// Take all floats of 0 and below in the truth as disparities
    #[arg(long)]
    pub(crate) signed: bool,
    /// Score only where this image is not 0. Middlebury's mask0nocc.png is 128 where pixels are occluded: these are scored,
    /// too, unless --truth-right leaves them out
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask: Option<PathBuf>,
    /// A pixel is bad when it is off by more than this many pixels; several separated by commas
    #[arg(long, value_name = "T", default_value = "1", value_delimiter = ',', allow_negative_numbers = true)]
    pub(crate) threshold: Vec<f32>,
    /// Before scoring, fill invalid pixels with the smaller of their nearest valid neighbours in the row; without this they
    /// count as bad
    #[arg(long)]
    pub(crate) fill: bool,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
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
    pub(crate) pair: PairArguments,
}

impl EvaluateDisparity {
    /// How the map is scored, checked.
    pub(crate) fn scoring(&self) -> Outcome<DisparityScoring> {
        let scoring =
            DisparityScoring::default().with_thresholds(self.threshold.clone()).with_fill(self.fill);
        scoring.check()?;
        self.report.check()?;
        let files =
            Files::default().reads([&self.found, &self.truth]).reads(&self.truth_right).reads(&self.mask);
        files.writes(&self.report.report).check()?;
        Ok(scoring)
    }

    /// How the truth is read, checked.
    pub(crate) fn truth_reading(&self) -> Outcome<DisparityReading> {
        let reading =
            DisparityReading::default().with_scale(self.scale).with_signed(self.signed.then_some(true));
        let reading = reading.with_limits(self.limits.options());
        reading.check()?;
        Ok(reading)
    }
}

/// The files by which a homography is scored.
#[derive(Debug)]
pub(crate) enum HomographyFiles<'a> {
    /// Two images, matched first, and the truth.
    Images { a: &'a Path, b: &'a Path, truth: &'a Path },
    /// Two homographies, and the size of image A.
    Matrices { found: &'a Path, truth: &'a Path, size: Size },
}

impl EvaluateHomography {
    /// The files, whose meaning follows from their number.
    pub(crate) fn files(&self) -> Outcome<HomographyFiles<'_>> {
        let files = match &self.files[..] {
            [a, b, truth] => self.pair.files([a, b])?.reads([truth]),
            matrices => {
                self.pair.check()?;
                Files::default().reads(matrices).writes(&self.pair.report.report)
            }
        };
        files.check()?;
        match (&self.files[..], self.size) {
            ([found, truth], Some(size)) => Ok(HomographyFiles::Matrices { found, truth, size }),
            ([_, _], None) => {
                Err(Failure::usage("FOUND TRUTH also needs --size, the size of image A: WIDTHxHEIGHT"))
            }
            ([_, _, _], Some(_)) => {
                Err(Failure::usage("--size is for FOUND TRUTH; the size of images is read from their files"))
            }
            ([_, _, _], None) if self.pair.matching.model.0.is_some_and(ModelKind::is_epipolar) => {
                Err(Failure::usage("epipolar geometry has no corner error: use another --model"))
            }
            ([a, b, truth], None) => Ok(HomographyFiles::Images { a, b, truth }),
            _ => Err(Failure::usage("expected A B TRUTH, or FOUND TRUTH")),
        }
    }
}
