//! Module filter.
