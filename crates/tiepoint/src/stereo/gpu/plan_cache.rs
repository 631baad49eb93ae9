//! The state that calls and streams keep on a device: a plan for the shape of the last pair, and slots.

use super::plan::{Plan, PlanInput, PlanShape, Work};
use super::slot::Slot;
use crate::device::gpu::Gpu;
use crate::stereo::StereoResult;
use crate::{Error, Result};

/// A plan with its slots, kept from pair to pair and made anew for another shape.
#[derive(Debug, Default)]
pub(in crate::stereo) struct PlanCache {
    pub(super) slots: Vec<Slot>,
    plan: Option<Plan>,
}

impl PlanCache {
    /// Whether pairs of this shape can be taken without a new plan.
    pub(super) fn serves(&self, gpu: &Gpu, shape: &PlanShape) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.gpu.is(gpu) && plan.shape == *shape)
    }

    pub(in crate::stereo) fn is_empty(&self) -> bool {
        self.plan.is_none()
    }

    /// The plan for pairs of a shape, with at least the given number of slots.
    pub(super) fn prepare(
        &mut self,
        work: Work<'_>,
        shape: &PlanShape,
        slots: usize,
    ) -> Result<(&Plan, &mut [Slot])> {
        if !self.serves(work.gpu, shape) {
            // The old plan is dropped first, so that the new one can reuse its memory.
            *self = Self::default();
        }
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => Plan::new(work, *shape)?,
        };
        let plan = self.plan.insert(plan);
        while self.slots.len() < slots {
            self.slots.push(Slot::new(plan)?);
        }
        Ok((plan, &mut self.slots))
    }

    pub(in crate::stereo) fn compute(
        &mut self,
        work: Work<'_>,
        input: &PlanInput<'_>,
    ) -> Result<StereoResult> {
        let (_, slot) = self.write(work, input)?;
        let nothing = || Error::Mismatch("a pair without a result".into());
        slot.start(1)?.pop().ok_or_else(nothing)?.wait(work.cpu)
    }

    /// Queues the work of its plan for one pair, and returns the plan, which then holds the maps.
    pub(super) fn send(&mut self, work: Work<'_>, input: &PlanInput<'_>) -> Result<&Plan> {
        let (plan, slot) = self.write(work, input)?;
        slot.run()?;
        Ok(plan)
    }

    fn write(&mut self, work: Work<'_>, input: &PlanInput<'_>) -> Result<(&Plan, &mut Slot)> {
        let (plan, slots) = self.prepare(work, &input.shape, 1)?;
        let slot = &mut slots[0];
        slot.write(0, input, work.cpu)?;
        Ok((plan, slot))
    }
}
