//! `tiepoint demo`.

use super::values::size;
use clap::Args;
use std::path::PathBuf;
use tiepoint::image::Size;

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The folder to fill
    #[arg(default_value = "tiepoint-demo")]
    pub(crate) folder: PathBuf,
    /// Seed of the scenes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Instead, make N aerial photographs of one terrain for collect, and cameras.json with their exact cameras and the
    /// overlap of each pair as a share of the picture
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) aerial: Option<u16>,
    /// Size of the aerial photographs
    #[arg(long, requires = "aerial", default_value = "800x600", value_parser = size)]
    pub(crate) size: Size,
}
