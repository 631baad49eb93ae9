//! Features in a device's memory.

mod batch;
pub(crate) mod columns;
mod detector;
pub(crate) mod gather;
pub(crate) mod pipeline;
mod readback;
pub(crate) mod results;
pub(crate) mod search;
pub(crate) mod sending;
pub(crate) mod staging;

#[cfg(test)]
pub(crate) use batch::AT_A_TIME;
pub use columns::GpuColumns;
pub use detector::GpuDetector;

use super::{ByValue, Features, Keypoint, WORDS, by_value, from_words, to_words};
use crate::Result;
use crate::device::gpu::{Buffer, Gpu};
use crate::image::Size;

/// The features of one image, in a device's memory. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuFeatures {
    /// The number of features: one number.
    pub(crate) count: Buffer<u32>,
    /// Keypoints in their total order, [`WORDS`] each.
    pub(crate) keypoints: Buffer<u32>,
    pub(crate) descriptors: GpuDescriptors,
    pub(crate) dimension: usize,
    pub(crate) image: Size,
    /// Whether the sign of every keypoint is known.
    pub(crate) signed: bool,
}

/// Features in the host's memory and, if a GPU found them, also in its memory, so that they need not be uploaded for a
/// search there.
#[derive(Clone, Debug)]
pub struct FoundFeatures {
    /// The features.
    pub features: Features,
    /// The same features. Their memory may have room for more, and their counter may exceed the room.
    pub(crate) on_device: Option<GpuFeatures>,
}

impl From<Features> for FoundFeatures {
    /// Features that are only in the host's memory.
    fn from(features: Features) -> Self {
        Self { features, on_device: None }
    }
}

/// Keypoints of some images in a device's memory, in any order. A clone is the same memory.
#[derive(Clone, Debug)]
pub(crate) struct GpuKeypoints {
    /// [`WORDS`] each; those of image i begin at number i · `capacity`.
    pub(crate) keypoints: Buffer<u32>,
    /// The number found in each image: more than `capacity` if that was too small; the rest is then missing.
    pub(crate) counts: Buffer<u32>,
    /// The number of keypoints of one image that fit.
    pub(crate) capacity: usize,
}

impl GpuKeypoints {
    pub(crate) fn new(gpu: &Gpu, images: usize, capacity: usize) -> Result<Self> {
        let words = capacity.saturating_mul(images).saturating_mul(WORDS);
        Ok(Self { keypoints: gpu.buffer(words)?, counts: gpu.buffer(images)?, capacity })
    }

    /// The keypoints of one image, for tests.
    #[cfg(test)]
    pub(crate) fn download(&self) -> Vec<Keypoint> {
        let count = self.counts.to_vec().unwrap()[0] as usize;
        self.keypoints.to_vec().unwrap().chunks_exact(WORDS).take(count).map(from_words).collect()
    }
}

/// The descriptors of [`GpuFeatures`], in the order of the keypoints. A clone is the same memory.
pub type GpuDescriptors = ByValue<Buffer<u8>, Buffer<f32>>;

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
            descriptors: by_value!(map &features.descriptors, values => gpu.upload(values)?),
            dimension: features.dimension,
            image: features.image,
            signed: Keypoint::have_signs(&features.keypoints),
        })
    }

    /// Waits for the device and copies the features to the host.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when it failed.
    pub fn download(&self) -> Result<Features> {
        let keypoints = self.download_keypoints()?;
        let len = keypoints.len() * self.dimension;
        let descriptors = by_value!(map &self.descriptors, values => values.first(len)?);
        Ok(Features { keypoints, descriptors, dimension: self.dimension, image: self.image })
    }

    /// Waits for the device and copies the features without their descriptors to the host.
    ///
    /// # Errors
    /// [`crate::Error::Device`] when it failed.
    pub fn download_keypoints(&self) -> Result<Vec<Keypoint>> {
        let words = self.keypoints.first(self.len()? * WORDS)?;
        Ok(words.chunks_exact(WORDS).map(from_words).collect())
    }

    /// The number of features; waits for all work.
    pub(crate) fn len(&self) -> Result<usize> {
        Ok((self.count.first(1)?[0] as usize).min(self.capacity()))
    }

    /// The number of features that fit into the memory.
    pub fn capacity(&self) -> usize {
        self.keypoints.len() / WORDS
    }
}

