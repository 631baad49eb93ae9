//! Pictures of results: keypoints, matches, one image laid over another, disparities.

mod canvas;
mod digits;
mod disparity;
mod features;
mod matches;
mod overlay;
mod rows;

pub(crate) use canvas::Canvas;
pub(crate) use disparity::disparity;
pub(crate) use features::keypoints;
pub(crate) use matches::{Tie, side_by_side};
pub(crate) use overlay::{Blend, overlay};
pub(crate) use rows::rows;

use tiepoint_report::Rgb as Colour;

/// Around pictures.
const GROUND: Colour = [24, 26, 30];
/// For keypoints bright on dark.
const RED: Colour = [232, 48, 40];
/// For keypoints dark on bright.
const BLUE: Colour = [40, 110, 240];
/// For inliers.
const GREEN: Colour = [60, 220, 90];
/// For outliers.
const ORANGE: Colour = [250, 130, 40];
