//! Two sets of features matched on a processor: on its GPU where there is one that can, otherwise on its CPU.

use super::{GpuMatcher, Match, MatchOptions, Nearest, check_pair, matches_on_cpu, neighbours_on_cpu};
use crate::Result;
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::feature::Features;
use crate::feature::gpu::GpuFeatures;

/// Features of two images, which are matched with different options. They are brought to a GPU once.
#[derive(Debug)]
pub struct Matcher<'a> {
    features: [&'a Features; 2],
    processor: &'a Processor,
    /// The features on the GPU, from the first search on.
    uploaded: Option<[GpuFeatures; 2]>,
}

impl<'a> Matcher<'a> {
    /// A matcher of A with B.
    ///
    /// # Errors
    /// [`Error::Mismatch`](crate::Error::Mismatch) when the descriptors are of different kinds or dimensions,
    /// or missing.
    pub fn new(a: &'a Features, b: &'a Features, processor: &'a Processor) -> Result<Self> {
        check_pair(a, b)?;
        Ok(Self { features: [a, b], processor, uploaded: None })
    }

    /// See [`super::nearest_neighbours`].
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) when a GPU fails.
    pub fn nearest_neighbours(&mut self) -> Result<[Vec<Option<Nearest>>; 2]> {
        let [a, b] = self.features;
        let on_gpu = |gpu: &GpuMatcher, [a, b]: &[GpuFeatures; 2]| gpu.nearest_neighbours(a, b);
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
        let on_gpu = |gpu: &GpuMatcher, [a, b]: &[GpuFeatures; 2]| gpu.match_features(a, b, options);
        self.gpu_or_cpu(task, on_gpu, |cpu| matches_on_cpu(a, b, options, cpu))
    }

    /// A search on the GPU where there is one that can, and something to search; otherwise on the CPU.
    fn gpu_or_cpu<R>(
        &mut self,
        task: &str,
        on_gpu: impl FnOnce(&GpuMatcher, &[GpuFeatures; 2]) -> Result<R>,
        on_cpu: impl FnOnce(&Cpu) -> Result<R>,
    ) -> Result<R> {
        let Self { features: [a, b], processor, uploaded } = self;
        if a.is_empty() || b.is_empty() {
            return on_cpu(&processor.cpu);
        }
        let on_gpu = |gpu: &Gpu| {
            let pair = match uploaded {
                Some(pair) => pair,
                none => none.insert([GpuFeatures::upload(gpu, a)?, GpuFeatures::upload(gpu, b)?]),
            };
            on_gpu(&GpuMatcher::new(gpu), pair)
        };
        processor.gpu_or_cpu(task, on_gpu, on_cpu)
    }
}
