//! `tiepoint demo`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// The folder to fill
    #[arg(default_value = "tiepoint-demo")]
    pub(crate) folder: PathBuf,
    /// Seed of the scenes
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}
