//! The cost volume on a device: the cost of every left pixel at every disparity, a byte each, which every path reads.
//!
//! A byte is written once and read four times. Computing a cost where a path needs it moves less memory, but the instructions
//! of the paths are what an image waits for: with the volume a path takes two thirds of them, and a cost that takes long to
//! compute is computed once.

use super::gpu::CostKernel;
use crate::{
    Result,
    device::gpu::{Buffer, Commands, Gpu},
    image::Size,
    stereo::aggregation::gpu::Layout,
};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The costs of images, by places of their layout.
    unsafe kernel cost_volume(groups) = CostVolume {
        write costs: u32 [cost_words],
        read left: u32 [descriptor_words],
        read right: u32 [descriptor_words],
        read table: u8 [table_bytes],
    } {
        cost_words: u64,
        descriptor_words: u64,
        table_bytes: u64,
        width: i32,
        height: i32,
        images: i32,
        /// Segments of a row.
        across: i32,
        min_disparity: i32,
        /// The greatest cost.
        greatest: u32,
    }
}

/// Pixels of a row that a lane computes costs of, and those whose right pixels it fetches together.
const SEGMENT: usize = 32;
const PHASES: usize = 4;

/// Lanes of a group, on a device whose lanes exchange numbers and on others.
fn lanes(warp: usize) -> usize {
    if warp > 1 { 128 } else { 1 }
}

fn source(cost: &CostKernel, masked: bool, layout: &Layout) -> KernelSource {
    let lanes = lanes(layout.warp);
    layout
        .for_kernels(cost.for_kernels::<u8>("cost volume", masked))
        .define("LANES", layout.lanes)
        .define("GROUP_LANES", lanes)
        .define("SEGMENT", SEGMENT)
        .define("PHASES", PHASES)
        .text(include_str!("pixel_cost.h"))
        .kernel::<CostVolume<'_>>([lanes as u32, 1])
        .text(include_str!("volume.cl"))
}

/// Makes the cost volumes of pairs.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuCostVolume {
    gpu: Gpu,
    kernel: Kernel<CostVolume<'static>>,
    layout: Layout,
    planes: usize,
    min_disparity: i32,
    greatest: u16,
}

impl GpuCostVolume {
    pub(in crate::stereo) fn new(
        gpu: &Gpu,
        (cost, masked): (&CostKernel, bool),
        layout: Layout,
        (min_disparity, greatest): (i32, u16),
    ) -> Result<Self> {
        let kernel = gpu.program(&source(cost, masked, &layout))?.kernel::<CostVolume<'_>>()?;
        Ok(Self { gpu: gpu.clone(), kernel, layout, planes: cost.planes(masked), min_disparity, greatest })
    }

    /// Puts the work into a list; `left` and `right` are the descriptors of the views, `table` what the cost looks up.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        (left, right): (&Buffer<u32>, &Buffer<u32>),
        table: &Buffer<u8>,
        (size, images): (Size, usize),
    ) -> Result<Buffer<u32>> {
        let costs = self.gpu.buffer(size.area() * images * self.layout.padded() / 4)?;
        let across = size.width.div_ceil(SEGMENT);
        let items = across * self.layout.lanes * size.height * images;
        commands.launch(
            &self.kernel,
            [items.div_ceil(lanes(self.layout.warp)), 1, 1],
            CostVolume {
                costs: &costs,
                left,
                right,
                table,
                cost_words: costs.len() as u64,
                descriptor_words: (size.area() * images * self.planes) as u64,
                table_bytes: table.len() as u64,
                width: size.width as i32,
                height: size.height as i32,
                images: images as i32,
                across: across as i32,
                min_disparity: self.min_disparity,
                greatest: self.greatest.into(),
            },
        )?;
        Ok(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{device::gpu::compiles_everywhere, stereo::cost::tests::kernels};

    #[test]
    fn kernels_compile_for_every_card() {
        for (n, cost) in kernels().iter().enumerate() {
            let layout = Layout::new(32, [16, 8, 4][n % 3], (4, 1), [128, 100, 3][n % 3]);
            compiles_everywhere(&[source(cost, n % 2 == 1, &layout)]);
        }
    }
}
