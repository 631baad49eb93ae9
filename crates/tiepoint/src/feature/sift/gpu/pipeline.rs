//! The stages one after the other, and the memory between them.
//!
//! From the image to the descriptors nothing waits for the host: the counts of every stage stay on the device, and all
//! launches but the first, which reads the image, are one graph. Many images are described a few at a time, and the
//! features of some are copied to the host while others are described.

use super::bands::Bands;
use super::plan::{GpuLevels, Plan};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, compile};
use crate::feature::DescriptorKind;
use crate::feature::WORDS;
use crate::feature::gpu::pipeline::{Core, Pipeline, Purpose};
use crate::feature::gpu::results::Lists;
use crate::feature::gpu::{GpuDescriptors, GpuKeypoints};
use crate::feature::order;
use crate::feature::select::Selection;
use crate::feature::sift::scale_space::gpu::{AnyGpuBase, GpuBase};
use crate::feature::sift::{SiftOptions, describe, extrema, orient, scale_space};
use crate::image::Size;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::{Error, Result, by_pixel};
use std::ops::Range;

/// The number of parcels in which many images are described and their features are copied to the host.
const PARCELS: usize = 4;

/// The memory between the stages, and the work in it.
#[derive(Debug)]
pub struct SiftPipeline {
    purpose: Purpose<Plan>,
    pub(super) levels: GpuLevels,
    described: GpuKeypoints,
    launches: usize,
    /// The description of some images each, if they are many.
    parcels: Vec<(Range<usize>, Commands)>,
    /// From level 0 up to the description, which it includes only for a single image.
    pub(super) graph: Graph,
    options: SiftOptions,
    base: AnyGpuBase,
    descriptors: GpuDescriptors,
}

struct Between {
    points: GpuKeypoints,
    features: GpuKeypoints,
    /// The order of the features, and room to merge.
    order: [Buffer<u64>; 2],
    described: GpuKeypoints,
    descriptors: GpuDescriptors,
}

impl Between {
    fn new(gpu: &Gpu, options: &SiftOptions, images: usize, capacity: usize) -> Result<Self> {
        let list = || GpuKeypoints::new(gpu, images, capacity);
        let points = list()?;
        let room = images.saturating_mul(capacity);
        let values = room.saturating_mul(options.dimension());
        Ok(Self {
            features: if options.upright { points.clone() } else { list()? },
            points,
            order: [gpu.buffer(room)?, gpu.buffer(room)?],
            described: list()?,
            descriptors: GpuDescriptors::new(gpu, options.descriptors, values)?,
        })
    }
}

impl Pipeline for SiftPipeline {
    const NAME: &'static str = "SIFT";
    type Options = SiftOptions;
    type Layout = Plan;
    type Parts = Bands;

    fn check(options: &SiftOptions) -> Result<()> {
        options.check()?;
        let wide = options.levels > 8 || !(0.8..=4.0).contains(&options.sigma);
        let feature = match options.domain_size_pooling {
            true => "SIFT with domain-size pooling",
            false if wide => "SIFT with more than 8 levels, or a blur below 0.8 or above 4 pixels,",
            false => return Ok(()),
        };
        Err(Error::Unsupported { device: "a GPU".into(), feature: feature.into() })
    }

    fn selection(options: &SiftOptions) -> Selection {
        options.selection
    }

    fn layout(options: &SiftOptions, size: Size, images: usize) -> Result<Plan> {
        Plan::new(size, images, options)
    }

    fn pixels(plan: &Plan) -> usize {
        plan.octaves[0].size.area()
    }

    fn usual_capacity(plan: &Plan) -> usize {
        // A textured photograph has one feature in 520 pixels of a doubled first octave, or in 280 of one that is not
        // doubled; an aerial photograph has one in 350.
        let pixels_a_feature = if plan.octaves[0].number < 0 { 256 } else { 128 };
        (1024 + plan.octaves[0].size.area() / pixels_a_feature).next_multiple_of(1024)
    }

    fn bytes(options: &SiftOptions, purpose: &Purpose<Plan>) -> u64 {
        let Purpose { layout: plan, pixel, masked, .. } = purpose;
        let image = by_pixel!(type *pixel, T => {
            Buffer::<T>::taken(GpuImage::<T>::pitch_of(plan.input.width) * plan.input.height)
        });
        let mask = Buffer::<u8>::taken(GpuImage::<u8>::pitch_of(plan.whole.width) * plan.whole.height);
        lists_and_levels(options, purpose) + (plan.images * image + usize::from(*masked) * mask) as u64
    }

    fn mask_size(plan: &Plan) -> Size {
        plan.whole
    }

    fn prepare(gpu: &Gpu, cpu: &Cpu, options: &SiftOptions) -> Result<()> {
        let mut sources = scale_space::gpu::sources(options);
        sources.extend([
            // Most images have 8 bits. The programs for other types are compiled at their first image.
            GpuBase::<u8>::source(options),
            extrema::gpu::source(options),
            order::gpu::source(options.selection),
            describe::gpu::source(options),
        ]);
        sources.extend((!options.upright).then(|| orient::gpu::source(options)));
        compile(gpu, cpu, sources)
    }

