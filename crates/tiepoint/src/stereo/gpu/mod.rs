//! Dense stereo on a device. The stages of a pair are one list of commands ([`plan`]). While the device computes some
//! pairs, images of later pairs are copied to it, maps of earlier ones are copied back, and a cost that learns does so
//! from the next pair ([`slot`]).

mod bands;
pub(crate) mod dense;
mod flow;
pub(in crate::stereo) mod lanes;
pub(in crate::stereo) mod matching;
mod plan;
mod plan_cache;
mod slot;
#[cfg(test)]
mod tests;

pub(super) use bands::disparities as in_bands;
pub(super) use flow::{Flow, StreamResult};
pub(super) use plan::{PlanInput, PlanViews, Work};
pub(super) use plan_cache::PlanCache;

use super::cost::gpu::{GpuCost, OF_VOLUME};
use super::cost::require_volume;
use super::cost::volume::gpu::GpuVolume;
use super::pair::Pictures;
use super::pair::gpu::{PictureShape, are_colour, take};
use super::{GpuStereoResult, Masks, Stereo, StereoOptions, StereoResult};
use crate::device::gpu::{Commands, Gpu};
use crate::device::{Cpu, Processor};
use crate::error::Shortage;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::{AnyView, Image, PixelKind, Pixels};
use crate::{Error, Result};
use plan::{Plan, PlanShape};
use slot::reason;
use std::cell::RefCell;
use std::iter::once;

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

    /// Computes the maps of a pair on the device with a plan for one pair.
    fn of(plan: &Plan, pair: &PixelPair<'_>) -> Result<Self> {
        let mut commands = Commands::new();
        let images = pair.images.iter().zip(&pair.masks).flat_map(|(image, mask)| once(image).chain(mask));
        for (image, to) in images.zip(&plan.inputs) {
            take(to, 0, &on_device(image, &plan.gpu)?, &mut commands)?;
        }
        plan.gpu.run(&commands)?;
        plan.run()?;
        Self::copied(plan)
    }

    /// Copies of the maps of a plan for one pair, made in the device's queue.
    fn copied(plan: &Plan) -> Result<Self> {
        let commands = &RefCell::new(Commands::new());
        let maps = plan.maps.try_map(
            |map| map.copy_of(0, &mut commands.borrow_mut()),
            |map| map.copy_of(0, &mut commands.borrow_mut()),
        )?;
        plan.gpu.run(&commands.borrow())?;
        Ok(maps)
    }
}

impl Stereo {
    /// As [`compute`](Self::compute) on the processor's GPU, for images and masks in the host's memory or on the
    /// device; the maps stay on the device. The work is queued and may not be finished when the call returns.
    ///
    /// Images on the device, of every type of pixel and 1 to 4 channels, never leave it, except for [mutual
    /// information](super::Cost::MutualInformation) on a device without `f64`, where the host learns. For pictures with
    /// three channels that cost first tests on the device whether they have colour, and waits for the result.
    ///
    /// The memory for pairs of one size is kept; for another size or another type of pixel it is allocated anew.
    ///
    /// ```no_run
    /// use tiepoint::device::Device;
    /// use tiepoint::image::{Image, Size, gpu::GpuImage};
    /// use tiepoint::stereo::{Masks, Stereo, StereoOptions};
    ///
    /// let processor = Device::Cuda(0).open(4)?;
    /// let gpu = processor.gpu().expect("named alone");
    /// let stereo = Stereo::new(StereoOptions::default())?;
    /// let image = Image::<u8>::new(Size::new(640, 480));
    /// let left = GpuImage::upload(gpu, image.view())?;
    /// let right = GpuImage::upload(gpu, image.view())?;
    /// let maps = stereo.compute_on_device(&left, &right, Masks::default(), &processor)?;
    /// let found = maps.download()?;
    /// # Ok::<(), tiepoint::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`compute`](Self::compute); [`Error::Device`] when the processor has no GPU; [`Error::Mismatch`] when an image
    /// lies on another device; an error for which [`Error::is_device_limit`] holds when the device is too small or
    /// lacks a feature.
    pub fn compute_on_device<'a>(
        &self,
        left: impl Into<Pixels<'a>>,
        right: impl Into<Pixels<'a>>,
        masks: impl Into<[Option<Pixels<'a>>; 2]>,
        processor: &Processor,
    ) -> Result<GpuStereoResult> {
        let gpu = gpu_of(processor)?;
        let pair = PixelPair::new([left.into(), right.into()], masks.into())?;
        pair.check_place(gpu, None)?;
        let shapes = pair.shapes()?;
        let [left, right] = &pair.images;
        let are_colour = || are_colour(gpu, [&on_device(left, gpu)?, &on_device(right, gpu)?]);
        let Some(cost) = self.whole(gpu, shapes, are_colour)? else {
            return self.through_the_host(pair, gpu, processor);
        };
        self.options.check_sums(cost.greatest)?;
        let views = PlanViews::Pictures(shapes, cost.compares);
        let shape = PlanShape { size: left.size(), pairs: 1, views };
        self.with_plans(|cache| {
            let work = Work { gpu, options: &self.options, cost: &cost, cpu: &processor.cpu };
            let (plan, _) = cache.prepare(work, &shape, 0)?;
            GpuStereoResult::of(plan, &pair)
        })
    }

