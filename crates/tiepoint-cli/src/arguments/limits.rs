//! Flags about how images are read, and how large they may be.

use super::table::{Given, flags};
use tiepoint::image::ReadOptions;

/// The flags for reading images: limits of size, orientation, band.
pub(crate) type LimitArguments = Given<LimitFlags>;

/// The flags for reading the photographs of a collection, which are never turned upright.
pub(crate) type PhotographLimits = Given<PhotographLimitFlags>;

flags! {
    /// All options of reading as flags.
    LimitFlags: ReadOptions, "Reading"
}

flags! {
    /// The limits of photographs as flags.
    PhotographLimitFlags: ReadOptions, "Limits", ReadOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["orient", "band"];
    }
}
