//! Keypoints and descriptors, whichever detector made them.

#[cfg(test)]
mod bisect;
mod detector;
pub mod files;
pub mod gpu;
pub mod select;
pub mod sift;
pub mod surf;

pub use detector::{Detector, Finder};

use crate::device::Cpu;
use crate::image::Size;
use std::cmp::Ordering;

/// A place in an image with a scale and a direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keypoint {
    /// Column in pixels of the input image; 0 is the centre of the first.
    pub x: f32,
    /// Row in pixels of the input image; 0 is the centre of the first.
    pub y: f32,
    /// Standard deviation σ of the Gaussian of this scale, in pixels of the input image.
    pub scale: f32,
    /// Direction in radians, \[0, 2π), from +x towards +y.
    pub angle: f32,
    /// Strength of the response, never negative. SIFT: |DoG| at the refined place, for an image from 0 to 1,
    /// per level step; SURF: determinant of the Hessian.
    pub response: f32,
    /// +1 for bright on dark, −1 for dark on bright.
    pub sign: i8,
    /// Octave in which it was found; −1 is the image at twice its size.
    pub octave: i8,
    /// Layer inside the octave.
    pub layer: u8,
}

impl Keypoint {
    /// The order of every output: response descending, then y, x, scale, angle ascending (then octave and layer).
    pub fn order(&self, other: &Self) -> Ordering {
        other
            .response
            .total_cmp(&self.response)
            .then(self.y.total_cmp(&other.y))
            .then(self.x.total_cmp(&other.x))
            .then(self.scale.total_cmp(&other.scale))
            .then(self.angle.total_cmp(&other.angle))
            .then(self.octave.cmp(&other.octave))
            .then(self.layer.cmp(&other.layer))
    }
}

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
