//! Aggregation on a device. Whole images go through [`strips`], which is faster; bands of rows ([`checkpoints`])
//! through the form here: both passes side by side, each a wavefront of rows.
//!
//! Some lanes of a warp share the disparities of a row; the rows of a group go side by side and hand path costs over in
//! local memory, groups hand them over in global memory. As on the CPU costs are computed from descriptors in each pass
//! and never stored. Unlike there both passes run at once, so each stores its sums: a byte or two for each pixel and
//! disparity, twice.
//!
//! **What bounds it.** The last row begins two columns a row after the first, so a pass of one image takes width + 2
//! height columns, of which a row is at work for `width`; each waits for what the row above found in the column before.
//! On an H200 that takes 900 cycles (2026-11-22, 1920×1080×128), of which the instructions of a warp are 230: an image
//! is bound by latency, several at once by instructions. Dropped on 2026-11-22 (the same image, aggregation 2.1 to 2.2
//! ms, a batch of eight of 1280×720 3.2 ms): a walk from each corner for a straight and a slanting direction, 2.1 ms,
//! but 3.8 ms for the batch and twice the memory; marks between neighbouring warps instead of a barrier, 2.8 ms; a
//! barrier after every second column, 3.2 ms; costs of the next column beside the least values of this one, 2.3 ms.
//!
//! A device without 64-bit atomics is refused, and the CPU computes: on rusticl's processor (Mesa 22.3), which lacks
//! them, sums of 68 disparities are other ones, the same ones in every run of one thread, where those of 8 to 40 are
//! right and PoCL is right with as little local memory and the same strips (2026-11-23): most likely its compiler, with
//! path costs that do not fit into registers.
//!
//! Where lanes exchange no numbers (OpenCL on a CPU, and GPUs other than NVIDIA's) a row is walked by one lane.

mod checkpoints;
mod strips;

pub(in crate::stereo) use checkpoints::GpuBands;
pub(in crate::stereo) use strips::{GpuStrips, bytes, sources};

use super::{Cross, Directions, Horizontal, Knight, Star};
use crate::{
    Error, Result,
    device::gpu::{Buffer, Commands, Gpu},
    image::{
        Size,
        gpu::{GpuStack, Plane},
    },
    stereo::{
        Paths, Penalties, StereoOptions,
        cost::gpu::CostKernel,
        gpu::lanes::{GROUP, covering, pixel_a_lane},
    },
};
use std::fmt::Write;
use std::ops::Range;
use tiepoint_gpu::{Info, Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The sums of the paths of passes.
    unsafe kernel aggregate(groups) = Aggregate {
        write sums_out: u32 [sum_words],
        write tickets: u32 [1],
        shared boundary: u32 [boundary_words],
        /// Whether groups of rows have begun to hand paths over.
        shared progress: u32 [rows_groups],
        read left: u32 [descriptor_words],
        read right: u32 [descriptor_words],
        read penalties: u32 [penalty_words],
        read table: u8 [table_bytes],
    } {
        sum_words: u64,
        boundary_words: u64,
        descriptor_words: u64,
        penalty_words: u64,
        table_bytes: u64,
        width: i32,
        height: i32,
        images: i32,
        /// 2: both; else one.
        passes: i32,
        /// 0 forward, 1 backward.
        first_pass: i32,
        /// Groups of rows of all passes.
        rows_groups: i32,
        min_disparity: i32,
        disparities: i32,
        /// Twice, in halves of the word, as the next.
        p1: u32,
        /// The cost where there is no disparity.
        far: u32,
        /// The greatest cost.
        greatest: u32,
    }
}

tiepoint_gpu::kernel! {
    /// P2 of every direction at every pixel, for both passes.
    unsafe kernel penalties(groups) = PenaltyMap {
        write to: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * words * groups[2] * 2],
        read grey: u8 [grey_plane.numbers(groups[2])],
        read table: u32 [256],
    } {
        grey_plane: Plane,
        /// A pixel and pass.
        words: i32,
        /// Groups beside each other.
        across: i32,
    }
}

/// The directions of a pass, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Steps {
    /// The first runs along the row.
    steps: Vec<(isize, usize)>,
    /// Rows above that steps come from.
    depth: usize,
    /// Columns that a row stays behind the one above.
    skew: usize,
}

/// A direction that comes from a row above.
struct Vertical {
    number: usize,
    step: (isize, usize),
    /// Pixels of a row that are kept for the rows below, a power of two, and where they begin among all that are.
    slots: usize,
    first_slot: usize,
    /// Where its paths begin among those that cross a boundary at a column.
    handed: usize,
}

