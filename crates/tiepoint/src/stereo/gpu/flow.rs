//! The pairs of a stream on a device: while some are computed, the next are sent to the device and the maps of the last
//! are read back.

use super::plan::PlanInput;
use super::plan_cache::PlanCache;
use super::slot::Arriving;
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::stereo::cost::gpu::GpuCost;
use crate::stereo::{StereoOptions, StereoResult};
use std::collections::VecDeque;

/// The pairs of a stream that are on a device.
#[derive(Debug)]
pub(in crate::stereo) struct Flow {
    cache: PlanCache,
    /// The most sets of pairs in flight.
    slots: usize,
    /// Pairs that are computed together.
    batch: usize,
    /// The slot that is being filled, and the number of pairs in it: between calls fewer than `batch`.
    open: (usize, usize),
    /// Sets of pairs that the device has, the oldest first.
    flights: VecDeque<Vec<Arriving>>,
}

/// The result of a pair.
#[derive(Debug)]
pub(in crate::stereo) enum StreamResult {
    /// In the host's memory.
    Ready(StereoResult),
    /// Still being copied there.
    Arriving(Arriving),
}

impl StreamResult {
    /// Waits for the result.
    pub(in crate::stereo) fn wait(self, cpu: &Cpu) -> Result<StereoResult> {
        match self {
            Self::Ready(found) => Ok(found),
            Self::Arriving(arriving) => arriving.wait(cpu),
        }
    }
}

impl Flow {
    /// Has at most `slots` sets of `batch` pairs in flight.
    pub(in crate::stereo) fn new(slots: usize, batch: usize) -> Self {
        Self { cache: PlanCache::default(), slots, batch, open: (0, 0), flights: VecDeque::new() }
    }

    /// Whether it has no plan yet.
    pub(in crate::stereo) fn is_new(&self) -> bool {
        self.cache.is_empty()
    }

    /// Begins with a plan that served single pairs.
    pub(in crate::stereo) fn begin_with(&mut self, cache: PlanCache) {
        self.cache = cache;
    }

    /// The number of pairs that are on the device or wait until their set is complete.
    pub(in crate::stereo) fn len(&self) -> usize {
        self.open.1 + self.flights.iter().map(Vec::len).sum::<usize>()
    }

    /// Takes a pair. Results that must be read back to make room for it are appended to `found`. After an error the
    /// pair is not part of the flow, but the pairs before it are. The threads of `copying` copy its pictures.
    pub(in crate::stereo) fn push(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (input, cost): (&PlanInput<'_>, &GpuCost),
        found: &mut VecDeque<StreamResult>,
        (cpu, copying): (&Cpu, &Cpu),
    ) -> Result<()> {
        // What is learnt from a pair is valid only for that pair.
        let batch = if input.tables.is_empty() && cost.learner.is_none() { self.batch } else { 1 };
        let shape = input.shape(batch);
        if !self.cache.serves(gpu, &shape) {
            self.finish(found, cpu)?;
            self.open = (0, 0);
        } else if self.open.1 == 0 && self.flights.len() == self.slots {
            self.read_oldest(found, cpu)?;
        }
        let (slot, at) = self.open;
        let (_, slots) = self.cache.prepare(gpu, options, (&shape, cost), self.slots, cpu)?;
        slots[slot].write(at, input, copying)?;
        if at + 1 < batch {
            self.open.1 += 1;
            return Ok(());
        }
        self.start(batch)
    }

    /// Appends the oldest set in flight, which may not have arrived yet. If none is in flight, the incomplete set is
    /// sent first.
    pub(in crate::stereo) fn take_oldest(&mut self, found: &mut VecDeque<StreamResult>) -> Result<()> {
        if self.flights.is_empty() && self.open.1 > 0 {
            self.start(self.open.1)?;
        }
        found.extend(self.flights.pop_front().into_iter().flatten().map(StreamResult::Arriving));
        Ok(())
    }

    /// As [`take_oldest`](Self::take_oldest), and waits for it: its results are then images, and the pinned memory in
    /// which they arrived is free for the next.
    fn read_oldest(&mut self, found: &mut VecDeque<StreamResult>, cpu: &Cpu) -> Result<()> {
        let mut arriving = VecDeque::new();
        self.take_oldest(&mut arriving)?;
        for pair in arriving {
            found.push_back(StreamResult::Ready(pair.wait(cpu)?));
        }
        Ok(())
    }

    /// Appends the results of all pairs, and waits for them.
    pub(in crate::stereo) fn finish(&mut self, found: &mut VecDeque<StreamResult>, cpu: &Cpu) -> Result<()> {
        while self.len() > 0 {
            self.read_oldest(found, cpu)?;
        }
        Ok(())
    }

    /// Sends the set that was gathered, of `pairs` pairs.
    fn start(&mut self, pairs: usize) -> Result<()> {
        let (slot, _) = self.open;
        if let Some(started) = self.cache.slots.get_mut(slot) {
            self.flights.push_back(started.start(pairs)?);
        }
        self.open = ((slot + 1) % self.slots, 0);
        Ok(())
    }
}
