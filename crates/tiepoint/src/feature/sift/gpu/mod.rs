//! SIFT on a GPU: the stages of the CPU with their names and their bits.
//!
//! From the image to the descriptors nothing waits for the host: every stage counts what it finds on the device, and
//! all launches but the first, which reads the image, are one graph. Many images are described a few at a time, and the
//! features of some are on their way to the host while others are described. Lists have room for as many features as
//! photographs give; when there are more, which the host sees at the end, the lists grow and the image is searched
//! again. An image too large for the memory is searched in [`bands`] of rows.

mod bands;
#[cfg(test)]
pub(crate) mod bisect;
#[cfg(test)]
mod detect_tests;
mod pipeline;
pub(crate) mod plan;
#[cfg(test)]
mod tests;

use super::SiftOptions;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::feature::gpu::{Feed, GpuFeatures, Results, Search, nothing, same_size, size_of_all};
use crate::feature::select::Selection;
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{ImageView, Size};
use crate::{Error, Result};
use bands::{Bands, Pixels};
use pipeline::{Purpose, Stages, Work};
use plan::Plan;
use std::any::Any;
use std::slice;

/// A SIFT detector on a GPU. Its features are those of [`super::Sift`], bit for bit.
///
/// The memory for images of one size is kept; for another size, another number of images or another type of pixel it
/// is made anew. It is about 4 · (levels + 3) · 4/3 bytes for every pixel of the first octave: 32 for a pixel of an
/// image that is not doubled, 128 for one that is. An image for which there is no such memory is searched in bands of
/// rows, with the same result: [`parts`](Self::parts) tells how many. The narrower they are, the more is computed twice:
/// of 400 megapixels, doubled, a fifth with 16 bytes a pixel and as much again with 8; with less than 6 it is refused.
///
/// ```no_run
/// use tiepoint::device::gpu::{Api, Gpu};
/// use tiepoint::feature::sift::{GpuSift, SiftOptions};
/// use tiepoint::image::gpu::GpuImage;
/// use tiepoint::image::{Image, Size};
/// let gpu = Gpu::open(Api::Cuda, 0)?;
/// let mut sift = GpuSift::new(&gpu, SiftOptions::default())?;
/// let image = Image::<u8>::new(Size::new(1920, 1080));
/// let features = sift.detect(&GpuImage::upload(&gpu, image.view())?, None)?;
/// println!("{} features", features.len());
/// # Ok::<(), tiepoint::Error>(())
/// ```
#[derive(Debug)]
pub struct GpuSift {
    gpu: Gpu,
    options: SiftOptions,
    stages: Stages,
    /// Whose threads bring the results to the host.
    cpu: Cpu,
    /// Room for features of an image, where the usual has proved too small.
    capacity: usize,
    /// Bytes of the device's memory that may be taken.
    limit: Option<u64>,
    /// The mask that the work reads.
    mask: Option<GpuImage<u8>>,
    work: Option<Work>,
    /// For images whose whole work the device had no memory for.
    bands: Option<Box<Bands>>,
    results: Results,
    /// The [`Staging`] of images that came from the host.
    input: Option<Box<dyn Any + Send + Sync>>,
    /// The [`Feed`] of many such.
    feed: Option<Box<dyn Any + Send + Sync>>,
}

