//! The work groups of kernels in which every lane computes one pixel.

use crate::image::Size;
use tiepoint_gpu::KernelSource;

/// Lanes of a work group, in x and y.
pub(in crate::stereo) const GROUP: [u32; 2] = [32, 8];

/// How many groups lie side by side, which a kernel gets as `args.across`, and the numbers of groups that cover so many
/// images of a size. The groups of an image lie in the first dimension, row by row, because the others take no more
/// than 65 535; images lie in the third.
pub(in crate::stereo) fn covering(size: Size, images: usize) -> (i32, [usize; 3]) {
    let across = size.width.div_ceil(GROUP[0] as usize);
    (across as i32, [across * size.height.div_ceil(GROUP[1] as usize), 1, images])
}

/// For kernels: `PIXEL_X` and `PIXEL_Y`, the pixel of a lane, which may lie outside the image; `GROUP_WIDTH` and
/// `GROUP_HEIGHT`.
pub(in crate::stereo) fn pixel_a_lane(source: KernelSource) -> KernelSource {
    source
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .define("PIXEL_X", "(GROUP_X % args.across * GROUP_WIDTH + LANE_X)")
        .define("PIXEL_Y", "(GROUP_X / args.across * GROUP_HEIGHT + LANE_Y)")
}
