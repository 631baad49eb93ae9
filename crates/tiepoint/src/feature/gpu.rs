//! Features in a device's memory, and their total order.

mod place;
mod results;
mod search;

pub(crate) use results::{Lists, Results, nothing};
#[cfg(test)]
pub(crate) use search::AT_A_TIME;
pub(crate) use search::{Feed, Search, same_size, size_of_all};

use super::{Descriptors, Features, Keypoint};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use tiepoint_gpu::{Kernel, KernelSource, arguments};

/// Words of a keypoint in a device's memory, as `keypoint.cl` names them.
pub(crate) const WORDS: usize = 8;

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

pub(crate) fn to_words(k: &Keypoint) -> [u32; WORDS] {
    let place = (i32::from(k.octave) + 128).unsigned_abs() << 8 | u32::from(k.layer);
    let [x, y, scale, angle, response] = [k.x, k.y, k.scale, k.angle, k.response].map(f32::to_bits);
    [x, y, scale, angle, response, place, i32::from(k.sign) as u32, 0]
}

pub(crate) fn from_words(words: &[u32]) -> Keypoint {
    let float = |i: usize| f32::from_bits(words[i]);
    Keypoint {
        x: float(0),
        y: float(1),
        scale: float(2),
        angle: float(3),
        response: float(4),
        sign: words[6] as i32 as i8,
        octave: ((words[5] >> 8 & 255) as i32 - 128) as i8,
        layer: words[5] as u8,
    }
}

/// For kernels: the type `Keypoint`, and its order.
pub(crate) fn for_kernels(source: KernelSource) -> KernelSource {
    source.text(include_str!("keypoint.cl"))
}

/// Puts keypoints into their total order.
#[derive(Clone, Debug)]
pub(crate) struct GpuOrder {
    sort_runs: Kernel,
    merge_runs: Kernel,
}

impl GpuOrder {
    /// Lanes of a group.
    const GROUP: u32 = 256;
    /// Keypoints of a first run.
    const RUN: usize = 512;
    /// Runs that are merged at a time.
    const WAYS: usize = 8;

    pub(crate) fn source() -> KernelSource {
        let source = KernelSource::new("order").define("GROUP", Self::GROUP).define("RUN", Self::RUN);
        for_kernels(source.define("WAYS", Self::WAYS)).text(include_str!("order.cl"))
    }

    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        let program = gpu.program(&Self::source())?;
        Ok(Self {
            sort_runs: program.untyped_kernel("sort_runs", [Self::GROUP, 1])?,
            merge_runs: program.untyped_kernel("merge_runs", [Self::GROUP, 1])?,
        })
    }

    /// Writes, for each of several images, its first `counts[image]` keypoints in their order: the lower halves are
    /// their indices. The keypoints of image i begin at i · `capacity`, and so does their order. `spare` is as large as
    /// `order`; the result is in the one that is returned.
    pub(crate) fn record<'b>(
        &self,
        commands: &mut Commands,
        keypoints: &Buffer<u32>,
        counts: &Buffer<u32>,
        capacity: usize,
        (order, spare): (&'b Buffer<u64>, &'b Buffer<u64>),
    ) -> Result<&'b Buffer<u64>> {
        let groups = |of: usize| [capacity.div_ceil(of), counts.len(), 1];
        let (mut from, mut to, room) = (order, spare, capacity as u32);
        commands.launch_untyped(
            &self.sort_runs,
            groups(Self::RUN),
            arguments![from, keypoints, counts, room],
        )?;
        let mut size = Self::RUN;
        while size < capacity {
            let arguments = arguments![to, from, keypoints, counts, room, size as u32];
            commands.launch_untyped(&self.merge_runs, groups(Self::GROUP as usize), arguments)?;
            std::mem::swap(&mut from, &mut to);
            size *= Self::WAYS;
        }
        Ok(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::{all, compiles_everywhere};

    /// Keypoints with many equal keys; `n` of them.
    fn keypoints(n: usize, seed: u32) -> Vec<Keypoint> {
        let mut state = seed;
        let mut next = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 12) % n
        };
        let mut keypoint = || Keypoint {
            x: next(4) as f32 - 1.0,
            y: next(5) as f32 - 0.5,
            scale: 1.0 + next(3) as f32,
            angle: next(9) as f32 * 0.5,
            response: next(20) as f32 * 0.01,
            sign: 1,
            octave: next(4) as i8 - 1,
            layer: next(3) as u8,
        };
        (0..n).map(|_| keypoint()).collect()
    }

    #[test]
    fn the_order_is_that_of_the_cpu() {
        for gpu in all() {
            let order = GpuOrder::new(gpu).unwrap();
            for (capacity, counts) in [
                (1, [1, 0]),
                (300, [299, 257]),
                (1024, [512, 513]),
                (5000, [5000, 4097]),
                (33_000, [32_769, 9]),
            ] {
                let images: Vec<_> = counts.iter().map(|&n| keypoints(n, n as u32)).collect();
                let mut words = vec![0; 2 * capacity * WORDS];
                for (i, image) in images.iter().enumerate() {
                    for (k, to) in image.iter().zip(words[i * capacity * WORDS..].chunks_exact_mut(WORDS)) {
                        to.copy_from_slice(&to_words(k));
                    }
                }
                let on_device = gpu.upload(&words).unwrap();
                let counts = gpu.upload(&counts.map(|n| n as u32)).unwrap();
                let [a, b] = [(); 2].map(|()| gpu.buffer(2 * capacity).unwrap());
                let mut commands = Commands::new();
                let sorted = order.record(&mut commands, &on_device, &counts, capacity, (&a, &b)).unwrap();
                gpu.run(&commands).unwrap();
                let sorted = sorted.to_vec().unwrap();
                for (i, image) in images.into_iter().enumerate() {
                    let found =
                        sorted[i * capacity..][..image.len()].iter().map(|&at| image[at as u32 as usize]);
                    let mut expected = image.clone();
                    expected.sort_by(Keypoint::order);
                    assert!(found.eq(expected), "{gpu:?}: {} of {capacity}", image.len());
                }
            }
        }
    }

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

    #[test]
    fn kernels_compile_for_every_card() {
        compiles_everywhere(&[GpuOrder::source()]);
    }
}
