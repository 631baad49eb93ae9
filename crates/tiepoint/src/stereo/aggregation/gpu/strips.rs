//! Aggregation of whole images on a device: paths along rows, and paths from row to row.
//!
//! As on the CPU costs are computed from descriptors wherever they are needed and never stored. What is stored are the sums
//! of four parts, a byte or two for each pixel and disparity: of the paths from the left, from the right, downwards and
//! upwards. All are made at the same time; some lanes of a warp share the disparities of a pixel.
//!
//! **Along rows** (`horizontal.cl`) a row is walked from either side, all rows independently.
//!
//! **From row to row** (`vertical.cl`) all columns of a row are worked on at once. The columns are cut into strips, one a
//! work group, which hand paths that cross to the next strip over through global memory. Strips lean to the left with the
//! path that leans most, so that all paths cross to the right: a strip waits only for those left of it, which began before
//! it, however many run at a time.
//!
//! **What bounds it.** From row to row an image takes its height in steps, each as long as a row of a strip takes from one
//! barrier to the next, and a hand-over for every strip. On an H200 (2026-11-22, 1920×1080×128) these are 1080 steps of 1700
//! cycles and 94 hand-overs, 1.2 ms; paths along rows take 0.45 ms, of which 0.2 are added as both run at once.
//! As one wavefront ([`super`]) the same image takes 2.2 ms. Dropped on 2026-11-22: 8 disparities a lane instead of 16
//! (from row to row 1.36 ms), three small strips a multiprocessor (1.42 ms), loads and stores of the scope of the device for
//! the hand-over (no gain), walks of a row that add their sums up as they meet (along rows 0.89 ms, 0.02 less for the
//! selection).
//!
//! Dropped in the evening of 2026-11-22 (H200; times in ms of 1920×1080×128, ×256, 3840×2160×256; as it is: from row to row
//! 1.17, 2.06, 6.9, along rows 0.46, 0.65, 2.0, all 1.78, 3.32, 10.5):
//! - The costs of all pixels computed once and read by every path, so that a row of a strip takes 256 instructions of a warp
//!   instead of 370 and a column along a row 96 instead of 170: from row to row 1.20, 1.91, 6.5, along rows 0.45, 0.63, 2.6,
//!   the costs themselves 0.12, 0.23, 0.88; all 1.92, 3.32, 11.8, four directions as before. With half the
//!   instructions along rows takes as long: it waits for the latency of the recurrence, and from row to row as well. What a
//!   row needs fetched three rows ahead instead of one was 6 % faster from row to row.
//! - Minima of two 16-bit numbers by the instruction for floats (`min.f16x2`), which has twice the rate of that for three
//!   integers (126 to 64 lanes a cycle and multiprocessor): no difference.
//! - What can be gained for sure: sums of the paths from the right that lie by disparities and not by places, which was part
//!   of the first, make the selection 0.34, 0.61, 2.18 instead of 0.38, 0.69, 2.34.
//!
//! Where lanes exchange no numbers (OpenCL on a CPU, and GPUs other than NVIDIA's) one lane has all disparities of a pixel.

use super::{GpuAggregationInput, GpuSums, Layout, SIDE, SPARE, size_of_sums};
use crate::{
    Error, Result,
    device::gpu::{Buffer, Commands, Gpu},
    image::{
        Size,
        gpu::{GpuStack, Plane},
    },
    stereo::{
        Paths,
        aggregation::{Cross, Directions, Knight, Star},
        cost::gpu::CostKernel,
        gpu::lanes::{GROUP, covering, pixel_a_lane},
    },
};
use std::fmt::Write;
use tiepoint_gpu::{Info, Kernel, KernelSource};

