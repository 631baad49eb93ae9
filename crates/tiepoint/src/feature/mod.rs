//! Keypoints and descriptors of any detector, and the detectors.

mod detector;
mod features;
pub mod files;
pub mod gpu;
mod keypoint;
pub(crate) mod order;
pub mod select;
pub mod sift;
pub(crate) mod structure;
pub mod surf;
#[cfg(test)]
pub(crate) mod testing;
pub mod views;

pub use detector::{Detector, DetectorKind, Finder};
pub(crate) use features::by_value;
pub use features::{ByValue, DescriptorKind, Descriptors, Features};
pub use gpu::FoundFeatures;
pub use keypoint::Keypoint;
pub(crate) use keypoint::{WORDS, for_kernels, from_words, to_words};
