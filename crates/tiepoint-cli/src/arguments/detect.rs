//! `tiepoint detect`.

use super::detector::DetectorArguments;
use super::report::ReportArguments;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(mut_arg("report", |page| page.help(
    "Write a page that shows the features: one .html file that needs only a browser, no network and no server; for several \
     images a folder or a pattern as for --output"
)))]
pub(crate) struct DetectArguments {
    /// Images; @FILE stands for the images listed in FILE
    #[arg(required_unless_present = "list", value_name = "IMAGE")]
    pub(crate) images: Vec<PathBuf>,
    /// A file with one image path a line; - reads stdin. Empty lines and those beginning with # are skipped
    #[arg(long, value_name = "FILE")]
    pub(crate) list: Option<PathBuf>,
    /// Write features to FILE: .csv .json .npz .sift (Lowe, VLFeat) .txt (COLMAP). For several images a folder
    /// (IMAGE.csv in it), or a pattern in which {} stands for the image's name
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// A picture of the keypoints; a folder or a pattern as for --output
    #[arg(long, value_name = "PNG")]
    pub(crate) draw: Option<String>,
    #[command(flatten)]
    pub(crate) report: ReportArguments,
    #[command(flatten)]
    pub(crate) detector: DetectorArguments,
}
