//! `tiepoint match`.

use super::detector::DetectorArguments;
use super::matching::MatchingArguments;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct MatchArguments {
    /// The first image
    pub(crate) a: PathBuf,
    /// The second image
    pub(crate) b: PathBuf,
    /// Matches to FILE: .csv .json .txt (COLMAP)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A picture of both images and their matches: inliers green, outliers faint
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) matching: MatchingArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}
