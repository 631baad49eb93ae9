//! The [scale space](super) on a GPU: whole levels, each once from memory and once to it.
//!
//! # Launches
//! Level l of an octave needs level l − 1, and level 0 of the next octave is every second pixel of level S, written
//! along with it. So octave o can be S levels behind octave o − 1, and one launch makes all levels of a turn:
//! three launches an octave for S = 3. The last octaves, small enough for the local memory of one work group, are
//! made by a single launch.
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
use crate::image::{self, Size};
use crate::{Error, Result};
use std::ops::Range;
use tiepoint_gpu::{Kernel, KernelSource, Positional, arguments};

/// Lanes of a group, one a column.
const GROUP: usize = 256;
/// Columns on either side of a strip that a group reads beyond it. Wider Gaussians take the slow form.
const HALO: usize = 16;
/// Columns that a group writes.
const WIDTH: usize = GROUP - 2 * HALO;
/// Rows that a lane blurs at a time.
const ROWS: usize = 8;
/// Rows that take as long as filling a window.
const FILLING: usize = 16;
/// f32s of a row of a tile. Four more than a multiple of 32, so that two rows lie in different banks.
const TILE_PITCH: usize = GROUP + 4;
/// Lanes of the group that makes the last octaves.
const SMALL_GROUP: usize = 256;
/// f32s of a level in that group's local memory, which holds two.
const SMALL_TILE: usize = 5888;
/// Tasks of a launch: with one level an octave, three octaves are under way at a time.
const TASKS: usize = 3;
/// Work groups that a multiprocessor holds at a time.
const RESIDENT: usize = 3;

/// Makes the Gaussian levels of images.
#[derive(Clone, Debug)]
pub(crate) struct GpuScaleSpace {
    base: Kernel,
    levels: Kernel,
    small: Kernel,
    doubled: bool,
    /// No Gaussian between levels is wider than a halo.
    narrow: bool,
    /// Work groups that fill the device.
    room: usize,
}

/// A level of an octave that is to be made.
#[derive(Clone, Copy)]
struct Task<'p> {
    octave: &'p OctavePlan,
    level: usize,
    /// Level 0 of the next octave comes from this level.
    decimates: bool,
}

impl GpuScaleSpace {
    /// The program for level 0 of images of pixel `T`.
    pub(crate) fn base_source<T: GpuPixel>(options: &SiftOptions) -> KernelSource {
        let source = Self::shared(KernelSource::new("sift base"), options, 0..1)
            .define("BASE", 1)
            .define("DOUBLED", u8::from(options.first_octave < 0))
            .define("HALF_PIXELS", u8::from(options.preset == SiftPreset::OpenCv));
        Self::blurs(image::gpu::for_kernels::<T>(source), options, 0..1)
    }

    /// The program for the other levels.
    pub(crate) fn levels_source(options: &SiftOptions) -> KernelSource {
        let levels = 1..usize::from(options.levels) + 3;
        let cases = levels.clone().map(|l| {
            let half_size = if l == usize::from(options.levels) { "half_size" } else { "0" };
            format!("case {l}: blur_{l}(tile, from, to, {half_size}, width, height, x0, y0, y1); break; ")
        });
        let source = Self::shared(KernelSource::new("sift levels"), options, levels.clone())
            .define("BASE", 0)
            .define("LEVELS", options.levels)
            .define("BLUR_CASES", cases.collect::<String>())
            .define("SMALL_GROUP", SMALL_GROUP)
            .define("SMALL_TILE", SMALL_TILE)
            .text(plan::OCTAVE);
        Self::blurs(source, options, levels)
    }

    /// What both programs need for some levels.
    fn shared(source: KernelSource, options: &SiftOptions, levels: Range<usize>) -> KernelSource {
        let radii = taps(options).into_iter().map(|t| t.len() - 1);
        let wide = radii.skip(levels.start).take(levels.len()).filter(|&r| r > HALO);
        let tile = wide.map(|r| (WIDTH + 2 * r) * ROWS).max();
        let defines = [
            ("ALIGNMENT", Plan::ALIGNMENT),
            ("GROUP", GROUP),
            ("RESIDENT", RESIDENT),
            ("HALO", HALO),
            ("WIDTH", WIDTH),
            ("ROWS", ROWS),
            ("TILE_PITCH", TILE_PITCH),
            ("TILE", tile.unwrap_or(2 * ROWS * TILE_PITCH).max(2 * ROWS * TILE_PITCH)),
        ];
        let source = defines.iter().fold(source, |source, (name, value)| source.define(name, value));
        border_rule::for_kernels(source, border(options))
    }

    /// The functions that make some levels, and the kernels over them.
    fn blurs(source: KernelSource, options: &SiftOptions, levels: Range<usize>) -> KernelSource {
        let mut taps = taps(options);
        // So that the program does not depend on options that concern only the other one.
        taps[..levels.start].iter_mut().for_each(Vec::clear);
        taps.truncate(levels.end);
        let first: Vec<i32> = (0..taps.len()).map(|l| taps[..l].concat().len() as i32).collect();
        let radii: Vec<i32> = taps.iter().map(|t| t.len() as i32 - 1).collect();
        let source = source
            .table_f32("TAPS", &taps.concat())
            .table_i32("RADII", &radii)
            .table_i32("FIRST_TAPS", &first)
            .text(include_str!("input.h"));
        let instances = levels.fold(source, |source, l| {
            source
                .define("BLUR", format!("blur_{l}"))
                .define("RADIUS", radii[l])
                .define("TAP(k)", format!("TAPS[{} + (k)]", first[l]))
                .text(include_str!("blur.h"))
        });
        instances.text(include_str!("scale_space.cl"))
    }

