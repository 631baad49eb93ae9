//! Dense stereo on a device. The stages of a pair are one list of commands ([`plan`]). While the device works on some
//! pairs, the images of others are copied to it and maps are copied back ([`slot`]), and a cost learns from the next
//! pair ([`double_buffer`], [`slot`]).

mod bands;
pub(crate) mod dense;
mod double_buffer;
mod flow;
pub(in crate::stereo) mod lanes;
mod masks;
mod matching;
mod optimize;
mod plan;
mod plan_cache;
mod slot;
#[cfg(test)]
mod tests;

pub(super) use bands::disparities as in_bands;
pub(super) use flow::{Flow, StreamResult};
pub use masks::GpuMasks;
pub(super) use matching::GpuMatching;
pub(super) use optimize::optimize;
pub(super) use plan::PlanInput;
pub(super) use plan_cache::PlanCache;

use super::cost::gpu::GpuCost;
use super::pair::gpu::{PictureShape, are_colour, take};
use super::{GpuStereoResult, Masks, Stereo, StereoOptions, StereoResult};
use crate::device::Processor;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::error::Shortage;
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuStack};
use crate::image::{AnyCow, AnyView, Image, ImageView, Pixels, Size};
use crate::{Error, Result};
use plan::{Plan, PlanShape, PlanViews};
use slot::reason;
use std::cell::Cell;

impl GpuStereoResult {
    /// Waits for the device and copies the maps to the host.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<StereoResult> {
        self.try_map(GpuImage::download, |map| {
            let numbers = map.download()?;
            Image::from_vec(numbers.data().iter().map(|&n| reason(n)).collect(), numbers.size(), 1)
        })
    }

    /// One of the maps in the form that other programs expect: rows without gaps, with `nothing`, such as NaN, in place
    /// of [`INVALID`](super::INVALID).
    ///
    /// # Errors
    /// [`Error::Memory`] when the device's memory is too small, [`Error::Device`] when it fails.
    pub fn dense(map: &GpuImage<f32>, nothing: f32) -> Result<Buffer<f32>> {
        dense::dense(map, nothing)
    }

    /// Copies of the maps of pair `i` of a plan, made in the device's queue.
    fn of(plan: &Plan, i: usize) -> Result<Self> {
        fn memory<T: tiepoint_gpu::Element>(map: &GpuStack<T>) -> Result<GpuImage<T>> {
            GpuImage::new(map.gpu(), map.size())
        }
        let mut commands = Commands::new();
        let maps = plan.maps.try_map(memory, memory)?;
        for (from, to) in plan.maps.floats().zip(maps.floats()) {
            commands.copy((from.buffer(), i * from.step()), (to.buffer(), 0), from.step())?;
        }
        if let Some((from, to)) = plan.maps.reasons.as_ref().zip(maps.reasons.as_ref()) {
            commands.copy((from.buffer(), i * from.step()), (to.buffer(), 0), from.step())?;
        }
        plan.gpu.run(&commands)?;
        Ok(maps)
    }
}

/// Dense stereo on a GPU, for images in its memory or the host's; the maps can stay on the GPU. It finds the same as
/// [`Stereo`], bit for bit.
///
/// The memory for pairs of one size is kept; for another size, another number of pairs or another type of pixel it is
/// allocated anew. Threads may share it: calls that run at the same time each have their own memory.
///
/// ```no_run
/// use tiepoint::device::Device;
/// use tiepoint::image::{Image, Size, gpu::GpuImage};
/// use tiepoint::stereo::{GpuStereo, Masks, StereoOptions};
///
/// let processor = Device::Cuda(0).open(4)?;
/// let stereo = GpuStereo::new(&processor, StereoOptions::default())?;
/// let image = Image::<u8>::new(Size::new(640, 480));
/// let left = GpuImage::upload(stereo.gpu(), image.view())?;
/// let right = GpuImage::upload(stereo.gpu(), image.view())?;
/// let maps = stereo.compute_on_device(&left, &right, Masks::default())?;
/// let found = maps.download()?;
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Debug)]
pub struct GpuStereo {
    stereo: Stereo,
    gpu: Gpu,
    processor: Processor,
}

impl GpuStereo {
    /// Checks the options. Memory is allocated with the first pair.
    ///
    /// # Errors
    /// As [`StereoOptions::check`], and [`Error::Device`] when the processor has no GPU.
    pub fn new(processor: &Processor, options: StereoOptions) -> Result<Self> {
        let gpu = processor.gpu().cloned().ok_or_else(|| Error::Device {
            device: "cpu".into(),
            reason: "stereo on a GPU needs a processor with one".into(),
        })?;
        Ok(Self { stereo: Stereo::new(options)?, gpu, processor: processor.clone() })
    }

