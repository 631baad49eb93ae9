//! Gaussian smoothing.

pub(crate) mod rows;
