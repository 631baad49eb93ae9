//! Features of photographs, kept in the memory of a device for later pairs.

use super::recent::Recent;
use crate::Result;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::matching::{GpuMatcher, GpuPacked, MatchOptions};
use std::sync::Arc;

/// Photographs may take one in this many bytes of a device's free memory.
const SHARE: u64 = 4;

/// The features of photographs in a device's memory, packed for the search.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) matcher: GpuMatcher,
    pub(super) kept: Recent<Arc<GpuPacked>>,
    pub(super) options: MatchOptions,
}

impl Uploaded {
    pub(super) fn new(gpu: &Gpu, options: MatchOptions) -> Self {
        let memory = gpu.info().memory;
        let room = gpu.free_memory().map_or(memory, |free| free.min(memory)) / SHARE;
        let kept = Recent::<Arc<GpuPacked>>::new(room, |packed| packed.bytes() as u64);
        Self { matcher: GpuMatcher::new(gpu), kept, options }
    }

    /// The features of a photograph, uploaded unless they are on the device.
    pub(super) fn get(&self, index: u32, features: &Features) -> Result<Arc<GpuPacked>> {
        self.kept.get(index, || Ok(Arc::new(self.matcher.send(features, &self.options)?)))
    }

    /// The features of two photographs, packed by sign only if the signs of both are known.
    pub(super) fn pair(&self, indices: [u32; 2], features: [&Features; 2]) -> Result<[Arc<GpuPacked>; 2]> {
        let get = |side: usize| self.get(indices[side], features[side]);
        let mut sides = [get(0)?, get(1)?];
        if sides[0].by_sign != sides[1].by_sign {
            let signed = usize::from(sides[1].by_sign);
            sides[signed] =
                Arc::new(self.matcher.send(features[signed], &self.options.with_same_sign(false))?);
        }
        Ok(sides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Cpu, gpu::all};
    use crate::feature::Descriptors;
    use crate::matching::match_features;
    use crate::matching::tests::{Numbers, features};

    #[test]
    fn photographs_with_and_without_signs_match_as_on_the_cpu() {
        let mut numbers = Numbers(7);
        let mut random = |signs: [i8; 2]| {
            let mut found = features(&[[0.0; 2]; 90], Descriptors::U8(numbers.bytes(90 * 16, 9)), 16);
            found.keypoints.iter_mut().enumerate().for_each(|(i, k)| k.sign = signs[i % 2]);
            found
        };
        let sets = [random([1, -1]), random([0, 1]), random([-1, 1]), random([0, 0])];
        let options = MatchOptions::default().with_ratio(None);
        for gpu in all() {
            let uploaded = Uploaded::new(gpu, options);
            for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))) {
                let sides = [&sets[a], &sets[b]];
                let [on_a, on_b] = uploaded.pair([a as u32, b as u32], sides).unwrap();
                let found = uploaded.matcher.match_batch(&[[&on_a, &on_b]], &options).unwrap();
                let wanted = match_features(sides[0], sides[1], &options, &Cpu::sequential().into()).unwrap();
                assert_eq!(found, [wanted], "{gpu:?}: {a} and {b}");
            }
        }
    }
}
