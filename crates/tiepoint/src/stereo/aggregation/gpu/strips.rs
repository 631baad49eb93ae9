//! Aggregation of whole images on a device: paths along rows, and paths from row to row.
//!
//! As on the CPU costs are computed from descriptors wherever they are needed and never stored. What is stored are the
//! sums of four parts, a byte or two for each pixel and disparity: of the paths from the left, from the right,
//! downwards and upwards. All are made at the same time; some lanes of a warp share the disparities of a pixel.
//!
//! **Along rows** (`horizontal.cl`) a row is walked from either side, all rows independently.
//!
//! **From row to row** (`vertical.cl`) all columns of a row are worked on at once. The columns are cut into strips, one
//! a work group, which hand paths that cross to the next strip over through global memory. Strips lean to the left with
//! the path that leans most, so that all paths cross to the right: a strip waits only for those left of it, which began
//! before it, however many run at a time.
//!
//! **Four directions.** No path crosses columns: a strip is the columns of one warp, which does not lean, hands nothing
//! over, loads for itself and waits for no other.
//!
//! **What bounds it.** From row to row an image takes its height in steps, each as long as a row of a strip takes from
//! one barrier to the next, and a hand-over for every strip. On an H200 (2026-11-22, 1920×1080×128) these are 1080
//! steps of 1500 cycles and 94 hand-overs, 1.03 ms; paths along rows take 0.42 ms, of which 0.2 are added as both run
//! at once. They do so only because both ask for the most local memory: kernels that divide a multiprocessor's memory
//! otherwise wait for each other (four directions 1.5 ms in place of 0.73). A cost that looks up a table pays 3 % for
//! it, by a smaller cache. As one wavefront ([`super`]) the same image takes 2.2 ms. Dropped on 2026-11-22: three small
//! strips a multiprocessor (1.42 ms), loads and stores of the scope of the device for the hand-over (no gain), walks of
//! a row that add their sums up as they meet (along rows 0.89 ms, 0.02 less for the selection).
//!
//! Dropped in the evening of 2026-11-22 (H200; times in ms of 1920×1080×128, ×256, 3840×2160×256):
//! - The costs of all pixels computed once and read by every path, so that a row of a strip takes 256 instructions of a
//!   warp instead of 370 and a column along a row 96 instead of 170: from row to row 1.20, 1.91, 6.5 in place of 1.17,
//!   2.06, 6.9, along rows 0.45, 0.63, 2.6 (0.46, 0.65, 2.0), the costs themselves 0.12, 0.23, 0.88; all 1.92, 3.32,
//!   11.8 (1.78, 3.32, 10.5).
//! - Minima of two 16-bit numbers by the instruction for floats (`min.f16x2`), which has twice the rate of that for
//!   three integers (126 to 64 lanes a cycle and multiprocessor): no difference.
//!
//! Dropped at night: differences and sums within the minimum (`min(a + b, c)` of two 16-bit numbers), which takes the
//! pipe that is short: all 1.66, 3.04, 10.25 in place of 1.65, 2.99, 10.1. Since 256 disparities have lanes of 32 from
//! row to row it is 1.60, 2.83, 9.6; along rows as many take longer, 0.80 in place of 0.66 (×256).
//!
//! Dropped on 2026-11-23 for a cost that looks up a table (H200, 1920×1080×128, mutual information with its learning, a
//! pair of a stream; 2.43 ms then):
//! - A row's costs asked for a row before they are used: 2.87.
//! - 8 disparities a lane in place of 16 from row to row: 3.82. 4 in place of 8 along rows: 3.17.
//! - Less of a multiprocessor's memory asked for, so that its cache holds the table (percent): 75, 58 and 44 2.85, 28
//!   3.07; census 2.38, 2.38, 2.39 and 1.80 in place of 1.70.
//!
//! Where lanes exchange no numbers (OpenCL on a CPU, and GPUs other than NVIDIA's) one lane has all disparities of a
//! pixel.