/// A processor with this GPU whose CPU is the calling thread alone, for tests.
#[cfg(test)]
pub(crate) fn beside(gpu: &Gpu) -> crate::device::Processor {
    crate::device::Processor::with_gpu(crate::device::Cpu::sequential(), gpu.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::device::gpu::{Api, all};
    use crate::feature::Detector;
    use crate::feature::surf::SurfOptions;
    use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
    use crate::image::{Image, grey, grey_on_device};
    use crate::synth::Texture;

    /// The same card, opened again, stands for another program; its images have unaligned addresses and pitches.
    #[test]
    fn images_of_other_programs_have_the_same_features() {
        let cpu = Cpu::with_threads(2).unwrap();
        let size = Size::new(157, 120);
        let image = Texture::new(5).image::<u8>(size, &cpu);
        let floats = Image::from_fn(size, |x, y| f32::from(image.row(y)[x]) / 255.0);
        let mask = Image::from_fn(size, |x, _| if x < 90 { 255_u8 } else { 0 });
        for gpu in all().iter().filter(|gpu| gpu.info().api == Api::Cuda) {
            let other = Gpu::open(Api::Cuda, gpu.info().index).unwrap();
            let processor = beside(gpu);
            for detector in [Detector::default(), Detector::Surf(SurfOptions::default())] {
                let finder = detector.open(&processor).unwrap();
                for (first, pitch) in [(0, 157), (3, 161), (256, 256)] {
                    let there = foreign(gpu, &other, &image, first, pitch);
                    let floats_there = foreign(gpu, &other, &floats, first, pitch);
                    let mask_there = foreign(gpu, &other, &mask, first, pitch);
                    for mask in [None, Some((mask.view(), &mask_there))] {
                        let found =
                            finder.detect_on_device(&there, mask.map(|(_, there)| there.into())).unwrap();
                        let wanted = detector.detect(&image, mask.map(|(here, _)| here), &processor).unwrap();
                        assert!(wanted.len() > 20, "{} features", wanted.len());
                        assert_eq!(found.download().unwrap(), wanted, "{detector:?}: {first}, {pitch}");
                    }
                    let found = finder.detect_on_device(&floats_there, None).unwrap().download().unwrap();
                    let wanted = detector.detect(&floats, None, &processor).unwrap();
                    assert_eq!(found, wanted, "{detector:?} of floats: {first}, {pitch}");
                }
            }
            assert_eq!(processor.take_notes(), Vec::<String>::new(), "the CPU did part of the work");
            let colours =
                Image::from_vec((0..157 * 7 * 3).map(|i| i as u8).collect(), Size::new(157, 7), 3).unwrap();
            let there = AnyGpuImage::from(foreign(gpu, &other, &colours, 1, 500));
            let found = grey_on_device(&there).unwrap().download().unwrap();
            assert_eq!(found, grey(&colours, &cpu).unwrap().into_image(), "grey of unaligned colours");
            assert_eq!(there.download().unwrap(), colours.into(), "short last row");
        }
    }

    /// An image in memory of `other`, whose first row begins at element `first` and whose rows are `pitch` apart. The
    /// last row ends with the memory.
    #[expect(unsafe_code, reason = "foreign memory is used by its address")]
    fn foreign<T: GpuPixel>(
        gpu: &Gpu,
        other: &Gpu,
        image: &Image<T>,
        first: usize,
        pitch: usize,
    ) -> GpuImage<T> {
        let (size, channels) = (image.size(), image.channels());
        let row = size.width * channels;
        let mut numbers = vec![T::from_f32(0.7); first + (size.height - 1) * pitch + row];
        for y in 0..size.height {
            numbers[first + y * pitch..][..row].copy_from_slice(image.row(y));
        }
        let buffer = other.upload(&numbers).unwrap();
        let address = buffer.share().unwrap() + (first * size_of::<T>()) as u64;
        // SAFETY: the numbers were uploaded, and the buffer keeps them alive.
        unsafe { GpuImage::foreign(gpu, address, (size, channels, pitch), buffer) }.unwrap()
    }
}
