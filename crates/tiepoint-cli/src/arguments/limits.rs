//! How images are read, and how large they may be.

use super::table::{Given, flags};
use tiepoint::image::ReadOptions;

/// How images are read, and how large they may be.
pub(crate) type LimitArguments = Given<LimitFlags>;

/// The same of photographs of a collection, which stay as they are stored.
pub(crate) type PhotographLimits = Given<PhotographLimitFlags>;

flags! {
    /// How images are read as flags.
    LimitFlags: ReadOptions, "Reading"
}

flags! {
    /// The limits of photographs as flags.
    PhotographLimitFlags: ReadOptions, "Limits", ReadOptions::default(), {
        const WITHOUT: &'static [&'static str] = &["orient", "band"];
    }
}
