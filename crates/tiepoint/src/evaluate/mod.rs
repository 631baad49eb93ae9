//! Scores against the truth: how often features come again, how many matches are right, how far a homography
//! is off, how exact positions and angles are; and how right a disparity map is.
//!
//! Truth is a [homography](crate::geometry::Homography) `b_from_a`, which maps points of image A to image B,
//! or a disparity map.

mod accuracy;
mod disparity;
pub mod ground_truth;
mod repeatability;

pub use accuracy::{
    AngleError, PositionError, THRESHOLDS, angle_error, corner_error, matching_accuracy, position_error,
};
pub use disparity::{DisparityScore, DisparityScoring, disparity_score, filled, non_occluded};
pub use repeatability::{Repeatability, RepeatabilityOptions, repeatability};
