//! The stages for pairs of one shape as one list of commands, and the memory that it works in.

use crate::{
    Error, Result,
    device::{
        Cpu,
        gpu::{Buffer, Commands, Gpu, compile},
    },
    error::Shortage,
    image::{AnyView, Size, gpu::for_pixel},
    stereo::{
        Masks, RightView, StereoOptions,
        aggregation::{
            self,
            gpu::{GpuAggregationInput, GpuStrips},
        },
        cost::{self, CostSource, gpu::CostKernel},
        pair::{
            Pair, Pictures,
            gpu::{
                AnyStack, GpuPictures, PictureShape, ViewShape, ViewStacks, images_of, make_ready, mirrored,
                pictures_of, source_of,
            },
        },
        refinement::{self, gpu::GpuRefinement},
        winner_takes_all::{
            self,
            gpu::{GpuMaps, GpuWinnerTakesAll, Selection},
        },
    },
};
use tiepoint_gpu::KernelSource;

/// Bytes of a pixel beside the aggregation: both views, what refinement works in, the maps and what keeps them.
const PIXEL: u64 = 100;

/// What the work for pairs depends on, beside the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) size: Size,
    /// Pairs at a time.
    pub(super) pairs: usize,
    pub(super) views: Views,
}

/// What comes to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Views {
    /// Pictures as they were handed over.
    Pictures([PictureShape; 2]),
    /// What the host has made ready, for a cost that learns from it.
    Ready([ViewShape; 2]),
}

impl Shape {
    /// Whether either view may have pixels without data.
    pub(super) fn masked(&self) -> bool {
        match &self.views {
            Views::Pictures(views) => views.iter().any(|view| view.may_have_holes()),
            Views::Ready(views) => views.iter().any(|view| view.masked),
        }
    }

    /// Bytes of a pixel of the pictures.
    fn picture_bytes(&self) -> u64 {
        match &self.views {
            Views::Pictures(views) => views.iter().map(|view| view.bytes() as u64).sum(),
            Views::Ready(_) => 0,
        }
    }
}

/// A pair in the host's memory on its way to a plan.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct PlanInput<'a> {
    size: Size,
    views: Views,
    /// In the order of [`Plan::inputs`].
    pub(super) images: Vec<AnyView<'a>>,
    /// What costs look up, in the order of [`Plan::tables`].
    pub(super) tables: Vec<Vec<u8>>,
}

impl<'a> PlanInput<'a> {
    /// Of pictures of these shapes, which the device makes ready.
    pub(in crate::stereo) fn pictures(
        shapes: [PictureShape; 2],
        pictures: &Pictures<'a>,
        masks: Masks<'a>,
    ) -> Self {
        let (images, tables) = (pictures_of(pictures, masks), Vec::new());
        Self { size: pictures.size(), views: Views::Pictures(shapes), images, tables }
    }

    /// Of what the host has made ready.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a cost without a form for kernels.
    pub(in crate::stereo) fn ready(
        gpu: &Gpu,
        options: &StereoOptions,
        pair: &'a Pair,
        source: &dyn CostSource,
    ) -> Result<Self> {
        let (images, tables) = (images_of(pair), tables_of(gpu, options, source)?);
        Ok(Self { size: pair.size(), views: Views::Ready(ViewShape::of(pair)), images, tables })
    }

    /// The shape of so many like this.
    pub(super) fn shape(&self, pairs: usize) -> Shape {
        Shape { size: self.size, pairs, views: self.views }
    }
}

/// From the images of pairs of one shape to their disparities.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) gpu: Gpu,
    pub(super) shape: Shape,
    /// Where the images of pairs are copied to.
    pub(super) inputs: Vec<AnyStack>,
    /// What the costs look up, where they do: for the left view, and for a right view aggregated for itself.
    pub(super) tables: Vec<Buffer<u8>>,
    /// The work.
    pub(super) commands: Commands,
    /// What it leaves.
    pub(super) maps: GpuMaps,
}

impl Plan {
    pub(super) fn new(
        gpu: &Gpu,
        cpu: &Cpu,
        options: &StereoOptions,
        shape: Shape,
        source: &dyn CostSource,
    ) -> Result<Self> {
        compile(gpu, cpu, sources(gpu, options, &shape, source)?)?;
        check_memory(gpu, options, &shape, source)?;
        let (mut commands, mut tables) = (Commands::new(), Vec::new());
        let (views, inputs) = views(&mut commands, gpu, options, &shape)?;
        let stages = Stages { gpu, options, shape: &shape };
        let [left, right] = &views;
        let (mut maps, table) =
            stages.record(&mut commands, source, [left, right], Selection::of(options))?;
        tables.extend(table);
        if options.right_view == RightView::Aggregated
            && let Some(source) = source.exchanged()
        {
            let exchanged = [right.mirrored(&mut commands)?, left.mirrored(&mut commands)?];
            let (exchanged, table) =
                stages.record(&mut commands, &*source, exchanged.each_ref(), Selection::of_left(options))?;
            tables.extend(table);
            maps.right = Some(mirrored(&mut commands, &exchanged.disparity)?);
        }
        let maps = GpuRefinement::new(gpu, options)?.record(&mut commands, maps, left.mask.as_ref())?;
        Ok(Self { gpu: gpu.clone(), shape, inputs, tables, commands, maps })
    }
}

