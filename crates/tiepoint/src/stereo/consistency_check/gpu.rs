//! The consistency check on a device, with one lane for each pixel.

use super::SURFACE;
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::View;
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// Keeps the pixels of maps that the other view confirms; the others become invalid.
    unsafe kernel check(groups) = Check {
        write to (plane: Plane): f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
        read other: f32 [plane.numbers(groups[2])],
    } {
        /// 1 for the left view, −1 for the right one.
        sign: f32,
        limit: f32,
        across: i32,
    }

    unsafe kernel cover(groups) = Cover {
        write hidden (plane: Plane): u8 [plane.numbers(groups[2])],
    } {
        across: i32,
    }

    /// Clears the marks where a surface of the right view covers a left pixel.
    unsafe kernel uncover(groups) = Uncover {
        write hidden (plane: Plane): u8 [plane.numbers(groups[2])],
        read right: f32 [plane.numbers(groups[2])],
    } {
        across: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    for_maps("consistency check")
        .define_f32("SURFACE", SURFACE)
        .kernel::<Check<'_>>(GROUP)
        .kernel::<Cover<'_>>(GROUP)
        .kernel::<Uncover<'_>>(GROUP)
        .text(include_str!("consistency_check.cl"))
}

/// Records [`check`](super::check) of the maps of a view; the same bits.
pub(in crate::stereo) fn check(
    commands: &mut Commands,
    map: &GpuStack<f32>,
    other: &GpuStack<f32>,
    view: View,
    limit: f32,
) -> Result<GpuStack<f32>> {
    let program = map.gpu().program(&source())?;
    let to = GpuStack::new(map.gpu(), map.size(), 1, map.count())?;
    let (across, groups) = covering(map.size(), map.count());
    commands.stage("check");
    let (from, other) = (map.buffer(), other.buffer());
    let arguments = Check { to: to.laid(), from, other, sign: view.sign(), limit, across };
    launch(commands, &program, groups, arguments)?;
    Ok(to)
}

/// Marks of pixels (not 0 if marked) and their layout.
pub(in crate::stereo) type Marks = (Buffer<u8>, Plane);

/// Records [`occluded`](super::occluded); the same pixels. The marks have the pitch of the map.
pub(in crate::stereo) fn occluded(commands: &mut Commands, right: &GpuStack<f32>) -> Result<Marks> {
    let program = right.gpu().program(&source())?;
    let marks = (right.gpu().buffer::<u8>(right.step() * right.count())?, right.plane());
    let (across, groups) = covering(right.size(), right.count());
    commands.stage("occlusion");
    let hidden = (&marks).into();
    launch(commands, &program, groups, Cover { hidden, across })?;
    launch(commands, &program, groups, Uncover { hidden, right: right.buffer(), across })?;
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::image::Image;
    use crate::stereo::consistency_check;
    use crate::stereo::testing::{after, gpu_maps};

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
                    check(commands, map, &second, view, limit).unwrap()
                },
                |map| {
                    let (other, cpu) = (other(map), Cpu::sequential());
                    after(map, |out| consistency_check::check(out, other.view(), view, limit, &cpu))
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
                let (hidden, _) = occluded(commands, map).unwrap();
                gpu.run(commands).unwrap();
                let hidden: Vec<f32> = hidden.to_vec().unwrap().into_iter().map(f32::from).collect();
                let out = GpuStack::new(gpu, map.size(), 1, map.count()).unwrap();
                out.buffer().write(0, &hidden).unwrap();
                out
            },
            |map| {
                let hidden = consistency_check::occluded(map.view(), &Cpu::sequential()).unwrap();
                Image::from_fn(map.size(), |x, y| f32::from(u8::from(hidden.row(y)[x])))
            },
            "occlusions",
        );
    }
}