    /// The options.
    pub fn options(&self) -> &StereoOptions {
        self.stereo.options()
    }

    /// The device.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// The maps of a rectified pair, which stay on the device. Images and masks lie in the host's memory or on the device.
    /// The work is queued and may not be finished yet.
    ///
    /// Images on the device, of every type of pixel and 1 to 4 channels, never leave it, except for [mutual
    /// information](super::Cost::MutualInformation) on a device without `f64`, where the host learns. For pictures with
    /// three channels that cost first asks the device whether they have colour, and waits for the answer.
    ///
    /// # Errors
    /// As [`Stereo::compute`]; [`Error::Mismatch`] when an image lies on another device; where the device is too small
    /// or lacks a feature the error says so: see [`Error::is_device_limit`].
    pub fn compute_on_device<'a>(
        &self,
        left: impl Into<Pixels<'a>>,
        right: impl Into<Pixels<'a>>,
        masks: impl Into<GpuMasks<'a>>,
    ) -> Result<GpuStereoResult> {
        let pair = PixelPair { images: [left.into(), right.into()], masks: masks.into().both()? };
        pair.check_place(&self.gpu)?;
        let known = self.stereo.whole(&self.gpu, pair.shapes()?, || pair.are_colour(&self.gpu))?;
        self.stereo.with_plans(|cache| match &known {
            Some(cost) => {
                let mut maps = self.run(cache, &[pair.on_device(&self.gpu)?], cost, GpuStereoResult::of)?;
                maps.pop().ok_or_else(no_pair)
            }
            None => self.through_the_host(cache, pair.clone()),
        })
    }

    /// As [`Stereo::optimize`] with costs, images and masks in the host's memory or on the device, which aggregates the
    /// costs where they lie; the maps stay on the device.
    ///
    /// # Errors
    /// As [`Stereo::optimize`] and [`compute_on_device`](Self::compute_on_device).
    pub fn optimize_on_device<'a>(
        &self,
        (costs, scale): (impl Into<Pixels<'a>>, Option<f32>),
        [left, right]: [Pixels<'a>; 2],
        masks: impl Into<GpuMasks<'a>>,
    ) -> Result<GpuStereoResult> {
        let pair = PixelPair { images: [left, right], masks: masks.into().both()? };
        let costs = costs.into();
        check_place(&self.gpu, pair.images.iter().chain(pair.masks.iter().flatten()).chain([&costs]))?;
        let costs = on_device(&costs, &self.gpu)?;
        optimize(&self.stereo, &self.gpu, (&costs, scale), &pair, &self.processor.cpu)
    }

    /// As [`compute_on_device`](Self::compute_on_device) of several pairs of one size, which together fill the device
    /// better than one.
    ///
    /// Pairs of one type of pixel are computed together, others one after the other. Pairs of a cost that learns are
    /// computed one after the other too; learning from the next pair runs beside the work on the current one.
    ///
    /// # Errors
    /// As [`compute_on_device`](Self::compute_on_device).
    pub fn compute_batch_on_device(&self, pairs: &[[AnyGpuImage; 2]]) -> Result<Vec<GpuStereoResult>> {
        let pairs = self.device_pairs(pairs)?;
        let Some(cost) = self.together(&pairs)? else {
            let alone = |pair: &DevicePair| {
                let [left, right] = &pair.images;
                self.compute_on_device(left, right, Masks::default())
            };
            return pairs.iter().map(alone).collect();
        };
        self.stereo.with_plans(|cache| self.run(cache, &pairs, &cost, GpuStereoResult::of))
    }

    /// Puts the work for some pairs of one size and type of pixel into the device's queue and does not wait: what it
    /// takes by the device's clock, [`Gpu::seconds`] tells. The maps are not read.
    ///
    /// # Errors
    /// As [`compute_on_device`](Self::compute_on_device), and [`Error::Mismatch`] for several sizes or types of pixel, for pairs with and
    /// without colour of a cost that learns, and where [`compute_on_device`](Self::compute_on_device) learns on the
    /// host.
    pub fn enqueue(&self, pairs: &[[AnyGpuImage; 2]]) -> Result<()> {
        let pairs = self.device_pairs(pairs)?;
        let cost = self.together(&pairs)?.ok_or_else(|| {
            let expected = "pairs of one size and type of pixel, and a cost that the host need not learn";
            Error::Mismatch(format!("stereo in a device's queue: expected {expected}"))
        })?;
        self.stereo.with_plans(|cache| self.run(cache, &pairs, &cost, |_, _| Ok(())).map(drop))
    }

    /// Checked pairs without masks, all on this device.
    fn device_pairs(&self, pairs: &[[AnyGpuImage; 2]]) -> Result<Vec<DevicePair>> {
        let pair = |images: &[AnyGpuImage; 2]| {
            let pixels = PixelPair { images: images.each_ref().map(Pixels::from), masks: [None, None] };
            pixels.check_place(&self.gpu)?;
            pixels.on_device(&self.gpu)
        };
        pairs.iter().map(pair).collect()
    }

    /// The cost of pairs that one plan can compute; `None` if it cannot.
    fn together(&self, pairs: &[DevicePair]) -> Result<Option<GpuCost>> {
        let Some(first) = pairs.first() else { return Ok(None) };
        let colours = |pair: &DevicePair| are_colour(&self.gpu, pair.images.each_ref());
        // Known where what is learnt from depends on it. All pairs must then be like the first.
        let wanted = Cell::new(None);
        let of_first = || colours(first).inspect(|&found| wanted.set(Some(found)));
        let Some(cost) = self.stereo.whole(&self.gpu, first.shapes, of_first)? else { return Ok(None) };
        for pair in &pairs[1..] {
            let alike = (pair.size(), pair.shapes) == (first.size(), first.shapes);
            if !alike
                || wanted.get().map_or(Ok(false), |wanted| colours(pair).map(|found| found != wanted))?
            {
                return Ok(None);
            }
        }
        Ok(Some(cost))
    }

    /// Queues the work for pairs of one shape. After that of each, `done` is called with the number of the pair in the
    /// plan, whose maps the next pair may overwrite.
    fn run<R>(
        &self,
        cache: &mut PlanCache,
        pairs: &[DevicePair],
        cost: &GpuCost,
        done: impl Fn(&Plan, usize) -> Result<R>,
    ) -> Result<Vec<R>> {
        self.stereo.check_sums(cost.greatest, self.options().penalties())?;
        let first = pairs.first().ok_or_else(no_pair)?;
        let in_turn = cost.learner.is_some() && pairs.len() > 1;
        let shape = PlanShape {
            size: first.size(),
            pairs: if in_turn { 1 } else { pairs.len() },
            views: PlanViews::Pictures(first.shapes, cost.compares),
        };
        let (plan, _) = cache.prepare(&self.gpu, self.options(), (&shape, cost), 0, &self.processor.cpu)?;
        if in_turn {
            let (plan, double_buffer) = cache.double_buffer()?;
            let images: Vec<Vec<_>> = pairs.iter().map(|pair| pair.in_order().collect()).collect();
            let mut found = Vec::with_capacity(pairs.len());
            double_buffer.run(plan, &images, |_| done(plan, 0).map(|done| found.push(done)))?;
            return Ok(found);
        }
        let mut commands = Commands::new();
        for (i, pair) in pairs.iter().enumerate() {
            for (image, to) in pair.in_order().zip(&plan.inputs) {
                take(to, i, image, &mut commands)?;
            }
        }
        self.gpu.run(&commands)?;
        plan.run()?;
        (0..pairs.len()).map(|i| done(plan, i)).collect()
    }

    /// The maps of images that the host prepares.
    fn through_the_host(&self, cache: &mut PlanCache, pair: PixelPair<'_>) -> Result<GpuStereoResult> {
        let [left, right] = pair.images;
        let (left, right) = (left.into_host()?, right.into_host()?);
        let [left_mask, right_mask] = pair.masks;
        let masks =
            [left_mask.map(Pixels::into_host).transpose()?, right_mask.map(Pixels::into_host).transpose()?];
        let [left_mask, right_mask] = masks.each_ref().map(|mask| mask.as_ref().and_then(bytes_of));
        let masks = Masks { left: left_mask, right: right_mask };
        self.stereo.prepare([left.view(), right.view()], masks, &self.processor, |prepared| {
            self.stereo.check_sums(prepared.source.greatest(), prepared.penalties)?;
            let cost = GpuCost::of(prepared.source, &self.gpu)?;
            let input = PlanInput::ready(self.options(), prepared.pair, &cost);
            let plan = cache.send(&self.gpu, self.options(), (&input, &cost), &prepared.cpu)?;
            GpuStereoResult::of(plan, 0)
        })
    }
}

