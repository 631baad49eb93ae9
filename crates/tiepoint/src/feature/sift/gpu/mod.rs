//! SIFT on a GPU: the stages of the CPU with their names and their bits.

pub(crate) mod extrema;
pub(crate) mod plan;
pub(crate) mod scale_space;

#[cfg(test)]
mod tests;
