//! The stages one after the other, and the memory between them.

use super::plan::{GpuLevels, GpuPoints, Plan};
use crate::Result;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph};
use crate::feature::gpu::{GpuDescriptors, Lists};
use crate::feature::order::GpuOrder;
use crate::feature::sift::describe::gpu::GpuDescribe;
use crate::feature::sift::extrema::gpu::{GpuExtrema, Masks};
use crate::feature::sift::orient::gpu::GpuOrient;
use crate::feature::sift::scale_space::gpu::GpuScaleSpace;
use crate::feature::sift::{DescriptorKind, SiftOptions};
use crate::image::gpu::{GpuImage, GpuPixel};
use std::ops::Range;

/// Parcels in which many images are described, and their features come to the host.
// 2026-11-22: 2, 4 and 8 take 0.562, 0.555 and 0.575 ms an image, each of 10 000 features.
const PARCELS: usize = 4;

/// The stages but the first, whose kernels depend on the type of pixel.
#[derive(Debug)]
pub(super) struct Stages {
    options: SiftOptions,
    extrema: GpuExtrema,
    orient: GpuOrient,
    order: GpuOrder,
    describe: GpuDescribe,
}

impl Stages {
    pub(super) fn new(gpu: &Gpu, options: SiftOptions) -> Result<Self> {
        Ok(Self {
            options,
            extrema: GpuExtrema::new(gpu, &options)?,
            orient: GpuOrient::new(gpu, &options)?,
            order: GpuOrder::new(gpu)?,
            describe: GpuDescribe::new(gpu, &options)?,
        })
    }
}

/// What the memory and the graph are made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purpose {
    pub(super) plan: Plan,
    pub(super) pixel: &'static str,
    pub(super) masked: bool,
    /// Features of an image that there is room for.
    pub(super) capacity: usize,
}

/// The memory between the stages, and the work in it.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) purpose: Purpose,
    pub(super) levels: GpuLevels,
    pub(super) described: GpuPoints,
    pub(super) launches: usize,
    /// The description of some images each, if they are many.
    pub(super) parcels: Vec<(Range<usize>, Commands)>,
    /// From level 0 up to the description; of one image with it.
    pub(super) graph: Graph,
    options: SiftOptions,
    scale_space: GpuScaleSpace,
    descriptors: GpuDescriptors,
}

/// The lists from one stage to the next.
struct Between {
    points: GpuPoints,
    features: GpuPoints,
    /// The order of the features, and room to merge.
    order: [Buffer<u64>; 2],
    described: GpuPoints,
    descriptors: GpuDescriptors,
}

impl Between {
    fn new(gpu: &Gpu, options: &SiftOptions, images: usize, capacity: usize) -> Result<Self> {
        let list = || GpuPoints::new(gpu, images, capacity);
        let points = list()?;
        let values = images.saturating_mul(capacity).saturating_mul(options.dimension());
        Ok(Self {
            features: if options.upright { points.clone() } else { list()? },
            points,
            order: [gpu.buffer(images * capacity)?, gpu.buffer(images * capacity)?],
            described: list()?,
            descriptors: match options.descriptors {
                DescriptorKind::F32 => GpuDescriptors::F32(gpu.buffer(values)?),
                _ => GpuDescriptors::U8(gpu.buffer(values)?),
            },
        })
    }
}

impl Work {
    /// Reserves the memory, but for `levels` that are there already, and prepares the work.
    pub(super) fn new<T: GpuPixel>(
        gpu: &Gpu,
        stages: &Stages,
        purpose: Purpose,
        levels: Option<GpuLevels>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Self> {
        let (images, options) = (purpose.plan.images, stages.options);
        let scale_space = GpuScaleSpace::new::<T>(gpu, &options)?;
        let levels = levels.map_or_else(|| GpuLevels::new(gpu, purpose.plan.clone()), Ok)?;
        let between = Between::new(gpu, &options, images, purpose.capacity)?;
        let mut commands = Commands::new();
        commands.stage("scale space");
        scale_space.record_levels(&mut commands, &levels)?;
        let order = stages.record_features(&mut commands, &levels, mask, &between)?;
        let mut parcels = Vec::new();
        if images == 1 {
            stages.record_description(&mut commands, &levels, (&between, order), 0..1)?;
        } else {
            let len = images.div_ceil(PARCELS);
            for first in (0..images).step_by(len) {
                let (mut describe, part) = (Commands::new(), first..images.min(first + len));
                stages.record_description(&mut describe, &levels, (&between, order), part.clone())?;
                parcels.push((part, describe));
            }
        }
        let launches = images + commands.launches() + parcels.len();
        let graph = gpu.graph(commands)?;
        let Between { described, descriptors, .. } = between;
        Ok(Self { purpose, levels, described, launches, parcels, options, scale_space, descriptors, graph })
    }

    /// Puts the search of these images into the queue, of many without the description. A mask goes from where it is to
    /// where the work reads it.
    pub(super) fn begin<T: GpuPixel>(
        &self,
        images: &[GpuImage<T>],
        mask: Option<(&GpuImage<u8>, &GpuImage<u8>)>,
    ) -> Result<()> {
        let mut commands = Commands::new();
        commands.stage("scale space");
        for (i, image) in images.iter().enumerate() {
            self.scale_space.record_base(&mut commands, image, i, &self.levels)?;
        }
        if let Some((mask, own)) = mask {
            commands.copy((mask.buffer(), 0), (own.buffer(), 0), own.buffer().len())?;
        }
        self.levels.values.gpu().run(&commands)?;
        Ok(self.graph.run()?)
    }

    /// Where the results lie.
    pub(super) fn lists(&self) -> Lists<'_> {
        Lists {
            counts: &self.described.counts,
            keypoints: &self.described.keypoints,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
            capacity: self.purpose.capacity,
            selection: self.options.selection,
            size: self.purpose.plan.input,
        }
    }
}

impl Stages {
    /// From the levels to the order of the features, which is given.
    fn record_features<'b>(
        &self,
        commands: &mut Commands,
        levels: &GpuLevels,
        mask: Option<&GpuImage<u8>>,
        between: &'b Between,
    ) -> Result<&'b Buffer<u64>> {
        let Between { points, features, order: [order, spare], .. } = between;
        commands.stage("extrema, refine");
        let masks = mask.map(|m| Masks { buffer: m.buffer(), pitch: m.pitch(), stride: 0 });
        self.extrema.record(commands, levels, masks, points)?;
        if !self.options.upright {
            commands.stage("orient");
            commands.zero(&features.counts)?;
            self.orient.record(commands, features, points, levels)?;
        }
        commands.stage("order, select");
        let GpuPoints { keypoints, counts, capacity } = features;
        self.order.record(commands, keypoints, counts, *capacity, (order, spare))
    }

    /// The description of some images.
    fn record_description(
        &self,
        commands: &mut Commands,
        levels: &GpuLevels,
        (between, order): (&Between, &Buffer<u64>),
        images: Range<usize>,
    ) -> Result<()> {
        commands.stage("describe");
        let to = (&between.described, &between.descriptors);
        let from = (&between.points, &between.features, order);
        self.describe.record(commands, to, from, (images, self.options.selection.most()), levels)
    }
}