use super::{GpuAggregationInput, GpuSums, Layout, SIDE, SPARE, size_of_sums, twice};
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
        /// Rows that the halo warp of a strip has read.
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

    /// The fewest slots of a strip: a path must not cross more than one border between strips in a step.
    fn fewest(&self) -> usize {
        self.verticals().map(|v| v.moves).max().unwrap_or(0).max(self.skew)
    }

    /// Disparities of a lane: few lanes a pixel take fewer instructions, many a shorter time for a row. Sixteen
    /// directions have registers for no more than 16 (2026-11-22, H200, 64 to 256 disparities: of 4, 8, 16 and 32 these
    /// were the fastest).
    fn disparities_of_lane(&self, disparities: usize) -> usize {
        let (lanes, most) = match (self.handed(), self.steps.len()) {
            (0, _) => (4, 32),
            (_, ..=3) => (8, 32),
            (_, _) => (8, 16),
        };
        disparities.div_ceil(lanes).clamp(4, most)
    }

    /// Strips that a multiprocessor has room for at a time.
    fn strips_at_once(&self) -> usize {
        if self.handed() > 0 { AT_ONCE } else { WARPS_AT_ONCE }
    }

    /// Pixels whose paths a strip keeps for each of its slots.
    fn kept(&self) -> usize {
        self.verticals().map(|v| v.rows).sum()
    }

    /// Pixels of the strip left of it whose paths a strip keeps.
    fn halo(&self) -> usize {
        self.verticals().map(|v| v.rows * v.moves).sum()
    }

    /// For kernels: `VERTICALS(DO)`, and what all directions have in common.
    fn for_kernels(&self, source: KernelSource, strip: usize, path_words: usize) -> KernelSource {
        let (mut verticals, mut offset, mut handed, mut in_halo) = (String::new(), 0, 0, 0);
        for (number, Slanting { step: (dx, dy), moves, rows }) in self.verticals().enumerate() {
            let _ = write!(
                verticals,
                "DO({number}, {dx}, {dy}, {moves}, {rows}, {offset}, {handed}, {in_halo}) "
            );
            offset += rows * strip * path_words;
            handed += moves;
            in_halo += rows * moves;
        }
        source
            .define("VERTICALS(DO)", verticals)
            .define("PATHS", self.steps.len())
            .define("SKEW", self.skew)
            .define("DEPTH", self.depth)
            .define("HANDED", handed)
            .define("RING_WORDS", offset)
            .define("HALO_WORDS", in_halo * path_words)
    }
}

/// Columns that a row is walked between copies of what is needed, and warps of a group there.
const PHASES: usize = 8;
const WALKING: usize = 1;
/// Walks of a multiprocessor along rows with which more lanes a pixel pay.
const FEW_WALKS: usize = 32;
/// Slots of a strip at most. With fewer more strips wait for each other, with more a row of a strip takes longer
/// (2026-11-22, H200: of 6 to 32 slots, 1 to 4 strips a multiprocessor and 4, 8 and 16 disparities a lane these were
/// the fastest; 18 slots of 256 disparities, which leave 80 registers, take 1.25 times as long as 16).
const SLOTS: usize = 32;
/// Warps of a strip at most.
const WARPS: usize = 16;
/// How many rows ahead the loader of a strip copies what a row needs, where local memory has room for it, and where it
/// has not.
const AHEAD: [usize; 2] = [4, 2];
/// Strips on a multiprocessor at a time; and where no path crosses columns, and a strip is one warp.
const AT_ONCE: usize = 2;
const WARPS_AT_ONCE: usize = 16;
/// Buffers in which the strips of a pass hand paths over, by turns. Before a strip writes into one, the strip that is
/// `BUFFERS - 1` before it must have read it.
const BUFFERS: usize = 8;

/// The aggregation of pairs by one cost.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuStrips {
    gpu: Gpu,
    input: GpuAggregationInput,
    /// Of the paths from row to row, and of those along rows.
    layout: Layout,
    along: Layout,
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
    /// How many rows ahead the loader copies what a row needs.
    ahead: usize,
    /// Words of local memory between the right pixels of two lanes of a pixel.
    stride: usize,
}

