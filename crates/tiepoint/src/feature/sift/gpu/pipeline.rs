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
        let Purpose { capacity, pixel, .. } = purpose;
        // The levels stay when only lists must grow.
        let levels = old.map(|pipeline| pipeline.levels).filter(|levels| levels.plan == purpose.layout);
        let images = purpose.layout.images;
        let base = by_pixel!(make pixel, GpuBase::new(gpu, &options)?);
        let levels = levels.map_or_else(|| GpuLevels::new(gpu, purpose.layout.clone()), Ok)?;
        // Buffers between the stages, which the graph keeps.
        let list = || GpuKeypoints::new(gpu, images, capacity);
        let room = images.saturating_mul(capacity);
        let points = list()?;
        let features = if options.upright { points.clone() } else { list()? };
        let [order, spare] = [gpu.buffer(room)?, gpu.buffer(room)?];
        let described = list()?;
        let values = room.saturating_mul(options.dimension());
        let descriptors = GpuDescriptors::new(gpu, options.descriptors, values)?;
        let mut commands = Commands::new();
        commands.stage("scale space");
        scale_space::gpu::record(&mut commands, &options, &levels)?;
        commands.stage("extrema, refine");
        extrema::gpu::record(&mut commands, &options, &levels, mask, &points)?;
        if !options.upright {
            commands.stage("orient");
            commands.zero(&features.counts)?;
            orient::gpu::record(&mut commands, &options, &features, &points, &levels)?;
        }
        commands.stage("order, select");
        let order = order::gpu::record(&mut commands, options.selection, &features, (&order, &spare))?;
        let describe = |commands: &mut Commands, images: Range<usize>| {
            commands.stage("describe");
            let (to, from) = ((&described, &descriptors), (&points, &features, order));
            describe::gpu::record(commands, &options, to, from, images, &levels)
        };
        let mut parcels = Vec::new();
        if images == 1 {
            describe(&mut commands, 0..1)?;
        } else {
            let len = images.div_ceil(PARCELS);
            for first in (0..images).step_by(len) {
                let (mut parcel, part) = (Commands::new(), first..images.min(first + len));
                describe(&mut parcel, part.clone())?;
                parcels.push((part, parcel));
            }
        }
        let launches = images + commands.launches() + parcels.len();
        let graph = gpu.graph(commands)?;
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
            found: &self.described,
            descriptors: &self.descriptors,
            dimension: self.options.dimension(),
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
    let values = room.saturating_mul(options.dimension());
    let descriptors = match options.descriptors {
        DescriptorKind::F32 => Buffer::<f32>::taken(values),
        DescriptorKind::U8 | DescriptorKind::None => Buffer::<u8>::taken(values),
    };
    let order = 2 * Buffer::<u64>::taken(room);
    (Buffer::<f32>::taken(plan.len()) + lists + descriptors + order) as u64
}