    /// For images of pixel `T`.
    ///
    /// # Errors
    /// [`Error::Device`] when the device refuses.
    pub(crate) fn new<T: GpuPixel>(gpu: &Gpu, options: &SiftOptions) -> Result<Self> {
        let base = gpu.program(&Self::base_source::<T>(options))?;
        let levels = gpu.program(&Self::levels_source(options))?;
        Ok(Self {
            base: base.untyped_kernel("blur_base", [GROUP as u32, 1])?,
            small: levels.untyped_kernel("blur_small", [SMALL_GROUP as u32, 1])?,
            levels: levels.untyped_kernel("blur_levels", [GROUP as u32, 1])?,
            doubled: options.first_octave < 0,
            narrow: taps(options)[1..].iter().all(|t| t.len() - 1 <= HALO),
            room: gpu.info().units as usize * RESIDENT,
        })
    }

    /// Makes level 0 of the first octave of image `index` from `image`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when the image is not as planned.
    pub(crate) fn record_base<T: GpuPixel>(
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
        let rows = self.rows(&[first.size], 1);
        let groups = [first.size.width.div_ceil(WIDTH), first.size.height.div_ceil(rows), 1];
        let offset = (index * plan.image_stride + first.offset) as u64;
        let [pitch, input_width, input_height, width, height, rows] =
            [image.pitch(), size.width, size.height, first.size.width, first.size.height, rows]
                .map(|n| n as i32);
        let arguments = arguments![
            &levels.values,
            image.buffer(),
            pitch,
            input_width,
            input_height,
            offset,
            width,
            height,
            rows
        ];
        Ok(commands.launch_untyped(&self.base, groups, arguments)?)
    }

    /// Makes all other levels of all images.
    ///
    /// # Errors
    /// [`Error::Device`] when a launch would be too large.
    pub(crate) fn record_levels(&self, commands: &mut Commands, levels: &GpuLevels) -> Result<()> {
        let (plan, octaves) = (&levels.plan, &levels.plan.octaves);
        let is_small = |o: &OctavePlan| self.narrow && fits_local_memory(o.size);
        let small = octaves.iter().position(is_small).unwrap_or(octaves.len());
        for turn in 1.. {
            let begun = octaves[..small].iter().enumerate().map_while(|(o, octave)| {
                let level = turn - plan.levels.checked_mul(o).filter(|&behind| behind < turn)?;
                Some(Task { octave, level, decimates: level == plan.levels && o < plan.decimated() })
            });
            let tasks: Vec<Task<'_>> = begun.filter(|t| t.level < plan.levels + 3).collect();
            if tasks.is_empty() {
                break;
            }
            self.record_turn(commands, &tasks, levels)?;
        }
        if small < octaves.len() {
            let arguments = arguments![
                &levels.values,
                &levels.octaves,
                plan.image_stride as u64,
                small as i32,
                octaves.len() as i32,
                plan.decimated() as i32
            ];
            commands.launch_untyped(&self.small, [1, 1, plan.images], arguments)?;
        }
        Ok(())
    }

    fn record_turn(&self, commands: &mut Commands, tasks: &[Task<'_>], levels: &GpuLevels) -> Result<()> {
        let images = levels.plan.images;
        let sizes: Vec<Size> = tasks.iter().map(|task| task.octave.size).collect();
        let rows = self.rows(&sizes, images);
        let mut arguments = arguments![&levels.values, &levels.values, levels.plan.image_stride as u64];
        for i in 0..TASKS {
            // A missing task repeats the last one's numbers; no group comes to it.
            let Task { octave, level, decimates } = tasks[i.min(tasks.len() - 1)];
            arguments
                .extend([level, octave.size.width, octave.size.height].map(|n| Positional::from(n as i32)));
            arguments.extend(arguments![octave.offset as u64, rows as i32, i32::from(decimates)]);
        }
        Ok(commands.launch_untyped(&self.levels, [groups_of(&sizes, rows), 1, images], arguments)?)
    }

    /// Rows that a group goes down. Each begins by filling its window: few groups are less work. But they run some at a
    /// time, and the last of them should leave little of the device idle.
    fn rows(&self, sizes: &[Size], images: usize) -> usize {
        let turns = |rows| (groups_of(sizes, rows) * images).div_ceil(self.room);
        let highest = sizes.iter().map(|size| size.height).max().unwrap_or(0);
        let possible = (ROWS..highest + ROWS).step_by(ROWS);
        possible.min_by_key(|&rows| turns(rows) * (rows + FILLING)).unwrap_or(ROWS)
    }
}

/// Work groups of levels of these sizes.
fn groups_of(sizes: &[Size], rows: usize) -> usize {
    sizes.iter().map(|size| size.width.div_ceil(WIDTH) * size.height.div_ceil(rows)).sum()
}

/// Whether a level with rows, or columns, on either side fits into a [`SMALL_TILE`]. Four more are for sums that begin
/// inside the level and end beyond it.
fn fits_local_memory(Size { width, height }: Size) -> bool {
    let around = 2 * HALO + 4;
    (height + around).saturating_mul(width).max(((width + around) | 1).saturating_mul(height)) <= SMALL_TILE
}
