//! Matches two sets of features on a processor: on its GPU if that supports the task, otherwise on its CPU.

use super::{
    GpuMatcher, Match, MatchOptions, Nearest, by_sign, check_floats, check_pair, filtered, matches_of_some,
    nearest_of_some, neighbours_of_signs, neighbours_on_cpu,
};
use crate::Result;
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::feature::gpu::GpuFeatures;

/// The features of two images, to be matched several times with different options. They are copied to a GPU only once.
#[derive(Debug)]
pub struct Matcher<'a> {
    features: [&'a Features; 2],
    processor: &'a Processor,
    /// The features on the GPU; both sides are present after the first search there.
    uploaded: [Option<GpuFeatures>; 2],
    /// `None` before the first search.
    matcher: Option<GpuMatcher>,
}

impl<'a> Matcher<'a> {
    /// A matcher of A with B.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) when the descriptors are of different kinds or dimensions,
    /// or missing.
    pub fn new(a: &'a Features, b: &'a Features, processor: &'a Processor) -> Result<Self> {
        check_pair(a, b)?;
        [a, b].into_iter().try_for_each(check_floats)?;
        Ok(Self { features: [a, b], processor, uploaded: [None, None], matcher: None })
    }

    /// The same matcher, with features that are already in the memory of the processor's GPU.
    pub(crate) fn with_uploaded(self, uploaded: [Option<GpuFeatures>; 2]) -> Self {
        Self { uploaded, ..self }
    }

    /// See [`super::nearest_neighbours`].
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when a GPU fails.
    pub fn nearest_neighbours(&mut self) -> Result<[Vec<Option<Nearest>>; 2]> {
        let [a, b] = self.features;
        let on_gpu = |gpu: &GpuMatcher, [a, b]: [&GpuFeatures; 2]| gpu.nearest_neighbours(a, b);
        self.gpu_or_cpu("matching", on_gpu, |cpu| neighbours_on_cpu(a, b, None, cpu))
    }

    /// See [`super::match_features`].
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) as [`MatchOptions::check`],
    /// [`Error::Device`](crate::Error::Device) when a GPU fails.
    pub fn match_features(&mut self, options: &MatchOptions) -> Result<Vec<Match>> {
        options.check()?;
        let [a, b] = self.features;
        let task = if options.guide.is_some() { "matching near a model" } else { "matching" };
        let on_gpu = |gpu: &GpuMatcher, [a, b]: [&GpuFeatures; 2]| gpu.match_features(a, b, options);
        self.gpu_or_cpu(task, on_gpu, |cpu| {
            let _stage = cpu.stage("match");
            let by_sign = by_sign(options.same_sign, [a, b]);
            Ok(filtered(&neighbours_of_signs([a, b], by_sign, options.guide, cpu)?, options))
        })
    }

    /// The matches of [`match_features`](Self::match_features) without a guide for one in `every` features of A. Only
    /// these are compared with B, and only their neighbours with A.
    pub(crate) fn match_some(&mut self, options: &MatchOptions, every: usize) -> Result<Vec<Match>> {
        let (sides, same_sign) = (self.features, options.same_sign);
        matches_of_some(sides[0].len(), options, every, |[of, among], indices| {
            let on_gpu = |gpu: &GpuMatcher, pair: [&GpuFeatures; 2]| {
                gpu.nearest_of_some(pair[of], indices, pair[among], same_sign)
            };
            let on_cpu = |cpu: &Cpu| nearest_of_some(sides[of], indices, sides[among], same_sign, cpu);
            self.gpu_or_cpu("matching", on_gpu, on_cpu)
        })
    }

    /// Searches on the GPU if it supports the task and neither side is empty, otherwise on the CPU.
    fn gpu_or_cpu<R: Send>(
        &mut self,
        task: &str,
        on_gpu: impl FnOnce(&GpuMatcher, [&GpuFeatures; 2]) -> Result<R> + Send,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        let Self { features: [a, b], processor, uploaded: [on_a, on_b], matcher } = self;
        // Comparing a pair of descriptors takes a quarter of the time of a pixel in a detector.
        let pixels = a.len().saturating_mul(b.len()) / 4;
        let on_cpu = |cpu: &Cpu| on_cpu(&cpu.for_pixels(pixels));
        if a.is_empty() || b.is_empty() {
            return on_cpu(&processor.cpu);
        }
        let on_gpu = |gpu: &Gpu| {
            let pair = [uploaded(on_a, gpu, a)?, uploaded(on_b, gpu, b)?];
            on_gpu(matcher.get_or_insert_with(|| GpuMatcher::new(gpu)), pair)
        };
        processor.gpu_or_cpu(task, on_gpu, on_cpu)
    }
}

/// The features on the GPU, uploaded unless they are already there.
fn uploaded<'u>(
    there: &'u mut Option<GpuFeatures>,
    gpu: &Gpu,
    features: &Features,
) -> Result<&'u GpuFeatures> {
    match there {
        Some(there) => Ok(there),
        none => Ok(none.insert(GpuFeatures::upload(gpu, features)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tests::processors;
    use crate::feature::Descriptors;
    use crate::matching::match_features;
    use crate::matching::tests::{Numbers, features};

    #[test]
    fn matches_of_some_features_are_among_those_of_all() {
        let mut numbers = Numbers(3);
        let mut random = |n: usize| {
            let mut found = features(&vec![[0.0; 2]; n], Descriptors::U8(numbers.bytes(n * 16, 7)), 16);
            found
                .keypoints
                .iter_mut()
                .for_each(|k| k.sign = if numbers.next().is_multiple_of(3) { -1 } else { 1 });
            found
        };
        let (a, mut b, none) = (random(400), random(370), random(0));
        // B has the descriptors of A with two in five of their values changed.
        if let (Descriptors::U8(from), Descriptors::U8(to)) = (&a.descriptors, &mut b.descriptors) {
            to.iter_mut().zip(from).enumerate().filter(|(i, _)| i % 5 > 1).for_each(|(_, (t, f))| *t = *f);
        }
        let mut unknown = a.clone();
        unknown.keypoints[1].sign = 0;
        let cpu = Cpu::with_threads(2).unwrap();
        let processors: Vec<_> = processors(&cpu).collect();
        for (a, processor) in processors.iter().flat_map(|p| [(&a, p), (&unknown, p)]) {
            for [mutual, same_sign] in [[true, true], [true, false], [false, true]] {
                let options = MatchOptions::default().with_mutual(mutual).with_same_sign(same_sign);
                let whole = match_features(a, &b, &options, processor).unwrap();
                assert!(whole.len() > 30, "{} matches", whole.len());
                for every in [1, 3, 50, 1000] {
                    let found = Matcher::new(a, &b, processor).unwrap().match_some(&options, every).unwrap();
                    let wanted: Vec<Match> =
                        whole.iter().filter(|m| (m.a as usize).is_multiple_of(every)).copied().collect();
                    assert_eq!(found, wanted, "{processor:?}, every {every}: {options:?}");
                }
                let nothing = Matcher::new(a, &none, processor).unwrap().match_some(&options, 2).unwrap();
                assert!(nothing.is_empty(), "of nothing");
            }
        }
    }
}
