//! Features in a device's memory.

mod batch;
mod detector;
mod input;
pub(crate) mod pipeline;
mod readback;
pub(crate) mod results;
pub(crate) mod search;
pub(crate) mod staging;

#[cfg(test)]
pub(crate) use batch::AT_A_TIME;
pub use detector::GpuDetector;
pub use input::Pixels;

use super::{Descriptors, Features, WORDS, from_words, to_words};
use crate::Result;
use crate::device::gpu::{Buffer, Gpu};
use crate::image::Size;

/// What a detector found in one image, in a device's memory. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuFeatures {
    /// How many there are: one number.
    pub(crate) count: Buffer<u32>,
    /// Keypoints in their total order, [`WORDS`] each.
    pub(crate) keypoints: Buffer<u32>,
    pub(crate) descriptors: GpuDescriptors,
    pub(crate) dimension: usize,
    pub(crate) image: Size,
}

/// Keypoints of some images in a device's memory, in any order. A clone is the same memory.
#[derive(Clone, Debug)]
pub(crate) struct GpuKeypoints {
    /// [`WORDS`] each; those of image i begin at number i · `capacity`.
    pub(crate) keypoints: Buffer<u32>,
    /// For each image how many were found: more than `capacity` when that was too small, the rest is then missing.
    pub(crate) counts: Buffer<u32>,
    /// How many fit for one image.
    pub(crate) capacity: usize,
}

impl GpuKeypoints {
    /// Memory for this many keypoints an image.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] when the device has not so much.
    pub(crate) fn new(gpu: &Gpu, images: usize, capacity: usize) -> Result<Self> {
        let words = capacity.saturating_mul(images).saturating_mul(WORDS);
        Ok(Self { keypoints: gpu.buffer(words)?, counts: gpu.buffer(images)?, capacity })
    }
}

/// The descriptors of [`GpuFeatures`], in the order of the keypoints.
#[derive(Clone, Debug)]
pub(crate) enum GpuDescriptors {
    U8(Buffer<u8>),
    F32(Buffer<f32>),
}

impl GpuFeatures {
    /// The same features on a device.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when its memory is too small.
    pub fn upload(gpu: &Gpu, features: &Features) -> Result<Self> {
        let words: Vec<u32> = features.keypoints.iter().flat_map(to_words).collect();
        Ok(Self {
            count: gpu.upload(&[features.len() as u32])?,
            keypoints: gpu.upload(&words)?,
            descriptors: match &features.descriptors {
                Descriptors::U8(v) => GpuDescriptors::U8(gpu.upload(v)?),
                Descriptors::F32(v) => GpuDescriptors::F32(gpu.upload(v)?),
            },
            dimension: features.dimension,
            image: features.image,
        })
    }

    /// The features, when the device has finished.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when it failed.
    pub fn download(&self) -> Result<Features> {
        let mut count = [0];
        self.count.read(0, &mut count)?;
        let count = count[0] as usize;
        let mut words = vec![0; count * WORDS];
        self.keypoints.read(0, &mut words)?;
        let values = count * self.dimension;
        let descriptors = match &self.descriptors {
            GpuDescriptors::U8(buffer) => {
                let mut bytes = vec![0; values];
                buffer.read(0, &mut bytes)?;
                Descriptors::U8(bytes)
            }
            GpuDescriptors::F32(buffer) => {
                let mut floats = vec![0.0; values];
                buffer.read(0, &mut floats)?;
                Descriptors::F32(floats)
            }
        };
        let keypoints = words.chunks_exact(WORDS).map(from_words).collect();
        Ok(Features { keypoints, descriptors, dimension: self.dimension, image: self.image })
    }

    /// How many features fit into the memory.
    pub fn capacity(&self) -> usize {
        self.keypoints.len() / WORDS
    }
}

/// A GPU beside the calling thread, for tests.
#[cfg(test)]
pub(crate) fn beside(gpu: &Gpu) -> crate::device::Processor {
    crate::device::Processor::with_gpu(crate::device::Cpu::sequential(), gpu.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::feature::order::gpu::tests::keypoints;

    #[test]
    fn features_come_back_as_they_went() {
        for gpu in all() {
            let features = Features {
                keypoints: keypoints(77, 5),
                descriptors: Descriptors::U8((0..77 * 128).map(|i| i as u8).collect()),
                dimension: 128,
                image: Size::new(640, 480),
            };
            let on_device = GpuFeatures::upload(gpu, &features).unwrap();
            assert_eq!(on_device.capacity(), 77, "as many as were uploaded");
            assert_eq!(on_device.download().unwrap(), features, "{gpu:?}");
        }
    }
}