tiepoint_gpu::kernel! {
    /// The sums of the paths along rows.
    unsafe kernel horizontal(groups) = Horizontal {
        write sums_out: u32 [sum_words],
        read left: u32 [descriptor_words],
        read right: u32 [descriptor_words],
        read penalties: u32 [width * height * images * 2],
        read table: u8 [table_bytes],
    } {
        sum_words: u64,
        descriptor_words: u64,
        table_bytes: u64,
        width: i32,
        height: i32,
        images: i32,
        /// Parts of the sums.
        parts: i32,
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
    /// The sums of the paths from row to row.
    unsafe kernel vertical(groups) = Vertical {
        write sums_out: u32 [sum_words],
        write tickets: u32 [1],
        shared boundary: u32 [boundary_words],
        /// Rows that the guest of a strip has brought.
        shared progress: u32 [strips * images * passes],
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
        /// 1: downwards alone; 2: also upwards.
        passes: i32,
        /// Parts of the sums.
        parts: i32,
        /// Strips of a pass.
        strips: i32,
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
        write horizontal: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * groups[2] * 2],
        write vertical: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * paths * groups[2] * 2],
        read grey: u8 [grey_plane.numbers(groups[2])],
        read table: u32 [256],
    } {
        grey_plane: Plane,
        /// From row to row, in a pass.
        paths: i32,
        /// Groups beside each other.
        across: i32,
    }
}

/// The directions of a pass that lead from row to row, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Steps {
    steps: Vec<(isize, usize)>,
    /// Rows above that steps come from.
    depth: usize,
    /// Columns by which strips lean to the left from row to row.
    skew: usize,
}

/// A direction that leads from row to row, in slots of a strip.
struct Slanting {
    step: (isize, usize),
    /// Slots that it moves to the right.
    moves: usize,
    /// Rows that are kept of its paths, a power of two.
    rows: usize,
}

impl Steps {
    fn of<D: Directions<N>, const N: usize>() -> Self {
        let steps = D::STEPS[1..].to_vec();
        let leans = |&(dx, dy): &(isize, usize)| ((-dx).max(0) as usize).div_ceil(dy);
        let skew = steps.iter().map(leans).max().unwrap_or(0);
        let depth = steps.iter().map(|s| s.1).max().unwrap_or(1);
        Self { steps, depth, skew }
    }

    fn verticals(&self) -> impl Iterator<Item = Slanting> {
        self.steps.iter().map(|&step| {
            let moves = (step.0 + (self.skew * step.1) as isize) as usize;
            // A path that stays in its slot stays in registers.
            let rows = if (moves, step.1) == (0, 1) { 0 } else { (step.1 + 1).next_power_of_two() };
            Slanting { step, moves, rows }
        })
    }

    /// Pixels whose paths cross to the next strip in a row.
    fn handed(&self) -> usize {
        self.verticals().map(|v| v.moves).sum()
    }

    /// Slots that a strip has at least: paths cross to the next one only.
    fn fewest(&self) -> usize {
        self.verticals().map(|v| v.moves).max().unwrap_or(0).max(self.skew)
    }

    /// Pixels whose paths a strip keeps for each of its slots.
    fn kept(&self) -> usize {
        self.verticals().map(|v| v.rows).sum()
    }

    /// Pixels whose paths it keeps of the strip left of it.
    fn halo(&self) -> usize {
        self.verticals().map(|v| v.rows * v.moves).sum()
    }

    /// For kernels: `VERTICALS(DO)`, and what all directions have in common.
    fn for_kernels(&self, source: KernelSource, strip: usize, path_words: usize) -> KernelSource {
        let (mut verticals, mut offset, mut handed, mut guests) = (String::new(), 0, 0, 0);
        for (number, Slanting { step: (dx, dy), moves, rows }) in self.verticals().enumerate() {
            let _ =
                write!(verticals, "DO({number}, {dx}, {dy}, {moves}, {rows}, {offset}, {handed}, {guests}) ");
            offset += rows * strip * path_words;
            handed += moves;
            guests += rows * moves;
        }
        source
            .define("VERTICALS(DO)", verticals)
            .define("PATHS", self.steps.len())
            .define("SKEW", self.skew)
            .define("DEPTH", self.depth)
            .define("HANDED", handed)
            .define("RING_WORDS", offset)
            .define("HALO_WORDS", guests * path_words)
    }
}

