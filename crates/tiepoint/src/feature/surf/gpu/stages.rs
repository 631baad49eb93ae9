//! The kernels of SURF and their launches, one function a stage.

use super::super::{
    Convention, SurfOptions,
    describe::{CELLS, Square},
    orient::{Direction, Disc, SAMPLES},
};
use super::layers::Layers;
use super::{ROWS_PER_LANE, TILE};
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::for_kernels;
use crate::filter::integral::{GpuIntegral, GpuSum};
use crate::image::Size;
use crate::{Result, numeric};
use std::f32::consts::TAU;
use tiepoint_gpu::{Kernel, KernelSource, Positional, arguments};

/// Lanes that describe one keypoint: as many as it can have values.
const DESCRIBE_GROUP: u32 = 128;

/// Keypoints of some images, in a device's memory: `capacity` places an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub keypoints: &'a Buffer<u32>,
    /// An image's number of keypoints, which may exceed the capacity.
    pub counts: &'a Buffer<u32>,
    pub capacity: usize,
}

/// A layer table on the device.
#[derive(Debug)]
pub(super) struct DeviceLayers {
    pub computed: Buffer<u32>,
    pub searched: Buffer<u32>,
    pub layers: Layers,
}

impl DeviceLayers {
    pub(super) fn upload(gpu: &Gpu, layers: Layers) -> Result<Self> {
        let computed = gpu.upload(&layers.computed.words)?;
        Ok(Self { computed, searched: gpu.upload(&layers.searched.words)?, layers })
    }
}

/// Programs and tables for some options, and for integral images of one type.
#[derive(Debug)]
pub(super) struct Stages {
    respond: Kernel,
    search: Kernel,
    orient: Kernel,
    describe: Kernel,
    disc: Buffer<f32>,
    square: Buffer<f32>,
    threshold: f32,
    /// Keypoints of an image that are described.
    most: u32,
    dimension: usize,
    /// Groups that share an image's keypoints among them: enough to fill the device.
    groups: usize,
}

impl Stages {
    /// The programs of `respond` and `search`, of `orient`, and of `describe`.
    pub(super) fn sources<A: GpuSum>(options: &SurfOptions) -> [KernelSource; 3] {
        let with_sums = |name| {
            for_kernels(KernelSource::new(name))
                .define("SUM", A::NAME)
                .define("SIGNED", if size_of::<A>() == 8 { "i64" } else { "i32" })
                .text(include_str!("../integral.h"))
        };
        let detect = with_sums("SURF, responses and extrema")
            .define("OPENCV", u8::from(options.convention == Convention::OpenCv))
            .define("TILE_X", TILE[0])
            .define("TILE_Y", TILE[1])
            .define("ROWS_PER_LANE", ROWS_PER_LANE)
            .define_f32("SCALE_PER_SIZE", 1.2 / 9.0)
            .text(include_str!("../response/response.cl"))
            .text(include_str!("../extrema/extrema.cl"));

        let disc = Disc::new(options.convention);
        let upright = Direction::upright(options.convention);
        let orient = numeric::for_kernels(with_sums("SURF, orientation"))
            .define("OPENSURF", u8::from(options.convention == Convention::OpenSurf))
            .define("ORIENT_GROUP", SAMPLES)
            .define("SAMPLES_OF_DISC", disc.weights.iter().filter(|&&w| w > 0).count())
            .define("BINS", disc.bins)
            .define_f32("BINS_PER_RADIAN", disc.bins as f32 / TAU)
            .define("UPRIGHT", u8::from(options.upright))
            .define_f32("UPRIGHT_ANGLE", upright.angle)
            .define_f32("UPRIGHT_COS", upright.cos)
            .define_f32("UPRIGHT_SIN", upright.sin)
            .text(include_str!("../orient/orient.cl"));

        let square = Square::new(options);
        let order: Vec<i32> = match options.extended {
            true => (0..8).collect(),
            false => square.order.map(|i| i as i32).to_vec(),
        };
        let describe = with_sums("SURF, descriptors")
            .define("DESCRIBE_GROUP", DESCRIBE_GROUP)
            .define("CELLS", CELLS)
            .define("VALUES", order.len())
            .define("EXTENDED", u8::from(options.extended))
            .define("SAMPLES_OF_SQUARE", square.u.len())
            .define("SAMPLES_OF_CELL", square.weights.len() / CELLS)
            .define("CELLS_OVERLAP", u8::from(!square.members.is_empty()))
            .define("COLUMNS_OUTER", u8::from(square.columns_outer))
            .define_f32("TO_CORNER", square.to_corner)
            .table_i32("ORDER", &order)
            .text(include_str!("../describe/describe.cl"));
        [detect, orient, describe]
    }

