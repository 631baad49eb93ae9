//! The state that calls and streams keep on a device: a plan for the shape of the last pair, and slots.

use super::plan::{Plan, PlanInput, PlanShape};
use super::slot::Slot;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::stereo::cost::gpu::GpuCost;
use crate::stereo::{StereoOptions, StereoResult};
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

    pub(super) fn is_empty(&self) -> bool {
        self.plan.is_none()
    }

    /// The plan for pairs of a shape, with at least the given number of slots.
    pub(super) fn prepare(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (shape, cost): (&PlanShape, &GpuCost),
        slots: usize,
        cpu: &Cpu,
    ) -> Result<(&Plan, &mut [Slot])> {
        if !self.serves(gpu, shape) {
            // Dropped first, so that the next plan can reuse the memory.
            *self = Self::default();
        }
        let plan = match self.plan.take() {
            Some(plan) => plan,
            None => Plan::new(gpu, cpu, options, *shape, cost)?,
        };
        let plan = self.plan.insert(plan);
        while self.slots.len() < slots {
            self.slots.push(Slot::new(plan)?);
        }
        Ok((plan, &mut self.slots))
    }

    pub(in crate::stereo) fn compute(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        input: (&PlanInput<'_>, &GpuCost),
        cpu: &Cpu,
    ) -> Result<StereoResult> {
        let (_, slot) = self.write(gpu, options, input, cpu)?;
        let nothing = || Error::Mismatch("a pair without a result".into());
        slot.start(1)?.pop().ok_or_else(nothing)?.wait(cpu)
    }

    /// Queues the work of its plan for one pair, and returns the plan, which then holds the maps.
    pub(super) fn send(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        input: (&PlanInput<'_>, &GpuCost),
        cpu: &Cpu,
    ) -> Result<&Plan> {
        let (plan, slot) = self.write(gpu, options, input, cpu)?;
        slot.run()?;
        Ok(plan)
    }

    fn write(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (input, cost): (&PlanInput<'_>, &GpuCost),
        cpu: &Cpu,
    ) -> Result<(&Plan, &mut Slot)> {
        let (plan, slots) = self.prepare(gpu, options, (&input.shape(1), cost), 1, cpu)?;
        let slot = &mut slots[0];
        slot.write(0, input, cpu)?;
        Ok((plan, slot))
    }
}