/// Columns that a row is walked between copies of what is needed, and warps of a group there.
const PHASES: usize = 8;
const WALKING: usize = 1;
/// Slots of a strip at most. With fewer more strips wait for each other, with more a row of a strip takes longer
/// (2026-11-22, H200: of 6 to 32 slots, 1 to 4 strips a multiprocessor and 4, 8 and 16 disparities a lane these were the
/// fastest; 18 slots of 256 disparities, which leave 80 registers, take 1.25 times as long as 16).
const SLOTS: usize = 32;
/// Warps of a strip at most.
const WARPS: usize = 16;
/// Strips that a multiprocessor has room for at a time.
const AT_ONCE: usize = 2;
/// Buffers that the strips of a pass hand paths over in. A strip does not wait for the one that is so many behind.
const BUFFERS: usize = 8;
/// The aggregation of pairs by one cost.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuStrips {
    gpu: Gpu,
    input: GpuAggregationInput,
    layout: Layout,
    steps: Steps,
    strip: Strip,
    /// Downwards, or downwards and upwards.
    passes: usize,
    penalties: Kernel<PenaltyMap<'static>>,
    horizontal: Kernel<Horizontal<'static>>,
    vertical: Kernel<Vertical<'static>>,
    /// P2 by difference of grey.
    p2: Buffer<u32>,
    table: Buffer<u8>,
    planes: usize,
}

/// The strips of an image.
#[derive(Clone, Copy, Debug)]
struct Strip {
    slots: usize,
    /// Words of local memory between the right pixels of two lanes of a pixel.
    stride: usize,
}

impl Strip {
    /// What a warp reads at once lies in different banks where each lane's words begin an odd number of times the pixels of
    /// a warp further on.
    fn new(slots: usize, layout: &Layout) -> Self {
        let words = slots + layout.each - 1;
        let stride = match layout.warp {
            1 => words,
            _ => (words.div_ceil(layout.rows_of_warp()) | 1) * layout.rows_of_warp(),
        };
        Self { slots, stride }
    }

    /// Bytes of local memory.
    fn memory(&self, steps: &Steps, layout: &Layout, planes: usize) -> usize {
        let paths = (steps.kept() * self.slots + steps.halo()) * layout.path_words();
        let staged = planes * (layout.lanes * self.stride + self.slots) + steps.steps.len() * self.slots;
        4 * (paths + 3 * staged)
    }

    /// As many slots, up to `most`, as have what they keep in local memory.
    fn fitting(
        most: usize,
        (steps, layout): (&Steps, &Layout),
        planes: usize,
        local_memory: usize,
    ) -> Option<Self> {
        let of_warp = layout.rows_of_warp();
        let room = local_memory.saturating_sub(SPARE);
        // A power of two, which suits the registers, or fewer than eight.
        let powers = [SLOTS, SLOTS / 2].into_iter().filter(|&slots| slots <= most);
        powers
            .chain((1..=SLOTS / 4).rev())
            .map(|slots| Self::new(slots.next_multiple_of(of_warp), layout))
            .filter(|strip| strip.slots >= steps.fewest() && strip.slots <= WARPS * of_warp)
            .find(|strip| strip.memory(steps, layout, planes) <= room)
    }

    /// How many strips a pass has.
    fn count(&self, size: Size, steps: &Steps) -> usize {
        (size.width + steps.skew * size.height.saturating_sub(1)).div_ceil(self.slots)
    }
}

fn for_paths(cost: &CostKernel, masked: bool, layout: &Layout) -> KernelSource {
    layout
        .for_kernels(cost.for_kernels::<u8>("aggregation", masked))
        .define("WARP", layout.warp)
        .define("LANES", layout.lanes)
        .define("EACH", layout.each)
}

fn penalties_source(steps: &Steps) -> KernelSource {
    let source = KernelSource::new("penalties").structure::<Plane>();
    pixel_a_lane(steps.for_kernels(source, 0, 0))
        .text(include_str!("../penalty.h"))
        .kernel::<PenaltyMap<'_>>(GROUP)
        .text(include_str!("../penalties.cl"))
}

fn horizontal_source(cost: &CostKernel, masked: bool, layout: &Layout) -> KernelSource {
    for_paths(cost, masked, layout)
        .define("PATHS", 1)
        .define("PHASES", PHASES)
        .define("WARPS", WALKING)
        .text(include_str!("../path.h"))
        .kernel::<Horizontal<'_>>([layout.warp as u32, WALKING as u32])
        .text(include_str!("../horizontal.cl"))
}

