//! Images with eight values for each pixel: six directions, one unused value, and whether the pixel counts.

use crate::Result;
use crate::device::Cpu;
use crate::image::gpu::GpuImage;
use crate::image::{Image, Made, Size};
use std::sync::Arc;

/// Values of a pixel.
pub(crate) const LANES: usize = 8;
/// Directions, 30° apart.
pub(crate) const BINS: usize = 6;
/// The lane that is 1 where the pixel counts.
pub(crate) const COUNTS: usize = 7;

/// The values of a pixel.
pub(crate) type Lane = [f32; LANES];

/// Such an image where it was made. Clones share the memory.
pub(crate) type Lanes = Made<Arc<Image<f32>>, GpuImage<f32>>;

impl Default for Lanes {
    fn default() -> Self {
        Self::Host(Arc::default())
    }
}

impl Lanes {
    pub(crate) fn size(&self) -> Size {
        match self {
            Self::Host(image) => image.size(),
            Self::Device(image) => image.size(),
        }
    }

    /// In the host's memory.
    pub(crate) fn on_host(&self, cpu: &Cpu) -> Result<Arc<Image<f32>>> {
        match self {
            Self::Host(image) => Ok(image.clone()),
            Self::Device(image) => image.download_by(cpu).map(Arc::new),
        }
    }
}

/// A row as pixels.
#[inline(always)]
pub(crate) fn pixels(row: &[f32]) -> &[Lane] {
    row.as_chunks().0
}

/// As [`pixels`], to be written.
#[inline(always)]
pub(crate) fn pixels_mut(row: &mut [f32]) -> &mut [Lane] {
    row.as_chunks_mut().0
}

/// The values at a place by linear interpolation, along rows first; 0 outside of the centres of the pixels.
#[inline(always)]
pub(crate) fn between(image: &Image<f32>, [x, y]: [f32; 2]) -> Lane {
    let size = image.size();
    let last = [(size.width - 1) as f32, (size.height - 1) as f32];
    if !(x >= 0.0 && y >= 0.0 && x <= last[0] && y <= last[1]) {
        return [0.0; LANES];
    }
    let (left, top) = (x as usize, y as usize);
    let (fx, fy) = (x - left as f32, y - top as f32);
    let (right, bottom) = ((left + 1).min(size.width - 1), (top + 1).min(size.height - 1));
    let [upper, lower] = [top, bottom].map(|y| {
        let row = pixels(image.row(y));
        mixed(&row[left], &row[right], fx)
    });
    mixed(&upper, &lower, fy)
}

/// (1 − t) a + t b.
#[inline(always)]
pub(crate) fn mixed(a: &Lane, b: &Lane, t: f32) -> Lane {
    std::array::from_fn(|i| a[i] * (1.0 - t) + b[i] * t)
}
