//! The stages for pairs of one shape as one list of commands, and the memory that it works in.

use super::check_memory;
use super::matching;
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu, Graph, compile};
use crate::image::gpu::AnyGpuStack;
use crate::image::{AnyView, Size};
use crate::stereo::aggregation::gpu::GpuAggregationInput;
use crate::stereo::cost;
use crate::stereo::cost::gpu::GpuCost;
use crate::stereo::cost::mutual_information::learn::gpu::LearnTable;
use crate::stereo::pair::gpu::{
    Compares, GpuPictures, PictureShape, ViewShape, ViewStacks, images_of, make_ready, mirrored, pictures_of,
    source_of,
};
use crate::stereo::pair::{Pair, Pictures};
use crate::stereo::{GpuMaps, RightView, StereoOptions, refinement};
use crate::{Result, by_pixel};
use std::cell::{Cell, OnceCell};
use tiepoint_gpu::KernelSource;

/// Bytes for each pixel besides the aggregation: both views, the memory of refinement, the maps and their copies.
const PIXEL: u64 = 108;
/// Bytes for each pixel of the views for learning: grey, compared images and masks of both.
const LEARNING_PIXEL: u64 = 2 * (5 + 3 + 1);

/// A device, and the options and cost with which it computes pairs.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct Work<'a> {
    pub(in crate::stereo) gpu: &'a Gpu,
    pub(in crate::stereo) options: &'a StereoOptions,
    pub(in crate::stereo) cost: &'a GpuCost,
    pub(in crate::stereo) cpu: &'a Cpu,
}

/// The properties of pairs that the work depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanShape {
    pub(super) size: Size,
    /// Pairs at a time.
    pub(super) pairs: usize,
    pub(super) views: PlanViews,
}

/// The images that are copied to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stereo) enum PlanViews {
    /// The caller's pictures, and which part of each the cost compares.
    Pictures([PictureShape; 2], [Compares; 2]),
    /// Views that the host has prepared, for a cost that the host learns from them.
    Ready([ViewShape; 2]),
}

impl PlanShape {
    /// Whether either view may have pixels without data.
    pub(super) fn masked(&self) -> bool {
        match &self.views {
            PlanViews::Pictures(views, _) => views.iter().any(|view| view.may_have_holes()),
            PlanViews::Ready(views) => views.iter().any(|view| view.masked),
        }
    }

    /// Bytes of a pixel of the pictures.
    fn picture_bytes(&self) -> u64 {
        match &self.views {
            PlanViews::Pictures(views, _) => views.iter().map(|view| view.bytes() as u64).sum(),
            PlanViews::Ready(_) => 0,
        }
    }
}

/// A pair in the host's memory that is to be copied to a plan.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct PlanInput<'a> {
    /// The shape, with one pair at a time.
    pub(super) shape: PlanShape,
    /// The images in the order of [`Plan::inputs`].
    pub(super) images: Vec<AnyView<'a>>,
    /// The tables that costs look up, in the order of [`Plan::tables`].
    pub(super) tables: Vec<Vec<u8>>,
}

impl<'a> PlanInput<'a> {
    /// An input of pictures of these shapes, which the device prepares.
    pub(in crate::stereo) fn pictures(views: PlanViews, pictures: &Pictures<'a>) -> Self {
        let shape = PlanShape { size: pictures.size(), pairs: 1, views };
        Self { shape, images: pictures_of(pictures), tables: Vec::new() }
    }

    /// An input of views that the host has prepared.
    pub(in crate::stereo) fn ready(options: &StereoOptions, pair: &'a Pair, cost: &GpuCost) -> Self {
        let exchanged = cost.exchanged.as_ref().filter(|_| options.right_view == RightView::Aggregated);
        let tables = std::iter::once(&cost.kernel).chain(exchanged).map(|kernel| kernel.table.clone());
        Self {
            shape: PlanShape { size: pair.size(), pairs: 1, views: PlanViews::Ready(ViewShape::of(pair)) },
            images: images_of(pair),
            tables: tables.filter(|table| !table.is_empty()).collect(),
        }
    }
}