    pub(super) fn new<A: GpuSum>(gpu: &Gpu, options: &SurfOptions) -> Result<Self> {
        let [detect, orient, describe] = Self::sources::<A>(options);
        let detect = gpu.program(&detect)?;
        let orient = gpu.program(&orient)?.untyped_kernel("orient", [SAMPLES as u32, 1])?;
        let describe = gpu.program(&describe)?.untyped_kernel("describe", [DESCRIBE_GROUP, 1])?;
        let disc = Disc::new(options.convention);
        let weights = disc.weights.iter().map(|&w| w as f32);
        let disc: Vec<f32> = disc.x.into_iter().chain(disc.y).chain(weights).collect();
        let Square { u, v, weights, members, .. } = Square::new(options);
        let members = members.into_iter().map(f32::from).collect();
        /// Groups of a multiprocessor.
        const RESIDENT: usize = 16;
        Ok(Self {
            respond: detect.untyped_kernel("respond", TILE)?,
            search: detect.untyped_kernel("search", TILE)?,
            orient,
            describe,
            disc: gpu.upload(&disc)?,
            square: gpu.upload(&[u, v, weights, members].concat())?,
            threshold: options.threshold,
            most: options.selection.most().min(u32::MAX as usize) as u32,
            dimension: options.dimension(),
            groups: gpu.info().units as usize * RESIDENT,
        })
    }

    /// The responses of all layers.
    pub(super) fn respond<A: GpuSum>(
        &self,
        commands: &mut Commands,
        integral: &GpuIntegral<A>,
        table: &DeviceLayers,
        responses: &Buffer<f32>,
    ) -> Result<()> {
        commands.stage("response");
        let Layers { len, computed, .. } = &table.layers;
        let Place { pitch, origin, image } = Place::of(integral);
        let arguments = arguments![
            responses,
            integral.buffer(),
            &table.computed,
            computed.layers as i32,
            pitch,
            origin,
            image,
            *len as u64
        ];
        Ok(commands.launch_untyped(&self.respond, [computed.groups, 1, integral.images()], arguments)?)
    }

    /// The keypoints of all layers, in any order and without angles.
    pub(super) fn search(
        &self,
        commands: &mut Commands,
        responses: &Buffer<f32>,
        table: &DeviceLayers,
        mask: Option<(&Buffer<u8>, usize)>,
        size: Size,
        found: Found<'_>,
    ) -> Result<()> {
        commands.stage("extrema");
        commands.zero(found.counts)?;
        let Layers { len, searched, .. } = &table.layers;
        // A kernel without a mask does not look at the one that it is given.
        let mask_pitch = mask.map_or(0, |m| m.1 as i32);
        let mask = mask.map_or_else(|| Positional::from(found.counts), |m| Positional::from(m.0));
        let mut arguments = arguments![found.keypoints, found.counts, responses, &table.searched];
        arguments.push(mask);
        arguments.extend(arguments![
            searched.layers as i32,
            found.capacity as u32,
            self.threshold,
            mask_pitch,
            size.width as i32,
            size.height as i32,
            *len as u64
        ]);
        let groups = [searched.groups, 1, found.counts.len()];
        Ok(commands.launch_untyped(&self.search, groups, arguments)?)
    }

    /// The keypoints in their `order` with their angles, and the cosines and sines of these.
    pub(super) fn orient<A: GpuSum>(
        &self,
        commands: &mut Commands,
        integral: &GpuIntegral<A>,
        found: Found<'_>,
        order: &Buffer<u64>,
        (oriented, directions): (&Buffer<u32>, &Buffer<f32>),
    ) -> Result<()> {
        commands.stage("orient");
        let Place { pitch, origin, image } = Place::of(integral);
        let Size { width, height } = integral.size();
        let arguments = arguments![
            oriented,
            directions,
            found.keypoints,
            order,
            found.counts,
            integral.buffer(),
            &self.disc,
            found.capacity as u32,
            self.most,
            pitch,
            width as i32,
            height as i32,
            origin,
            image
        ];
        Ok(commands.launch_untyped(&self.orient, self.sharing(found), arguments)?)
    }

    /// The descriptors of oriented keypoints.
    pub(super) fn describe<A: GpuSum>(
        &self,
        commands: &mut Commands,
        integral: &GpuIntegral<A>,
        oriented: Found<'_>,
        directions: &Buffer<f32>,
        descriptors: &Buffer<f32>,
    ) -> Result<()> {
        if self.dimension == 0 {
            return Ok(());
        }
        commands.stage("describe");
        let Place { pitch, origin, image } = Place::of(integral);
        let Size { width, height } = integral.size();
        let arguments = arguments![
            descriptors,
            oriented.keypoints,
            directions,
            oriented.counts,
            integral.buffer(),
            &self.square,
            oriented.capacity as u32,
            self.most,
            pitch,
            width as i32,
            height as i32,
            origin,
            image
        ];
        Ok(commands.launch_untyped(&self.describe, self.sharing(oriented), arguments)?)
    }

    /// The groups that share the keypoints of every image.
    fn sharing(&self, found: Found<'_>) -> [usize; 3] {
        [found.capacity.min(self.groups), found.counts.len(), 1]
    }
}

/// Where an integral image lies, as kernels take it.
struct Place {
    pitch: i32,
    origin: u64,
    /// Sums from image to image.
    image: u64,
}

impl Place {
    fn of<A: GpuSum>(integral: &GpuIntegral<A>) -> Self {
        let image = (integral.size().height + 1) * integral.pitch();
        Self { pitch: integral.pitch() as i32, origin: integral.origin() as u64, image: image as u64 }
    }
}
