//! `tiepoint bench`.

use super::limits::LimitArguments;
use super::values::size;
use clap::Args;
use std::path::PathBuf;
use tiepoint::image::Size;

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// Images [default: a synthetic scene]
    pub(crate) images: Vec<PathBuf>,
    /// Size of the synthetic scene
    #[arg(long, value_name = "WxH", value_parser = size, default_value = "1920x1080")]
    pub(crate) size: Size,
    /// Runs of each measurement, of which the fastest counts
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) repeat: u16,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}
