//! [Blocks](super::Blocks) on a GPU, with the same bits as on the CPU.

use super::super::judge::Cell;
use super::super::judge::gpu::{cells_on, source as judge};
use super::{BINS, BLOCK, Blocks, COUNTS, LANES, PASSES, Patch, SUMS, Sums, WEAK, WHOLE, blocks_of, blur};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, compile};
use crate::feature::structure::lanes::Lanes;
use crate::filter::gpu::GpuFilter;
use crate::geometry::Homography;
use crate::image::Size;
use crate::image::gpu::{GpuStack, Plane};
use tiepoint_gpu::{KernelSource, Program};

/// Lanes of a work group that makes pixels, in x and y.
const GROUP: [u32; 2] = [32, 8];
/// Blocks that a group sums, [`LANES`] lanes each.
const BLOCKS_A_GROUP: u32 = 8;

tiepoint_gpu::kernel! {
    unsafe kernel even(groups) = Even {
        write smooth (plane: Plane): f32 [plane.numbers(groups[2])],
        read blurred: f32 [plane.numbers(groups[2])],
        read lanes: f32 [plane.numbers(groups[2])],
    } {}

    /// Warps B of each patch; a map is nine numbers, one map for each patch.
    unsafe kernel lay(groups) = Lay {
        write laid (plane: Plane): f32 [plane.numbers(groups[2])],
        read smooth: f32 [plane.numbers(2 * groups[2])],
        read maps: f64 [9 * groups[2]],
    } {}

    unsafe kernel sum_blocks(groups) = SumBlocks {
        write sums: f64 [groups[2] * blocks * SUMS as i128],
        read smooth (plane: Plane): f32 [plane.numbers(2 * groups[2])],
        read laid: f32 [plane.numbers(groups[2])],
    } {
        /// The blocks of a patch.
        blocks: i32,
    }
}

pub(crate) fn source() -> KernelSource {
    KernelSource::new("align")
        .define("GROUP_WIDTH", GROUP[0])
        .define("GROUP_HEIGHT", GROUP[1])
        .define("BLOCKS_A_GROUP", BLOCKS_A_GROUP)
        .define("BINS", BINS)
        .define("LANES", LANES)
        .define("COUNTS", COUNTS)
        .define("BLOCK", BLOCK)
        .define("SUMS", SUMS)
        .define("TERMS", SUMS - 1)
        .define_f32("WEAK", WEAK)
        .define_f32("WHOLE", WHOLE)
        .structure::<Plane>()
        .kernel::<Even<'_>>(GROUP)
        .kernel::<Lay<'_>>(GROUP)
        .kernel::<SumBlocks<'_>>([LANES as u32, BLOCKS_A_GROUP])
        .text(include_str!("align.cl"))
}

/// Patches of one size in a device's memory.
pub(super) struct OnGpu<'a> {
    gpu: &'a Gpu,
    program: Program,
    /// The number of patches, and of the blocks of each.
    count: usize,
    blocks: usize,
    /// The channels of A and of B of every patch, and both smoothed.
    lanes: GpuStack<f32>,
    blurred: GpuStack<f32>,
    smooth: GpuStack<f32>,
    laid: GpuStack<f32>,
    maps: Buffer<f64>,
    sums: Buffer<f64>,
}

impl<'a> OnGpu<'a> {
    pub(super) fn new(gpu: &'a Gpu, patches: &[Patch], cpu: &Cpu) -> Result<Self> {
        gpu.require_f64()?;
        let blurs = PASSES.at.map(|(sigma, _)| GpuFilter::<f32, f32>::gauss_source(gpu, &blur(sigma), LANES));
        compile(gpu, cpu, blurs.into_iter().chain([source(), judge()]).collect())?;
        let (size, count) = (patches.first().map_or(Size::default(), |of| of.lanes[0].size()), patches.len());
        let blocks = blocks_of(size).area();
        let stack = |count: usize| GpuStack::new(gpu, size, LANES, count);
        let (lanes, mut commands) = (stack(2 * count)?, Commands::new());
        let images = patches.iter().flat_map(|patch| &patch.lanes);
        images.enumerate().try_for_each(|(i, image)| match image {
            Lanes::Host(image) => lanes.write(i, image.view()),
            Lanes::Device(image) => {
                let to = (lanes.buffer(), i * lanes.step(), lanes.pitch());
                image.copy_rows(&mut commands, 0, to, image.size().height)
            }
        })?;
        gpu.run(&commands)?;
        Ok(Self {
            gpu,
            program: gpu.program(&source())?,
            count,
            blocks,
            blurred: stack(2 * count)?,
            smooth: stack(2 * count)?,
            laid: stack(count)?,
            maps: gpu.buffer(9 * count)?,
            sums: gpu.buffer((count * blocks * SUMS).max(1))?,
            lanes,
        })
    }

    /// The groups of a kernel that computes the pixels of this many images.
    fn groups(&self, images: usize) -> [usize; 3] {
        let Size { width, height } = self.lanes.size();
        [width.div_ceil(GROUP[0] as usize), height.div_ceil(GROUP[1] as usize), images]
    }
}

