//! Filling on a device: lanes follow lines of pixels and store the nearest valid value along each ray; then a value is
//! chosen for every invalid pixel from its eight rays.

use crate::Result;
use crate::device::gpu::Commands;
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::consistency_check::gpu::Marks;
use crate::stereo::gpu::lanes::{GROUP, covering, for_maps, launch, optional};
use tiepoint_gpu::KernelSource;

tiepoint_gpu::kernel! {
    /// Finds the nearest valid values along `groups[1]` rays to the rows above and below.
    unsafe kernel look(groups) = Look {
        write seen: f32 [plane.numbers(groups[1] * groups[2])],
        read map (plane: Plane): f32 [plane.numbers(groups[2])],
    } {}

    /// Finds the nearest valid values in the row, to the left and to the right.
    unsafe kernel look_along(groups) = LookAlong {
        write beside: f32 [plane.numbers(groups[1] * groups[2])],
        read map (plane: Plane): f32 [plane.numbers(groups[2])],
    } {
        images: i32,
    }

    unsafe kernel fill(groups) = Fill {
        write to (plane: Plane): f32 [plane.numbers(groups[2])],
        read from: f32 [plane.numbers(groups[2])],
        read seen: f32 [plane.numbers(groups[2] * 6)],
        read beside: f32 [plane.numbers(groups[2] * 2)],
        /// Rows of length 0 mean that all invalid pixels are occlusions.
        read hidden (hidden_plane: Plane): u8 [hidden_plane.numbers(groups[2])],
        /// What is 0 here is not filled. Rows of length 0 mean that everything is.
        read mask (mask_plane: Plane): u8 [mask_plane.numbers(groups[2])],
    } {
        images: i32,
        across: i32,
    }
}

/// Lanes of a group of lines.
const LANES: u32 = 64;

pub(crate) fn source() -> KernelSource {
    for_maps("fill")
        .define("LANES", LANES)
        .kernel::<Look<'_>>([LANES, 1])
        .kernel::<LookAlong<'_>>([LANES, 1])
        .kernel::<Fill<'_>>(GROUP)
        .text(include_str!("fill.cl"))
}

/// Records [`fill`](super::fill()) of some maps; the same bits. What is 0 in `mask` is left as it is.
pub(in crate::stereo) fn fill(
    commands: &mut Commands,
    map: &GpuStack<f32>,
    occluded: Option<&Marks>,
    mask: Option<&GpuStack<u8>>,
) -> Result<GpuStack<f32>> {
    let (gpu, size, count) = (map.gpu(), map.size(), map.count());
    let program = &gpu.program(&source())?;
    let images = count as i32;
    let to = GpuStack::new(gpu, size, 1, count)?;
    let seen = &gpu.buffer::<f32>(map.step() * count * 6)?;
    let beside = &gpu.buffer::<f32>(map.step() * count * 2)?;
    commands.stage("fill");
    let lines = (size.width + size.height).div_ceil(LANES as usize);
    launch(commands, program, [lines, 6, count], Look { seen, map: map.laid() })?;
    let rows = size.height.div_ceil(LANES as usize);
    launch(commands, program, [rows, 2, count], LookAlong { beside, map: map.laid(), images })?;
    let hidden = &occluded.cloned().map_or_else(|| optional(gpu, None), Ok)?;
    let (across, groups) = covering(size, count);
    let mask = &optional(gpu, mask)?;
    let (from, hidden, mask) = (map.buffer(), hidden.into(), mask.into());
    let arguments = Fill { to: to.laid(), from, seen, beside, hidden, mask, images, across };
    launch(commands, program, groups, arguments)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Cpu;
    use crate::image::Image;
    use crate::stereo::fill;
    use crate::stereo::testing::{after, gpu_maps};

    #[test]
    fn gaps_are_filled_as_on_the_cpu() {
        for occlusions in [false, true] {
            let hidden = |x: usize, y: usize| !occlusions || (x / 3 + y).is_multiple_of(2);
            let mask = |size| Image::from_fn(size, |x, y| u8::from(!occlusions || (x + y) % 5 > 0));
            gpu_maps(
                |commands, map| {
                    let gpu = map.gpu();
                    let row = |y: usize| (0..map.pitch()).map(move |x| u8::from(hidden(x, y)));
                    let all: Vec<u8> = (0..map.size().height).flat_map(row).collect();
                    let occluded = (gpu.upload(&all.repeat(map.count())).unwrap(), map.plane());
                    let mask = GpuStack::upload(gpu, &vec![mask(map.size()).view(); map.count()]).unwrap();
                    fill(commands, map, occlusions.then_some(&occluded), Some(&mask)).unwrap()
                },
                |map| {
                    let occluded = Image::from_fn(map.size(), hidden);
                    let occluded = occlusions.then(|| occluded.view());
                    let filled = after(map, |out| fill::fill(out, occluded, &Cpu::sequential()));
                    let (mask, mut kept) = (mask(map.size()), map.clone());
                    let shown = kept.data_mut().iter_mut().zip(filled.data()).zip(mask.data());
                    shown.filter(|(_, mask)| **mask > 0).for_each(|((d, filled), _)| *d = *filled);
                    kept
                },
                &format!("occlusions {occlusions}"),
            );
        }
    }
}
