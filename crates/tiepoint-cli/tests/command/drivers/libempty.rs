//! A library without any function that one would look for.