impl Steps {
    fn of<D: Directions<N>, const N: usize>() -> Self {
        let steps = D::STEPS.to_vec();
        // A path is kept at the latest a step before the row below needs it.
        let needed = |&(dx, dy): &(isize, usize)| ((1 - dx).max(0) as usize).div_ceil(dy);
        let skew = steps[1..].iter().map(needed).max().unwrap_or(0);
        let depth = steps.iter().map(|s| s.1).max().unwrap_or(0);
        Self { steps, depth, skew }
    }

    fn verticals(&self) -> Vec<Vertical> {
        let (mut first_slot, mut handed) = (0, 0);
        let vertical = |(number, &step): (usize, &(isize, usize))| {
            let kept = step.0 + (self.skew * step.1) as isize + 1;
            let slots = (kept.max(1) as usize).next_power_of_two();
            let vertical = Vertical { number, step, slots, first_slot, handed };
            first_slot += slots;
            handed += step.1;
            vertical
        };
        self.steps.iter().enumerate().skip(1).map(vertical).collect()
    }

    /// Pixels of paths that a row keeps.
    fn slots(&self) -> usize {
        self.verticals().iter().map(|v| v.slots).sum()
    }

    /// Columns that are compiled one after the other, after which every slot has been used a whole number of times.
    fn phases(&self) -> usize {
        self.verticals().iter().map(|v| v.slots).max().unwrap_or(0).max(4)
    }

    /// Paths that cross a boundary at a column.
    fn handed(&self) -> usize {
        self.steps[1..].iter().map(|s| s.1).sum()
    }

    /// For kernels: `VERTICALS(DO)`, and what all directions have in common.
    fn for_kernels(&self, source: KernelSource, path_words: usize) -> KernelSource {
        let mut verticals = String::new();
        for Vertical { number, step: (dx, dy), slots, first_slot, handed } in self.verticals() {
            let offset = first_slot * path_words;
            let _ = write!(verticals, "DO({number}, {dx}, {dy}, {offset}, {slots}, {handed}) ");
        }
        source
            .define("VERTICALS(DO)", verticals)
            .define("PATHS", self.steps.len())
            .define("SKEW", self.skew)
            .define("DEPTH", self.depth)
            .define("PHASES", self.phases())
            .define("AHEAD", AHEAD)
            .define("HANDED", self.handed())
            .define("RING_ROW", self.slots() * path_words)
    }
}

/// How sums and paths lie on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct Layout {
    /// Lanes that exchange numbers.
    warp: usize,
    /// Lanes of a row.
    lanes: usize,
    /// Disparities of a lane.
    per_lane: usize,
    /// Bytes of the sum of a pass.
    pub(in crate::stereo) sum_bytes: usize,
    /// Parts of the sums.
    pub(in crate::stereo) parts: usize,
    pub(in crate::stereo) disparities: usize,
}

impl Layout {
    /// Rows of as few lanes as give each `each` disparities or fewer.
    pub(in crate::stereo) fn new(
        warp: usize,
        per_lane: usize,
        (parts, sum_bytes): (usize, usize),
        disparities: usize,
    ) -> Self {
        let lanes = disparities.div_ceil(per_lane).next_power_of_two().min(warp);
        let per_lane = match disparities.div_ceil(lanes) {
            ..=4 => 4,
            most => most.next_multiple_of(8),
        };
        Self { warp, lanes, per_lane, sum_bytes, parts, disparities }
    }

    /// The same sums by more lanes, so that each has at most `most` disparities, as far as that goes.
    fn split(&self, most: usize) -> Self {
        let Self { warp, lanes, per_lane, .. } = *self;
        // What a lane stores are whole words.
        match per_lane > most && 2 * lanes <= warp && (per_lane.is_multiple_of(16) || per_lane == 8) {
            true => Self { lanes: 2 * lanes, per_lane: per_lane / 2, ..*self }.split(most),
            false => *self,
        }
    }

    /// Places of a pixel: disparities in memory.
    pub(in crate::stereo) fn padded(&self) -> usize {
        self.lanes * self.per_lane
    }

    /// Words of the sums of all parts of a pixel.
    pub(in crate::stereo) fn sum_words(&self) -> usize {
        self.parts * self.padded() * self.sum_bytes / 4
    }

    /// Words of a path at a pixel.
    fn path_words(&self) -> usize {
        self.padded() / 2
    }

