//! Dense stereo: from a rectified pair to disparity, depth and points.

pub mod cloud;
pub mod depth;