/// All work from the images of pairs of one shape to their disparities.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) gpu: Gpu,
    pub(super) shape: PlanShape,
    /// Where the images of pairs are copied to.
    pub(super) inputs: Vec<AnyGpuStack>,
    /// The tables that costs look up, if any: for the left view, and for a right view that is aggregated separately.
    pub(super) tables: Vec<Buffer<u8>>,
    /// The learning that fills the tables, unless the host does.
    pub(super) learning: Option<PlanLearning>,
    /// The work, after the tables are filled.
    pub(super) commands: Commands,
    /// The maps that the work writes.
    pub(super) maps: GpuMaps,
    /// All of the work, learning included, for a plan that has [run](Self::run) before.
    again: OnceCell<Graph>,
    has_run: Cell<bool>,
}

/// Learning the tables of a cost from a pair, which may run while the plan works on another pair.
#[derive(Debug)]
pub(super) struct PlanLearning {
    /// Where the images of the pair are copied to.
    pub(super) inputs: Vec<AnyGpuStack>,
    pub(super) commands: Commands,
    /// For each learnt buffer: where it is learnt, and where the plan reads it.
    pub(super) learnt: Vec<[Buffer<u8>; 2]>,
}

impl Plan {
    pub(super) fn new(work: Work<'_>, shape: PlanShape) -> Result<Self> {
        let Work { gpu, options, cost, cpu } = work;
        let stages = Stages { work, shape: &shape };
        stages.check_memory()?;
        compile(gpu, cpu, stages.sources()?)?;
        let mut commands = Commands::new();
        let (views, inputs) = stages.views(&mut commands, cost.compares)?;
        let (maps, tables) = stages.record(&mut commands, &views)?;
        let maps = refinement::gpu::refine(&mut commands, options, maps, &views)?;
        let learning = cost.learner.map(|learner| stages.learning(learner, (&views, &tables))).transpose()?;
        let (gpu, again, has_run) = (gpu.clone(), OnceCell::new(), Cell::new(false));
        Ok(Self { gpu, shape, inputs, tables, learning, commands, maps, again, has_run })
    }

    /// Does the work, including learning, on images that were copied to the inputs. From the second run on it is a
    /// graph, because making a graph pays off only if it is reused.
    pub(super) fn run(&self) -> Result<()> {
        if !self.has_run.replace(true) {
            return Ok(self.gpu.run(&self.whole()?)?);
        }
        let graph = match self.again.get() {
            Some(graph) => graph,
            None => {
                let graph = self.gpu.graph(self.whole()?)?;
                self.again.get_or_init(|| graph)
            }
        };
        Ok(graph.run()?)
    }

    fn whole(&self) -> Result<Commands> {
        let mut commands = Commands::new();
        if let Some(PlanLearning { inputs, commands: learning, learnt }) = &self.learning {
            for (from, to) in self.inputs.iter().zip(inputs) {
                by_pixel!((to, from), (to, from) => {
                    Ok(commands.copy((from.buffer(), 0), (to.buffer(), 0), from.buffer().len())?)
                })?;
            }
            commands.append(learning.clone())?;
            for [from, to] in learnt {
                commands.copy((from, 0), (to, 0), from.len())?;
            }
        }
        commands.append(self.commands.clone())?;
        Ok(commands)
    }
}

struct Stages<'a> {
    work: Work<'a>,
    shape: &'a PlanShape,
}

