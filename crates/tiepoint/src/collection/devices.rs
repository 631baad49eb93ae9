//! The devices of the fourth stage, and what is prepared on GPUs for it.

use super::Collection;
use super::uploaded::Uploaded;
use super::waiting::MOST;
use crate::device::gpu::{Gpu, compile};
use crate::device::{Cpu, Processor};
use crate::feature::sift::DIMENSION;
use crate::geometry::two_view::{TwoViewOptions, Verifier};
use crate::matching::MatchOptions;
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;
use tiepoint_gpu::lock;

/// A GPU's queues that verify pairs: while one has few left and its thread prepares more, the others keep the GPU busy.
pub(super) const VERIFIERS: usize = 3;

/// The devices that match and verify pairs of a collection: [`Collection::match_pairs_on`]. The queues, kernels and
/// memory of a GPU are made when they are first needed, or earlier by [`prepare`](Self::prepare), while another stage
/// runs. The rounds of the stage share them.
#[derive(Debug)]
pub struct MatchDevices {
    pub(super) cpu: Cpu,
    processors: Vec<Processor>,
    options: TwoViewOptions,
    matching: MatchOptions,
    /// Whether there may be more pairs than a GPU verifies at a time.
    many: bool,
    /// Empty while a GPU is being opened.
    gpus: OnceLock<Vec<MatchGpu>>,
}

#[derive(Debug)]
pub(super) struct MatchGpu {
    pub(super) processor: Processor,
    pub(super) uploaded: Uploaded,
    verifiers: [Mutex<Option<Arc<Verifier>>>; VERIFIERS],
    options: TwoViewOptions,
    /// Whether no kernels are being compiled for it, or compiling has failed.
    settled: AtomicBool,
    many: bool,
}

impl Collection {
    /// Devices for matching pairs of this collection: the threads of the first processor and the GPUs of all.
    pub fn match_devices(&self, processors: &[Processor]) -> MatchDevices {
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let photographs = self.photographs().len();
        let many = photographs * photographs.saturating_sub(1) / 2 > MOST.pairs;
        let (options, matching) = (self.options().two_view, self.options().matching);
        processors.iter().for_each(Processor::expect_much_work);
        MatchDevices { cpu, processors: processors.to_vec(), options, matching, many, gpus: OnceLock::new() }
    }
}

/// The interval at which a thread checks whether the GPUs are open.
const LOOK: Duration = Duration::from_millis(5);

impl MatchDevices {
    /// Prepares what GPUs need to verify pairs, or starts compiling kernels that are not ready. Waits for GPUs that are
    /// being opened, but no longer than until `over` is set. Errors are ignored, because the stage meets them again.
    pub fn prepare(&self, over: &AtomicBool) {
        while self.gpus().is_none() && !over.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
        }
        let ready = self.gpus().unwrap_or_default().iter().filter(|gpu| gpu.is_ready());
        let all = ready.flat_map(|gpu| (0..VERIFIERS).map(move |queue| (gpu, queue)));
        for (gpu, queue) in all {
            let _ = gpu.verifier(queue);
        }
    }

    /// The GPUs; `None` while one is being opened.
    pub(super) fn gpus(&self) -> Option<&[MatchGpu]> {
        if let Some(gpus) = self.gpus.get() {
            return Some(gpus);
        }
        let opened = self.processors.iter().map(|processor| Ok((processor, processor.joining_gpu()?)));
        let opened = opened.collect::<Result<Vec<_>>>().ok()?;
        let of = |(processor, gpu): (&Processor, Option<Gpu>)| {
            let processor = processor.clone().with_cpu(self.cpu.clone());
            let uploaded = Uploaded::new(&gpu?, self.matching);
            let (settled, verifiers) = Default::default();
            Some(MatchGpu { processor, uploaded, settled, verifiers, options: self.options, many: self.many })
        };
        Some(self.gpus.get_or_init(|| opened.into_iter().filter_map(of).collect()))
    }

    /// Whether no GPU is being opened and no kernels are being compiled.
    pub(super) fn are_ready(&self) -> bool {
        // Calls `is_ready` for all GPUs, because it starts the compilation.
        self.gpus().is_some_and(|gpus| gpus.iter().filter(|gpu| !gpu.is_ready()).count() == 0)
    }

    /// Records that the CPU works while GPUs are not ready.
    pub(super) fn fall_back_not_ready(&self) {
        self.processors.iter().filter(|p| p.may_have_gpu()).for_each(Processor::fall_back_not_ready);
    }
}

impl MatchGpu {
    /// Whether its kernels are compiled; starts compiling them. Errors count as ready: the stage meets them again.
    fn is_ready(&self) -> bool {
        if self.settled.load(Ordering::Relaxed) {
            return true;
        }
        let Ok(Some(gpu)) = self.processor.joining_gpu() else { return false };
        if gpu.is_compiling() {
            return false;
        }
        let matching = self.uploaded.matcher.sources(DIMENSION);
        let sources = matching.into_iter().chain(Verifier::sources()).collect();
        // On this thread, because nothing is compiled and the threads of the pool are busy.
        let ready = !matches!(compile(&gpu, &Cpu::sequential(), sources), Err(Error::NotReady { .. }));
        self.settled.fetch_or(ready, Ordering::Relaxed) || ready
    }

    /// The verifier with this number, which has a queue of its own; made with its memory on the first call.
    pub(super) fn verifier(&self, queue: usize) -> Result<Arc<Verifier>> {
        let mut slot = lock(&self.verifiers[queue]);
        if let Some(verifier) = &*slot {
            return Ok(verifier.clone());
        }
        let verifier = Verifier::new(&self.options, &self.processor.clone().with_own_queue()?)?;
        if self.many {
            verifier.reserve(MOST.pairs, MOST.matches);
        }
        Ok(slot.insert(Arc::new(verifier)).clone())
    }
}
