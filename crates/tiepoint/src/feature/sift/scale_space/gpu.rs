//! The [scale space](super) on a GPU: whole levels, each read from memory once and written once.
//!
//! # Launches
//! Level l of an octave needs level l − 1, and level 0 of the next octave is every second pixel of level S, written at
//! the same time. Octave o can therefore be S levels behind octave o − 1, and one launch makes one level of each octave
//! that is in progress: three launches for each octave if S = 3. The last octaves, small enough for the local memory of
//! one work group, are made by a single launch.
//!
//! # Programs
//! All levels of a launch have the same remainder by S. There is one program for each remainder, because programs are
//! compiled side by side, and a single one took longer to compile than all other programs of SIFT.
//!
//! # Cost
//! With the default options a pixel of an octave takes 178 additions and multiplications, 6 writes and 5 reads; at
//! 3840x2160 with all octaves 2 · 10⁹ operations and 0.48 GB, either of which takes an H200 about 0.1 ms.

use super::{border, taps};
use crate::device::gpu::{Commands, Gpu};
use crate::feature::sift::gpu::plan::{self, GpuLevels, OctavePlan, Plan};
use crate::feature::sift::{SiftOptions, SiftPreset};
use crate::filter::border as border_rule;
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{self, ByPixel, Size};
use crate::{Error, Result};
use tiepoint_gpu::{Kernel, KernelSource};

/// Lanes of a group, one a column.
const GROUP: usize = 256;
/// Columns on either side of a strip that a group reads beyond it. Wider Gaussians take the slow form.
const HALO: usize = 16;
const WIDTH: usize = GROUP - 2 * HALO;
/// Rows that a lane blurs at a time.
const ROWS: usize = 8;
/// Filling a window takes as long as this many rows.
const FILLING: usize = 16;
/// f32s of a row of a tile. Four more than a multiple of 32, so that two rows lie in different banks.
const TILE_PITCH: usize = GROUP + 4;
/// Lanes of the group that makes the last octaves.
const SMALL_GROUP: usize = 256;
/// f32s of a level in that group's local memory, which holds two.
const SMALL_TILE: usize = 5888;
/// Work groups that a multiprocessor holds at a time.
const RESIDENT: usize = 3;

tiepoint_gpu::kernel! {
    /// Level 0 of the first octave of one image.
    unsafe kernel blur_base(groups) = BlurBase<T: GpuPixel> {
        write levels: f32 [offset + level_len(width, height)] aligned 16,
        read pixels: T [(input_height - 1) * pixel_pitch + input_width],
    } {
        /// f32s from the start of the levels to this one.
        offset: u64,
        pixel_pitch: i32,
        input_width: i32,
        input_height: i32,
        width: i32,
        height: i32,
        /// Rows that one group computes.
        rows: i32,
    }

    /// A level of each of up to three octaves, which do not depend on each other, of all images (the third dimension).
    /// If octaves have one level, three octaves are in progress at a time.
    unsafe kernel blur_levels(groups) = BlurLevels {
        write levels: f32 [groups[2] * image_stride] aligned 16,
    } {
        image_stride: u64,
        a: BlurTask,
        b: BlurTask,
        c: BlurTask,
    }
}

tiepoint_gpu::kernel_struct! {
    /// A level that is to be made, for the kernel.
    struct BlurTask {
        /// f32s from the start of an image's levels to the octave.
        offset: u64,
        level: i32,
        width: i32,
        height: i32,
        /// Rows that one group computes.
        rows: i32,
        /// Whether the level also becomes level 0 of the next octave.
        decimates: i32,
    }
}

tiepoint_gpu::kernel! {
    /// All levels of the last octaves, from level 0 of the first of them: one group for each image.
    unsafe kernel blur_small(groups) = BlurSmall {
        write levels: f32 [groups[2] * image_stride] aligned 16,
        read octaves: u32 as Octave [end * Plan::OCTAVE_WORDS as i128],
    } {
        image_stride: u64,
        /// The first of these octaves, and the one after the last.
        first: i32,
        end: i32,
        /// Octaves before this one give level 0 of the next.
        decimated: i32,
    }
}

fn level_len(width: i128, height: i128) -> i128 {
    let alignment = Plan::ALIGNMENT as i128;
    (width + alignment - 1) / alignment * alignment * height
}

#[derive(Clone, Debug)]
pub(crate) struct GpuBase<T: GpuPixel> {
    kernel: Kernel<BlurBase<'static, T>>,
    doubled: bool,
}

pub(crate) type AnyGpuBase = ByPixel<GpuBase<u8>, GpuBase<u16>, GpuBase<f32>>;

/// Adds the code that every program needs.
fn shared(source: KernelSource, options: &SiftOptions) -> KernelSource {
    let source = source.define("ALIGNMENT", Plan::ALIGNMENT).define("HALO", HALO);
    border_rule::for_kernels(source, border(options)).text(include_str!("pitch.h"))
}

