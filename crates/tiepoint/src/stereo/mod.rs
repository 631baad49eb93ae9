//! Dense stereo by Semi-Global Matching: a disparity for every pixel of a rectified pair.
//!
//! **The method.** A [matching cost](cost) measures how unlike a left and a right pixel of one row are: census with
//! colour, census, absolute difference, mutual information, or a volume of costs. A single pixel is ambiguous, so *cost
//! aggregation* (`aggregation`) sums costs along straight paths from 4, 5, 8 or 16 directions, on which a change of
//! disparity by one costs P1 and a larger one P2, less at edges of the image. *Winner takes all* (`winner_takes_all`)
//! chooses the disparity with the least sum; the sums beside it give a fraction of a pixel (`subpixel`). The right view
//! follows from the same sums along their diagonals. *Refinement* (`refinement`) filters both views with a [`median`]
//! of 3×3, drops pixels on which they disagree ([`consistency_check`]) and regions too small to be a surface
//! ([`speckle`]), applies a last median, moves [`edges`] of the disparities to edges of the picture and, if asked for,
//! fills invalid pixels ([`fill`]). Disparities become [`depth`] and [points](cloud), and are written to [`files`].
//!
//! Sources: H. Hirschmüller, *Stereo Processing by Semiglobal Matching and Mutual Information*, PAMI 30, 2008;
//! R. Zabih, J. Woodfill, *Non-parametric local transforms for computing visual correspondence*, ECCV 1994.
//!
//! **Memory.** Between the forward and the backward pass one sum of one or two bytes is stored for each pixel and
//! disparity, and nothing else of that size. If [`StereoOptions::memory`] is less, groups of rows are computed one
//! after the other and paths are handed from group to group: the result has the same bits.
//!
//! **On a GPU** (`gpu`) all paths run side by side and store their sums in four parts, which needs four times that
//! memory on the device; [`StereoOptions::memory`] limits host memory only. The result is the CPU's, bit for bit. A
//! pair that exceeds the device's memory, or [`StereoOptions::device_memory`], is computed in bands of rows, from
//! checkpoints of the paths that enter each; its maps are refined on the CPU. [`Stereo::compute_on_device`] takes
//! images that lie on the device and leaves its maps there; a [`StereoStream`] has several pairs in flight.
//!
//! **Numbers.** Costs, paths and sums are integers, so the order in which they are added does not matter. Mutual
//! information is learnt in f64 in a stated order; a sub-pixel disparity takes one quotient and one sum in f32;
//! the later stages only compare and select. The result is the same for every thread count, SIMD level and limit of
//! memory.
//!
//! **Verified.** Costs and sums equal plain scalar references in every bit. Errors against ground truth, beside
//! OpenCV's, are in `docs/notebook/stereo.md`.
//!
//! **Conventions of the output.** The left image is the reference: `left(x, y)` shows what `right(x − d, y)` shows.
//! Disparities are in pixels, of either sign; the first searched is [`StereoOptions::min_disparity`]. A pixel without
//! disparity holds [`INVALID`], and [`Reason`] says why: it has no data, is hidden from the right camera, was not
//! confirmed by the right view, is ambiguous, or belongs to a region that is too small. The right view's disparities
//! have the same sign: `right(x, y)` shows what `left(x + d, y)` shows.

pub(crate) mod aggregation;
#[cfg(test)]
pub(crate) mod bisect;
pub mod cloud;
pub mod consistency_check;
pub mod cost;
pub mod depth;
pub(crate) mod edges;
pub mod files;
pub mod fill;
pub(crate) mod gpu;
pub mod halving;
mod maps;
pub mod median;
mod options;
pub(crate) mod pair;
pub(crate) mod patches;
mod reason;
pub(crate) mod refinement;
pub mod speckle;
mod stream;
mod subpixel;
pub mod survey;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod winner_takes_all;

pub use cost::{CensusWindow, Cost};
pub use maps::{GpuStereoResult, Maps, StereoResult};
pub use options::{Paths, Penalties, RightView, StereoOptions, Subpixel};
pub use reason::Reason;
pub use stream::{PendingStereo, StereoStream};