fn vertical_source(
    cost: &CostKernel,
    masked: bool,
    (steps, layout): (&Steps, &Layout),
    strip: Strip,
) -> KernelSource {
    // Beside those that walk one that fetches, and where paths cross a guest.
    let warps = strip.slots / layout.rows_of_warp() + 1 + usize::from(steps.handed() > 0);
    steps
        .for_kernels(for_paths(cost, masked, layout), strip.slots, layout.path_words())
        .define("COLUMNS", strip.slots)
        .define("STRIDE", strip.stride)
        .define("BUFFERS", BUFFERS)
        .text(include_str!("../path.h"))
        .kernel_resident::<Vertical<'_>>([layout.warp as u32, warps as u32], AT_ONCE as u32)
        .text(include_str!("../vertical.cl"))
}

/// A number in both halves of a word.
fn twice(value: u32) -> u32 {
    value << 16 | value
}

/// How strips are laid out for an input on a device.
struct Design {
    steps: Steps,
    passes: usize,
    layout: Layout,
    strip: Strip,
}

impl Design {
    fn of(gpu: &Gpu, cost: &CostKernel, input: &GpuAggregationInput) -> Result<Self> {
        gpu.require_whole_words()?;
        let (steps, passes) = match input.paths {
            Paths::Four => (Steps::of::<Cross, 2>(), 2),
            Paths::Five => (Steps::of::<Star, 4>(), 1),
            Paths::Eight => (Steps::of::<Star, 4>(), 2),
            Paths::Sixteen => (Steps::of::<Knight, 8>(), 2),
        };
        let greatest = u32::from(input.greatest) + u32::from(input.penalties.p2);
        let sum_bytes = if greatest * steps.steps.len() as u32 <= 255 { 1 } else { 2 };
        let Info { warp, units, local_memory, .. } = gpu.info();
        let planes = cost.planes(input.masked);
        // Few columns are shared out among all multiprocessors.
        let columns = (passes * input.images * input.size.width).div_ceil(*units as usize);
        let most = if columns > SLOTS / 2 { SLOTS } else { SLOTS / 2 };
        let fitting = [16, 8, 4].into_iter().find_map(|each| {
            let layout = Layout::new(*warp as usize, each, (2 + passes, sum_bytes), input.disparities);
            let strip = Strip::fitting(most, (&steps, &layout), planes, *local_memory as usize)?;
            Some((layout, strip))
        });
        let (layout, strip) = fitting.ok_or_else(|| Error::Unsupported {
            device: gpu.info().name.clone(),
            feature: format!(
                "memory of work groups for {} paths from row to row and {} disparities",
                steps.steps.len(),
                input.disparities
            ),
        })?;
        Ok(Self { steps, passes, layout, strip })
    }

    /// Those of the paths from row to row, of those along rows, and of the penalties.
    fn sources(&self, cost: &CostKernel, masked: bool) -> [KernelSource; 3] {
        let Self { steps, layout, strip, .. } = self;
        [
            vertical_source(cost, masked, (steps, layout), *strip),
            horizontal_source(cost, masked, layout),
            penalties_source(steps),
        ]
    }
}

/// The programs of [`GpuStrips::new`], and how its sums are laid out.
///
/// # Errors
/// [`Error::Unsupported`] when the device lacks what they need.
pub(in crate::stereo) fn sources(
    gpu: &Gpu,
    cost: &CostKernel,
    input: &GpuAggregationInput,
) -> Result<(Layout, [KernelSource; 3])> {
    let design = Design::of(gpu, cost, input)?;
    let sources = design.sources(cost, input.masked);
    Ok((design.layout, sources))
}

