//! Aggregation on a device: paths along rows, and paths from row to row.
//!
//! As on the CPU, costs are computed from descriptors wherever they are needed and never stored; those of a caller's
//! volume are loaded ahead of their use. Only sums are stored, in four parts of one or two bytes for each pixel and
//! disparity: those of the paths from the left, from the right, downwards and upwards. All four are computed at the
//! same time; several lanes of a warp share the disparities of a pixel.
//!
//! **Along rows** (`horizontal.cl`) a row is walked from either side, all rows independently.
//!
//! **From row to row** (`vertical.cl`) all columns of a row are computed at once. The columns are divided into
//! [`strips`], one for each work group, which pass paths to the next strip through global memory. Strips lean to the
//! left as much as the path that leans most, so that all paths cross to the right: a strip waits only for those left of
//! it, which started earlier, however many run at a time. With four directions no path crosses columns: a strip is then
//! the columns of one warp, passes nothing on and waits for no other.
//!
//! **In [`bands`] of rows** a pair is computed if its sums exceed the device's memory. The same kernels then begin with
//! the paths that enter a band and store those that continue to the next.
//!
//! **The limit is latency, not bandwidth.** From row to row an image takes one step for each of its rows, and one
//! hand-over for each strip. A step lasts as long as a row of a strip takes from one barrier to the next. Paths along
//! rows run at the same time; for this both kernels must request the maximum of local memory. Measurements and failed
//! attempts are in `docs/notebook/stereo.md`.
//!
//! **Devices.** Groups wait for words of groups that started earlier. If a device does not run those groups meanwhile,
//! or lets words be read half written, the CPU computes instead ([`Gpu::require_waiting`]). A device that ends loops
//! early, as rusticl does on a CPU, would give wrong sums and is refused when it is opened
//! (`tiepoint-gpu/src/trial.rs`). If lanes cannot exchange numbers (OpenCL on a CPU, and GPUs other than NVIDIA's), one
//! lane has all disparities of a pixel.

mod bands;
mod strips;

pub(in crate::stereo) use bands::{GpuBands, band_bytes};
pub(in crate::stereo) use strips::Layout;

use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::image::Size;
use crate::image::gpu::{GpuStack, Plane};
use crate::stereo::StereoOptions;
use crate::stereo::cost::gpu::CostKernel;
use crate::stereo::cost::volume::gpu::GpuVolume;
use crate::stereo::gpu::lanes::{GROUP, covering, pixel_a_lane};
use crate::{Error, Result};
use strips::{BUFFERS, Design, PHASES, Steps, Strip, WALKING};
use tiepoint_gpu::{Kernel, KernelSource};

tiepoint_gpu::kernel! {
    unsafe kernel horizontal(groups) = Horizontal {
        write sums_out: u32 [sum_words] aligned 16,
        read left: u32 [descriptor_words],
        read right: u32 [descriptor_words],
        read p2_penalties: u32 [width * height * images * 2],
        read table: u8 [table_bytes] aligned 16,
    } {
        sum_words: u64,
        descriptor_words: u64,
        table_bytes: u64,
        width: i32,
        height: i32,
        images: i32,
        parts: i32,
        min_disparity: i32,
        disparities: i32,
        /// P1, in both halves of the word.
        p1: u32,
        /// The cost where there is no disparity.
        far: u32,
        greatest: u32,
    }

    unsafe kernel vertical(groups) = Vertical {
        write sums_out: u32 [sum_words] aligned 16,
        write tickets: u32 [1],
        shared boundary: u32 [boundary_words] aligned 8,
        /// Rows that the halo warp of a strip has read.
        shared progress: u32 [strips * images * passes],
        read left: u32 [descriptor_words],
        read right: u32 [descriptor_words],
        read p2_penalties: u32 [penalty_words],
        read table: u8 [table_bytes] aligned 16,
        /// The paths that enter a band of rows, and those that leave it.
        read entering: u32 [checkpoint_words],
        write leaving: u32 [checkpoint_words],
    } {
        sum_words: u64,
        boundary_words: u64,
        checkpoint_words: u64,
        descriptor_words: u64,
        penalty_words: u64,
        table_bytes: u64,
        width: i32,
        height: i32,
        images: i32,
        /// 1: only downwards; 2: also upwards.
        passes: i32,
        parts: i32,
        /// Strips of a pass.
        strips: i32,
        min_disparity: i32,
        disparities: i32,
        p1: u32,
        far: u32,
        greatest: u32,
    }

    /// The P2 penalty of every direction at every pixel, for both passes.
    unsafe kernel p2_penalty_map(groups) = P2PenaltyMap {
        write horizontal: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * groups[2] * 2],
        write vertical: u32 [i128::from(grey_plane.row) * i128::from(grey_plane.height) * paths * groups[2] * 2],
        read grey (grey_plane: Plane): u8 [grey_plane.numbers(groups[2])],
        read table: u32 [256],
    } {
        /// From row to row, in a pass.
        paths: i32,
        across: i32,
    }
}

