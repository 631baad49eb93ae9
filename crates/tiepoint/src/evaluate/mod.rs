//! Scores against ground truth: the repeatability of features, the accuracy of matches, homographies, positions and
//! angles, and that of disparity maps.
//!
//! The truth is a [homography](crate::geometry::Homography) `b_from_a`, which maps points of image A to image B, or a
//! disparity map.

mod accuracy;
mod disparity;
pub mod ground_truth;
mod repeatability;

pub use accuracy::{
    AngleError, PositionError, THRESHOLDS, angle_error, corner_error, matching_accuracy, position_error,
};
pub(crate) use disparity::scale_of_truth;
pub use disparity::{
    DisparityScore, DisparityScoring, disparity_notes, disparity_score, filled, non_occluded,
};
pub use repeatability::{Repeatability, RepeatabilityOptions, repeatability};