/// The programs that a plan takes, those of a few lines aside.
fn sources(
    gpu: &Gpu,
    options: &StereoOptions,
    shape: &Shape,
    source: &dyn CostSource,
) -> Result<Vec<KernelSource>> {
    let (cost, masked) = (CostKernel::of(source, gpu)?, shape.masked());
    let input = GpuAggregationInput::of(options, (shape.size, shape.pairs), source.greatest(), masked);
    let (layout, paths) = aggregation::gpu::sources(gpu, &cost, &input)?;
    let mut sources = Vec::from(paths);
    sources.push(winner_takes_all::gpu::source(&cost, masked, &layout, Selection::of(options)));
    let greys = match shape.views {
        Views::Ready(views) => views.map(|view| view.grey),
        Views::Pictures([left, right]) => {
            let compares_colour = options.cost.definition().compares_colour();
            let [(of_left, left_grey), (of_right, right_grey)] =
                [left, right].map(|picture| source_of(picture, compares_colour));
            sources.extend(of_left);
            sources.extend(of_right.filter(|_| left != right));
            [left_grey, right_grey]
        }
    };
    let [left, right] = greys.map(|grey| for_pixel!(grey, T => cost::gpu::source::<T>(&cost, masked)));
    sources.push(left);
    sources.extend((greys[0] != greys[1]).then_some(right));
    sources.extend(refinement::gpu::sources(options));
    Ok(sources)
}

/// The views of pairs of a shape, and what their images are copied to; the making ready goes into the list.
fn views(
    commands: &mut Commands,
    gpu: &Gpu,
    options: &StereoOptions,
    shape: &Shape,
) -> Result<([ViewStacks; 2], Vec<AnyStack>)> {
    let place = (shape.size, shape.pairs);
    match shape.views {
        Views::Pictures([left, right]) => {
            let pictures = [GpuPictures::new(gpu, left, place)?, GpuPictures::new(gpu, right, place)?];
            let compares_colour = options.cost.definition().compares_colour();
            let views = make_ready(commands, gpu, &pictures, compares_colour)?;
            Ok((views, pictures.iter().flat_map(GpuPictures::stacks).collect()))
        }
        Views::Ready([left, right]) => {
            let views = [ViewStacks::new(gpu, left, place)?, ViewStacks::new(gpu, right, place)?];
            let inputs = views.iter().flat_map(ViewStacks::stacks).collect();
            Ok((views, inputs))
        }
    }
}

/// Fails where the work takes more of the device's memory than the options allow.
fn check_memory(gpu: &Gpu, options: &StereoOptions, shape: &Shape, source: &dyn CostSource) -> Result<()> {
    let Some(limit) = options.device_memory else { return Ok(()) };
    let cost = CostKernel::of(source, gpu)?;
    let pairs = (shape.size, shape.pairs);
    let input = GpuAggregationInput::of(options, pairs, source.greatest(), shape.masked());
    let aggregation = GpuStrips::new(gpu, &cost, &input)?;
    let pair = aggregation
        .bytes(shape.size)
        .saturating_add((PIXEL + shape.picture_bytes()).saturating_mul(shape.size.area() as u64));
    let views = if options.right_view == RightView::Aggregated { 2 } else { 1 };
    let needed = pair.saturating_mul(shape.pairs as u64).saturating_mul(views);
    match needed > limit {
        true => {
            let shortage = Shortage::Device { name: gpu.info().name.clone(), free: Some(limit) };
            Err(Error::Memory { what: "dense stereo on a GPU", needed, shortage })
        }
        false => Ok(()),
    }
}

/// The tables that a source looks up, in the order of [`Plan::tables`].
fn tables_of(gpu: &Gpu, options: &StereoOptions, source: &dyn CostSource) -> Result<Vec<Vec<u8>>> {
    let exchanged = match options.right_view {
        RightView::Aggregated => source.exchanged(),
        RightView::Off | RightView::Diagonal => None,
    };
    let mut tables = vec![CostKernel::of(source, gpu)?.table];
    tables.extend(exchanged.map(|source| CostKernel::of(&*source, gpu)).transpose()?.map(|cost| cost.table));
    tables.retain(|table| !table.is_empty());
    Ok(tables)
}

/// From views to disparities before refinement.
struct Stages<'a> {
    gpu: &'a Gpu,
    options: &'a StereoOptions,
    shape: &'a Shape,
}

impl Stages<'_> {
    /// Also gives the table that the cost looks up.
    fn record(
        &self,
        commands: &mut Commands,
        source: &dyn CostSource,
        [left, right]: [&ViewStacks; 2],
        selection: Selection,
    ) -> Result<(GpuMaps, Option<Buffer<u8>>)> {
        let Self { gpu, options, shape } = *self;
        let (cost, masked) = (CostKernel::of(source, gpu)?, shape.masked());
        let input = GpuAggregationInput::of(options, (shape.size, shape.pairs), source.greatest(), masked);
        let left_words = left.describe(commands, (&cost, masked))?;
        let right_words = right.describe(commands, (&cost, masked))?;
        let descriptors = (&left_words, &right_words);
        let aggregation = GpuStrips::new(gpu, &cost, &input)?;
        let sums = aggregation.record(commands, descriptors, &left.bytes)?;
        let layout = aggregation.layout();
        let winner = GpuWinnerTakesAll::new(gpu, (&cost, masked), layout, options.min_disparity, selection)?;
        let maps = winner.record(commands, &sums, descriptors, (shape.size, shape.pairs))?;
        Ok((maps, (!cost.table.is_empty()).then(|| aggregation.table().clone())))
    }
}