impl GpuSift {
    /// A detector with these options.
    ///
    /// # Errors
    /// [`Error::Option`] when an option is out of range, [`Error::Device`] when the device refuses the kernels.
    pub fn new(gpu: &Gpu, options: SiftOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            gpu: gpu.clone(),
            options,
            stages: Stages::new(gpu, options)?,
            cpu: Cpu::sequential(),
            capacity: 0,
            limit: None,
            mask: None,
            work: None,
            bands: None,
            results: Results::new(gpu)?,
            input: None,
            feed: None,
        })
    }

    /// Takes the threads of this CPU to bring the results of a batch to the host, instead of the calling one alone.
    #[must_use]
    pub fn with_cpu(self, cpu: &Cpu) -> Self {
        Self { cpu: cpu.clone(), ..self }
    }

    /// Takes at most this many bytes of the device's memory for work and image, what the caller has put there aside: an
    /// image that needs more is searched in bands of rows, with the same result. For a device that is shared; without a
    /// limit all that is free may be taken.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        Self { limit: Some(bytes), work: None, bands: None, ..self }
    }

    /// The options.
    pub fn options(&self) -> &SiftOptions {
        &self.options
    }

    /// Finds the features of one grey image, as [`super::Sift::detect`] does.
    ///
    /// # Errors
    /// [`Error::Image`] when the image has several channels, [`Error::Mismatch`] when the mask has another size,
    /// [`Error::Device`] when the device fails, [`Error::Memory`] when its memory is too small even for bands, or
    /// [`Error::Memory`] when the limit that was set is.
    pub fn detect<T: GpuPixel>(
        &mut self,
        image: &GpuImage<T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Features> {
        check(slice::from_ref(image), mask)?;
        self.whole_or_bands(Pixels::Device(image), mask)
    }

    /// Finds the features of an image that lies in the host's memory.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Image`] when the image has no pixels.
    pub fn detect_view<T: GpuPixel>(
        &mut self,
        image: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<Features> {
        image.require_grey()?;
        let mask = mask.map(|mask| GpuImage::upload(&self.gpu, mask)).transpose()?;
        check_mask(image.size(), mask.as_ref())?;
        self.whole_or_bands(Pixels::Host(image), mask.as_ref())
    }

    /// Finds the features of several grey images of one size, which together fill the device better than one.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Mismatch`] when the sizes differ.
    pub fn detect_batch<T: GpuPixel>(&mut self, images: &[GpuImage<T>]) -> Result<Vec<Features>> {
        let Some(image) = images.first() else { return Ok(Vec::new()) };
        check(images, None)?;
        let octave = Plan::new(image.size(), 1, &self.options)?.octaves[0].size;
        match self.images_in_turn(images, octave.area()) {
            Err(refused) if bands::is_of_memory(&refused) => {
                images.iter().map(|image| self.detect(image, None)).collect()
            }
            found => found,
        }
    }

    /// Finds the features of several grey images of one size in the host's memory: while some are searched, the next
    /// travel to the device.
    ///
    /// # Errors
    /// As [`detect_batch`](Self::detect_batch).
    pub fn detect_views<T: GpuPixel>(&mut self, images: &[ImageView<'_, T>]) -> Result<Vec<Features>> {
        let Some(size) = size_of_all(images)? else { return Ok(Vec::new()) };
        let pixels = Plan::new(size, 1, &self.options)?.octaves[0].size.area();
        let feed = Feed::of(self.feed.take(), (&self.gpu, &self.cpu), size, images.len(), pixels);
        let found = feed.and_then(|mut feed| {
            let found = self.views_in_turn(images, &mut feed)?;
            self.feed = Some(feed);
            Ok(found)
        });
        match found {
            Err(refused) if bands::is_of_memory(&refused) => {
                images.iter().map(|&image| self.detect_view(image, None)).collect()
            }
            found => found,
        }
    }

    /// Takes features that are no longer needed, of any image: the next take their memory. That is worth it for many
    /// images in a row, as new memory can cost more time than the search.
    pub fn recycle(&mut self, features: impl IntoIterator<Item = Features>) {
        self.results.recycle(features);
    }

    /// Finds the features of one grey image and leaves them on the device.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn detect_on_device<T: GpuPixel>(
        &mut self,
        image: &GpuImage<T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<GpuFeatures> {
        // The host knows which to keep, and puts parts together.
        if matches!(self.options.selection, Selection::Even(_)) || self.bands.is_some() {
            let features = self.detect(image, mask)?;
            return GpuFeatures::upload(&self.gpu, &features);
        }
        match self.search(slice::from_ref(image), mask) {
            Ok(count) => self.reserved()?.lists().keep(count),
            Err(refused) => {
                let features = self.in_bands(Pixels::Device(image), mask, refused)?;
                GpuFeatures::upload(&self.gpu, &features)
            }
        }
    }

    /// Puts the search of some grey images of one size into the device's queue and does not wait: what it takes by the
    /// device's clock, [`Gpu::seconds`] tells. The features are not read. Images too large for the memory are refused.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn enqueue<T: GpuPixel>(
        &mut self,
        images: &[GpuImage<T>],
        mask: Option<&GpuImage<u8>>,
    ) -> Result<()> {
        self.begin_search(images, mask)?;
        let parcels = &self.reserved()?.parcels;
        parcels.iter().try_for_each(|(_, describe)| Ok(self.gpu.run(describe)?))
    }

    /// Puts the search into the queue, of many images without the description.
    fn begin_search<T: GpuPixel>(
        &mut self,
        images: &[GpuImage<T>],
        mask: Option<&GpuImage<u8>>,
    ) -> Result<()> {
        let size = check(images, mask)?;
        self.reserve::<T>(Plan::new(size, images.len(), &self.options)?, mask.is_some())?;
        self.reserved()?.begin(images, mask.zip(self.mask.as_ref()))
    }

    /// How many kernels the search launches, once an image was searched.
    pub fn launches(&self) -> usize {
        self.work.as_ref().map_or(0, |w| w.launches)
    }

    /// In how many parts the last image was searched; 1 is the whole.
    pub fn parts(&self) -> usize {
        self.bands.as_ref().map_or(1, |b| b.count())
    }

    /// How many features of an image have room.
    fn capacity(&self, plan: &Plan) -> usize {
        // A textured photograph has a feature in 520 pixels of the doubled octave, in 280 of one that is not.
        let pixels_a_feature = if plan.octaves[0].number < 0 { 384 } else { 192 };
        let usual = (1024 + plan.octaves[0].size.area() / pixels_a_feature).next_multiple_of(1024);
        if self.capacity > 0 { self.capacity } else { usual }
    }

    /// Has memory and work ready for these images.
    fn reserve<T: GpuPixel>(&mut self, plan: Plan, masked: bool) -> Result<()> {
        let purpose = Purpose { capacity: self.capacity(&plan), plan, pixel: T::NAME, masked };
        let levels = match self.work.take() {
            Some(work) if work.purpose == purpose => {
                self.work = Some(work);
                return Ok(());
            }
            // Levels stay when only lists must grow. Otherwise the old memory may be what makes room for the new.
            old => old.map(|w| w.levels).filter(|l| l.plan == purpose.plan),
        };
        self.bands = None;
        self.within_limit::<T>(&purpose.plan, masked)?;
        let whole = purpose.plan.whole;
        self.mask = match self.mask.take() {
            Some(mask) if masked && mask.size() == whole => Some(mask),
            _ => masked.then(|| GpuImage::new(&self.gpu, whole)).transpose()?,
        };
        self.work = Some(Work::new::<T>(&self.gpu, &self.stages, purpose, levels, self.mask.as_ref())?);
        Ok(())
    }

    /// The work that was last made ready.
    fn reserved(&self) -> Result<&Work> {
        self.work.as_ref().ok_or_else(nothing)
    }

    /// Searches an image until all that is found has room; gives the number of features, which stay on the device.
    fn search<T: GpuPixel>(&mut self, images: &[GpuImage<T>], mask: Option<&GpuImage<u8>>) -> Result<usize> {
        loop {
            self.enqueue(images, mask)?;
            let work = self.reserved()?;
            let count = work.described.counts.to_vec()?[0] as usize;
            if count <= work.purpose.capacity {
                return Ok(count);
            }
            self.make_room(count);
        }
    }

    /// Sends the results of what was searched on their way to one of two places; many images are described first.
    fn fetch(&mut self, place: usize) -> Result<()> {
        let work = self.work.as_ref().ok_or_else(nothing)?;
        let lists = work.lists();
        match work.parcels.is_empty() {
            true => self.results.fetch(place, &lists),
            false => self.results.fetch_completed(place, &lists, &work.parcels),
        }
    }

    /// The features from a place, once they have come; `None` when there was too little room for them, of which there
    /// will be more. `last`: nothing was searched since.
    fn fetched(&mut self, place: usize, last: bool) -> Result<Option<Vec<Features>>> {
        let work = self.work.as_ref().ok_or_else(nothing)?;
        let arrival = self.results.arrival(place, &work.lists(), last, &self.cpu)?;
        Ok(arrival.or_else_room(|most| self.make_room(most)))
    }

    fn make_room(&mut self, most: usize) {
        // A point may have more than one direction.
        self.capacity = (most + most / 2).next_multiple_of(1024);
    }
}

impl<T: GpuPixel> Search<T> for GpuSift {
    fn begin_task(&self, steps: usize) -> Cpu {
        self.cpu.begin_task("SIFT", steps)
    }

    fn begin(&mut self, images: &[GpuImage<T>], place: usize) -> Result<()> {
        self.begin_search(images, None)?;
        self.fetch(place)
    }

    fn end(&mut self, place: usize, last: bool) -> Result<Option<Vec<Features>>> {
        self.fetched(place, last)
    }
}

/// The size of some images, which must be grey and of one size, as the mask must.
fn check<T: GpuPixel>(images: &[GpuImage<T>], mask: Option<&GpuImage<u8>>) -> Result<Size> {
    let Some(size) = images.first().map(GpuImage::size) else {
        return Err(Error::Image("no image".into()));
    };
    for image in images {
        if image.channels() != 1 {
            let n = image.channels();
            return Err(Error::Image(format!(
                "expected one channel, found {n}; convert with image::grey first"
            )));
        }
        same_size(size, image.size())?;
    }
    check_mask(size, mask)?;
    Ok(size)
}

fn check_mask(size: Size, mask: Option<&GpuImage<u8>>) -> Result<()> {
    match mask.filter(|m| m.size() != size || m.channels() != 1) {
        None => Ok(()),
        Some(mask) => {
            let found = mask.size();
            Err(Error::Mismatch(format!(
                "the mask is {found}, the image {size}: one mask value a pixel is needed"
            )))
        }
    }
}