    /// Rows that a warp walks, or pixels that it looks at together.
    fn rows_of_warp(&self) -> usize {
        self.warp / self.lanes
    }

    /// For kernels: `LANES` of a row are not those of a group there.
    pub(in crate::stereo) fn for_kernels(&self, source: KernelSource) -> KernelSource {
        source
            .define("PADDED", self.padded())
            .define("SUM_BYTES", self.sum_bytes)
            .define("PARTS", self.parts)
            .define("PARTIAL", u8::from(self.padded() > self.disparities))
    }
}

/// Warps of a group that walk rows.
const WARPS: usize = 4;
/// How many columns ahead the halo warp reads the paths of the group above.
const AHEAD: usize = 2;
/// The longest side of an image: with eight directions the places of a row fit 32 bits.
const SIDE: usize = 1 << 24;
/// Bytes of local memory that are left for other things.
const SPARE: usize = 1 << 10;

/// How the rows of images are divided among the multiprocessors. With more disparities a lane there are fewer
/// instructions in all; with few rows, more lanes a row finish a column sooner (2026-11-22, H200: of 4, 8, 16 and 32
/// disparities and groups of 2 to 18 warps these were the fastest).
#[derive(Clone, Copy, Debug)]
struct Sharing {
    /// Disparities of a lane at most, if so many fit.
    per_lane: usize,
    /// Groups on a multiprocessor at a time. The same number everywhere: the slowest decides.
    at_once: usize,
}

impl Sharing {
    fn of(rows: usize, units: usize) -> Self {
        match rows.div_ceil(units) {
            0..=8 => Self { per_lane: 4, at_once: 1 },
            9..=24 => Self { per_lane: 8, at_once: 2 },
            _ => Self { per_lane: 16, at_once: 2 },
        }
    }
}

/// One or both passes.
#[derive(Clone, Debug)]
struct Walks {
    aggregate: Kernel<Aggregate<'static>>,
    penalties: Kernel<PenaltyMap<'static>>,
    steps: Steps,
    rows: usize,
    /// Work groups at most.
    groups: usize,
    first_pass: usize,
    passes: usize,
}

/// What the aggregation on a device depends on.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct GpuAggregationInput {
    pub(in crate::stereo) size: Size,
    /// Pairs at a time.
    pub(in crate::stereo) images: usize,
    pub(in crate::stereo) min_disparity: i32,
    pub(in crate::stereo) disparities: usize,
    pub(in crate::stereo) paths: Paths,
    pub(in crate::stereo) penalties: Penalties,
    /// The greatest cost.
    pub(in crate::stereo) greatest: u16,
    /// Whether a view has pixels without data.
    pub(in crate::stereo) masked: bool,
}

impl GpuAggregationInput {
    /// By the options.
    pub(in crate::stereo) fn of(
        options: &StereoOptions,
        (size, images): (Size, usize),
        greatest: u16,
        masked: bool,
    ) -> Self {
        let StereoOptions { min_disparity, disparities, paths, .. } = *options;
        let penalties = options.penalties();
        Self { size, images, min_disparity, disparities, paths, penalties, greatest, masked }
    }
}

/// The aggregation of pairs by one cost.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuAggregation {
    gpu: Gpu,
    input: GpuAggregationInput,
    layout: Layout,
    walks: Vec<Walks>,
    /// P2 by difference of grey.
    p2: Buffer<u32>,
    table: Buffer<u8>,
    planes: usize,
}

/// The sums by disparities: images, then parts, then pixels.
#[derive(Debug)]
pub(in crate::stereo) struct GpuSums {
    pub(in crate::stereo) words: Buffer<u32>,
    pub(in crate::stereo) layout: Layout,
}

/// What the kernels of a pass are compiled for.
#[derive(Clone, Copy, Debug)]
struct Shape<'a> {
    steps: &'a Steps,
    layout: &'a Layout,
    rows: usize,
    at_once: usize,
}

fn source(cost: &CostKernel, masked: bool, shape: &Shape<'_>) -> KernelSource {
    let Shape { steps, layout, rows, at_once } = *shape;
    let source = cost
        .for_kernels::<u8>("aggregation", masked)
        .define("WARP", layout.warp)
        .define("LANES", layout.lanes)
        .define("PER_LANE", layout.per_lane)
        .define("SUM_BYTES", layout.sum_bytes)
        .define("PADDED", layout.padded())
        .define("PARTIAL", u8::from(layout.padded() > layout.disparities))
        .define("ROWS", rows);
    // The halo warp, where rows need what lies above.
    let warps = rows / layout.rows_of_warp() + usize::from(steps.depth > 0);
    steps
        .for_kernels(pixel_a_lane(source), layout.padded() / 2)
        .text(include_str!("path.h"))
        .text(include_str!("penalty.h"))
        .kernel_resident::<Aggregate<'_>>([layout.warp as u32, warps as u32], at_once as u32)
        .kernel::<PenaltyMap<'_>>(GROUP)
        .text(include_str!("aggregation.cl"))
}