impl Blocks for OnGpu<'_> {
    fn smooth(&mut self, sigma: f64) -> Result<()> {
        let filter = GpuFilter::<f32, f32>::gauss(self.gpu, &blur(sigma), LANES)?;
        let mut commands = Commands::new();
        filter.record_batch(&mut commands, &self.lanes, &self.blurred)?;
        commands.stage("align");
        let (blurred, lanes) = (self.blurred.buffer(), self.lanes.buffer());
        let even = Even { smooth: self.smooth.laid(), blurred, lanes };
        commands.launch(&self.program.kernel::<Even<'_>>()?, self.groups(2 * self.count), even)?;
        Ok(self.gpu.run(&commands)?)
    }

    fn sums(&mut self, maps: &[Homography]) -> Result<Vec<Sums>> {
        let numbers: Vec<f64> = maps.iter().flat_map(|map| map.matrix().into_iter().flatten()).collect();
        self.maps.write(0, &numbers)?;
        let mut commands = Commands::new();
        commands.stage("align");
        let (smooth, laid, maps) = (self.smooth.buffer(), self.laid.laid(), &self.maps);
        let lay = Lay { laid, smooth, maps };
        commands.launch(&self.program.kernel::<Lay<'_>>()?, self.groups(self.count), lay)?;
        if self.blocks > 0 {
            let sums = SumBlocks {
                sums: &self.sums,
                smooth: self.smooth.laid(),
                laid: self.laid.buffer(),
                blocks: self.blocks as i32,
            };
            let groups = [self.blocks.div_ceil(BLOCKS_A_GROUP as usize), 1, self.count];
            commands.launch(&self.program.kernel::<SumBlocks<'_>>()?, groups, sums)?;
        }
        self.gpu.run(&commands)?;
        let sums = self.sums.first(self.count * self.blocks * SUMS)?;
        Ok(sums.as_chunks().0.to_vec())
    }

    fn cells(&self, n: usize) -> Result<Vec<Cell>> {
        cells_on(self.gpu, &self.smooth, self.laid.buffer(), n)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Passes, Settled, settled};
    use super::*;
    use crate::device::Processor;
    use crate::device::gpu::all;
    use crate::feature::structure::{Channels, Intensity, halved_lanes};
    use crate::geometry::ModelKind;
    use crate::image::{AnyView, Image};
    use crate::synth::{Scene, SceneOptions, Sensor, viewpoint};
    use std::sync::Arc;

    /// Patches side by side: both pictures of a scene at half their size, for each seed.
    fn patches(size: Size, seeds: &[u64], cpu: &Cpu) -> Vec<Patch> {
        let truth = viewpoint(size, 0.01, 1.01, [0.0; 2], [1.5, -0.7]).unwrap();
        let options = SceneOptions::default().with_size(size).with_moving_from_reference(truth);
        let lanes = |image: &Image<u8>| {
            let intensity = Intensity::of(AnyView::from(image), None, size, cpu).unwrap();
            Lanes::Host(Arc::new(halved_lanes(&Channels::of(&intensity, cpu).unwrap(), cpu).unwrap()))
        };
        let patch = |(i, seed): (usize, &u64)| {
            let scene = Scene::<u8>::render(&options.with_seed(*seed), cpu).unwrap();
            let mut seen = Sensor::Folded.shows(&scene.moving, 9);
            // A corner without structure.
            (0..size.height / 2)
                .for_each(|y| seen.row_mut(y)[..(size.height / 2 - y).min(size.width)].fill(0));
            Patch { at: [(i * size.width) as f64, 3.0], lanes: [lanes(&scene.reference), lanes(&seen)] }
        };
        seeds.iter().enumerate().map(patch).collect()
    }

    #[test]
    fn a_device_aligns_to_the_bits_of_the_cpu() {
        let cpu = Cpu::with_threads(2).unwrap();
        for (size, seeds) in
            [(Size::new(97, 131), &[5, 6][..]), (Size::new(160, 122), &[7]), (Size::new(9, 40), &[8])]
        {
            let patches = patches(size, seeds, &cpu);
            let passes = Passes { at: [(4.0, 1), (3.0, 1), (2.0, 2)], evident: 1, judged: true };
            let aligned = |processor: &Processor| -> Option<Settled> {
                settled(&patches, size, Homography::default(), &passes, ModelKind::Homography, processor)
                    .unwrap()
            };
            let expected = aligned(&cpu.clone().into());
            assert_eq!(expected.is_some(), size.width > 9, "{size}");
            for gpu in all() {
                let processor = Processor::with_gpu(cpu.clone(), gpu.clone());
                let found = aligned(&processor);
                assert!(processor.take_notes().is_empty(), "{gpu:?} leaves {size} to the CPU");
                assert!(format!("{found:?}") == format!("{expected:?}"), "{gpu:?}: {size}");
            }
        }
    }
}