/// The longest side of an image: with eight directions the indices of a row fit 32 bits.
const SIDE: usize = 1 << 24;

/// Pairs of one size on a device, with their cost and options.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct GpuAggregationInput<'a> {
    pub(in crate::stereo) gpu: &'a Gpu,
    pub(in crate::stereo) options: StereoOptions,
    pub(in crate::stereo) cost: &'a CostKernel,
    pub(in crate::stereo) greatest: u16,
    /// Whether a view has pixels without data.
    pub(in crate::stereo) masked: bool,
    pub(in crate::stereo) size: Size,
    /// Pairs at a time.
    pub(in crate::stereo) images: usize,
    /// Whether the images are bands of rows of larger ones.
    pub(in crate::stereo) banded: bool,
    /// The costs, if the caller has computed them.
    pub(in crate::stereo) volume: Option<&'a GpuVolume>,
}

impl GpuAggregationInput<'_> {
    /// The cost where there is no disparity: the greatest path cost.
    fn far(&self) -> u32 {
        u32::from(self.greatest) + u32::from(self.options.penalties().p2)
    }

    /// Whether descriptors mark pixels without data; the costs of a volume mark them themselves.
    fn masked(&self) -> bool {
        self.masked && self.volume.is_none()
    }

    /// The number of planes of words that hold a view's descriptors.
    fn planes(&self) -> usize {
        self.cost.planes(self.masked())
    }

    /// The bytes of memory that [`GpuAggregation`] takes for a pair, besides its views.
    pub(in crate::stereo) fn bytes(&self) -> Result<u64> {
        let Design { steps, passes, layout, .. } = Design::of(self)?;
        let costs = if self.volume.is_some() { layout.padded() / 2 } else { 0 };
        let words = layout.sum_words() + costs + words_of_view(&steps, self.planes());
        let boundary = boundary_words(&steps, &layout, self.size, passes) as u64;
        Ok(4 * (self.size.area() as u64).saturating_mul(words as u64).saturating_add(boundary))
    }

    /// The programs of [`GpuAggregation::new`], and the layout of its sums.
    pub(in crate::stereo) fn sources(&self) -> Result<(Layout, [KernelSource; 3])> {
        let design = Design::of(self)?;
        Ok((design.layout, programs(&design, self)))
    }
}

#[derive(Clone, Debug)]
pub(in crate::stereo) struct GpuAggregation<'a> {
    pub(in crate::stereo) input: GpuAggregationInput<'a>,
    design: Design,
    p2_penalty_map: Kernel<P2PenaltyMap<'static>>,
    horizontal: Kernel<Horizontal<'static>>,
    vertical: Kernel<Vertical<'static>>,
    /// P2 by difference of grey.
    p2: Buffer<u32>,
    /// The table that the cost looks up; it may be overwritten for another pair.
    pub(in crate::stereo) table: Buffer<u8>,
    /// Dummy buffers that replace checkpoints for whole images.
    no_checkpoints: [Buffer<u32>; 2],
}

