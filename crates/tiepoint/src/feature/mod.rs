//! Keypoints and descriptors, whichever detector made them.

#[cfg(test)]
mod bisect;
mod detector;
pub mod files;
pub mod gpu;
mod keypoint;
pub(crate) mod order;
pub mod select;
pub mod sift;
pub mod surf;

pub use detector::{Detector, Finder};
pub use keypoint::Keypoint;
pub(crate) use keypoint::{WORDS, for_kernels, from_words, to_words};

use crate::device::Cpu;
use crate::image::Size;

/// The descriptors of a set of keypoints, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub enum Descriptors {
    /// 8-bit values: a unit vector times 512 (SIFT: rounded and saturated at 255).
    U8(Vec<u8>),
    /// Unit vectors.
    F32(Vec<f32>),
}

/// What a detector found in one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// Keypoints in their total [order](Keypoint::order).
    pub keypoints: Vec<Keypoint>,
    /// Their descriptors, in the same order; empty when none were asked for.
    pub descriptors: Descriptors,
    /// Values per descriptor; 0 when there are none.
    pub dimension: usize,
    /// Size of the image they were found in.
    pub image: Size,
}

impl Features {
    /// The number of keypoints.
    pub fn len(&self) -> usize {
        self.keypoints.len()
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.keypoints.is_empty()
    }

    /// The features at `indices`, in that order. Indices out of range are left out.
    #[must_use]
    pub fn subset(&self, indices: &[usize]) -> Self {
        let kept: Vec<usize> = indices.iter().copied().filter(|&i| i < self.len()).collect();
        self.gather(&kept, &Cpu::sequential())
    }

    /// The features at `indices`, all in range, in that order.
    fn gather(&self, indices: &[usize], cpu: &Cpu) -> Self {
        Self {
            keypoints: indices.iter().map(|&i| self.keypoints[i]).collect(),
            descriptors: match &self.descriptors {
                Descriptors::U8(v) => Descriptors::U8(gather_rows(v, self.dimension, indices, cpu)),
                Descriptors::F32(v) => Descriptors::F32(gather_rows(v, self.dimension, indices, cpu)),
            },
            ..*self
        }
    }
}

/// The rows of `length` values at `indices`, one after the other.
fn gather_rows<T: Copy + Default + Send + Sync>(
    rows: &[T],
    length: usize,
    indices: &[usize],
    cpu: &Cpu,
) -> Vec<T> {
    const ROWS_PER_TASK: usize = 1024;
    let mut out = vec![T::default(); indices.len() * length];
    cpu.for_chunks(&mut out, ROWS_PER_TASK * length, |task, out| {
        for (to, &i) in out.chunks_exact_mut(length).zip(&indices[task * ROWS_PER_TASK..]) {
            to.copy_from_slice(&rows[i * length..(i + 1) * length]);
        }
    });
    out
}
