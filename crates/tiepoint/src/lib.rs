//! Image correspondence: features, matches, models, registration and dense stereo of images of one scene.
//!
//! ```text
//! image ── feature (sift, surf) ── matching ── geometry (estimate, warp) ── register
//!                                                 │
//!                                              calibration, rectify ── stereo ── depth, cloud
//! collection: all of this for many photographs, pair by pair
//! below all of them:  filter (gauss, sobel, integral, resample), image, device, options, numeric
//! after them:         assess (good, doubtful or poor, with reasons)
//! beside them:        evaluate (scores against ground truth), synth (scenes with known truth)
//! ```
//!
//! **Conventions, everywhere.** Pixel centres lie at integers: (0, 0) is the centre of the top-left pixel,
//! x points right, y points down. Angles are radians in \[0, 2π), turning from +x towards +y. A scale is the
//! standard deviation σ of a Gaussian, in pixels of the input image. A disparity d says that the left (x, y)
//! shows what the right (x − d, y) shows. Other conventions exist only at file formats.
//!
//! **One answer everywhere.** The same input and options give the same bits for every thread count and SIMD
//! level, run after run: f32 stages state the order of their operations and where they fuse, sums of many
//! terms are taken in fixed point, and output has a total order.
//!
//! A GPU gives the same bits as the CPU. If it lacks memory or 64-bit floats for some work, the CPU does it, and a
//! [note](device::Processor::take_notes) says so.
//!
//! Threads and memory are arguments ([`device::Cpu`]); the library prints nothing. Its only global setting is
//! [`files::wait_for_disk`].
//! Invalid files, images and options lead to an [`Error`], which has a [kind](error::ErrorKind).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests compare with the C library's functions"))]

#[cfg(test)]
extern crate self as tiepoint;

pub mod assess;
#[cfg(test)]
mod bisect;
pub mod collection;
pub mod device;
pub mod error;
pub mod evaluate;
pub mod feature;
pub mod files;
pub mod filter;
pub mod geometry;
pub mod image;
#[cfg(test)]
mod kernels;
pub mod matching;
pub mod numeric;
pub mod options;
pub mod register;
pub mod stereo;
pub mod synth;

pub use error::{Error, ErrorKind, Result};