    /// As [`optimize`](Self::optimize) on the processor's GPU, with costs, images and masks in the host's memory or on
    /// the GPU, where costs are read in place; the maps stay on the device.
    ///
    /// # Errors
    /// As [`optimize`](Self::optimize) and [`compute_on_device`](Self::compute_on_device).
    pub fn optimize_on_device<'a>(
        &self,
        (costs, scale): (impl Into<Pixels<'a>>, Option<f32>),
        pair: [Pixels<'a>; 2],
        masks: impl Into<[Option<Pixels<'a>>; 2]>,
        processor: &Processor,
    ) -> Result<GpuStereoResult> {
        let gpu = gpu_of(processor)?;
        let (costs, pair) = (costs.into(), PixelPair::new(pair, masks.into())?);
        pair.check_place(gpu, Some(&costs))?;
        self.optimize_on(gpu, (&on_device(&costs, gpu)?, scale), pair, &processor.cpu)
    }

    /// The maps of a pair with the costs of a volume, scaled as in [`optimize`](Self::optimize).
    ///
    /// Each volume needs a new plan, because its penalties and the width of its sums follow from its costs; the device
    /// keeps programs and memory.
    pub(super) fn optimize_on(
        &self,
        gpu: &Gpu,
        (costs, scale): (&AnyGpuImage, Option<f32>),
        mut pair: PixelPair<'_>,
        cpu: &Cpu,
    ) -> Result<GpuStereoResult> {
        let (mut shapes, size) = (pair.shapes()?, pair.images[0].size());
        require_volume((costs.size(), costs.channels()), size, &self.options)?;
        let cpu = cpu.begin_task("stereo", size.area());
        let given = pair.masks[0].as_ref().map(|mask| on_device(mask, gpu)).transpose()?;
        let (volume, known) = GpuVolume::new(costs, scale, given.as_ref())?;
        pair.masks[0] = known.map(AnyGpuImage::from).or(given).map(Pixels::Device);
        shapes[0].masked = pair.masks[0].is_some();
        let options = self.options_for_given(volume.scaling.penalties())?;
        options.check_sums(volume.scaling.greatest)?;
        let cost = GpuCost::new(OF_VOLUME, None, volume.scaling.greatest);
        let cost = GpuCost { volume: Some(volume), ..cost };
        let shape = PlanShape { size, pairs: 1, views: PlanViews::Pictures(shapes, cost.compares) };
        let plan = Plan::new(Work { gpu, options: &options, cost: &cost, cpu: &cpu }, shape)?;
        let maps = GpuStereoResult::of(&plan, &pair)?;
        cpu.advance(size.area());
        Ok(maps)
    }

    /// Computes the maps of images that the host prepares.
    fn through_the_host(
        &self,
        pair: PixelPair<'_>,
        gpu: &Gpu,
        processor: &Processor,
    ) -> Result<GpuStereoResult> {
        let PixelPair { images: [left, right], masks: [left_mask, right_mask] } = pair;
        let (left, right) = (left.into_host()?, right.into_host()?);
        let masks =
            [left_mask.map(Pixels::into_host).transpose()?, right_mask.map(Pixels::into_host).transpose()?];
        let [left_mask, right_mask] = masks.each_ref().map(|mask| match mask.as_ref()?.view() {
            AnyView::U8(mask) => Some(mask),
            AnyView::U16(_) | AnyView::F32(_) => None,
        });
        let masks = Masks { left: left_mask, right: right_mask };
        self.prepare(&Pictures::new([left.view(), right.view()], masks)?, processor, |prepared| {
            prepared.options.check_sums(prepared.source.greatest())?;
            let cost = GpuCost::of(prepared.source);
            let input = PlanInput::ready(&self.options, prepared.pair, &cost);
            self.with_plans(|cache| {
                let work = Work { gpu, options: &self.options, cost: &cost, cpu: &prepared.cpu };
                GpuStereoResult::copied(cache.send(work, &input)?)
            })
        })
    }
}

fn gpu_of(processor: &Processor) -> Result<&Gpu> {
    processor.gpu().ok_or_else(|| Error::Device {
        device: "cpu".into(),
        reason: "stereo on a GPU needs a processor with one".into(),
    })
}

/// Fails if work takes more of a device's memory than the options allow.
pub(super) fn check_memory(
    gpu: &Gpu,
    options: &StereoOptions,
    what: &'static str,
    needed: u64,
) -> Result<()> {
    if let Some(limit) = options.device_memory.filter(|limit| needed > *limit) {
        let shortage = Shortage::DeviceLimit { name: gpu.info().name.clone(), limit };
        return Err(Error::Memory { what, needed, shortage });
    }
    Ok(())
}

/// A pair whose images lie in the host's memory or on a device.
#[derive(Clone, Debug)]
pub(super) struct PixelPair<'a> {
    images: [Pixels<'a>; 2],
    masks: [Option<Pixels<'a>>; 2],
}

impl<'a> PixelPair<'a> {
    /// Fails for a mask that is not one channel of 8 bits.
    pub(super) fn new(images: [Pixels<'a>; 2], masks: [Option<Pixels<'a>>; 2]) -> Result<Self> {
        match masks.iter().flatten().find(|m| (m.pixel(), m.channels()) != (PixelKind::U8, 1)) {
            Some(other) => Err(Error::Mismatch(format!(
                "a mask of {} channels of {:?}: expected one channel of 8 bits",
                other.channels(),
                other.pixel()
            ))),
            None => Ok(Self { images, masks }),
        }
    }

    /// Fails unless images, masks and a volume of costs lie in the host's memory or on this device.
    fn check_place(&self, gpu: &Gpu, costs: Option<&Pixels<'_>>) -> Result<()> {
        for image in self.images.iter().chain(self.masks.iter().flatten()).chain(costs) {
            if let Pixels::Device(image) = image
                && !image.gpu().is(gpu)
            {
                return Err(Error::Mismatch(format!("an image on {:?} for stereo on {gpu:?}", image.gpu())));
            }
        }
        Ok(())
    }

    fn shapes(&self) -> Result<[PictureShape; 2]> {
        let picture = |image: &Pixels<'_>| (image.size(), image.channels(), image.pixel());
        let mask = |mask: &Option<Pixels<'_>>| mask.as_ref().map(|mask| (mask.size(), mask.channels()));
        PictureShape::of(self.images.each_ref().map(picture), self.masks.each_ref().map(mask))
    }
}

fn on_device(image: &Pixels<'_>, gpu: &Gpu) -> Result<AnyGpuImage> {
    match image {
        Pixels::Host(view) => AnyGpuImage::upload(gpu, *view),
        Pixels::Device(image) => Ok(image.clone()),
    }
}

impl<'a> From<Masks<'a>> for [Option<Pixels<'a>>; 2] {
    fn from(Masks { left, right }: Masks<'a>) -> Self {
        [left, right].map(|mask| mask.map(|mask| Pixels::Host(AnyView::U8(mask))))
    }
}
