//! SIFT on a GPU.

mod describe;
mod orient;
#[cfg(test)]
mod tests;
mod window;

use crate::device::gpu::{Buffer, Gpu};
use crate::feature::gpu::WORDS;
use crate::Result;

/// Lanes of a group that looks around one keypoint: of a warp, so that a barrier costs little; a power of two.
const LANES: u32 = 32;

/// Groups that share the keypoints of all images of a launch.
const GROUPS: usize = 4096;

/// Keypoints of several images, [`WORDS`] each: those of image i begin at i · `capacity`, and `counts[i]` tells how
/// many there are, or would be if they had room.
#[derive(Clone, Debug)]
struct List {
    keypoints: Buffer<u32>,
    counts: Buffer<u32>,
    capacity: usize,
}

impl List {
    fn new(gpu: &Gpu, images: usize, capacity: usize) -> Result<Self> {
        Ok(Self { keypoints: gpu.buffer(images * capacity * WORDS)?, counts: gpu.buffer(images)?, capacity })
    }
}

/// The groups that work on a list, a group a keypoint: images in the second dimension.
fn groups(list: &List) -> [usize; 3] {
    let images = list.counts.len();
    [list.capacity.min((GROUPS / images).max(64)), images, 1]
}
