//! How images are read, and how large they may be.

use super::table::{Given, flags};
use tiepoint::image::ReadOptions;

/// Options of reading images: limits of size, orientation, band.
pub(crate) type LimitArguments = Given<LimitFlags>;

/// Options of reading the photographs of a collection, which are not turned upright.
pub(crate) type PhotographLimits = Given<PhotographLimitFlags>;

flags! {
    /// The options as flags, for messages.
    LimitFlags: ReadOptions, "Reading"
}

flags! {
    /// The limits of photographs as flags.
    PhotographLimitFlags: ReadOptions, "Limits", ReadOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["orient", "band"];
    }
}
