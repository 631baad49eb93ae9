//! How large images may be.

use super::values::{bytes, count};
use clap::Args;
use tiepoint::image::ReadOptions;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Memory that a decoded image may take: 8G, or bytes; a larger one is refused [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Pixels that an image may have, 20M or 20000000; a larger one is refused [default: 4294967296]
    #[arg(long, value_name = "N", value_parser = count)]
    max_pixels: Option<u64>,
}

impl LimitArguments {
    pub(crate) fn options(&self) -> ReadOptions {
        let start = ReadOptions::default();
        let (bytes, pixels) = (start.max_bytes, start.max_pixels);
        start
            .with_max_bytes(self.max_bytes.unwrap_or(bytes))
            .with_max_pixels(self.max_pixels.unwrap_or(pixels))
    }
}
