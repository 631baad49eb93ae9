//! Dense stereo by Semi-Global Matching: a disparity for every pixel of a rectified pair.
//!
//! **Convention.** The left image is the reference: `left(x, y)` shows what `right(x − d, y)` shows. Disparities are
//! in pixels; a pixel without one holds [`INVALID`].

pub mod cost;
pub mod files;
mod options;

pub use options::{Cost, Paths, Penalties, RightView, StereoOptions, Subpixel};

use crate::image::Image;

/// The disparity of a pixel that has none.
pub const INVALID: f32 = f32::INFINITY;

/// What dense stereo finds.
#[derive(Clone, Debug, PartialEq)]
pub struct StereoResult {
    /// Disparities of the left view in pixels, [`INVALID`] where there is none.
    pub disparity: Image<f32>,
    /// Disparities of the right view, if asked for: `right(x, y)` shows what `left(x + d, y)` shows.
    pub right: Option<Image<f32>>,
    /// How distinct the best sum is, from 0 (not at all) to 1, if asked for; 0 where there is no disparity.
    pub confidence: Option<Image<f32>>,
}
