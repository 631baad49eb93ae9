//! Dense stereo on a device. The stages of a pair are one list of commands ([`plan`]); images go to the device and maps come
//! back beside the work on others ([`slot`]).

mod arrange;
mod bands;
mod flow;
pub(in crate::stereo) mod lanes;
mod plan;
mod slot;
#[cfg(test)]
mod tests;
mod worker;

pub(super) use bands::disparities as in_bands;
pub(super) use flow::Flow;
pub(super) use worker::Worker;

use super::{Masks, Stereo, StereoOptions, StereoResult, cost::CostSource};
use crate::{
    Error, Result,
    device::{
        Processor,
        gpu::{Commands, Gpu},
    },
    feature::gpu::Pixels,
    image::{
        AnyImage, AnyView, Image, ImageView, Size,
        gpu::{AnyGpuImage, GpuImage, GpuStack, PixelKind},
    },
};
use arrange::GpuArrange;
use plan::{Plan, Shape, ViewShape, ViewStacks};
use slot::reason;

/// What dense stereo finds, in a device's memory; as [`StereoResult`]. A clone is the same memory.
///
/// The maps are complete when the device's queue has come to the end of the call that gave them: later work in the queue
/// may read them at once.
#[derive(Clone, Debug)]
pub struct GpuStereoResult {
    /// Disparities of the left view in pixels, [`INVALID`](super::INVALID) where there is none.
    pub disparity: GpuImage<f32>,
    /// Disparities of the right view, if asked for.
    pub right: Option<GpuImage<f32>>,
    /// How distinct the best sum is, from 0 to 1, if asked for.
    pub confidence: Option<GpuImage<f32>>,
    /// If asked for, the number of the [`Reason`](super::Reason) why a pixel of the left view was made invalid.
    pub reasons: Option<GpuImage<u8>>,
}

impl GpuStereoResult {
    /// The maps, when the device has finished.
    ///
    /// # Errors
    /// [`Error::Device`] when it failed.
    pub fn download(&self) -> Result<StereoResult> {
        let float = |map: &GpuImage<f32>| map.download();
        let reasons = |map: &GpuImage<u8>| {
            let numbers = map.download()?;
            Image::from_vec(numbers.data().iter().map(|&n| reason(n)).collect(), numbers.size(), 1)
        };
        Ok(StereoResult {
            disparity: self.disparity.download()?,
            right: self.right.as_ref().map(float).transpose()?,
            confidence: self.confidence.as_ref().map(float).transpose()?,
            reasons: self.reasons.as_ref().map(reasons).transpose()?,
        })
    }

    /// Room for the maps of a plan.
    fn of(plan: &Plan) -> Result<Self> {
        fn room<T: tiepoint_gpu::Element>(map: &GpuStack<T>) -> Result<GpuImage<T>> {
            GpuImage::new(map.gpu(), map.size())
        }
        let maps = &plan.maps;
        Ok(Self {
            disparity: room(&maps.disparity)?,
            right: maps.right.as_ref().map(room).transpose()?,
            confidence: maps.confidence.as_ref().map(room).transpose()?,
            reasons: maps.reasons.as_ref().map(room).transpose()?,
        })
    }

    /// Puts the copying of the maps of pair `i` into a list.
    fn take(&self, plan: &Plan, i: usize, commands: &mut Commands) -> Result<()> {
        let maps = &plan.maps;
        let disparities = [(Some(&maps.disparity), Some(&self.disparity))];
        let others = [(&maps.right, &self.right), (&maps.confidence, &self.confidence)];
        let others = others.map(|(from, to)| (from.as_ref(), to.as_ref()));
        for (from, to) in disparities.into_iter().chain(others) {
            if let Some((from, to)) = from.zip(to) {
                commands.copy((from.buffer(), i * from.step()), (to.buffer(), 0), from.step())?;
            }
        }
        if let Some((from, to)) = maps.reasons.as_ref().zip(self.reasons.as_ref()) {
            commands.copy((from.buffer(), i * from.step()), (to.buffer(), 0), from.step())?;
        }
        Ok(())
    }
}