/// The P2 penalty at every pixel: of the paths along rows, and of those from row to row.
#[derive(Debug)]
struct P2Planes {
    horizontal: Buffer<u32>,
    vertical: Buffer<u32>,
}

impl P2Planes {
    fn new(gpu: &Gpu, pixels: usize, steps: &Steps) -> Result<Self> {
        Ok(Self { horizontal: gpu.buffer(2 * pixels)?, vertical: gpu.buffer(2 * pixels * steps.len())? })
    }
}

/// The images along whose paths costs are summed, and the buffer of the sums.
struct Walk<'a> {
    size: Size,
    images: usize,
    /// The descriptors of both views.
    views: (&'a Buffer<u32>, &'a Buffer<u32>),
    p2_penalties: &'a P2Planes,
    sums: &'a Buffer<u32>,
}

fn for_paths(cost: &CostKernel, masked: bool, layout: &Layout) -> KernelSource {
    layout
        .for_kernels(cost.for_kernels::<u8>("aggregation", masked))
        .define("WARP", layout.warp)
        .define("LANES", layout.lanes)
        .define("PER_LANE", layout.per_lane)
}

fn p2_penalty_source(steps: &Steps) -> KernelSource {
    let source = KernelSource::new("P2 penalty").structure::<Plane>();
    pixel_a_lane(steps.for_kernels(source, 0, 0))
        .kernel::<P2PenaltyMap<'_>>(GROUP)
        .text(include_str!("p2_penalty.cl"))
}

fn horizontal_source(cost: &CostKernel, masked: bool, layout: &Layout) -> KernelSource {
    for_paths(cost, masked, layout)
        .define("PATHS", 1)
        .define("PHASES", PHASES)
        .define("WARPS", WALKING)
        .text(include_str!("path.h"))
        .kernel::<Horizontal<'_>>([layout.warp as u32, WALKING as u32])
        .text(include_str!("horizontal.cl"))
}

fn vertical_source(
    cost: &CostKernel,
    masked: bool,
    (steps, layout): (&Steps, &Layout),
    strip: Strip,
    banded: bool,
) -> KernelSource {
    let group = [layout.warp as u32, strip.warps(steps, layout) as u32];
    steps
        .for_kernels(for_paths(cost, masked, layout), strip.slots, layout.path_words())
        .define("COLUMNS", strip.slots)
        .define("STRIDE", strip.stride)
        .define("AHEAD", strip.ahead)
        .define("BUFFERS", BUFFERS)
        .define("BANDED", u8::from(banded))
        .text(include_str!("path.h"))
        .kernel_resident::<Vertical<'_>>(group, steps.strips_at_once() as u32)
        .text(include_str!("vertical.cl"))
}

/// The programs of the paths from row to row, of those along rows, and of P2 penalties.
fn programs(design: &Design, input: &GpuAggregationInput<'_>) -> [KernelSource; 3] {
    let (Design { steps, layout, along, strip, .. }, cost, masked) = (design, input.cost, input.masked());
    [
        vertical_source(cost, masked, (steps, layout), *strip, input.banded),
        horizontal_source(cost, masked, along),
        p2_penalty_source(steps),
    ]
}

/// The number of words through which the strips of `walks` walks hand paths over: two for each word of a path.
fn boundary_words(steps: &Steps, layout: &Layout, size: Size, walks: usize) -> usize {
    walks * BUFFERS * size.height * steps.handed() * 2 * layout.path_words()
}

/// Words of a pixel's P2 penalties and descriptors.
fn words_of_view(steps: &Steps, planes: usize) -> usize {
    2 * (1 + steps.len()) + 2 * planes
}

