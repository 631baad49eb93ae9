//! How large images may be.

use super::table::{Flags, Given};
use tiepoint::image::ReadOptions;

/// The limits as flags.
#[derive(Clone, Debug)]
pub(crate) struct LimitFlags;

/// How large images may be.
pub(crate) type LimitArguments = Given<LimitFlags>;

impl Flags for LimitFlags {
    type Table = ReadOptions;
    const HEADING: &'static str = "Limits";

    fn start() -> ReadOptions {
        ReadOptions::default()
    }
}
