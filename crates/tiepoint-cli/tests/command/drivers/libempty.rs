//! A library without functions.
