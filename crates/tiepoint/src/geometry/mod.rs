//! Models between two images, their robust estimation, warping, calibration and rectification.
//!
//! A model maps points of image A to image B: [`Homography`], [`Affine`] and [`Similarity`] to points,
//! [`Fundamental`] and [`Essential`] to lines. Variables and fields that hold one name the direction, target first:
//! `b_from_a`, `reference_from_moving`; so `c_from_b.compose(&b_from_a)` is `c_from_a`. Matrices are f64, row-major, and
//! act on column vectors (x, y, 1) with pixel centres at integers. The interface shows no type of a
//! linear-algebra crate.

pub mod calibration;
pub mod estimate;
pub(crate) mod linear;
mod matrix;
mod model;
mod real;
pub mod rectify;
pub mod two_view;
pub mod warp;
pub(crate) mod weighted;

pub use estimate::{Correspondence, Estimate, RobustOptions, estimate};
pub(crate) use matrix::{cross, direction, flat};
pub use model::{Affine, Essential, Fundamental, Homography, Model, ModelKind, Similarity};
