//! Image correspondence: find what two pictures of the same thing have in common.
//!
//! ```text
//! images ─ feature (sift, surf) ─ matching ─ geometry (estimate, warp) ─ register
//!                                              │ rectify, calibration
//!        rectified pair ─ stereo (cost, aggregate, select, refine) ─ depth, cloud
//!             filter (gauss, sobel, integral, resample)
//!             image, device, numeric
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
//! Threads and memory are arguments ([`device::Cpu`]); the library prints nothing, keeps no global state and
//! does not panic on any input.

pub mod device;
pub mod error;
pub mod evaluate;
pub mod feature;
pub mod files;
pub mod filter;
pub mod geometry;
pub mod image;
pub mod matching;
pub mod numeric;
pub mod options;
pub mod register;
pub mod stereo;
pub mod synth;

pub use error::{Error, Result};
