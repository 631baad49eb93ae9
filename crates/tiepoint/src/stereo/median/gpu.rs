//! The median on a device: a lane a pixel.

use crate::{
    Error, Result,
    device::gpu::{Commands, Gpu},
    image::gpu::{GpuStack, Plane},
    stereo::{
        INVALID,
        gpu::lanes::{GROUP, covering, pixel_a_lane},
    },
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// Maps from maps.
    unsafe kernel median(groups) = Median {
        write to: f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

/// The program of [`GpuMedian::new`].
pub(in crate::stereo) fn source(side: usize) -> KernelSource {
    pixel_a_lane(KernelSource::new("median"))
        .define("SIDE", side)
        .define("KEPT", side * side / 2 + 2)
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<Median<'_>>(GROUP)
        .text(include_str!("median.cl"))
}

/// [`median`](super::median()) on a device; the same bits.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuMedian {
    kernel: Kernel<Median<'static>>,
}

impl GpuMedian {
    /// `side` is 3 or 5.
    pub(in crate::stereo) fn new(gpu: &Gpu, side: usize) -> Result<Self> {
        match side {
            3 | 5 => Ok(Self { kernel: gpu.program(&source(side))?.kernel::<Median<'_>>()? }),
            _ => Err(Error::option("median", side, "3 or 5")),
        }
    }

    /// Puts the work for some maps into a list.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        from: &GpuStack<f32>,
    ) -> Result<GpuStack<f32>> {
        let to = GpuStack::new(from.gpu(), from.size(), 1, from.count())?;
        let (across, groups) = covering(from.size(), from.count());
        commands.stage("median");
        let arguments = Median { to: to.buffer(), from: from.buffer(), plane: from.plane(), across };
        commands.launch(&self.kernel, groups, arguments)?;
        Ok(to)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        device::Cpu,
        stereo::{median::median, testing::gpu_maps},
    };

    #[test]
    fn medians_are_those_of_the_cpu() {
        for side in [3, 5] {
            let plan = |gpu: &Gpu| GpuMedian::new(gpu, side).unwrap();
            gpu_maps(
                |commands, map| plan(map.gpu()).record(commands, map).unwrap(),
                |map| median(map.view(), side, &Cpu::sequential()).unwrap(),
                &format!("side {side}"),
            );
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![source(3), source(5)]
    }
}
