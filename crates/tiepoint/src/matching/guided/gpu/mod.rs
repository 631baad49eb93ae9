//! The guided search on a GPU: near the places that a model predicts, or along its lines.

pub(in crate::matching) mod lines;
pub(in crate::matching) mod places;
