//! `tiepoint match`.

use super::matching::PairArguments;
use super::values::named;
use crate::failure::{Failure, Outcome};
use crate::output::check_image;
use clap::Args;
use std::path::PathBuf;
use tiepoint::matching::files::MatchFormat;

#[derive(Debug, Args)]
pub(crate) struct MatchArguments {
    /// The first image
    pub(crate) a: PathBuf,
    /// The second image
    pub(crate) b: PathBuf,
    /// Write matches to FILE: .csv .json .npz (NumPy) .txt (COLMAP: names relative to the common folder, pixels as stored)
    /// .points (QGIS) .vrt (GDAL: A with ground control points on the map of B)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The format of the matches, if the extension of FILE does not decide it
    #[arg(long, requires = "output", value_parser = named::<MatchFormat>())]
    pub(crate) format: Option<MatchFormat>,
    /// A picture of both images and their matches: inliers green, outliers faint
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    /// Write the matrix of the model to FILE as text, one row on each line. It maps A to B
    #[arg(long, value_name = "FILE")]
    pub(crate) output_model: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pair: PairArguments,
}

impl MatchArguments {
    /// Fails if a result could not be written, or would replace an input.
    pub(crate) fn check(&self) -> Outcome {
        let files = self.pair.files([&self.a, &self.b])?;
        // MicMac's folder may be there already, with the matches of other pairs.
        let output = self.output.iter().filter(|_| self.format != Some(MatchFormat::MicMac));
        files.writes(output.chain(&self.draw).chain(&self.output_model)).check()?;
        if self.format()? == Some(MatchFormat::Colmap) && self.pair.matching.given.is_some() {
            return Err(Failure::usage(
                "--matches: COLMAP's format stores indices of features, which a file of coordinates does not have; \
                 choose another --format",
            ));
        }
        if self.output_model.is_some() && self.pair.matching.model.0.is_none() {
            return Err(Failure::usage("--output-model: with --model none there is no model to write"));
        }
        self.draw.as_deref().map_or(Ok(()), check_image)
    }

    /// The format of the matches, where they are written.
    pub(crate) fn format(&self) -> Outcome<Option<MatchFormat>> {
        let of = |path| MatchFormat::of(path).map_err(Failure::usage);
        self.output.as_ref().map(|path| self.format.map_or_else(|| of(path), Ok)).transpose()
    }
}
