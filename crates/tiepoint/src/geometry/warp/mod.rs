//! Warping: see below.
