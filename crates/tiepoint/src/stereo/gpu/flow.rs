//! Pairs one after the other: while some are computed, those after them travel to the device and the maps of those before
//! them back.

use super::{
    plan::{Shape, tables_of},
    worker::Worker,
};
use crate::{
    Result,
    device::{Cpu, gpu::Gpu},
    stereo::{StereoOptions, StereoResult, cost::CostSource, pair::Pair},
};
use std::collections::VecDeque;
use tiepoint_gpu::Mark;

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
    flights: VecDeque<Flight>,
}

/// Pairs on their way.
#[derive(Debug)]
struct Flight {
    slot: usize,
    pairs: usize,
    arrival: Mark,
}

impl Flow {
    /// Of at most so many sets of pairs at a time, of `batch` pairs each.
    pub(in crate::stereo) fn new(slots: usize, batch: usize) -> Self {
        Self { worker: Worker::default(), slots, batch, open: (0, 0), flights: VecDeque::new() }
    }

    /// Pairs that are on the device, or wait for others to go with.
    pub(in crate::stereo) fn len(&self) -> usize {
        self.open.1 + self.flights.iter().map(|flight| flight.pairs).sum::<usize>()
    }

    /// Takes a pair, and appends to `found` what had to make room for it.
    pub(in crate::stereo) fn push(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (pair, source): (&Pair, &dyn CostSource),
        found: &mut VecDeque<StereoResult>,
        cpu: &Cpu,
    ) -> Result<()> {
        let tables = tables_of(gpu, options, source)?;
        // What is learnt from a pair holds for it alone.
        let batch = if tables.is_empty() { self.batch } else { 1 };
        let shape = Shape::of(pair, batch);
        if !self.worker.serves(gpu, &shape) {
            self.finish(found, cpu)?;
            self.open = (0, 0);
        } else if self.open.1 == 0 && self.flights.len() == self.slots {
            self.land(found, cpu)?;
        }
        let (slot, at) = self.open;
        let (_, slots) = self.worker.prepare(gpu, options, (&shape, source), self.slots)?;
        slots[slot].write(at, pair, &tables, cpu)?;
        self.open.1 += 1;
        if self.open.1 == batch { self.start() } else { Ok(()) }
    }

    /// Appends the oldest pairs that are on their way, once they have arrived; those that still wait for others are sent
    /// when there are none.
    pub(in crate::stereo) fn land(&mut self, found: &mut VecDeque<StereoResult>, cpu: &Cpu) -> Result<()> {
        if self.flights.is_empty() && self.open.1 > 0 {
            self.start()?;
        }
        let Some(Flight { slot, pairs, arrival }) = self.flights.pop_front() else { return Ok(()) };
        let Some(slot) = self.worker.slot(slot) else { return Ok(()) };
        for i in 0..pairs {
            found.push_back(slot.result(i, &arrival, cpu)?);
        }
        Ok(())
    }

    /// Appends all pairs.
    pub(in crate::stereo) fn finish(&mut self, found: &mut VecDeque<StereoResult>, cpu: &Cpu) -> Result<()> {
        while self.len() > 0 {
            self.land(found, cpu)?;
        }
        Ok(())
    }

    /// Sends the gathered pairs on their way.
    fn start(&mut self) -> Result<()> {
        let (slot, pairs) = self.open;
        if let Some(started) = self.worker.slot(slot) {
            let arrival = started.start()?;
            self.flights.push_back(Flight { slot, pairs, arrival });
        }
        self.open = ((slot + 1) % self.slots, 0);
        Ok(())
    }
}