impl Walks {
    fn new(
        gpu: &Gpu,
        (cost, input): (&CostKernel, &GpuAggregationInput),
        shape: &Shape<'_>,
        passes: Range<usize>,
    ) -> Result<Self> {
        let program = gpu.program(&source(cost, input.masked, shape))?;
        Ok(Self {
            aggregate: program.kernel::<Aggregate<'_>>()?,
            penalties: program.kernel::<PenaltyMap<'_>>()?,
            steps: shape.steps.clone(),
            rows: shape.rows,
            groups: gpu.info().units as usize * shape.at_once,
            first_pass: passes.start,
            passes: passes.len(),
        })
    }

    /// The most rows, up to those of [`WARPS`] warps, whose data fit into local memory.
    fn rows(steps: &Steps, layout: &Layout, planes: usize, local_memory: usize) -> Option<usize> {
        let of_warp = layout.rows_of_warp();
        let kept = steps.slots() * layout.padded() * 2;
        // What is needed in this turn and the next, a multiple of 16 bytes.
        let staged = 2 * (4 * steps.phases() * (steps.steps.len() + 2 * planes)).next_multiple_of(16);
        let room = local_memory.saturating_sub(SPARE);
        let fits = |&rows: &usize| {
            rows >= steps.depth && (rows + steps.depth).saturating_sub(1) * kept + rows * staged <= room
        };
        (1..=WARPS).rev().map(|warps| warps * of_warp).find(fits)
    }

    /// Words of the boundary of a walk: two buffers.
    fn boundary_words(&self, plan: &GpuAggregation, width: usize) -> usize {
        2 * width * self.steps.handed() * plan.layout.padded() / 2
    }

    /// Puts P2 of every direction at every pixel into a list.
    fn penalties(
        &self,
        commands: &mut Commands,
        plan: &GpuAggregation,
        grey: &GpuStack<u8>,
    ) -> Result<Buffer<u32>> {
        let (size, images) = (grey.size(), grey.count());
        let words = self.steps.steps.len();
        let penalties = plan.gpu.buffer::<u32>(size.area() * images * 2 * words)?;
        let (across, groups) = covering(size, images);
        let arguments = PenaltyMap {
            to: &penalties,
            grey: grey.buffer(),
            table: &plan.p2,
            grey_plane: grey.plane(),
            words: words as i32,
            across,
        };
        commands.stage("penalties");
        commands.launch(&self.penalties, groups, arguments)?;
        Ok(penalties)
    }

    fn launch(
        &self,
        commands: &mut Commands,
        plan: &GpuAggregation,
        (size, images): (Size, usize),
        walk: WalkInput<'_>,
    ) -> Result<()> {
        let WalkInput {
            descriptors: (left, right),
            penalties,
            boundary,
            tickets,
            progress,
            sums,
            passes,
            groups,
        } = walk;
        let (input, walks) = (&plan.input, images * passes.len());
        let greatest = u32::from(input.greatest);
        let arguments = Aggregate {
            sums_out: &sums.words,
            tickets,
            boundary,
            progress,
            left,
            right,
            penalties,
            table: &plan.table,
            sum_words: (size.area() * images * plan.layout.sum_words()) as u64,
            boundary_words: boundary.len() as u64,
            descriptor_words: (size.area() * images * plan.planes) as u64,
            penalty_words: penalties.len() as u64,
            table_bytes: plan.table.len() as u64,
            width: size.width as i32,
            height: size.height as i32,
            images: images as i32,
            passes: passes.len() as i32,
            first_pass: passes.start as i32,
            rows_groups: (groups.end * walks) as i32,
            min_disparity: input.min_disparity,
            disparities: input.disparities as i32,
            p1: twice(input.penalties.p1.into()),
            far: twice(greatest + u32::from(input.penalties.p2)),
            greatest,
        };
        Ok(commands.launch(&self.aggregate, [(groups.len() * walks).min(self.groups), 1, 1], arguments)?)
    }
}