impl Stages<'_> {
    fn input(&self) -> GpuAggregationInput<'_> {
        let Self { work: Work { gpu, options, cost: of, .. }, shape } = *self;
        let (options, cost, greatest, volume) = (*options, &of.kernel, of.greatest, of.volume.as_ref());
        let (masked, size, images, banded) = (shape.masked(), shape.size, shape.pairs, false);
        GpuAggregationInput { gpu, options, cost, greatest, masked, size, images, banded, volume }
    }

    /// The input for the right view, if that is aggregated separately.
    fn exchanged(&self) -> Option<GpuAggregationInput<'_>> {
        let Work { options, cost, .. } = self.work;
        let cost = cost.exchanged.as_ref().filter(|_| options.right_view == RightView::Aggregated)?;
        Some(GpuAggregationInput { cost, options: options.for_left(), ..self.input() })
    }

    /// The programs that a plan needs, except very short ones.
    fn sources(&self) -> Result<Vec<KernelSource>> {
        let Self { work: Work { options, cost, .. }, shape } = *self;
        let (kernel, masked) = (&cost.kernel, shape.masked());
        let mut sources = matching::sources(&self.input())?;
        let greys = match shape.views {
            PlanViews::Ready(views) => views.map(|view| view.grey),
            PlanViews::Pictures(pictures, compares) => {
                let learns_from = cost.learner.map(|learner| learner.learns_from);
                let all = std::iter::once(compares).chain(learns_from);
                let made = all.flat_map(|compares| pictures.into_iter().zip(compares));
                sources.extend(made.filter_map(|(picture, compares)| source_of(picture, compares)));
                pictures.map(PictureShape::grey)
            }
        };
        sources.extend(greys.map(|grey| by_pixel!(type grey, T => cost::gpu::source::<T>(kernel, masked))));
        if let Some(learner) = cost.learner {
            sources.extend(learner.sources(&self.input())?);
        }
        sources.extend(refinement::gpu::sources(options));
        Ok(sources)
    }

    /// Fails if the work takes more of the device's memory than the options allow.
    fn check_memory(&self) -> Result<()> {
        let Self { work: Work { gpu, options, cost, .. }, shape } = *self;
        if options.device_memory.is_none() {
            return Ok(());
        }
        let pixels = shape.size.area() as u64;
        // Learning has its own copies of the pictures.
        let own = (LEARNING_PIXEL + shape.picture_bytes()).saturating_mul(pixels);
        let learning = match cost.learner {
            Some(learner) => learner.bytes(&self.input())?.saturating_add(own),
            None => 0,
        };
        let pictures = (PIXEL + shape.picture_bytes()).saturating_mul(pixels);
        let input = GpuAggregationInput { images: 1, ..self.input() };
        let pair = input.bytes()?.saturating_add(pictures);
        let views = if self.exchanged().is_some() { 2 } else { 1 };
        let needed = pair.saturating_mul(shape.pairs as u64).saturating_mul(views).saturating_add(learning);
        check_memory(gpu, options, "dense stereo on a GPU", needed)
    }

    /// The learning, from its own copies of the pictures, of the images and tables that the plan reads.
    fn learning(
        &self,
        learner: LearnTable,
        (views, tables): (&[ViewStacks; 2], &[Buffer<u8>]),
    ) -> Result<PlanLearning> {
        let mut commands = Commands::new();
        let ([left, right], inputs) = self.views(&mut commands, learner.learns_from)?;
        let (found, grey) = learner.record(&mut commands, &self.input(), [&left, &right])?;
        let mut learnt: Vec<_> = found.into_iter().zip(tables.iter().cloned()).map(<[_; 2]>::from).collect();
        if let Some((view, from)) = grey
            && let Some(to) = &views[view.index()].compared
        {
            learnt.push([from.buffer().clone(), to.buffer().clone()]);
        }
        Ok(PlanLearning { inputs, commands, learnt })
    }

    /// The views of pairs, and the stacks to which images are copied. Records the preparation of what `compares` names.
    fn views(
        &self,
        commands: &mut Commands,
        compares: [Compares; 2],
    ) -> Result<([ViewStacks; 2], Vec<AnyGpuStack>)> {
        let Self { work: Work { gpu, .. }, shape } = *self;
        let place = (shape.size, shape.pairs);
        match shape.views {
            PlanViews::Pictures([left, right], _) => {
                let pictures = [GpuPictures::new(gpu, left, place)?, GpuPictures::new(gpu, right, place)?];
                let views = make_ready(commands, gpu, &pictures, compares)?;
                Ok((views, pictures.iter().flat_map(GpuPictures::stacks).collect()))
            }
            PlanViews::Ready([left, right]) => {
                let views = [ViewStacks::new(gpu, left, place)?, ViewStacks::new(gpu, right, place)?];
                let inputs = views.iter().flat_map(ViewStacks::stacks).collect();
                Ok((views, inputs))
            }
        }
    }

    /// Records the work from views to disparities before refinement. Also returns the [tables](Plan::tables) of costs.
    fn record(
        &self,
        commands: &mut Commands,
        [left, right]: &[ViewStacks; 2],
    ) -> Result<(GpuMaps, Vec<Buffer<u8>>)> {
        let (mut maps, looked_up) = matching::record(commands, self.input(), [left, right], None)?;
        let mut tables = Vec::from_iter(looked_up);
        if let Some(input) = self.exchanged() {
            let views = [right.mirrored(commands)?, left.mirrored(commands)?];
            let (exchanged, looked_up) = matching::record(commands, input, views.each_ref(), None)?;
            tables.extend(looked_up);
            maps.right = Some(mirrored(commands, &exchanged.disparity)?);
        }
        Ok((maps, tables))
    }
}
