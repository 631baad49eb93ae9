//! The groups of kernels that make every pixel a lane.

use crate::image::Size;
use tiepoint_gpu::KernelSource;

/// Lanes of a group of the kernels that make a pixel a lane.
pub(in crate::stereo) const GROUP: [u32; 2] = [32, 8];

/// Groups beside each other, and the groups that cover some images.
pub(in crate::stereo) fn covering(size: Size, images: usize) -> (i32, [usize; 3]) {
    let across = size.width.div_ceil(GROUP[0] as usize);
    (across as i32, [across * size.height.div_ceil(GROUP[1] as usize), 1, images])
}

/// The size of [`GROUP`] for kernels.
pub(in crate::stereo) fn pixel_a_lane(source: KernelSource) -> KernelSource {
    source.define("GROUP_WIDTH", GROUP[0]).define("GROUP_HEIGHT", GROUP[1])
}
