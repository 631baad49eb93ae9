//! Some of the features in a device's memory: `gather.cl`.

use super::GpuFeatures;
use crate::device::gpu::{Buffer, Commands, Element};
use crate::feature::{WORDS, by_value};
use crate::{Error, Result};
use tiepoint_gpu::KernelSource;

const LANES: u32 = 256;

tiepoint_gpu::kernel! {
    unsafe kernel gather(groups) = Gather<V: Element> {
        write keypoints: u32 [n * WORDS as i128],
        write values: V [n * dimension],
        read indices: u32 [n],
        read all_keypoints: u32 [capacity * WORDS as i128],
        read all_values: V [capacity * dimension],
    } {
        n: u32,
        dimension: u32,
        capacity: u32,
    }
}

pub(crate) fn source<V: Element>() -> KernelSource {
    KernelSource::new("gather")
        .define("LANES", LANES)
        .define("KEYPOINT_WORDS", WORDS)
        .kernel::<Gather<'_, V>>([LANES, 1])
        .text(include_str!("gather.cl"))
}

impl GpuFeatures {
    /// The features at `indices`, in that order. The host does not wait.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for an index beyond the memory of these, [`Error::Memory`] when the device's memory is too
    /// small.
    pub fn gather(&self, indices: &[u32]) -> Result<Self> {
        if let Some(beyond) = indices.iter().find(|&&i| i as usize >= self.capacity()) {
            return Err(Error::Mismatch(format!("feature {beyond} of {}", self.capacity())));
        }
        let gpu = self.gpu();
        let keypoints = gpu.buffer(indices.len() * WORDS)?;
        let descriptors =
            by_value!(map &self.descriptors, all => self.gather_values(all, indices, &keypoints)?);
        let count = gpu.upload(&[indices.len() as u32])?;
        let Self { dimension, image, signed, .. } = *self;
        Ok(Self { count, keypoints, descriptors, dimension, image, signed })
    }

    /// Gathers descriptors and, in the same launch, keypoints into `keypoints`; returns the descriptors.
    fn gather_values<V: Element>(
        &self,
        all_values: &Buffer<V>,
        indices: &[u32],
        keypoints: &Buffer<u32>,
    ) -> Result<Buffer<V>> {
        let gpu = self.gpu();
        let (n, dimension) = (indices.len(), self.dimension);
        let values = gpu.buffer(n * dimension)?;
        let kernel = gpu.program(&source::<V>())?.kernel::<Gather<'_, V>>()?;
        let mut commands = Commands::new();
        commands.stage("gather");
        let arguments = Gather {
            keypoints,
            values: &values,
            indices: &gpu.upload(indices)?,
            all_keypoints: &self.keypoints,
            all_values,
            n: n as u32,
            dimension: dimension as u32,
            capacity: self.capacity() as u32,
        };
        let groups = (n * dimension.max(WORDS)).div_ceil(LANES as usize);
        commands.launch(&kernel, [groups, 1, 1], arguments)?;
        gpu.run(&commands)?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::all;
    use crate::feature::order::gpu::tests::keypoints;
    use crate::feature::{Descriptors, Features};
    use crate::image::Size;

    #[test]
    fn features_are_gathered_in_any_order() {
        for gpu in all() {
            for dimension in [0, 3, 64] {
                let bytes: Vec<u8> = (0..90 * dimension).map(|i| (i % 253) as u8).collect();
                let floats: Vec<f32> = bytes.iter().map(|b| f32::from(*b)).collect();
                for descriptors in [Descriptors::U8(bytes), Descriptors::F32(floats)] {
                    let image = Size::new(640, 480);
                    let features = Features { keypoints: keypoints(90, 5), descriptors, dimension, image };
                    let there = GpuFeatures::upload(gpu, &features).unwrap();
                    assert_eq!(there.download().unwrap(), features, "as they were uploaded, {gpu:?}");
                    for indices in [vec![], vec![7], vec![89, 0, 33, 33, 5], (0..90).rev().collect()] {
                        let found = there.gather(&indices).unwrap().download().unwrap();
                        let wanted: Vec<usize> = indices.iter().map(|i| *i as usize).collect();
                        assert_eq!(found, features.subset(&wanted).unwrap(), "{gpu:?}: {indices:?}");
                    }
                    assert!(matches!(there.gather(&[90]), Err(Error::Mismatch(_))), "the ninety-first");
                }
            }
        }
    }
}