impl Strip {
    /// The right pixels that a warp reads at once lie in different banks of local memory: from lane to lane they are an
    /// odd multiple of the warp's pixels apart.
    fn new(slots: usize, ahead: usize, layout: &Layout) -> Self {
        let words = slots + layout.per_lane - 1;
        let stride = match layout.warp {
            1 => words,
            _ => (words.div_ceil(layout.rows_of_warp()) | 1) * layout.rows_of_warp(),
        };
        Self { slots, ahead, stride }
    }

    /// Bytes of local memory.
    fn memory(&self, steps: &Steps, layout: &Layout, planes: usize) -> usize {
        let paths = (steps.kept() * self.slots + steps.halo()) * layout.path_words();
        let staged = planes * (layout.lanes * self.stride + self.slots) + steps.steps.len() * self.slots;
        4 * (paths + (self.ahead + 1) * staged)
    }

    /// The most slots, up to `most`, whose data fit into local memory; where no path crosses columns, those of a warp.
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
        let slots: Vec<usize> = match steps.handed() {
            0 => vec![of_warp],
            _ => powers.chain((1..=SLOTS / 4).rev()).map(|slots| slots.next_multiple_of(of_warp)).collect(),
        };
        slots
            .into_iter()
            .flat_map(|slots| AHEAD.map(|ahead| Self::new(slots, ahead, layout)))
            .filter(|strip| strip.slots >= steps.fewest() && strip.slots <= WARPS * of_warp)
            .find(|strip| strip.memory(steps, layout, planes) <= room)
    }

    /// Warps of a group: those that compute and, where paths cross columns, the loader and the halo warp.
    fn warps(&self, steps: &Steps, layout: &Layout) -> usize {
        self.slots / layout.rows_of_warp() + if steps.handed() > 0 { 2 } else { 0 }
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
        .define("PER_LANE", layout.per_lane)
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
    let group = [layout.warp as u32, strip.warps(steps, layout) as u32];
    steps
        .for_kernels(for_paths(cost, masked, layout), strip.slots, layout.path_words())
        .define("COLUMNS", strip.slots)
        .define("STRIDE", strip.stride)
        .define("AHEAD", strip.ahead)
        .define("BUFFERS", BUFFERS)
        .text(include_str!("../path.h"))
        .kernel_resident::<Vertical<'_>>(group, steps.strips_at_once() as u32)
        .text(include_str!("../vertical.cl"))
}

