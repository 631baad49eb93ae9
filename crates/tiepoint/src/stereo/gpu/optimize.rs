//! Disparities by a cost volume of the caller's, which is aggregated on the device that it is on.

use super::plan::{Plan, PlanShape, PlanViews};
use super::{PixelPair, take};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Commands, Gpu};
use crate::image::gpu::AnyGpuImage;
use crate::stereo::cost::gpu::{GpuCost, OF_VOLUME};
use crate::stereo::cost::require_volume;
use crate::stereo::cost::volume::gpu::GpuVolume;
use crate::stereo::pair::gpu::Compares;
use crate::stereo::{GpuStereoResult, Stereo};

/// The maps of a pair with the costs of a volume, scaled as in [`Stereo::optimize`].
///
/// The plan is made anew for each volume, as its penalties and the width of its sums follow from its costs; programs
/// and memory are kept by the device.
pub(in crate::stereo) fn optimize(
    stereo: &Stereo,
    gpu: &Gpu,
    (costs, scale): (&AnyGpuImage, Option<f32>),
    pair: &PixelPair<'_>,
    cpu: &Cpu,
) -> Result<GpuStereoResult> {
    let mut pair = pair.on_device(gpu)?;
    let (size, options) = (pair.size(), &stereo.options);
    require_volume((costs.size(), costs.channels()), size, options)?;
    let cpu = cpu.begin_task("stereo", size.area());
    let (volume, known) = GpuVolume::new(costs, scale, pair.masks[0].as_ref())?;
    if let Some(known) = known {
        pair.shapes[0].masked = true;
        pair.masks[0] = Some(known.into());
    }
    let penalties = stereo.penalties_of_given(volume.penalties())?;
    stereo.check_sums(volume.greatest(), penalties)?;
    let compares = [Compares::Grey; 2];
    let shape = PlanShape { size, pairs: 1, views: PlanViews::Pictures(pair.shapes, compares) };
    let greatest = volume.greatest();
    let cost = GpuCost {
        kernel: OF_VOLUME,
        exchanged: None,
        greatest,
        learner: None,
        volume: Some(volume),
        compares,
    };
    let plan = Plan::new(gpu, &cpu, &options.with_penalties(penalties), shape, &cost)?;
    let mut commands = Commands::new();
    for (image, to) in pair.in_order().zip(&plan.inputs) {
        take(to, 0, image, &mut commands)?;
    }
    gpu.run(&commands)?;
    plan.run()?;
    cpu.advance(size.area());
    GpuStereoResult::copied(&plan)
}
