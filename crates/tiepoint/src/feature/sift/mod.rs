//! SIFT.
