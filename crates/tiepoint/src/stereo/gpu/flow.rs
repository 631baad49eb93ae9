//! Pairs one after the other: while some are computed, those after them travel to the device and the maps of those
//! before them back.

use super::{plan::PlanInput, slot::Arriving, worker::Worker};
use crate::{
    Result,
    device::{Cpu, gpu::Gpu},
    stereo::{StereoOptions, StereoResult, cost::gpu::GpuCost},
};
use std::collections::VecDeque;

/// The pairs of a stream that are on a device.
#[derive(Debug)]
pub(in crate::stereo) struct Flow {
    worker: Worker,
    /// Sets of pairs that may be in flight.
    slots: usize,
    /// Pairs that are computed together.
    batch: usize,
    /// The slot that pairs are gathered in, and how many there are.
    open: (usize, usize),
    /// Sets of pairs on their way, the oldest first.
    flights: VecDeque<Vec<Arriving>>,
}

/// What was found for a pair.
#[derive(Debug)]
pub(in crate::stereo) enum Found {
    /// In the host's memory.
    Here(StereoResult),
    /// On its way there.
    There(Arriving),
}

impl Found {
    /// The result, once it is here.
    pub(in crate::stereo) fn wait(self, cpu: &Cpu) -> Result<StereoResult> {
        match self {
            Self::Here(found) => Ok(found),
            Self::There(arriving) => arriving.wait(cpu),
        }
    }
}

impl Flow {
    /// Of at most so many sets of pairs at a time, of `batch` pairs each.
    pub(in crate::stereo) fn new(slots: usize, batch: usize) -> Self {
        Self { worker: Worker::default(), slots, batch, open: (0, 0), flights: VecDeque::new() }
    }

    /// Pairs that are on the device, or wait for others to go with.
    pub(in crate::stereo) fn len(&self) -> usize {
        self.open.1 + self.flights.iter().map(Vec::len).sum::<usize>()
    }

    /// Takes a pair, and appends to `found` what had to make room for it.
    pub(in crate::stereo) fn push(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (input, cost): (&PlanInput<'_>, &GpuCost),
        found: &mut VecDeque<Found>,
        cpu: &Cpu,
    ) -> Result<()> {
        // What is learnt from a pair holds for it alone.
        let batch = if input.tables.is_empty() && cost.learner.is_none() { self.batch } else { 1 };
        let shape = input.shape(batch);
        if !self.worker.serves(gpu, &shape) {
            self.finish(found, cpu)?;
            self.open = (0, 0);
        } else if self.open.1 == 0 && self.flights.len() == self.slots {
            self.land(found, cpu)?;
        }
        let (slot, at) = self.open;
        let (_, slots) = self.worker.prepare(gpu, options, (&shape, cost), self.slots, cpu)?;
        slots[slot].write(at, input, cpu)?;
        self.open.1 += 1;
        if self.open.1 == batch { self.start() } else { Ok(()) }
    }

    /// Appends the oldest pairs that are on their way; those that still wait for others are sent when there are none.
    pub(in crate::stereo) fn lift(&mut self, found: &mut VecDeque<Found>) -> Result<()> {
        if self.flights.is_empty() && self.open.1 > 0 {
            self.start()?;
        }
        found.extend(self.flights.pop_front().into_iter().flatten().map(Found::There));
        Ok(())
    }

    /// The same, once they have arrived: what nobody has asked for takes memory of the device's no longer.
    fn land(&mut self, found: &mut VecDeque<Found>, cpu: &Cpu) -> Result<()> {
        let mut arriving = VecDeque::new();
        self.lift(&mut arriving)?;
        for pair in arriving {
            found.push_back(Found::Here(pair.wait(cpu)?));
        }
        Ok(())
    }

    /// Appends all pairs.
    pub(in crate::stereo) fn finish(&mut self, found: &mut VecDeque<Found>, cpu: &Cpu) -> Result<()> {
        while self.len() > 0 {
            self.land(found, cpu)?;
        }
        Ok(())
    }

    /// Sends the gathered pairs on their way.
    fn start(&mut self) -> Result<()> {
        let (slot, pairs) = self.open;
        if let Some(started) = self.worker.slot(slot) {
            self.flights.push_back(started.start(pairs)?);
        }
        self.open = ((slot + 1) % self.slots, 0);
        Ok(())
    }
}
