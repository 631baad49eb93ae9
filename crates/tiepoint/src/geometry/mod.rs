//! Module geometry.
