//! Module evaluate.
