//! A detector on a GPU: the code shared by SIFT and SURF.

use super::batch::AT_A_TIME;
use super::pipeline::{Core, Parts, Pipeline, is_of_memory};
use super::search::Search;
use super::{FoundFeatures, GpuFeatures};
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor, Scratch};
use crate::feature::Features;
use crate::image::check_mask;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::{AnyView, ImageView, PixelKind, Pixels, Size};
use crate::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A detector on a GPU, [`GpuSift`](crate::feature::sift::GpuSift) or [`GpuSurf`](crate::feature::surf::GpuSurf). Its
/// features are those of the CPU, bit for bit.
///
/// The memory for images of one size is kept; for another size, another number of images or another type of pixel it is
/// allocated anew. Threads may share a detector: searches that run at the same time each have their own memory.
#[derive(Debug)]
pub struct GpuDetector<P: Pipeline> {
    pub(crate) core: Arc<Core<P>>,
    pub(crate) idle: Scratch<Search<P>>,
    launches: AtomicUsize,
    parts: AtomicUsize,
}

impl<P: Pipeline> GpuDetector<P> {
    /// A detector with these options on the GPU of a processor, whose CPU copies images and results.
    ///
    /// # Errors
    /// [`Error::Option`] when an option is out of range, [`Error::Device`] when the processor has no GPU or it refuses
    /// the kernels.
    pub fn new(processor: &Processor, options: P::Options) -> Result<Self> {
        let gpu = processor.gpu().ok_or_else(|| Error::Device {
            device: "cpu".into(),
            reason: format!("{} on a GPU needs a processor with one", P::NAME),
        })?;
        Self::on(gpu, &processor.cpu, options)
    }

    pub(crate) fn on(gpu: &Gpu, cpu: &Cpu, options: P::Options) -> Result<Self> {
        Ok(Self {
            core: Arc::new(Core::new(gpu, cpu, options)?),
            idle: Scratch::default(),
            launches: AtomicUsize::new(0),
            parts: AtomicUsize::new(1),
        })
    }