/// Adds the functions that make some levels.
fn blurs(source: KernelSource, options: &SiftOptions, levels: &[usize]) -> KernelSource {
    let all = taps(options);
    let taps: Vec<&[f32]> = levels.iter().map(|&l| all[l].as_slice()).collect();
    let wide = taps.iter().map(|t| t.len() - 1).filter(|&radius| radius > HALO);
    let tile = wide.map(|radius| (WIDTH + 2 * radius) * ROWS).max().unwrap_or(0);
    let defines = [
        ("GROUP", GROUP),
        ("WIDTH", WIDTH),
        ("ROWS", ROWS),
        ("TILE_PITCH", TILE_PITCH),
        ("TILE", tile.max(2 * ROWS * TILE_PITCH)),
    ];
    let source = defines.iter().fold(source, |source, (name, value)| source.define(name, value));
    let source = source.table_f32("TAPS", &taps.concat()).text(include_str!("input.h"));
    levels.iter().enumerate().fold(source, |source, (i, level)| {
        source
            .define("BLUR", format!("blur_{level}"))
            .define("RADIUS", taps[i].len() - 1)
            .define("TAP(k)", format!("TAPS[{} + (k)]", taps[..i].concat().len()))
            .text(include_str!("blur.h"))
    })
}

impl<T: GpuPixel> GpuBase<T> {
    pub(crate) fn source(options: &SiftOptions) -> KernelSource {
        let source = shared(KernelSource::new("sift base"), options)
            .define("BASE", 1)
            .define("DOUBLED", u8::from(options.first_octave < 0))
            .define("HALF_PIXELS", u8::from(options.preset == SiftPreset::OpenCv));
        blurs(image::gpu::for_kernels::<T>(source), options, &[0])
            .kernel_resident::<BlurBase<'_, T>>([GROUP as u32, 1], RESIDENT as u32)
            .text(include_str!("scale_space.cl"))
    }

    pub(crate) fn new(gpu: &Gpu, options: &SiftOptions) -> Result<Self> {
        let kernel = gpu.program(&Self::source(options))?.kernel::<BlurBase<'_, T>>()?;
        Ok(Self { kernel, doubled: options.first_octave < 0 })
    }

    /// Makes level 0 of the first octave of image `index` from `image`.
    pub(crate) fn record(
        &self,
        commands: &mut Commands,
        image: &GpuImage<T>,
        index: usize,
        levels: &GpuLevels,
    ) -> Result<()> {
        let (plan, size) = (&levels.plan, image.size());
        let fits = image.channels() == 1 && size == plan.input && index < plan.images;
        if !fits || plan.octaves[0].number != if self.doubled { -1 } else { 0 } {
            let (expected, images) = (plan.input, plan.images);
            return Err(Error::Mismatch(format!(
                "image {index} is {size} with {} channels: planned are {images} grey images of {expected}",
                image.channels()
            )));
        }
        let first = plan.octaves[0];
        let Size { width, height } = first.size;
        let rows = rows_of(levels.values.gpu(), &[first.size], 1);
        let arguments = BlurBase {
            levels: &levels.values,
            pixels: image.buffer(),
            offset: (index * plan.image_stride + first.offset) as u64,
            pixel_pitch: image.pitch() as i32,
            input_width: size.width as i32,
            input_height: size.height as i32,
            width: width as i32,
            height: height as i32,
            rows: rows as i32,
        };
        let groups = [width.div_ceil(WIDTH), height.div_ceil(rows), 1];
        Ok(commands.launch(&self.kernel, groups, arguments)?)
    }
}

/// The programs of all levels but the base: those of the levels by their remainder, then the last octaves'.
pub(crate) fn sources(options: &SiftOptions) -> Vec<KernelSource> {
    let remainders = 0..usize::from(options.levels);
    let levels = remainders.map(|remainder| levels_source(options, remainder));
    levels.chain([small_source(options)]).collect()
}

fn levels_source(options: &SiftOptions, remainder: usize) -> KernelSource {
    let per_octave = usize::from(options.levels);
    let levels = (1..per_octave + 3).filter(|l| l % per_octave == remainder);
    let levels: Vec<usize> = levels.collect();
    let case = |&l: &usize| {
        let half_size = if l == per_octave { "half_size" } else { "0" };
        format!(
            "case {l}: blur_{l}(tile, from, to, {half_size}, task.width, task.height, x0, y0, y1); break; "
        )
    };
    let source = shared(KernelSource::new("sift levels"), options)
        .define("BASE", 0)
        .define("BLUR_CASES", levels.iter().map(case).collect::<String>());
    blurs(source, options, &levels)
        .kernel_resident::<BlurLevels<'_>>([GROUP as u32, 1], RESIDENT as u32)
        .text(include_str!("scale_space.cl"))
}

