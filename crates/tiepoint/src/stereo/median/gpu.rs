//! The median on a device, with one lane for each pixel.

use crate::device::gpu::Commands;
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch};
use crate::{Error, Result};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    unsafe kernel median(groups) = Median {
        write to (plane: Plane): f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
    } {
        across: i32,
    }
}

pub(crate) fn source(side: usize) -> KernelSource {
    for_maps("median")
        .define("SIDE", side)
        .define("KEPT", side * side / 2 + 2)
        .kernel::<Median<'_>>(GROUP)
        .text(include_str!("median.cl"))
}

/// Records [`median`](super::median()) of some maps; the same bits. `side` is 3 or 5.
pub(in crate::stereo) fn median(
    commands: &mut Commands,
    from: &GpuStack<f32>,
    side: usize,
) -> Result<GpuStack<f32>> {
    if ![3, 5].contains(&side) {
        return Err(Error::option("median", side, "3 or 5"));
    }
    let program = from.gpu().program(&source(side))?;
    let to = GpuStack::new(from.gpu(), from.size(), 1, from.count())?;
    let (across, groups) = covering(from.size(), from.count());
    commands.stage("median");
    let arguments = Median { to: to.laid(), from: from.buffer(), across };
    launch(commands, &program, groups, arguments)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::stereo::median;
    use crate::stereo::testing::gpu_maps;

    #[test]
    fn medians_are_those_of_the_cpu() {
        for side in [3, 5] {
            gpu_maps(
                |commands, map| median(commands, map, side).unwrap(),
                |map| median::median(map.view(), side, &Cpu::sequential()).unwrap(),
                &format!("side {side}"),
            );
        }
    }
}
