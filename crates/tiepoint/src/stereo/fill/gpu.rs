//! Filling on a device: lanes follow lines of pixels and store the nearest valid value along each ray; then every
//! invalid pixel chooses among its eight.

use crate::{
    Result,
    device::gpu::{Buffer, Commands, Gpu},
    image::gpu::{GpuStack, Plane},
    stereo::{
        INVALID,
        consistency_check::gpu::GpuOccluded,
        gpu::lanes::{GROUP, covering, pixel_a_lane},
    },
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The nearest valid values along `groups[1]` rays to the rows above and below.
    unsafe kernel look(groups) = Look {
        write seen: f32 [plane.numbers(groups[1] * groups[2])],
        read map: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
    }
}

tiepoint_gpu::kernel! {
    /// The nearest valid values of the row, to the left and to the right.
    unsafe kernel look_along(groups) = LookAlong {
        write beside: f32 [plane.numbers(groups[1] * groups[2])],
        read map: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        images: i32,
    }
}

tiepoint_gpu::kernel! {
    /// Maps without gaps.
    unsafe kernel fill(groups) = Fill {
        write to: f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
        read seen: f32 [plane.numbers(groups[2] * 6)],
        read beside: f32 [plane.numbers(groups[2] * 2)],
        read hidden: u8 [hidden_plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// A row of 0 numbers: everything that is invalid is hidden.
        hidden_plane: Plane,
        images: i32,
        /// Groups beside each other.
        across: i32,
    }
}

/// Lanes of a group of lines.
const LANES: u32 = 64;

/// The program of [`GpuFill::new`].
pub(in crate::stereo) fn source() -> KernelSource {
    pixel_a_lane(KernelSource::new("fill"))
        .define("LANES", LANES)
        .define_f32("INVALID", INVALID)
        .structure::<Plane>()
        .kernel::<Look<'_>>([LANES, 1])
        .kernel::<LookAlong<'_>>([LANES, 1])
        .kernel::<Fill<'_>>(GROUP)
        .text(include_str!("fill.cl"))
}

/// [`fill`](super::fill()) on a device; the same bits.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuFill {
    look: Kernel<Look<'static>>,
    look_along: Kernel<LookAlong<'static>>,
    fill: Kernel<Fill<'static>>,
    /// In place of occlusions that are not known.
    nothing: Buffer<u8>,
}

impl GpuFill {
    pub(in crate::stereo) fn new(gpu: &Gpu) -> Result<Self> {
        let program = gpu.program(&source())?;
        Ok(Self {
            look: program.kernel::<Look<'_>>()?,
            look_along: program.kernel::<LookAlong<'_>>()?,
            fill: program.kernel::<Fill<'_>>()?,
            nothing: gpu.buffer(1)?,
        })
    }

    /// Puts the work for some maps into a list.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        map: &GpuStack<f32>,
        occluded: Option<&GpuOccluded>,
    ) -> Result<GpuStack<f32>> {
        let (gpu, size, images) = (map.gpu(), map.size(), map.count());
        let (from, plane) = (map.buffer(), map.plane());
        let to = GpuStack::new(gpu, size, 1, images)?;
        let seen = &gpu.buffer::<f32>(map.step() * images * 6)?;
        let beside = &gpu.buffer::<f32>(map.step() * images * 2)?;
        commands.stage("fill");
        let lines = (size.width + size.height).div_ceil(LANES as usize);
        commands.launch(&self.look, [lines, 6, images], Look { seen, map: from, plane })?;
        let rows = size.height.div_ceil(LANES as usize);
        let along = LookAlong { beside, map: from, plane, images: images as i32 };
        commands.launch(&self.look_along, [rows, 2, images], along)?;
        let (across, groups) = covering(size, images);
        let arguments = Fill {
            to: to.buffer(),
            from,
            seen,
            beside,
            hidden: occluded.map_or(&self.nothing, |o| &o.hidden),
            plane,
            hidden_plane: occluded.map_or(Plane::NONE, |_| plane),
            images: images as i32,
            across,
        };
        commands.launch(&self.fill, groups, arguments)?;
        Ok(to)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        device::Cpu,
        image::Image,
        stereo::{fill::fill, testing::gpu_maps},
    };

    #[test]
    fn gaps_are_filled_as_on_the_cpu() {
        for occlusions in [false, true] {
            let hidden = |x: usize, y: usize| !occlusions || (x / 3 + y).is_multiple_of(2);
            gpu_maps(
                |commands, map| {
                    let gpu = map.gpu();
                    let row = |y: usize| (0..map.pitch()).map(move |x| u8::from(hidden(x, y)));
                    let all: Vec<u8> = (0..map.size().height).flat_map(row).collect();
                    let occluded = GpuOccluded { hidden: gpu.upload(&all.repeat(map.count())).unwrap() };
                    let plan = GpuFill::new(gpu).unwrap();
                    plan.record(commands, map, occlusions.then_some(&occluded)).unwrap()
                },
                |map| {
                    let occluded = Image::from_fn(map.size(), hidden);
                    let mut out = map.clone();
                    let occluded = occlusions.then(|| occluded.view());
                    fill(out.view_mut(), occluded, &Cpu::sequential()).unwrap();
                    out
                },
                &format!("occlusions {occlusions}"),
            );
        }
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![source()]
    }
}
