//! SURF.