/// Dense stereo on a GPU whose images may lie there and whose maps may stay there. What it finds is what
/// [`Stereo`] finds, bit for bit.
///
/// The memory for pairs of one size is kept; for another size, another number of pairs or another type of pixel it is made
/// anew. Threads may share it: each call that runs beside others has memory of its own.
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
    /// Checks the options. Memory is taken with the first pair.
    ///
    /// # Errors
    /// As [`StereoOptions::check`], and [`Error::Device`] when the processor has no GPU.
    pub fn new(processor: &Processor, options: StereoOptions) -> Result<Self> {
        let gpu = processor.gpu.clone().ok_or_else(|| Error::Device {
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

    /// The disparities of a rectified pair. Images lie in the host's memory or on the device, masks in the host's.
    ///
    /// # Errors
    /// As [`Stereo::compute`]; [`Error::Mismatch`] when an image lies on another device; where the device is too small or
    /// lacks a feature the error says so: see [`Error::is_device_limit`].
    pub fn compute<'a>(
        &self,
        left: impl Into<Pixels<'a>>,
        right: impl Into<Pixels<'a>>,
        masks: Masks<'_>,
    ) -> Result<StereoResult> {
        self.compute_on_device(left, right, masks)?.download()
    }

    /// As [`compute`](Self::compute), and leaves the maps on the device, whose queue has the work but may not have done
    /// it yet.
    ///
    /// Grey images of 8 bits that lie on the device never leave it, but for costs that learn from the pair. Others, and
    /// colour, pass through the host, which makes them grey.
    ///
    /// # Errors
    /// As [`compute`](Self::compute).
    pub fn compute_on_device<'a>(
        &self,
        left: impl Into<Pixels<'a>>,
        right: impl Into<Pixels<'a>>,
        masks: Masks<'_>,
    ) -> Result<GpuStereoResult> {
        let pair = [left.into(), right.into()];
        pair.iter().try_for_each(|image| self.check_place(image))?;
        self.stereo.on_gpu.with(
            || Ok(Worker::default()),
            |worker| match self.direct(&[pair.each_ref()], masks) {
                Some((images, source)) => {
                    let plan = self.take_direct(worker, &images, masks, &*source)?;
                    self.gpu.run(&plan.commands)?;
                    self.kept(plan, 0)
                }
                None => self.through_the_host(worker, &pair, masks),
            },
        )
    }

    /// As [`compute_on_device`](Self::compute_on_device) of several pairs of one size, which together fill the device better than one.
    ///
    /// Grey images of 8 bits on the device are computed together; others one pair after the other.
    ///
    /// # Errors
    /// As [`compute`](Self::compute).
    pub fn compute_batch_on_device(&self, pairs: &[[AnyGpuImage; 2]]) -> Result<Vec<GpuStereoResult>> {
        let pixels: Vec<[Pixels<'_>; 2]> =
            pairs.iter().map(|pair| pair.each_ref().map(Pixels::from)).collect();
        pixels.iter().flatten().try_for_each(|image| self.check_place(image))?;
        let views: Vec<[&Pixels<'_>; 2]> = pixels.iter().map(<[_; 2]>::each_ref).collect();
        let Some((images, source)) = self.direct(&views, Masks::default()) else {
            let alone =
                |[left, right]: &[AnyGpuImage; 2]| self.compute_on_device(left, right, Masks::default());
            return pairs.iter().map(alone).collect();
        };
        self.stereo.on_gpu.with(
            || Ok(Worker::default()),
            |worker| {
                let plan = self.take_direct(worker, &images, Masks::default(), &*source)?;
                self.gpu.run(&plan.commands)?;
                (0..images.len()).map(|i| self.kept(plan, i)).collect()
            },
        )
    }

    /// Puts the work for some pairs of grey images of 8 bits, of one size, into the device's queue and does not wait: what
    /// it takes by the device's clock, [`Gpu::seconds`] tells. The maps are not read.
    ///
    /// # Errors
    /// As [`compute`](Self::compute), and [`Error::Mismatch`] for other images, several sizes or a cost that learns from
    /// the pair.
    pub fn enqueue(&self, pairs: &[[AnyGpuImage; 2]]) -> Result<()> {
        let pixels: Vec<[Pixels<'_>; 2]> =
            pairs.iter().map(|pair| pair.each_ref().map(Pixels::from)).collect();
        pixels.iter().flatten().try_for_each(|image| self.check_place(image))?;
        let views: Vec<[&Pixels<'_>; 2]> = pixels.iter().map(<[_; 2]>::each_ref).collect();
        let (images, source) = self.direct(&views, Masks::default()).ok_or_else(|| {
            let expected =
                "grey images of 8 bits and of one size, and a cost that does not learn from the pair";
            Error::Mismatch(format!("stereo in a device's queue: expected {expected}"))
        })?;
        self.stereo.on_gpu.with(
            || Ok(Worker::default()),
            |worker| {
                let plan = self.take_direct(worker, &images, Masks::default(), &*source)?;
                Ok(self.gpu.run(&plan.commands)?)
            },
        )
    }

    /// Fails unless an image lies in the host's memory or on this device.
    fn check_place(&self, image: &Pixels<'_>) -> Result<()> {
        match image {
            Pixels::Device(image) if !image.gpu().is(&self.gpu) => {
                Err(Error::Mismatch(format!("an image on {:?} for stereo on {:?}", image.gpu(), self.gpu)))
            }
            Pixels::Device(_) | Pixels::Host(_) => Ok(()),
        }
    }

    /// The images of pairs that need no conversion and lie on the device, and what computes their cost; `None` where the
    /// host must make the pairs ready.
    fn direct<'p>(&self, pairs: &[[&'p Pixels<'_>; 2]], masks: Masks<'_>) -> Option<Direct<'p>> {
        let grey = |image: &&'p Pixels<'_>| match image {
            Pixels::Device(AnyGpuImage::U8(image)) if image.channels() == 1 => Some(image),
            Pixels::Device(_) | Pixels::Host(_) => None,
        };
        let both = |[left, right]: &[&'p Pixels<'_>; 2]| Some([grey(left)?, grey(right)?]);
        let images: Vec<[&GpuImage<u8>; 2]> = pairs.iter().map(both).collect::<Option<_>>()?;
        let size = images.first()?[0].size();
        let fits = |size_of: Size| size_of == size;
        let masks_fit = [masks.left, masks.right].iter().flatten().all(|mask| fits(mask.size()));
        let images_fit = images.iter().flatten().all(|image| fits(image.size()));
        let source = self.options().cost.definition().known(1)?;
        (images_fit && masks_fit).then_some((images, source))
    }

    /// A plan that has been given images on the device.
    fn take_direct<'w>(
        &self,
        worker: &'w mut Worker,
        images: &[[&GpuImage<u8>; 2]],
        masks: Masks<'_>,
        source: &dyn CostSource,
    ) -> Result<&'w Plan> {
        self.stereo.check_sums(source.greatest(), self.options().penalties())?;
        let masks = [masks.left, masks.right];
        let views = masks.map(|mask| ViewShape {
            grey: PixelKind::U8,
            compared: None,
            masked: mask.is_some(),
            rounding: 0,
        });
        let size = images.first().map_or_else(Size::default, |[left, _]| left.size());
        let shape = Shape { size, pairs: images.len(), views };
        let (plan, _) = worker.prepare(&self.gpu, self.options(), (&shape, source), 0)?;
        let (arrange, mut commands) = (GpuArrange::new(&self.gpu)?, Commands::new());
        for (i, pair) in images.iter().enumerate() {
            for (image, view) in pair.iter().zip(&plan.views) {
                let from = GpuStack::of(image, &mut commands)?;
                arrange.copy(&mut commands, &from, (&view.bytes, i))?;
            }
        }
        for (mask, view) in masks.into_iter().zip(&plan.views) {
            self.take_mask(&arrange, &mut commands, mask, view)?;
        }
        self.gpu.run(&commands)?;
        Ok(plan)
    }

    fn take_mask(
        &self,
        arrange: &GpuArrange<u8>,
        commands: &mut Commands,
        mask: Option<ImageView<'_, u8>>,
        view: &ViewStacks,
    ) -> Result<()> {
        let Some((mask, to)) = mask.zip(view.mask.as_ref()) else { return Ok(()) };
        arrange.copy(commands, &GpuStack::upload(&self.gpu, &[mask])?, (to, 0))
    }

    /// The maps of images that the host makes ready.
    fn through_the_host(
        &self,
        worker: &mut Worker,
        pair: &[Pixels<'_>; 2],
        masks: Masks<'_>,
    ) -> Result<GpuStereoResult> {
        let [mut left, mut right] = [None, None];
        let [left, right] = [on_host(&pair[0], &mut left)?, on_host(&pair[1], &mut right)?];
        self.stereo.prepare([left, right], masks, &self.processor, |prepared| {
            self.stereo.check_sums(prepared.source.greatest(), prepared.penalties)?;
            let plan =
                worker.send(&self.gpu, self.options(), (prepared.pair, prepared.source), &prepared.cpu)?;
            self.kept(plan, 0)
        })
    }

    /// Copies of the maps of pair `i`.
    fn kept(&self, plan: &Plan, i: usize) -> Result<GpuStereoResult> {
        let (result, mut commands) = (GpuStereoResult::of(plan)?, Commands::new());
        result.take(plan, i, &mut commands)?;
        self.gpu.run(&commands)?;
        Ok(result)
    }
}

/// The images of pairs that need no conversion, and what computes their cost.
type Direct<'p> = (Vec<[&'p GpuImage<u8>; 2]>, Box<dyn CostSource>);

/// The image in the host's memory; what lies on a device is read into `read`.
fn on_host<'a>(image: &'a Pixels<'_>, read: &'a mut Option<AnyImage>) -> Result<AnyView<'a>> {
    match image {
        Pixels::Host(view) => Ok(*view),
        Pixels::Device(image) => Ok((&*read.insert(image.download()?)).into()),
    }
}
