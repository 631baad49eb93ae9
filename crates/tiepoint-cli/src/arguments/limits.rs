//! How large images may be.

use super::table::{Given, flags};
use tiepoint::image::ReadOptions;

/// How large images may be.
pub(crate) type LimitArguments = Given<LimitFlags>;

flags! {
    /// The limits as flags.
    LimitFlags: ReadOptions, "Limits"
}
