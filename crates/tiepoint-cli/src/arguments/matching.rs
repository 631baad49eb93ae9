//! The options of matching and verification as flags, for the commands that match two images.

use super::detector::DetectorArguments;
use super::report::ReportArguments;
use super::table::{Given, flags};
use super::values::{OrNone, model_or_none, named, views};
use crate::failure::{Failure, Outcome};
use crate::output::Files;
use clap::Args;
use std::path::{Path, PathBuf};
use tiepoint::geometry::RobustOptions;
use tiepoint::matching::MatchOptions;
use tiepoint::register::{Modality, Rematch, TieOptions, Views};

// How two images are searched and matched, and the report about it.
#[derive(Debug, Args)]
pub(crate) struct PairArguments {
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) matching: MatchingArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}

impl PairArguments {
    /// Fails if options are out of range or the page could not be written.
    pub(crate) fn check(&self) -> Outcome {
        self.report.check()?;
        self.detector.detector()?;
        self.matching.check_search(&self.detector)?;
        self.matching.options().map(drop)
    }

    /// The files of one call: these images with their masks, and the page.
    pub(crate) fn files(&self, images: [&Path; 2]) -> Outcome<Files> {
        self.check()?;
        let masks = self.detector.masks(images, self.matching.mask_b.as_deref());
        let files = Files::default().reads(images).reads(masks).reads(&self.matching.given);
        Ok(files.writes(&self.report.report))
    }
}

// How matches are found and verified.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct MatchingArguments {
    /// The model that relates the two images
    #[arg(long, value_parser = model_or_none(), default_value_t)]
    pub(crate) model: OrNone,
    #[command(flatten)]
    pub(crate) matches: Given<MatchFlags>,
    #[command(flatten)]
    pub(crate) robust: Given<RobustFlags>,
    /// Leave out the second search, near what the model predicts
    #[arg(long)]
    pub(crate) no_rematch: bool,
    /// Simulated views of each image to match, for viewpoints far apart: 1 to 43, or auto: the image itself, and 10
    /// views if too few of its matches agree
    #[arg(long, value_name = "N", default_value = "auto", value_parser = views)]
    pub(crate) views: Views,
    #[command(flatten)]
    pub(crate) sensors: SensorArguments,
    /// Like --mask, for the second image (MOVING)
    #[arg(long, value_name = "IMAGE")]
    pub(crate) mask_b: Option<String>,
    /// Verify the tie points in FILE instead of a search: .csv, .json, .npz or .points of this program, files of QGIS,
    /// ASP, MicMac (also its folder Homol) or s2p, or the control points of a GDAL .vrt. Unless FILE names its images,
    /// its first image is taken to be the first one on the command line. Control points (QGIS, .vrt) place A on B, and
    /// MOVING on REFERENCE
    #[arg(long = "matches", value_name = "FILE")]
    pub(crate) given: Option<PathBuf>,
}

// What is known about the sensors that made the images.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Matching")]
pub(crate) struct SensorArguments {
    /// Whether one sensor made both images
    #[arg(long, value_parser = named::<Modality>(), default_value_t)]
    pub(crate) modality: Modality,
    /// The largest ratio of the scales of images from different sensors, 1 to 16; more if their sizes differ by more
    #[arg(long, value_name = "X", default_value_t = TieOptions::default().scale_range)]
    pub(crate) scale_range: f64,
}

impl MatchingArguments {
    /// Fails if matches are given and so is an option of a search, or structure is matched and so is an option of features.
    pub(crate) fn check_search(&self, detector: &DetectorArguments) -> Outcome {
        let features =
            self.views != Views::Auto || self.no_rematch || self.matches.is_any() || detector.is_any();
        let searches = features
            || self.sensors.modality != Modality::default()
            || self.sensors.scale_range != TieOptions::default().scale_range
            || detector.mask.is_some()
            || self.mask_b.is_some();
        if features && self.sensors.modality == Modality::Cross {
            return Err(Failure::usage(
                "--modality cross: no features are matched; leave out --detector, --ratio, --views and other options of features",
            ));
        }
        match &self.given {
            Some(file) if searches => Err(Failure::usage(format!(
                "--matches {}: nothing is searched; leave out --detector, --mask, --ratio, --views and other options of a search",
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The options, checked.
    pub(crate) fn options(&self) -> Outcome<TieOptions> {
        let options = TieOptions::default()
            .with_matching(self.matches.options())
            .with_model(self.model.0)
            .with_scale_range(self.sensors.scale_range)
            .with_robust(self.robust.options())
            .with_rematch((!self.no_rematch).then(Rematch::default));
        options.check()?;
        Ok(options)
    }
}

flags! {
    /// The options of the first matching as flags.
    MatchFlags: MatchOptions, "Matching"
}

flags! {
    /// The options of estimation as flags.
    RobustFlags: RobustOptions, "Matching"
}