    fn new(
        core: &Core<Self>,
        purpose: Purpose<Plan>,
        mask: Option<&GpuImage<u8>>,
        old: Option<Self>,
    ) -> Result<Self> {
        let (gpu, options) = (&core.gpu, core.options);
        // The levels stay when only lists must grow.
        let levels = old.map(|pipeline| pipeline.levels).filter(|levels| levels.plan == purpose.layout);
        let images = purpose.layout.images;
        let base = by_pixel!(make purpose.pixel, GpuBase::new(gpu, &options)?);
        let levels = levels.map_or_else(|| GpuLevels::new(gpu, purpose.layout.clone()), Ok)?;
        let between = Between::new(gpu, &options, images, purpose.capacity)?;
        let mut commands = Commands::new();
        commands.stage("scale space");
        scale_space::gpu::record(&mut commands, &options, &levels)?;
        let order = record_features(&mut commands, &options, &levels, mask, &between)?;
        let mut parcels = Vec::new();
        if images == 1 {
            record_description(&mut commands, &options, &levels, (&between, order), 0..1)?;
        } else {
            let len = images.div_ceil(PARCELS);
            for first in (0..images).step_by(len) {
                let (mut describe, part) = (Commands::new(), first..images.min(first + len));
                record_description(&mut describe, &options, &levels, (&between, order), part.clone())?;
                parcels.push((part, describe));
            }
        }
        let launches = images + commands.launches() + parcels.len();
        let graph = gpu.graph(commands)?;
        let Between { described, descriptors, .. } = between;
        Ok(Self { purpose, levels, described, launches, parcels, options, base, descriptors, graph })
    }

    fn purpose(&self) -> &Purpose<Plan> {
        &self.purpose
    }

    fn launches(&self) -> usize {
        self.launches
    }

    fn begin(&self, images: &[AnyGpuImage], mask: Option<[&GpuImage<u8>; 2]>) -> Result<()> {
        let mut commands = Commands::new();
        commands.stage("scale space");
        for (i, image) in images.iter().enumerate() {
            by_pixel!((&self.base, image), (base, image) => base.record(&mut commands, image, i, &self.levels))?;
        }
        if let Some([from, to]) = mask {
            from.copy_rows(&mut commands, 0, (to.buffer(), 0, to.pitch()), to.size().height)?;
        }
        self.levels.values.gpu().run(&commands)?;
        Ok(self.graph.run()?)
    }

    fn parcels(&self) -> &[(Range<usize>, Commands)] {
        &self.parcels
    }

    fn lists(&self) -> Lists<'_> {
        Lists {
            counts: &self.described.counts,
            keypoints: &self.described.keypoints,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
            capacity: self.purpose.capacity,
            selection: self.options.selection,
            size: self.purpose.layout.input,
        }
    }
}

/// Bytes of the device's memory for levels and lists.
pub(super) fn lists_and_levels(options: &SiftOptions, purpose: &Purpose<Plan>) -> u64 {
    let Purpose { layout: plan, capacity, .. } = purpose;
    let room = plan.images.saturating_mul(*capacity);
    let words = Buffer::<u32>::taken(room.saturating_mul(WORDS));
    let lists = if options.upright { 2 } else { 3 } * words;
    let descriptors = match options.descriptors {
        DescriptorKind::F32 => Buffer::<f32>::taken(room.saturating_mul(options.dimension())),
        DescriptorKind::U8 | DescriptorKind::None => {
            Buffer::<u8>::taken(room.saturating_mul(options.dimension()))
        }
    };
    let order = 2 * Buffer::<u64>::taken(room);
    (Buffer::<f32>::taken(plan.len()) + lists + descriptors + order) as u64
}

/// Records the work from the levels to the order of the features, and returns the order.
fn record_features<'b>(
    commands: &mut Commands,
    options: &SiftOptions,
    levels: &GpuLevels,
    mask: Option<&GpuImage<u8>>,
    between: &'b Between,
) -> Result<&'b Buffer<u64>> {
    let Between { points, features, order: [order, spare], .. } = between;
    commands.stage("extrema, refine");
    extrema::gpu::record(commands, options, levels, mask, points)?;
    if !options.upright {
        commands.stage("orient");
        commands.zero(&features.counts)?;
        orient::gpu::record(commands, options, features, points, levels)?;
    }
    commands.stage("order, select");
    order::gpu::record(commands, options.selection, features, (order, spare))
}

fn record_description(
    commands: &mut Commands,
    options: &SiftOptions,
    levels: &GpuLevels,
    (between, order): (&Between, &Buffer<u64>),
    images: Range<usize>,
) -> Result<()> {
    commands.stage("describe");
    let to = (&between.described, &between.descriptors);
    let from = (&between.points, &between.features, order);
    describe::gpu::record(commands, options, to, from, images, levels)
}