impl<'a> GpuAggregation<'a> {
    pub(in crate::stereo) fn new(input: GpuAggregationInput<'a>) -> Result<Self> {
        let design = Design::of(&input)?;
        let [vertical, horizontal, p2_penalty] = programs(&design, &input);
        let GpuAggregationInput { gpu, cost, options, .. } = input;
        let table = if cost.table.is_empty() { &[0][..] } else { &cost.table };
        Ok(Self {
            input,
            design,
            p2_penalty_map: gpu.program(&p2_penalty)?.kernel::<P2PenaltyMap<'_>>()?,
            horizontal: gpu.program(&horizontal)?.kernel::<Horizontal<'_>>()?,
            vertical: gpu.program(&vertical)?.kernel::<Vertical<'_>>()?,
            p2: gpu.upload(&options.penalties().table().map(u32::from))?,
            table: gpu.upload(table)?,
            no_checkpoints: [gpu.buffer(1)?, gpu.buffer(1)?],
        })
    }

    /// Records the work; `views` are the descriptors of the left and right view, `grey` is the grey of the left one.
    /// Returns the sums, the disparities of a pixel side by side: by image, then part, then pixel.
    pub(in crate::stereo) fn record(
        &self,
        commands: &mut Commands,
        views: (&Buffer<u32>, &Buffer<u32>),
        grey: &GpuStack<u8>,
    ) -> Result<Buffer<u32>> {
        let (size, images) = (grey.size(), grey.count());
        let sums = self.sums(size, images)?;
        let p2_penalties = &self.p2_penalties(commands, grey)?;
        let walk = Walk { size, images, views, p2_penalties, sums: &sums };
        commands.stage("aggregate");
        let [entering, leaving] = &self.no_checkpoints;
        let row_to_row = self.row_to_row(&walk, self.design.passes, (entering, leaving))?;
        commands.together(self.along_rows(&walk)?, row_to_row)?;
        Ok(sums)
    }

    fn sums(&self, size: Size, images: usize) -> Result<Buffer<u32>> {
        let longest = size.width.max(size.height);
        if longest > SIDE {
            let feature = format!("numbers for a side of {longest}");
            return Err(Error::Unsupported { device: self.input.gpu.info().name.clone(), feature });
        }
        let words = size.area().checked_mul(images).and_then(|n| n.checked_mul(self.layout().sum_words()));
        let words = words
            .ok_or_else(|| Error::Image(format!("{images} pairs of {size}: their sums exceed memory")))?;
        Ok(self.input.gpu.buffer(words)?)
    }

    /// Records the computation of the P2 penalty of every direction at every pixel.
    fn p2_penalties(&self, commands: &mut Commands, grey: &GpuStack<u8>) -> Result<P2Planes> {
        let (size, images, steps) = (grey.size(), grey.count(), &self.design.steps);
        let planes = P2Planes::new(self.input.gpu, size.area() * images, steps)?;
        let (across, groups) = covering(size, images);
        let arguments = P2PenaltyMap {
            horizontal: &planes.horizontal,
            vertical: &planes.vertical,
            grey: grey.laid(),
            table: &self.p2,
            paths: steps.len() as i32,
            across,
        };
        commands.stage("P2 penalties");
        commands.launch(&self.p2_penalty_map, groups, arguments)?;
        Ok(planes)
    }

    fn along_rows(&self, walk: &Walk<'_>) -> Result<Commands> {
        let (input, along) = (&self.input, &self.design.along);
        let Walk { size, images, views: (left, right), p2_penalties, sums } = *walk;
        let mut commands = Commands::new();
        // All rows of a warp are walked in one direction.
        let warps = 2 * (size.height * images).div_ceil(along.rows_of_warp());
        commands.launch(
            &self.horizontal,
            [warps.div_ceil(WALKING), 1, 1],
            Horizontal {
                sums_out: sums,
                left,
                right,
                p2_penalties: &p2_penalties.horizontal,
                table: &self.table,
                sum_words: sums.len() as u64,
                descriptor_words: (size.area() * images * input.planes()) as u64,
                table_bytes: self.table.len() as u64,
                width: size.width as i32,
                height: size.height as i32,
                images: images as i32,
                parts: self.layout().parts as i32,
                min_disparity: input.options.min_disparity,
                disparities: input.options.disparities as i32,
                p1: twice(input.options.penalties().p1.into()),
                far: twice(input.far()),
                greatest: input.greatest.into(),
            },
        )?;
        Ok(commands)
    }