use crate::device::gpu::Gpu;
use crate::device::{Computing, Cpu, Processor, Scratch};
use crate::image::gpu::AnyGpuImage;
use crate::image::{AnyView, Image, ImageView, Mask, Pixels};
use crate::{Error, ErrorKind, Result};
use aggregation::{AggregationInput, Workspace, aggregate};
use cost::gpu::GpuCost;
use cost::{CostSource, CostVolume, Learn, require_volume};
use gpu::{PlanCache, PlanInput, PlanViews, Work};
use maps::GpuMaps;
use pair::gpu::{Compares, PictureShape};
use pair::{Pair, Pictures};

/// The value that marks a pixel without a disparity: +∞.
pub const INVALID: f32 = f32::INFINITY;

/// The left or the right of the two views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Its pixel x corresponds to x − d.
    Left,
    /// Its pixel x corresponds to x + d.
    Right,
}

impl View {
    /// 0 for the left view, 1 for the right one.
    const fn index(self) -> usize {
        self as usize
    }

    /// s, where pixel x with disparity d corresponds to x − s · d.
    const fn sign(self) -> f32 {
        match self {
            Self::Left => 1.0,
            Self::Right => -1.0,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Dense stereo with options and working memory. Several threads may use it at a time: each call has its own working
/// memory, which is kept for later pairs of the same size.
///
/// ```
/// use tiepoint::device::{Cpu, Processor};
/// use tiepoint::stereo::{Cost, Masks, Stereo, StereoOptions};
/// use tiepoint::synth::{StereoScene, StereoSceneOptions};
///
/// let processor = Processor::from(Cpu::with_threads(2)?);
/// let pair = StereoScene::new(&StereoSceneOptions::default())?.render::<u8>(&processor.cpu);
/// let options = StereoOptions::default().with_disparities(64).with_cost(Cost::MutualInformation);
/// let found = Stereo::new(options)?.compute(
///     (&pair.left).into(),
///     (&pair.right).into(),
///     Masks::default(),
///     &processor,
/// )?;
/// let valid = found.disparity.data().iter().filter(|d| d.is_finite()).count();
/// assert!(valid > found.disparity.data().len() / 2);
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Debug)]
pub struct Stereo {
    options: StereoOptions,
    workspaces: Scratch<Workspace>,
    on_gpu: Scratch<PlanCache>,
}

/// A pair that is ready to be aggregated.
struct Prepared<'a> {
    pair: &'a Pair,
    source: &'a dyn CostSource,
    /// The options, with the penalties in force for the costs.
    options: StereoOptions,
    workspace: &'a mut Workspace,
    cpu: Cpu,
    /// The volume of the costs, if some of them may be unknown.
    volume: Option<&'a CostVolume<'a>>,
}

/// Which pixels have data: 0 marks pixels without data. Pixels that are not finite never have data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks<'a> {
    /// Of the left image: one channel, of the image's size.
    pub left: Option<ImageView<'a, u8>>,
    /// Of the right image.
    pub right: Option<ImageView<'a, u8>>,
}

impl Stereo {
    /// Checks the options. Memory is allocated with the first pair.
    ///
    /// # Errors
    /// As [`StereoOptions::check`].
    pub fn new(mut options: StereoOptions) -> Result<Self> {
        options.check()?;
        if let Some(window) = options.census_window.take() {
            options.cost = Cost::Census(window);
        }
        Ok(Self { options, workspaces: Scratch::default(), on_gpu: Scratch::default() })
    }

    /// The options.
    pub fn options(&self) -> &StereoOptions {
        &self.options
    }

    /// The disparities of a rectified pair, by the matching cost of the options. Alpha is not looked at: transparent pixels,
    /// and others without data, are left out by `masks`, as [`Mask::of_data`] makes them.
    ///
    /// If the processor has a GPU, it computes them, with the same bits. If the GPU has too little memory, the CPU does
    /// so, and a [note](Processor::note) says so.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when images or masks differ in size, [`Error::Image`] for an empty image or more than four
    /// channels, [`Error::Memory`] when [`StereoOptions::memory`] is too small for the width and disparities, or the
    /// system has no more memory.
    pub fn compute(
        &self,
        left: AnyView<'_>,
        right: AnyView<'_>,
        masks: Masks<'_>,
        processor: &Processor,
    ) -> Result<StereoResult> {
        let pictures = &Pictures::new([left, right], masks)?;
        if processor.is_opening() {
            return self.while_opening(pictures, processor);
        }
        if let Some(found) = self.pictures_on_device(pictures, processor)? {
            return Ok(found);
        }
        self.prepare(pictures, processor, |prepared| self.disparities(prepared, processor))
    }