/// How strips are laid out for an input on a device.
struct Design {
    steps: Steps,
    passes: usize,
    layout: Layout,
    /// Of the paths along rows.
    along: Layout,
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
        // Narrower strips where there are few columns, so that every multiprocessor gets one.
        let columns = (passes * input.images * input.size.width).div_ceil(*units as usize);
        let most = if columns > SLOTS / 2 { SLOTS } else { SLOTS / 2 };
        let per_lane = steps.disparities_of_lane(input.disparities);
        let fitting = [per_lane, 16, 8, 4].into_iter().filter(|&n| n <= per_lane).find_map(|per_lane| {
            let layout = Layout::new(*warp as usize, per_lane, (2 + passes, sum_bytes), input.disparities);
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
        let walks = (2 * input.size.height * input.images).div_ceil(*units as usize);
        let along = layout.split(if walks > FEW_WALKS || input.disparities > 128 { 16 } else { 8 });
        Ok(Self { steps, passes, layout, along, strip })
    }

    /// The programs of the paths from row to row, of those along rows, and of the penalties.
    fn sources(&self, cost: &CostKernel, masked: bool) -> [KernelSource; 3] {
        let Self { steps, layout, along, strip, .. } = self;
        [
            vertical_source(cost, masked, (steps, layout), *strip),
            horizontal_source(cost, masked, along),
            penalties_source(steps),
        ]
    }
}

/// Words that strips of some walks hand paths over in: a word for each half of a path's.
fn boundary_words(steps: &Steps, layout: &Layout, size: Size, walks: usize) -> usize {
    walks * BUFFERS * size.height * steps.handed() * 2 * layout.path_words()
}

/// Bytes of memory that [`GpuStrips`] takes for a pair, beside its views.
///
/// # Errors
/// As [`sources`].
pub(in crate::stereo) fn bytes(gpu: &Gpu, cost: &CostKernel, input: &GpuAggregationInput) -> Result<u64> {
    let Design { steps, passes, layout, .. } = Design::of(gpu, cost, input)?;
    let words = layout.sum_words() + 2 * (1 + steps.steps.len()) + 2 * cost.planes(input.masked);
    let boundary = boundary_words(&steps, &layout, input.size, passes) as u64;
    Ok(4 * (input.size.area() as u64).saturating_mul(words as u64).saturating_add(boundary))
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
        let Design { steps, passes, layout, along, strip } = design;
        let table = if cost.table.is_empty() { &[0][..] } else { &cost.table };
        Ok(Self {
            gpu: gpu.clone(),
            input: *input,
            layout,
            along,
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
        // All rows of a warp are walked in one direction.
        let warps = 2 * (size.height * images).div_ceil(self.along.rows_of_warp());
        commands.launch(
            &self.horizontal,
            [warps.div_ceil(WALKING), 1, 1],
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
        let words = boundary_words(&self.steps, &self.layout, size, walks);
        let boundary = gpu.buffer::<u32>(words.max(1))?;
        let (tickets, progress) = (gpu.buffer::<u32>(1)?, gpu.buffer::<u32>(strips * walks)?);
        commands.zero(&tickets)?;
        commands.zero(&progress)?;
        commands.zero(&boundary)?;
        // The same number of groups on every multiprocessor: the slowest decides.
        let units = gpu.info().units as usize;
        let at_once = (size.width / self.strip.slots + 1) * walks;
        let at_once = at_once.div_ceil(units).min(self.steps.strips_at_once());
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
            (Steps::of::<Cross, 2>(), Layout::new(32, 32, (4, 1), 250)),
            (Steps::of::<Knight, 8>(), Layout::new(32, 8, (4, 2), 100)),
            (Steps::of::<Star, 4>(), Layout::new(32, 8, (3, 2), 3)),
            (Steps::of::<Star, 4>(), Layout::new(32, 32, (4, 1), 256)),
        ];
        for ((n, (steps, layout)), cost) in layouts.iter().enumerate().zip(kernels().iter().rev().cycle()) {
            let masked = n % 2 == 1;
            let strip = Strip::fitting(SLOTS, (steps, layout), cost.planes(masked), 48 << 10).unwrap();
            compiles_everywhere(&[
                penalties_source(steps),
                horizontal_source(cost, masked, &layout.split(8)),
                vertical_source(cost, masked, (steps, layout), strip),
            ]);
        }
    }

    /// The paths along rows and those from row to row lay their sums out alike, whoever has how many disparities.
    #[test]
    fn lanes_of_rows_have_the_same_places() {
        for steps in [Steps::of::<Star, 4>(), Steps::of::<Cross, 2>(), Steps::of::<Knight, 8>()] {
            for disparities in (1..=300).chain([511, 512, 1000, 4096]) {
                for warp in [1, 32] {
                    let per_lane = steps.disparities_of_lane(disparities);
                    let layout = Layout::new(warp, per_lane, (4, 1), disparities);
                    for most in [8, 16] {
                        let along = layout.split(most);
                        assert_eq!(along.padded(), layout.padded(), "{disparities}");
                        assert!(
                            along.lanes <= warp && (along.per_lane == 4 || along.per_lane.is_multiple_of(8)),
                            "{along:?}"
                        );
                    }
                    assert!(layout.padded() >= disparities);
                }
            }
        }
    }

    /// Paths of all sets of directions cross to the next strip alone, and strips of the common sizes fit.
    #[test]
    fn strips_fit_the_local_memory_of_cards() {
        for (steps, per_lane, disparities) in [
            (Steps::of::<Star, 4>(), 16, 128),
            (Steps::of::<Star, 4>(), 32, 256),
            (Steps::of::<Star, 4>(), 32, 512),
            (Steps::of::<Cross, 2>(), 32, 512),
            (Steps::of::<Knight, 8>(), 8, 128),
        ] {
            let layout = Layout::new(32, per_lane, (4, 2), disparities);
            let strip = Strip::fitting(SLOTS, (&steps, &layout), 3, 48 << 10);
            assert!(strip.is_some_and(|strip| strip.slots >= steps.fewest()), "{steps:?} {disparities}");
        }
    }
}