impl GpuStrips {
    pub(in crate::stereo) fn new(gpu: &Gpu, cost: &CostKernel, input: &GpuAggregationInput) -> Result<Self> {
        let design = Design::of(gpu, cost, input)?;
        let [vertical, horizontal, penalties] = design.sources(cost, input.masked);
        let Design { steps, passes, layout, strip } = design;
        let table = if cost.table.is_empty() { &[0][..] } else { &cost.table };
        Ok(Self {
            gpu: gpu.clone(),
            input: *input,
            layout,
            passes,
            strip,
            penalties: gpu.program(&penalties)?.kernel::<PenaltyMap<'_>>()?,
            horizontal: gpu.program(&horizontal)?.kernel::<Horizontal<'_>>()?,
            vertical: gpu.program(&vertical)?.kernel::<Vertical<'_>>()?,
            p2: gpu.upload(&input.penalties.table().map(u32::from))?,
            table: gpu.upload(table)?,
            planes: cost.planes(input.masked),
            steps,
        })
    }

    /// Puts the work into a list; `left` and `right` are the descriptors of the views, `grey` that of the left one.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        views: (&Buffer<u32>, &Buffer<u32>),
        grey: &GpuStack<u8>,
    ) -> Result<GpuSums> {
        let size = grey.size();
        if size.width.max(size.height) > SIDE {
            let feature = format!("numbers for a side of {}", size.width.max(size.height));
            return Err(Error::Unsupported { device: self.gpu.info().name.clone(), feature });
        }
        let words = size_of_sums(size, grey.count(), &self.layout)?;
        let sums = GpuSums { words: self.gpu.buffer(words)?, layout: self.layout };
        let pixels = size.area() * grey.count() * 2;
        let paths = self.steps.steps.len();
        let (horizontal, vertical) =
            (self.gpu.buffer::<u32>(pixels)?, self.gpu.buffer::<u32>(pixels * paths)?);
        let (across, groups) = covering(size, grey.count());
        commands.stage("penalties");
        commands.launch(
            &self.penalties,
            groups,
            PenaltyMap {
                horizontal: &horizontal,
                vertical: &vertical,
                grey: grey.buffer(),
                table: &self.p2,
                grey_plane: grey.plane(),
                paths: paths as i32,
                across,
            },
        )?;
        commands.stage("aggregate");
        let along_rows = self.along_rows(views, &horizontal, grey, &sums)?;
        let row_to_row = self.row_to_row(views, &vertical, grey, &sums)?;
        commands.together(along_rows, row_to_row)?;
        Ok(sums)
    }

    fn along_rows(
        &self,
        (left, right): (&Buffer<u32>, &Buffer<u32>),
        penalties: &Buffer<u32>,
        grey: &GpuStack<u8>,
        sums: &GpuSums,
    ) -> Result<Commands> {
        let (input, size, images) = (&self.input, grey.size(), grey.count());
        let mut commands = Commands::new();
        let walks = 2 * size.height * images;
        commands.launch(
            &self.horizontal,
            [walks.div_ceil(WALKING * self.layout.rows_of_warp()), 1, 1],
            Horizontal {
                sums_out: &sums.words,
                left,
                right,
                penalties,
                table: &self.table,
                sum_words: sums.words.len() as u64,
                descriptor_words: (size.area() * images * self.planes) as u64,
                table_bytes: self.table.len() as u64,
                width: size.width as i32,
                height: size.height as i32,
                images: images as i32,
                parts: self.layout.parts as i32,
                min_disparity: input.min_disparity,
                disparities: input.disparities as i32,
                p1: twice(input.penalties.p1.into()),
                far: twice(u32::from(input.greatest) + u32::from(input.penalties.p2)),
                greatest: input.greatest.into(),
            },
        )?;
        Ok(commands)
    }

    fn row_to_row(
        &self,
        (left, right): (&Buffer<u32>, &Buffer<u32>),
        penalties: &Buffer<u32>,
        grey: &GpuStack<u8>,
        sums: &GpuSums,
    ) -> Result<Commands> {
        let (gpu, input, size, images) = (&self.gpu, &self.input, grey.size(), grey.count());
        let mut commands = Commands::new();
        let (strips, walks) = (self.strip.count(size, &self.steps), images * self.passes);
        let boundary = gpu.buffer::<u32>(self.boundary_words(size, images).max(1))?;
        let (tickets, progress) = (gpu.buffer::<u32>(1)?, gpu.buffer::<u32>(strips * walks)?);
        commands.zero(&tickets)?;
        commands.zero(&progress)?;
        commands.zero(&boundary)?;
        // As many strips a multiprocessor as there are at a time, and no more: the slowest is waited for.
        let units = gpu.info().units as usize;
        let at_once = ((size.width / self.strip.slots + 1) * walks).div_ceil(units).min(AT_ONCE);
        commands.launch(
            &self.vertical,
            [(strips * walks).min(units * at_once), 1, 1],
            Vertical {
                sums_out: &sums.words,
                tickets: &tickets,
                boundary: &boundary,
                progress: &progress,
                left,
                right,
                penalties,
                table: &self.table,
                sum_words: sums.words.len() as u64,
                boundary_words: boundary.len() as u64,
                descriptor_words: (size.area() * images * self.planes) as u64,
                penalty_words: penalties.len() as u64,
                table_bytes: self.table.len() as u64,
                width: size.width as i32,
                height: size.height as i32,
                images: images as i32,
                passes: self.passes as i32,
                parts: self.layout.parts as i32,
                strips: strips as i32,
                min_disparity: input.min_disparity,
                disparities: input.disparities as i32,
                p1: twice(input.penalties.p1.into()),
                far: twice(u32::from(input.greatest) + u32::from(input.penalties.p2)),
                greatest: input.greatest.into(),
            },
        )?;
        Ok(commands)
    }

    /// Bytes of memory for a pair, beside its views.
    pub(in crate::stereo) fn bytes(&self, size: Size) -> u64 {
        let words = self.layout.sum_words() + 2 * (1 + self.steps.steps.len()) + 2 * self.planes;
        4 * (size.area() as u64)
            .saturating_mul(words as u64)
            .saturating_add(self.boundary_words(size, 1) as u64)
    }

    /// Words that strips hand paths over in: a word for each half of a path's.
    fn boundary_words(&self, size: Size, images: usize) -> usize {
        let walks = images * self.passes;
        walks * BUFFERS * size.height * self.steps.handed() * 2 * self.layout.path_words()
    }

    /// What the cost looks up; it may be overwritten for another pair.
    pub(in crate::stereo) fn table(&self) -> &Buffer<u8> {
        &self.table
    }

    pub(in crate::stereo) fn layout(&self) -> &Layout {
        &self.layout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{device::gpu::compiles_everywhere, stereo::cost::tests::kernels};

    /// Every set of directions, each with another cost.
    #[test]
    fn kernels_compile_for_every_card() {
        let layouts = [
            (Steps::of::<Star, 4>(), Layout::new(32, 16, (4, 1), 128)),
            (Steps::of::<Cross, 2>(), Layout::new(32, 16, (4, 1), 250)),
            (Steps::of::<Knight, 8>(), Layout::new(32, 8, (4, 2), 100)),
            (Steps::of::<Star, 4>(), Layout::new(32, 8, (3, 2), 3)),
        ];
        for ((n, (steps, layout)), cost) in layouts.iter().enumerate().zip(kernels().iter().rev().cycle()) {
            let masked = n % 2 == 1;
            let strip = Strip::fitting(SLOTS, (steps, layout), cost.planes(masked), 48 << 10).unwrap();
            compiles_everywhere(&[
                penalties_source(steps),
                horizontal_source(cost, masked, layout),
                vertical_source(cost, masked, (steps, layout), strip),
            ]);
        }
    }

    /// Paths of all sets of directions cross to the next strip alone, and strips of the common sizes fit.
    #[test]
    fn strips_fit_the_local_memory_of_cards() {
        for (steps, each, disparities) in [
            (Steps::of::<Star, 4>(), 16, 128),
            (Steps::of::<Star, 4>(), 16, 256),
            (Steps::of::<Star, 4>(), 16, 512),
            (Steps::of::<Cross, 2>(), 16, 512),
            (Steps::of::<Knight, 8>(), 8, 128),
        ] {
            let layout = Layout::new(32, each, (4, 2), disparities);
            let strip = Strip::fitting(SLOTS, (&steps, &layout), 3, 48 << 10);
            assert!(strip.is_some_and(|strip| strip.slots >= steps.fewest()), "{steps:?} {disparities}");
        }
    }
}