    /// Limits the device memory of a search to this many bytes, not counting the caller's own memory there. SIFT
    /// searches an image that needs more in bands of rows, with the same result. Use it if the device is shared:
    /// without a limit a search may take all free memory.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        self.with(|core| core.limit = Some(bytes))
    }

    /// Makes room for this many features of an image at first, 1 to 2²⁶, instead of a number estimated from its size.
    /// The room grows if there are more.
    #[must_use]
    pub fn with_capacity(self, features: usize) -> Self {
        self.with(|core| core.capacity = features.clamp(1, 1 << 26))
    }

    fn with(mut self, change: impl FnOnce(&mut Core<P>)) -> Self {
        // Besides `self` only idle searches share the core; once they are dropped it can be changed.
        self.idle = Scratch::default();
        if let Some(core) = Arc::get_mut(&mut self.core) {
            change(core);
        }
        self
    }

    /// Finds the features of one grey image; none where `mask` is 0.
    ///
    /// # Errors
    /// [`Error::Image`] when the image is empty, too large for the detector or has several channels,
    /// [`Error::Mismatch`] when the mask has another size or the image lies on another device, [`Error::Device`] when
    /// the device fails, [`Error::Memory`] when its memory or the limit that was set is too small, for SIFT even for
    /// bands.
    pub fn detect<'a>(
        &self,
        image: impl Into<Pixels<'a>>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<Features> {
        self.search_one(&image.into(), mask, Search::detect)
    }

    /// Finds the features of several grey images of one size and one type of pixel, which together fill the device
    /// better than one. While some are searched, others are copied from the host's memory to the device, and features
    /// are copied back.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Mismatch`] when sizes or types of pixel differ.
    pub fn detect_batch<'a, I>(&self, images: I) -> Result<Vec<Features>>
    where
        I: IntoIterator,
        I::Item: Into<Pixels<'a>>,
    {
        self.detect_at_a_time(images, AT_A_TIME)
    }

    /// As [`detect_batch`](Self::detect_batch), `pixels` at a time.
    pub(crate) fn detect_at_a_time<'a, I>(&self, images: I, pixels: usize) -> Result<Vec<Features>>
    where
        I: IntoIterator,
        I::Item: Into<Pixels<'a>>,
    {
        let found = self.batch(&self.checked(images)?, (pixels, false))?;
        Ok(found.into_iter().map(|found| found.features).collect())
    }

    /// As [`detect_batch`](Self::detect_batch), one image at a time. The features also stay on the device if there is
    /// memory for the whole search.
    pub(crate) fn detect_and_keep_batch(&self, images: &[AnyView<'_>]) -> Result<Vec<FoundFeatures>> {
        self.batch(&self.checked(images.iter().copied())?, (0, true))
    }

    /// Images together, with `keep` so that features also stay on the device; one by one where there is too little memory.
    fn batch(&self, images: &[Pixels<'_>], (pixels, keep): (usize, bool)) -> Result<Vec<FoundFeatures>> {
        let alone = |search: &mut Search<P>, image| match keep {
            true => search.detect_and_keep(image, None),
            false => search.detect(image, None).map(Into::into),
        };
        match self.search(|search| search.detect_batch(images, (pixels, keep))) {
            Err(refused) if is_of_memory(&refused) => {
                self.search(|search| images.iter().map(|image| alone(search, image)).collect())
            }
            found => found,
        }
    }

    /// As [`detect`](Self::detect). The features also stay on the device if there is memory for the whole search.
    pub(crate) fn detect_and_keep(
        &self,
        image: AnyView<'_>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<FoundFeatures> {
        self.search_one(&image.into(), mask, Search::detect_and_keep)
    }

    /// Reserves memory of the device and the host for two images of this shape without masks, while the caller does
    /// something else.
    pub(crate) fn reserve_for_two(&self, size: Size, pixel: PixelKind) -> Result<()> {
        self.search(|search| search.reserve_for_two(size, pixel))
    }

    /// Finds the features of one grey image and leaves them on the device. An image that lies there is not copied to
    /// the host; SIFT does not copy it on the device either.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn detect_on_device<'a, 'm>(
        &self,
        image: impl Into<Pixels<'a>>,
        mask: Option<Pixels<'m>>,
    ) -> Result<GpuFeatures> {
        self.search_one(&image.into(), mask, Search::detect_on_device)
    }

    /// Queues the search of some grey images of one size and does not wait;
    /// [`Gpu::seconds`](crate::device::gpu::Gpu::seconds) measures it by the device's clock. The features are not
    /// read. Images too large for the memory are refused.
    ///
    /// # Errors
    /// As [`detect_batch`](Self::detect_batch), and [`Error::Image`] when there is no image.
    pub fn enqueue(&self, images: &[AnyGpuImage], mask: Option<ImageView<'_, u8>>) -> Result<()> {
        let all = self.checked(images)?;
        let mask = self.mask_on_device(mask, all.first().map_or_else(Size::default, Pixels::size))?;
        self.search(|search| search.enqueue(images, mask.as_ref()))
    }

    /// Takes back features of any image that are no longer needed, and reuses their memory for the next. This helps
    /// with many images in a row, because new memory can take more time than the search.
    pub fn recycle(&self, features: impl IntoIterator<Item = Features>) {
        self.core.recycled.put(features);
    }

    /// The number of kernels that the last search launched.
    pub fn launches(&self) -> usize {
        self.launches.load(Ordering::Relaxed)
    }

    /// The number of parts in which the last image was searched; 1 means as a whole.
    pub fn parts(&self) -> usize {
        self.parts.load(Ordering::Relaxed)
    }

    /// Fails unless the images can be searched together.
    fn checked<'a>(&self, images: impl IntoIterator<Item: Into<Pixels<'a>>>) -> Result<Vec<Pixels<'a>>> {
        let images: Vec<Pixels<'a>> = images.into_iter().map(Into::into).collect();
        for image in &images {
            image.require_grey_on(&self.core.gpu)?;
            images[0].goes_with(image)?;
        }
        Ok(images)
    }

    fn search_one<'m, R>(
        &self,
        image: &Pixels<'_>,
        mask: Option<impl Into<Pixels<'m>>>,
        run: impl FnOnce(&mut Search<P>, &Pixels<'_>, Option<&GpuImage<u8>>) -> Result<R>,
    ) -> Result<R> {
        image.require_grey_on(&self.core.gpu)?;
        let mask = self.mask_on_device(mask, image.size())?;
        self.search(|search| run(search, image, mask.as_ref()))
    }

    fn search<R>(&self, run: impl FnOnce(&mut Search<P>) -> Result<R>) -> Result<R> {
        self.idle.with(
            || Search::new(self.core.clone()),
            |search| {
                let result = run(search)?;
                let launches = search.pipeline.as_ref().map_or(0, Pipeline::launches);
                self.launches.store(launches, Ordering::Relaxed);
                self.parts.store(search.parts.as_ref().map_or(1, |parts| parts.count()), Ordering::Relaxed);
                Ok(result)
            },
        )
    }

    fn mask_on_device<'m>(
        &self,
        mask: Option<impl Into<Pixels<'m>>>,
        size: Size,
    ) -> Result<Option<GpuImage<u8>>> {
        let Some(mask) = mask.map(Into::into) else { return Ok(None) };
        match mask {
            Pixels::Host(AnyView::U8(view)) => {
                check_mask(Some(view), size)?;
                GpuImage::upload(&self.core.gpu, view).map(Some)
            }
            Pixels::Device(AnyGpuImage::U8(mask)) if mask.channels() == 1 => match mask.size() == size {
                true => Ok(Some(mask)),
                false => Err(Error::Mismatch(format!("the mask is {} and the image {size}", mask.size()))),
            },
            other => Err(Error::Mismatch(format!(
                "a mask of {} channels of {:?}: one of 8 bits is needed",
                other.channels(),
                other.pixel()
            ))),
        }
    }
}
