//! The state that calls and streams keep on a device: a plan for the shape of the last pair, and slots.

use super::{
    plan::{Plan, PlanInput, Shape},
    slot::Slot,
    turns::Turns,
};
use crate::{
    Error, Result,
    device::{Cpu, gpu::Gpu},
    stereo::{StereoOptions, StereoResult, cost::gpu::GpuCost},
};

/// A plan with its slots, kept from pair to pair and made anew for another shape.
#[derive(Debug, Default)]
pub(in crate::stereo) struct Worker {
    slots: Vec<Slot>,
    turns: Option<Turns>,
    plan: Option<Plan>,
}

impl Worker {
    /// Whether pairs of this shape can be taken without a new plan.
    pub(super) fn serves(&self, gpu: &Gpu, shape: &Shape) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.gpu.is(gpu) && plan.shape == *shape)
    }

    /// The plan for pairs of a shape, with at least so many slots.
    pub(super) fn prepare(
        &mut self,
        gpu: &Gpu,
        options: &StereoOptions,
        (shape, cost): (&Shape, &GpuCost),
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

    /// The plan that was prepared last, with turns for pairs that its cost learns from.
    pub(super) fn turns(&mut self) -> Result<(&Plan, &Turns)> {
        let nothing = || Error::Mismatch("turns of a plan that is not prepared".into());
        let plan = self.plan.as_ref().ok_or_else(nothing)?;
        let turns = match self.turns.take() {
            Some(turns) => turns,
            None => Turns::new(plan)?,
        };
        Ok((plan, self.turns.insert(turns)))
    }

    /// A slot.
    pub(super) fn slot(&mut self, i: usize) -> Option<&mut Slot> {
        self.slots.get_mut(i)
    }

    /// The disparities of one pair.
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

    /// Sends one pair through its plan, and returns the plan, which then has the maps.
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