    /// The same while the GPU is being opened.
    fn while_opening(&self, pictures: &Pictures<'_>, processor: &Processor) -> Result<StereoResult> {
        processor.race(
            "dense stereo",
            |gpu| {
                // The threads and the observer of the processor's CPU are used by the other computation.
                let there = Processor::with_gpu(Cpu::sequential().ending_with(&processor.cpu), gpu.clone());
                let found = self.pictures_on_device(pictures, &there)?;
                found.ok_or_else(|| Error::NotReady { device: gpu.info().name.clone() })
            },
            |cpu| {
                let alone = Processor::from(cpu.clone());
                self.prepare(pictures, &alone, |prepared| self.on_cpu(prepared))
            },
        )
    }

    /// The same with all work on the GPU; `None` if there is no GPU, the host must learn, or the pair is too large.
    fn pictures_on_device(
        &self,
        pictures: &Pictures<'_>,
        processor: &Processor,
    ) -> Result<Option<StereoResult>> {
        let Ok(Some(gpu)) = &processor.joining_gpu() else { return Ok(None) };
        let Some((input, cost)) = self.picture_input(gpu, pictures)? else { return Ok(None) };
        let pixels = pictures.size().area();
        let cpu = processor.cpu.begin_task("stereo", pixels);
        let work = Work { gpu, options: &self.options, cost: &cost, cpu: &cpu };
        let found = self.with_plans(|cache| cache.compute(work, &input));
        processor.collect_times();
        match found {
            // The caller continues in bands of rows or on the CPU.
            Err(error) if error.is_device_limit() => Ok(None),
            found => {
                processor.count_computed(Computing::Gpu);
                cpu.advance(pixels);
                found.map(Some)
            }
        }
    }

