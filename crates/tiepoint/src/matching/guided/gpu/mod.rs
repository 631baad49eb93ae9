//! The guided search on a GPU: near the places that a model predicts, or along its lines.

pub(crate) mod lines;
pub(crate) mod places;
