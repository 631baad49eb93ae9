//! The devices of the fourth stage, and what is prepared on GPUs for it.

use super::Collection;
use super::uploaded::Uploaded;
use super::waiting::MOST;
use crate::Result;
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::geometry::two_view::{TwoViewOptions, Verifier};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of a GPU's queues that verify pairs. While one has few pairs left and its thread prepares the next ones,
/// the others keep the device busy.
pub(super) const VERIFIERS: usize = 3;

/// The devices that match and verify pairs of a collection: [`Collection::match_pairs_on`]. The queues, kernels and
/// memory of a GPU are made when they are first needed, or earlier by [`prepare`](Self::prepare), while another stage
/// runs. Both rounds of the stage use them.
#[derive(Debug)]
pub struct MatchDevices {
    pub(super) cpu: Cpu,
    pub(super) gpus: Vec<MatchGpu>,
}

/// One GPU.
#[derive(Debug)]
pub(super) struct MatchGpu {
    pub(super) processor: Processor,
    pub(super) uploaded: Uploaded,
    verifiers: [Mutex<Option<Arc<Verifier>>>; VERIFIERS],
    cpu: Cpu,
    options: TwoViewOptions,
    /// Whether there may be more pairs than are verified at a time.
    many: bool,
}

impl Collection {
    /// Devices for matching pairs of this collection: the threads of the first processor and the GPUs of all.
    pub fn match_devices(&self, processors: &[Processor]) -> MatchDevices {
        let cpu = processors.first().map_or_else(Cpu::sequential, |p| p.cpu.clone());
        let photographs = self.photographs().len();
        let many = photographs * photographs.saturating_sub(1) / 2 > MOST.pairs;
        let of = |processor: &Processor| {
            Some(MatchGpu {
                processor: processor.clone(),
                uploaded: Uploaded::new(processor.gpu.as_ref()?),
                verifiers: Default::default(),
                cpu: cpu.clone(),
                options: self.options().two_view,
                many,
            })
        };
        MatchDevices { gpus: processors.iter().filter_map(of).collect(), cpu }
    }
}

impl MatchDevices {
    /// Makes what GPUs need to verify pairs. Errors are ignored here, because the stage meets them again.
    pub fn prepare(&self) {
        let all = self.gpus.iter().flat_map(|gpu| (0..VERIFIERS).map(move |queue| (gpu, queue)));
        for (gpu, queue) in all {
            let _ = gpu.verifier(queue);
        }
    }
}

impl MatchGpu {
    /// The verifier with this number, which has a queue of its own; made with its memory on the first call.
    pub(super) fn verifier(&self, queue: usize) -> Result<Arc<Verifier>> {
        let mut slot = self.verifiers[queue].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verifier) = &*slot {
            return Ok(verifier.clone());
        }
        let mut own = self.processor.clone().with_cpu(self.cpu.clone());
        own.gpu = own.gpu.as_ref().map(Gpu::beside).transpose()?;
        let verifier = Verifier::new(&self.options, &own)?;
        if self.many {
            verifier.reserve(MOST.pairs, MOST.matches);
        }
        Ok(slot.insert(Arc::new(verifier)).clone())
    }
}
