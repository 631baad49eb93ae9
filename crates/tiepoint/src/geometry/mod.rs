//! Models between two images, their robust estimation, and warping.
//!
//! A model maps places of image A to image B: `Homography`, `Affine` and `Similarity` to places,
//! `Fundamental` to lines. Matrices are f64, row-major, and act on column vectors (x, y, 1) with pixel
//! centres at integers. No type of a linear-algebra crate appears here.

pub mod calibration;
pub mod estimate;
mod linear;
mod matrix;
mod model;
pub mod rectify;
pub mod warp;

pub use estimate::{Correspondence, Estimate, RobustOptions, estimate};
pub use model::{Affine, Fundamental, Homography, Model, ModelKind, Similarity};
