//! Module matching.
