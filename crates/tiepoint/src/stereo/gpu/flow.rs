//! The pairs of a stream on a device: while some are computed, the next are sent to the device and the maps of the
//! previous ones are read back.

use super::plan::{PlanInput, PlanShape, Work};
use super::plan_cache::PlanCache;
use super::slot::Arriving;
use crate::device::Cpu;
use crate::stereo::StereoResult;
use crate::{ErrorKind, Result};
use std::collections::VecDeque;

/// The pairs of a stream that are on a device.
#[derive(Debug, Default)]
pub(in crate::stereo) struct Flow {
    pub(in crate::stereo) cache: PlanCache,
    /// The most sets of pairs in flight.
    slots: usize,
    /// The number of pairs of a set, which are computed together.
    batch: usize,
    /// The slot that is being filled, and the number of pairs in it: between calls fewer than `batch`.
    open: (usize, usize),
    /// The sets of pairs on the device, the oldest first.
    flights: VecDeque<Vec<Arriving>>,
    /// Results that have not been taken yet, all older than those of the sets on the device.
    pub(in crate::stereo) found: VecDeque<StreamResult>,
}

/// The result of a pair.
#[derive(Debug)]
pub(in crate::stereo) enum StreamResult {
    /// In the host's memory.
    Ready(StereoResult),
    /// Still being copied there.
    Arriving(Arriving),
}

impl Flow {
    /// A flow with at most `slots` sets of `batch` pairs in flight.
    pub(in crate::stereo) fn new(slots: usize, batch: usize) -> Self {
        Self { slots, batch, ..Self::default() }
    }

    /// A new flow that takes over the results of this one.
    pub(in crate::stereo) fn renewed(&mut self, slots: usize, batch: usize) -> Self {
        Self { found: std::mem::take(&mut self.found), ..Self::new(slots, batch) }
    }

    /// The number of pairs that are on the device or wait until their set is complete.
    pub(in crate::stereo) fn len(&self) -> usize {
        self.open.1 + self.flights.iter().map(Vec::len).sum::<usize>()
    }

    /// Adds a pair, whose pictures the threads of `copying` copy; `false` if the device is too small. If the device has
    /// no memory for several pairs, sets hold one pair from now on. After an error the pair is not part of the flow,
    /// but the earlier pairs are.
    pub(in crate::stereo) fn push(
        &mut self,
        work: Work<'_>,
        input: &PlanInput<'_>,
        copying: &Cpu,
    ) -> Result<bool> {
        let several = self.slots * self.batch > 1;
        let pushed = match self.try_push(work, input, copying) {
            Err(error) if several && error.kind() == ErrorKind::DeviceMemory => {
                self.finish(work.cpu).and_then(|()| {
                    *self = self.renewed(1, 1);
                    self.try_push(work, input, copying)
                })
            }
            pushed => pushed,
        };
        match pushed {
            Err(error) if error.is_device_limit() => Ok(false),
            pushed => pushed.map(|()| true),
        }
    }

    fn try_push(&mut self, work: Work<'_>, input: &PlanInput<'_>, copying: &Cpu) -> Result<()> {
        // What is learnt from a pair is valid only for that pair.
        let batch = if input.tables.is_empty() && work.cost.learner.is_none() { self.batch } else { 1 };
        let shape = PlanShape { pairs: batch, ..input.shape };
        if !self.cache.serves(work.gpu, &shape) {
            self.finish(work.cpu)?;
            self.open = (0, 0);
        } else if self.open.1 == 0 && self.flights.len() == self.slots {
            self.read_oldest(work.cpu)?;
        }
        let (slot, at) = self.open;
        let (_, slots) = self.cache.prepare(work, &shape, self.slots)?;
        slots[slot].write(at, input, copying)?;
        if at + 1 < batch {
            self.open.1 += 1;
            return Ok(());
        }
        self.start(batch)
    }

    /// The oldest set in flight, which may not have arrived yet. If none is in flight, the incomplete set is sent first.
    pub(in crate::stereo) fn oldest(&mut self) -> Result<Vec<Arriving>> {
        if self.flights.is_empty() && self.open.1 > 0 {
            self.start(self.open.1)?;
        }
        Ok(self.flights.pop_front().unwrap_or_default())
    }

    /// Waits for the oldest set in flight and copies its results into images, so that the pinned memory in which they
    /// arrived is free for the next set.
    fn read_oldest(&mut self, cpu: &Cpu) -> Result<()> {
        for pair in self.oldest()? {
            self.found.push_back(StreamResult::Ready(pair.wait(cpu)?));
        }
        Ok(())
    }

    /// Waits for the results of all pairs and appends them to `found`.
    pub(in crate::stereo) fn finish(&mut self, cpu: &Cpu) -> Result<()> {
        while self.len() > 0 {
            self.read_oldest(cpu)?;
        }
        Ok(())
    }

    /// Starts the work on the set that was filled with `pairs` pairs.
    fn start(&mut self, pairs: usize) -> Result<()> {
        let (slot, _) = self.open;
        if let Some(started) = self.cache.slots.get_mut(slot) {
            self.flights.push_back(started.start(pairs)?);
        }
        self.open = ((slot + 1) % self.slots, 0);
        Ok(())
    }
}
