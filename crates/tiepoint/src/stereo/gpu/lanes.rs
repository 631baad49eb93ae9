//! Code shared by the kernels of stereo: work groups in which every lane computes one pixel, stacks that may be
//! missing, and the launch of a kernel from its arguments.

use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use crate::image::gpu::{self, GpuPixel, GpuStack, Plane};
use crate::stereo::INVALID;
use tiepoint_gpu::{KernelArguments, KernelSource, Program};

/// Lanes of a work group, in x and y.
pub(in crate::stereo) const GROUP: [u32; 2] = [32, 8];

/// The number of groups side by side, which a kernel gets as `args.across`, and the grid of groups that covers `images`
/// images of a size. The groups of an image lie along the first dimension, row by row, because the others allow no more
/// than 65 535 groups; images are counted along the third.
pub(in crate::stereo) fn covering(size: Size, images: usize) -> (i32, [usize; 3]) {
    let across = size.width.div_ceil(GROUP[0] as usize);
    (across as i32, [across * size.height.div_ceil(GROUP[1] as usize), 1, images])
}

/// For kernels: `GROUP_WIDTH`, `GROUP_HEIGHT`, and `PIXEL_X`, `PIXEL_Y` of a lane, which may lie outside the image.
pub(in crate::stereo) fn pixel_a_lane(source: KernelSource) -> KernelSource {
    source
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .define("PIXEL_X", "(GROUP_X % args.across * GROUP_WIDTH + LANE_X)")
        .define("PIXEL_Y", "(GROUP_X / args.across * GROUP_HEIGHT + LANE_Y)")
}

/// The start of a program for pixels of disparity maps: `INVALID`, `Plane` and what [`pixel_a_lane`] defines.
pub(in crate::stereo) fn for_maps(name: &'static str) -> KernelSource {
    pixel_a_lane(KernelSource::new(name)).define_f32("INVALID", INVALID).structure::<Plane>()
}

/// Records the launch of the kernel that takes these arguments.
pub(in crate::stereo) fn launch<A: KernelArguments>(
    commands: &mut Commands,
    program: &Program,
    groups: [usize; 3],
    arguments: A,
) -> Result<()> {
    Ok(commands.launch(&program.kernel::<A>()?, groups, arguments)?)
}

/// As [`gpu::optional`], of a stack.
pub(in crate::stereo) fn optional<T: GpuPixel>(
    gpu: &Gpu,
    stack: Option<&GpuStack<T>>,
) -> Result<(Buffer<T>, Plane)> {
    gpu::optional(gpu, stack.map(|stack| &**stack))
}
