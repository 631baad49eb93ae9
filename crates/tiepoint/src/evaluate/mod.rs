//! Module evaluate.

pub mod ground_truth;