    /// Records some passes from row to row, between two checkpoints.
    fn row_to_row(
        &self,
        walk: &Walk<'_>,
        passes: usize,
        (entering, leaving): (&Buffer<u32>, &Buffer<u32>),
    ) -> Result<Commands> {
        let (gpu, input) = (self.input.gpu, &self.input);
        let Design { steps, strip, layout, .. } = &self.design;
        let Walk { size, images, views: (left, right), p2_penalties, sums } = *walk;
        let mut commands = Commands::new();
        let (strips, walks) = (strip.count(size, steps), images * passes);
        let words = boundary_words(steps, layout, size, walks);
        let boundary = gpu.buffer::<u32>(words.max(1))?;
        let (tickets, progress) = (gpu.buffer::<u32>(1)?, gpu.buffer::<u32>(strips * walks)?);
        commands.zero(&tickets)?;
        commands.zero(&progress)?;
        commands.zero(&boundary)?;
        // Groups are spread evenly over the multiprocessors, because the one with most groups finishes last.
        let units = gpu.info().units as usize;
        let at_once = (size.width / strip.slots + 1) * walks;
        let at_once = at_once.div_ceil(units).min(steps.strips_at_once());
        commands.launch(
            &self.vertical,
            [(strips * walks).min(units * at_once), 1, 1],
            Vertical {
                sums_out: sums,
                tickets: &tickets,
                boundary: &boundary,
                progress: &progress,
                left,
                right,
                p2_penalties: &p2_penalties.vertical,
                table: &self.table,
                entering,
                leaving,
                checkpoint_words: entering.len() as u64,
                sum_words: sums.len() as u64,
                boundary_words: boundary.len() as u64,
                descriptor_words: (size.area() * images * input.planes()) as u64,
                penalty_words: p2_penalties.vertical.len() as u64,
                table_bytes: self.table.len() as u64,
                width: size.width as i32,
                height: size.height as i32,
                images: images as i32,
                passes: passes as i32,
                parts: layout.parts as i32,
                strips: strips as i32,
                min_disparity: input.options.min_disparity,
                disparities: input.options.disparities as i32,
                p1: twice(input.options.penalties().p1.into()),
                far: twice(input.far()),
                greatest: input.greatest.into(),
            },
        )?;
        Ok(commands)
    }

    pub(in crate::stereo) fn layout(&self) -> &Layout {
        &self.design.layout
    }
}

/// A number in both halves of a word.
fn twice(value: u32) -> u32 {
    value << 16 | value
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::{Cross, Knight, Star};
    use super::strips::SLOTS;
    use super::*;
    use crate::stereo::cost::gpu::OF_VOLUME;
    use crate::stereo::cost::tests::kernels;

    /// The kernels of every set of directions, each with another cost.
    pub(crate) fn kernel_sources() -> Vec<KernelSource> {
        let mut sources = vec![];
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
            sources.extend([
                p2_penalty_source(steps),
                horizontal_source(cost, masked, &layout.split(8)),
                vertical_source(cost, masked, (steps, layout), strip, (1..4).contains(&n)),
            ]);
        }
        for (steps, layout) in &layouts {
            let strip = Strip::fitting(SLOTS, (steps, layout), 0, 48 << 10).unwrap();
            sources.push(horizontal_source(&OF_VOLUME, false, &layout.split(8)));
            sources.push(vertical_source(&OF_VOLUME, false, (steps, layout), strip, false));
        }
        sources
    }
}