fn small_source(options: &SiftOptions) -> KernelSource {
    let taps = taps(options);
    let first: Vec<i32> = (0..taps.len()).map(|l| taps[..l].concat().len() as i32).collect();
    let radii: Vec<i32> = taps.iter().map(|t| t.len() as i32 - 1).collect();
    shared(KernelSource::new("sift small octaves"), options)
        .define("LEVELS", options.levels)
        .define("SMALL_GROUP", SMALL_GROUP)
        .define("SMALL_TILE", SMALL_TILE)
        .table_f32("TAPS", &taps.concat())
        .table_i32("RADII", &radii)
        .table_i32("FIRST_TAPS", &first)
        .text(plan::OCTAVE)
        .kernel::<BlurSmall<'_>>([SMALL_GROUP as u32, 1])
        .text(include_str!("small_octaves.cl"))
}

/// Makes all levels of all images but level 0 of the first octave.
pub(crate) fn record(commands: &mut Commands, options: &SiftOptions, levels: &GpuLevels) -> Result<()> {
    let (gpu, plan, octaves) = (levels.values.gpu(), &levels.plan, &levels.plan.octaves);
    let programs = sources(options).into_iter().map(|source| gpu.program(&source));
    let programs = programs.collect::<tiepoint_gpu::Result<Vec<_>>>()?;
    // Whether all Gaussians between levels are at most as wide as a halo.
    let narrow = taps(options)[1..].iter().all(|t| t.len() - 1 <= HALO);
    let is_small = |o: &OctavePlan| narrow && fits_local_memory(o.size);
    let small = octaves.iter().position(is_small).unwrap_or(octaves.len());
    for turn in 1.. {
        let begun = octaves[..small].iter().enumerate().map_while(|(o, octave)| {
            let level = turn - plan.levels.checked_mul(o).filter(|&behind| behind < turn)?;
            Some(BlurTask {
                offset: octave.offset as u64,
                level: level as i32,
                width: octave.size.width as i32,
                height: octave.size.height as i32,
                rows: 0,
                decimates: i32::from(level == plan.levels && o < plan.decimated()),
            })
        });
        let tasks: Vec<BlurTask> = begun.filter(|task| (task.level as usize) < plan.levels + 3).collect();
        if tasks.is_empty() {
            break;
        }
        let program = &programs[tasks[0].level as usize % plan.levels];
        let size = |task: &BlurTask| Size::new(task.width as usize, task.height as usize);
        let sizes: Vec<Size> = tasks.iter().map(size).collect();
        let rows = rows_of(gpu, &sizes, plan.images);
        // A missing task repeats the numbers of the last one; no group works on it.
        let [a, b, c] =
            std::array::from_fn(|i| BlurTask { rows: rows as i32, ..tasks[i.min(tasks.len() - 1)] });
        let image_stride = plan.image_stride as u64;
        let arguments = BlurLevels { levels: &levels.values, image_stride, a, b, c };
        let groups = [groups_of(&sizes, rows), 1, plan.images];
        commands.launch(&program.kernel::<BlurLevels<'_>>()?, groups, arguments)?;
    }
    if small < octaves.len() {
        let arguments = BlurSmall {
            levels: &levels.values,
            octaves: &levels.octaves,
            image_stride: plan.image_stride as u64,
            first: small as i32,
            end: octaves.len() as i32,
            decimated: plan.decimated() as i32,
        };
        commands.launch(&programs[plan.levels].kernel::<BlurSmall<'_>>()?, [1, 1, plan.images], arguments)?;
    }
    Ok(())
}

/// The number of rows that one group computes. Each group begins by filling its window, so few groups are less work; but
/// only some run at a time, and the last of them should leave little of the device idle.
fn rows_of(gpu: &Gpu, sizes: &[Size], images: usize) -> usize {
    let at_a_time = gpu.info().units as usize * RESIDENT;
    let turns = |rows| (groups_of(sizes, rows) * images).div_ceil(at_a_time);
    let highest = sizes.iter().map(|size| size.height).max().unwrap_or(0);
    let possible = (ROWS..highest + ROWS).step_by(ROWS);
    possible.min_by_key(|&rows| turns(rows) * (rows + FILLING)).unwrap_or(ROWS)
}

fn groups_of(sizes: &[Size], rows: usize) -> usize {
    sizes.iter().map(|size| size.width.div_ceil(WIDTH) * size.height.div_ceil(rows)).sum()
}

/// Whether a level, with rows or columns added on either side, fits into a [`SMALL_TILE`]. Four more are for sums that
/// begin inside the level and end beyond it.
fn fits_local_memory(Size { width, height }: Size) -> bool {
    let around = 2 * HALO + 4;
    (height + around).saturating_mul(width).max(((width + around) | 1).saturating_mul(height)) <= SMALL_TILE
}