/// Fails if work takes more of a device's memory than the options allow.
pub(super) fn check_memory(
    gpu: &Gpu,
    options: &StereoOptions,
    what: &'static str,
    needed: u64,
) -> Result<()> {
    match options.device_memory {
        Some(limit) if needed > limit => {
            let shortage = Shortage::DeviceLimit { name: gpu.info().name.clone(), limit };
            Err(Error::Memory { what, needed, shortage })
        }
        Some(_) | None => Ok(()),
    }
}

fn no_pair() -> Error {
    Error::Mismatch("stereo of no pair".into())
}

/// Fails unless all lie in the host's memory or on this device.
fn check_place<'p, 'a: 'p>(gpu: &Gpu, images: impl IntoIterator<Item = &'p Pixels<'a>>) -> Result<()> {
    let elsewhere = |image: &&Pixels<'_>| match image {
        Pixels::Device(image) => !image.gpu().is(gpu),
        Pixels::Host(_) => false,
    };
    match images.into_iter().find(elsewhere) {
        Some(Pixels::Device(image)) => {
            Err(Error::Mismatch(format!("an image on {:?} for stereo on {gpu:?}", image.gpu())))
        }
        Some(Pixels::Host(_)) | None => Ok(()),
    }
}

/// A pair whose images lie in the host's memory or on a device.
#[derive(Clone, Debug)]
pub(super) struct PixelPair<'a> {
    images: [Pixels<'a>; 2],
    masks: [Option<Pixels<'a>>; 2],
}

impl<'a> PixelPair<'a> {
    pub(super) fn of_host(pair: [AnyView<'a>; 2], masks: Masks<'a>) -> Self {
        let mask = |mask: Option<ImageView<'a, u8>>| mask.map(|mask| Pixels::Host(AnyView::U8(mask)));
        Self { images: pair.map(Pixels::Host), masks: [masks.left, masks.right].map(mask) }
    }
}

impl PixelPair<'_> {
    fn check_place(&self, gpu: &Gpu) -> Result<()> {
        check_place(gpu, self.images.iter().chain(self.masks.iter().flatten()))
    }

    fn shapes(&self) -> Result<[PictureShape; 2]> {
        let picture = |image: &Pixels<'_>| (image.size(), image.channels(), image.pixel());
        let mask = |mask: &Option<Pixels<'_>>| mask.as_ref().map(|mask| (mask.size(), mask.channels()));
        PictureShape::of(self.images.each_ref().map(picture), self.masks.each_ref().map(mask))
    }

    fn are_colour(&self, gpu: &Gpu) -> Result<[bool; 2]> {
        let pair = self.on_device(gpu)?;
        are_colour(gpu, pair.images.each_ref())
    }

    fn on_device(&self, gpu: &Gpu) -> Result<DevicePair> {
        let [left, right] = &self.images;
        let [left_mask, right_mask] = &self.masks;
        let mask = |mask: &Option<Pixels<'_>>| mask.as_ref().map(|mask| on_device(mask, gpu)).transpose();
        Ok(DevicePair {
            shapes: self.shapes()?,
            images: [on_device(left, gpu)?, on_device(right, gpu)?],
            masks: [mask(left_mask)?, mask(right_mask)?],
        })
    }
}

fn on_device(image: &Pixels<'_>, gpu: &Gpu) -> Result<AnyGpuImage> {
    match image {
        Pixels::Host(view) => AnyGpuImage::upload(gpu, *view),
        Pixels::Device(image) => Ok(image.clone()),
    }
}

/// A pair on the device, whose images go together.
#[derive(Clone, Debug)]
struct DevicePair {
    shapes: [PictureShape; 2],
    images: [AnyGpuImage; 2],
    masks: [Option<AnyGpuImage>; 2],
}

impl DevicePair {
    fn size(&self) -> Size {
        self.images[0].size()
    }

    /// Its images in the order of a plan's inputs.
    fn in_order(&self) -> impl Iterator<Item = &AnyGpuImage> {
        self.images.iter().zip(&self.masks).flat_map(|(image, mask)| std::iter::once(image).chain(mask))
    }
}

/// A mask in the host's memory.
fn bytes_of<'a>(mask: &'a AnyCow<'_>) -> Option<ImageView<'a, u8>> {
    match mask.view() {
        AnyView::U8(mask) => Some(mask),
        AnyView::U16(_) | AnyView::F32(_) => None,
    }
}
