//! Mutual information: learnt from the pair by what its disparities lay upon each other.

pub(super) mod information;
pub(in crate::stereo) mod learn;
mod projection;

pub(in crate::stereo) use projection::{Colour, is_colour};