    /// The pictures as the input of a device that does all work, and the cost; `None` if the host must learn the cost.
    fn picture_input<'p>(
        &self,
        gpu: &Gpu,
        pictures: &Pictures<'p>,
    ) -> Result<Option<(PlanInput<'p>, GpuCost)>> {
        let shapes = PictureShape::of_pictures(pictures)?;
        let Some(cost) = self.whole(gpu, shapes, || Ok(pictures.are_colour()))? else { return Ok(None) };
        self.options.check_sums(cost.greatest)?;
        Ok(Some((PlanInput::pictures(PlanViews::Pictures(shapes, cost.compares), pictures), cost)))
    }

    /// The cost for pictures of these shapes on a device that does all work; `None` if the host must learn it.
    /// `are_colour` returns which pictures have colour; it is called only if that must be known.
    fn whole(
        &self,
        gpu: &Gpu,
        shapes: [PictureShape; 2],
        are_colour: impl Fn() -> Result<[bool; 2]>,
    ) -> Result<Option<GpuCost>> {
        let cost = self.options.cost.definition();
        let colour = cost.compares_colour() && shapes.iter().all(|shape| shape.may_be_colour());
        let compares = if colour { Compares::Colour } else { Compares::Grey };
        match cost.known(if colour { 3 } else { 1 }) {
            Some(source) => Ok(Some(GpuCost { compares: [compares; 2], ..GpuCost::of(&*source) })),
            None => cost.learnt_there(gpu, shapes, &are_colour),
        }
    }

    /// As [`compute`](Self::compute), from a cost volume of the caller, such as that of another census window or of a
    /// neural network; for volumes on a device see [`optimize_on_device`](Self::optimize_on_device). P2 falls at
    /// edges of the left image; both images and their masks define which pixels have data.
    ///
    /// `costs` is as large as the images, with a channel for each disparity: channel i of (x, y) is how unlike left (x,
    /// y) and right (x − ([`min_disparity`](StereoOptions::min_disparity) + i), y) are; the least cost is the best. A
    /// cost that is not finite is unknown: it counts as the greatest, and a pixel for which nothing better is found is
    /// invalid. Costs become integers: the least cost is subtracted if it is negative, then they are multiplied by
    /// `scale` and rounded. By default integers do not change, and floats are scaled so that the greatest becomes 1023.
    /// Aggregation is fastest if the greatest becomes at most 96. Penalties are in units of the scaled cost; by default
    /// they have the proportion to the greatest cost that they have for census.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), [`Error::Mismatch`] when the volume does not fit the images or the options,
    /// [`Error::Image`] when it holds no finite cost, and [`Error::Option`] when the greatest cost would be above 4000,
    /// when the penalties are not in order, or when [`RightView::Aggregated`] is asked for: a cost volume is of the
    /// left view only.
    pub fn optimize(
        &self,
        (costs, scale): (AnyView<'_>, Option<f32>),
        pair: [AnyView<'_>; 2],
        masks: Masks<'_>,
        processor: &Processor,
    ) -> Result<StereoResult> {
        processor.gpu_or_cpu(
            "dense stereo of a cost volume",
            |gpu| {
                let there = |view| AnyGpuImage::upload(gpu, view);
                let pair = gpu::PixelPair::new(pair.map(Pixels::Host), masks.into())?;
                self.optimize_on(gpu, (&there(costs)?, scale), pair, &processor.cpu)?.download()
            },
            |cpu| self.with_volume((costs, scale), pair, masks, cpu, |prepared| self.on_cpu(prepared)),
        )
    }

    /// The sums of a cost volume over all paths, with the volume's size and order. [`optimize`](Self::optimize) chooses
    /// disparities from them. Computed on the CPU. The costs of a left pixel without data are 0.
    ///
    /// # Errors
    /// As [`optimize`](Self::optimize).
    pub fn aggregate(
        &self,
        costs: (AnyView<'_>, Option<f32>),
        pair: [AnyView<'_>; 2],
        masks: Masks<'_>,
        processor: &Processor,
    ) -> Result<Image<u16>> {
        self.with_volume(costs, pair, masks, &processor.cpu, |prepared| {
            let Prepared { pair, source, options, workspace, cpu, .. } = prepared;
            options.check_sums(source.greatest())?;
            let mut sums = Image::try_filled(pair.size(), options.disparities, 0)?;
            // The selection writes disparities, too; they are not used.
            let mut chosen = StereoResult::new(pair.size(), false, false);
            let output = (&mut chosen, Some(sums.data_mut()));
            let input = AggregationInput::new(source, pair, &options);
            aggregate(&input, output, workspace, &cpu.part(pair.size().area()))?;
            Ok(sums)
        })
    }

    fn with_volume<R>(
        &self,
        (costs, scale): (AnyView<'_>, Option<f32>),
        pair: [AnyView<'_>; 2],
        masks: Masks<'_>,
        cpu: &Cpu,
        work: impl FnOnce(Prepared<'_>) -> Result<R>,
    ) -> Result<R> {
        require_volume((costs.size(), costs.channels()), pair[0].size(), &self.options)?;
        let volume = &CostVolume::new(costs, scale, cpu)?;
        let known = volume.mask(cpu);
        let left = Mask::from(known.as_ref().map(Image::view)).and(Mask::from(masks.left))?;
        let masks = Masks { left: left.view(), right: masks.right };
        let options = self.options_for_given(volume.scaling.penalties())?;
        let pair = &Pair::new(&Pictures::new(pair, masks)?, cpu)?;
        let cpu = cpu.begin_task("stereo", pair.size().area());
        self.with_workspace(|workspace| {
            work(Prepared { pair, source: volume, options, workspace, cpu, volume: Some(volume) })
        })
    }

    /// The options for the caller's costs, whose default penalties are `suited`; fails for an aggregated right view.
    fn options_for_given(&self, suited: Penalties) -> Result<StereoOptions> {
        if self.options.right_view == RightView::Aggregated {
            let expected = "diagonal or off: a cost volume knows the left view only";
            return Err(Error::option("right_view", RightView::Aggregated, expected));
        }
        let penalties = self.options.penalties_for(suited);
        penalties.check()?;
        Ok(self.options.with_penalties(penalties))
    }

    /// Prepares a pair for the cost of the options, which may learn from the pair first, and calls `work` with it.
    fn prepare<R>(
        &self,
        pictures: &Pictures<'_>,
        processor: &Processor,
        work: impl FnOnce(Prepared<'_>) -> Result<R>,
    ) -> Result<R> {
        let cpu = &processor.cpu.for_pixels(pictures.size().area());
        let (options, cost) = (&self.options, self.options.cost.definition());
        let mut pair = Pair::for_cost(pictures, cost, cpu)?;
        // An aggregation counts as one step for each pixel; the later stages take little time in comparison.
        let pixels = pair.size().area();
        let learning = cost.learning_steps(pictures, options, pixels);
        let aggregations = 1 + usize::from(options.right_view == RightView::Aggregated);
        let cpu = cpu.begin_task("stereo", pixels.saturating_mul(aggregations).saturating_add(learning));
        let gpu = processor.joining_gpu().ok().flatten();
        self.with_workspace(|workspace| {
            let learn = Learn { pair: &mut pair, pictures, options, workspace, cpu: &cpu, gpu: gpu.as_ref() };
            let source = &*cost.source(learn)?;
            work(Prepared { pair: &pair, source, options: *options, workspace, cpu, volume: None })
        })
    }

    fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace) -> Result<R>) -> Result<R> {
        let work = |workspace: &mut Workspace| {
            let found = work(workspace);
            workspace.is_kept = true;
            found
        };
        self.workspaces.with(|| Ok(Workspace::default()), work)
    }

    fn with_plans<R>(&self, work: impl FnOnce(&mut PlanCache) -> Result<R>) -> Result<R> {
        self.on_gpu.with(|| Ok(PlanCache::default()), work)
    }

    /// Aggregates the costs, chooses disparities and refines them, on the GPU or the CPU.
    fn disparities(&self, prepared: Prepared<'_>, processor: &Processor) -> Result<StereoResult> {
        let Prepared { pair, source, options, .. } = prepared;
        options.check_sums(source.greatest())?;
        let processor = processor.clone().with_cpu(prepared.cpu.clone());
        processor.gpu_or_cpu(
            "dense stereo",
            |gpu| {
                let found = self.on_device(gpu, (pair, source), &processor)?;
                processor.cpu.advance(pair.size().area());
                Ok(found)
            },
            |_| self.on_cpu(prepared),
        )
    }

    /// The same on a GPU: the whole pair where there is memory for it, otherwise in bands of rows.
    fn on_device(
        &self,
        gpu: &Gpu,
        (pair, source): (&Pair, &dyn CostSource),
        processor: &Processor,
    ) -> Result<StereoResult> {
        let (options, cpu) = (&self.options, &processor.cpu);
        let whole = self.with_plans(|cache| {
            let cost = GpuCost::of(source);
            cache.compute(Work { gpu, options, cost: &cost, cpu }, &PlanInput::ready(options, pair, &cost))
        });
        match whole {
            Err(error) if error.kind() == ErrorKind::DeviceMemory => {}
            found => return found,
        }
        gpu.release_memory()?;
        // Some of the free memory is left to other programs.
        let free = gpu.free_memory().unwrap_or(gpu.info().memory / 2);
        let memory = options.device_memory.unwrap_or(u64::MAX).min(free - free / 8);
        let (mut found, bands) = gpu::in_bands(gpu, options, (pair, source), memory, cpu)?;
        processor.note(format!(
            "too large for the GPU's memory: stereo in {bands} bands of rows, refined on the CPU"
        ));
        self.refine(&mut found, pair, cpu)?;
        Ok(found)
    }

    /// Refines maps, and drops those that were not asked for.
    fn refine(&self, found: &mut StereoResult, pair: &Pair, cpu: &Cpu) -> Result<()> {
        found.reasons = self.options.reasons.then(|| reason::first(&found.disparity, pair));
        refinement::refine(found, &self.options, pair, cpu)
    }

    fn on_cpu(&self, prepared: Prepared<'_>) -> Result<StereoResult> {
        let Prepared { pair, source, options, workspace, cpu, volume } = prepared;
        options.check_sums(source.greatest())?;
        let input = &AggregationInput::new(source, pair, &options);
        let cpu = &cpu;
        let mut out = StereoResult::new(pair.size(), options.selects_right(), options.confidence);
        let pixels = pair.size().area();
        aggregate(input, (&mut out, None), workspace, &cpu.part(pixels))?;
        if options.right_view == RightView::Aggregated
            && let Some(source) = source.exchanged()
        {
            let exchanged = pair.exchanged();
            let input = AggregationInput::new(&*source, &exchanged, &options);
            let mut right = StereoResult::new(pair.size(), false, false);
            aggregate(&input, (&mut right, None), workspace, &cpu.part(pixels))?;
            out.right = Some(pair::mirrored(&right.disparity));
        }
        if let Some(volume) = volume {
            volume.withdraw(&mut out, options.min_disparity);
        }
        self.refine(&mut out, pair, cpu)?;
        Ok(out)
    }
}