/// What some passes walk over.
struct WalkInput<'a> {
    descriptors: (&'a Buffer<u32>, &'a Buffer<u32>),
    penalties: &'a Buffer<u32>,
    boundary: &'a Buffer<u32>,
    /// The number of the first group of rows of all passes.
    tickets: &'a Buffer<u32>,
    progress: &'a Buffer<u32>,
    sums: &'a GpuSums,
    passes: Range<usize>,
    /// Groups of rows of a pass.
    groups: Range<usize>,
}

impl GpuAggregation {
    pub(in crate::stereo) fn new(gpu: &Gpu, cost: &CostKernel, input: &GpuAggregationInput) -> Result<Self> {
        gpu.require_whole_words()?;
        let (cross, star) = (Steps::of::<Cross, 2>(), Steps::of::<Star, 4>());
        let passes = match input.paths {
            Paths::Four => vec![(cross, 0..2)],
            Paths::Five => vec![(star, 0..1), (Steps::of::<Horizontal, 1>(), 1..2)],
            Paths::Eight => vec![(star, 0..2)],
            Paths::Sixteen => vec![(Steps::of::<Knight, 8>(), 0..2)],
        };
        let most = passes.iter().map(|(steps, _)| steps.steps.len()).max().unwrap_or(1);
        let greatest = u32::from(input.greatest) + u32::from(input.penalties.p2);
        let sum_bytes = if greatest * most as u32 <= 255 { 1 } else { 2 };
        let Info { warp, units, local_memory, .. } = gpu.info();
        let sharing = Sharing::of(2 * input.size.height * input.images, *units as usize);
        let planes = cost.planes(input.masked);
        let rows =
            |steps: &Steps, layout: &Layout| Walks::rows(steps, layout, planes, *local_memory as usize);
        let layouts = [16, 8, 4].into_iter().filter(|&per_lane| per_lane <= sharing.per_lane);
        let layout = layouts
            .map(|per_lane| Layout::new(*warp as usize, per_lane, (2, sum_bytes), input.disparities))
            .find(|layout| passes.iter().all(|(steps, _)| rows(steps, layout).is_some()))
            .ok_or_else(|| Error::Unsupported {
                device: gpu.info().name.clone(),
                feature: format!(
                    "memory of work groups for {} paths and {} disparities",
                    2 * most,
                    input.disparities
                ),
            })?;
        let walks = passes.into_iter().map(|(steps, passes)| {
            let rows = rows(&steps, &layout).unwrap_or(1);
            let shape = Shape { steps: &steps, layout: &layout, rows, at_once: sharing.at_once };
            Walks::new(gpu, (cost, input), &shape, passes)
        });
        let table = if cost.table.is_empty() { &[0][..] } else { &cost.table };
        Ok(Self {
            gpu: gpu.clone(),
            input: *input,
            layout,
            walks: walks.collect::<Result<_>>()?,
            p2: gpu.upload(&input.penalties.table().map(u32::from))?,
            table: gpu.upload(table)?,
            planes,
        })
    }

    pub(in crate::stereo) fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// A number in both halves of a word.
fn twice(value: u32) -> u32 {
    value << 16 | value
}

fn size_of_sums(size: Size, images: usize, layout: &Layout) -> Result<usize> {
    let words = size.area().checked_mul(images).and_then(|n| n.checked_mul(layout.sum_words()));
    words.ok_or_else(|| Error::Image(format!("{images} pairs of {size}: their sums exceed memory")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{device::gpu::compiles_everywhere, stereo::cost::tests::kernels};

    /// Every set of directions, each with another cost.
    #[test]
    fn kernels_compile_for_every_card() {
        let layouts = [
            (Steps::of::<Star, 4>(), Layout::new(32, 8, (2, 1), 128)),
            (Steps::of::<Cross, 2>(), Layout::new(32, 16, (2, 1), 250)),
            (Steps::of::<Knight, 8>(), Layout::new(32, 4, (2, 2), 100)),
            (Steps::of::<Horizontal, 1>(), Layout::new(32, 16, (2, 2), 512)),
            (Steps::of::<Star, 4>(), Layout::new(32, 8, (2, 2), 3)),
        ];
        for ((n, (steps, layout)), cost) in layouts.iter().enumerate().zip(kernels().iter().rev().cycle()) {
            let rows = Walks::rows(steps, layout, cost.planes(n % 2 == 1), 48 << 10).unwrap();
            let shape = Shape { steps, layout, rows, at_once: 2 };
            compiles_everywhere(&[source(cost, n % 2 == 1, &shape)]);
        }
    }
}
