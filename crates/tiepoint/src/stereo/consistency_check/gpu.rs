//! The consistency check on a device: a lane a pixel.

use super::SURFACE;
use crate::{
    Result,
    device::gpu::{Buffer, Commands, Gpu},
    image::gpu::{GpuStack, Plane},
    stereo::{
        INVALID, View,
        gpu::lanes::{GROUP, covering, pixel_a_lane},
    },
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The pixels of maps that the other view confirms.
    unsafe kernel check(groups) = Check {
        write to: f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
        read other: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// 1 for the left view, −1 for the right one.
        sign: f32,
        limit: f32,
        /// Groups beside each other.
        across: i32,
    }
}

tiepoint_gpu::kernel! {
    /// Marks all left pixels as occluded.
    unsafe kernel cover(groups) = Cover {
        write hidden: u8 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

tiepoint_gpu::kernel! {
    /// Clears the marks where a surface of the right view covers a left pixel.
    unsafe kernel uncover(groups) = Uncover {
        write hidden: u8 [plane.numbers(groups[2])],
        read right: f32 [plane.numbers(groups[2])],
    } {
        plane: Plane,
        /// Groups beside each other.
        across: i32,
    }
}

/// The program of [`GpuConsistencyCheck::new`].
pub(in crate::stereo) fn source() -> KernelSource {
    pixel_a_lane(KernelSource::new("consistency check"))
        .define_f32("INVALID", INVALID)
        .define_f32("SURFACE", SURFACE)
        .structure::<Plane>()
        .kernel::<Check<'_>>(GROUP)
        .kernel::<Cover<'_>>(GROUP)
        .kernel::<Uncover<'_>>(GROUP)
        .text(include_str!("consistency_check.cl"))
}

/// [`check`](super::check) and [`occluded`](super::occluded) on a device; the same bits.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuConsistencyCheck {
    check: Kernel<Check<'static>>,
    cover: Kernel<Cover<'static>>,
    uncover: Kernel<Uncover<'static>>,
}

impl GpuConsistencyCheck {
    pub(in crate::stereo) fn new(gpu: &Gpu) -> Result<Self> {
        let program = gpu.program(&source())?;
        Ok(Self {
            check: program.kernel::<Check<'_>>()?,
            cover: program.kernel::<Cover<'_>>()?,
            uncover: program.kernel::<Uncover<'_>>()?,
        })
    }

    /// Puts the check of the maps of a view into a list.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        map: &GpuStack<f32>,
        other: &GpuStack<f32>,
        view: View,
        limit: f32,
    ) -> Result<GpuStack<f32>> {
        let to = GpuStack::new(map.gpu(), map.size(), 1, map.count())?;
        let (across, groups) = covering(map.size(), map.count());
        let sign = match view {
            View::Left => 1.0,
            View::Right => -1.0,
        };
        let (from, plane) = (map.buffer(), map.plane());
        commands.stage("check");
        let arguments = Check { to: to.buffer(), from, other: other.buffer(), plane, sign, limit, across };
        commands.launch(&self.check, groups, arguments)?;
        Ok(to)
    }

    /// Records the search for the left pixels that are occluded in the right view. The mask has the pitch of the map.
    pub(in crate::stereo) fn record_occluded(
        &self,
        commands: &mut Commands,
        right: &GpuStack<f32>,
    ) -> Result<GpuOccluded> {
        let hidden = right.gpu().buffer::<u8>(right.step() * right.count())?;
        let (across, groups) = covering(right.size(), right.count());
        let plane = right.plane();
        commands.stage("occlusion");
        commands.launch(&self.cover, groups, Cover { hidden: &hidden, plane, across })?;
        let uncover = Uncover { hidden: &hidden, right: right.buffer(), plane, across };
        commands.launch(&self.uncover, groups, uncover)?;
        Ok(GpuOccluded { hidden })
    }
}

/// The occluded pixels of left views.
#[derive(Debug)]
pub(in crate::stereo) struct GpuOccluded {
    /// Not 0 where a pixel is occluded.
    pub(in crate::stereo) hidden: Buffer<u8>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        device::Cpu,
        image::Image,
        stereo::{
            consistency_check::{check, occluded},
            testing::gpu_maps,
        },
    };

    #[test]
    fn checks_are_those_of_the_cpu() {
        let other = |map: &Image<f32>| {
            Image::from_fn(map.size(), |x, y| map.row(y)[map.size().width - 1 - x] + 0.5 * (y % 3) as f32)
        };
        for (view, limit) in [(View::Left, 1.0), (View::Right, 0.0), (View::Right, 2.5)] {
            gpu_maps(
                |commands, map| {
                    let gpu = map.gpu();
                    let second = other(&map.download(0).unwrap());
                    let second = GpuStack::upload(gpu, &vec![second.view(); map.count()]).unwrap();
                    let plan = GpuConsistencyCheck::new(gpu).unwrap();
                    plan.record(commands, map, &second, view, limit).unwrap()
                },
                |map| {
                    let mut out = map.clone();
                    check(out.view_mut(), other(map).view(), view, limit, &Cpu::sequential()).unwrap();
                    out
                },
                &format!("{view:?}, {limit}"),
            );
        }
    }

    #[test]
    fn occlusions_are_those_of_the_cpu() {
        gpu_maps(
            |commands, map| {
                let gpu = map.gpu();
                let plan = GpuConsistencyCheck::new(gpu).unwrap();
                let GpuOccluded { hidden } = plan.record_occluded(commands, map).unwrap();
                gpu.run(commands).unwrap();
                let hidden: Vec<f32> = hidden.to_vec().unwrap().into_iter().map(f32::from).collect();
                let out = GpuStack::new(gpu, map.size(), 1, map.count()).unwrap();
                out.buffer().write(0, &hidden).unwrap();
                out
            },
            |map| {
                let hidden = occluded(map.view(), &Cpu::sequential()).unwrap();
                Image::from_fn(map.size(), |x, y| f32::from(u8::from(hidden.row(y)[x])))
            },
            "occlusions",
        );
    }

    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        vec![source()]
    }
}
