//! SURF on a GPU: the CPU's stages as kernels, with its bits.
//!
//! Everything from the integral image to the descriptors runs as one graph without the host: the number of keypoints
//! stays on the device, and the groups of a launch share among them as many as there are. Launch by launch: integral
//! image ([`GpuIntegral`]), responses of all layers of all octaves, extrema and their refinement, the total order, and
//! for every keypoint, by one group, its direction and its descriptor. Only then the host reads the counts and as many
//! features. Where there are more than there is room for, it makes room and runs the graph again.
//!
//! [`Selection::Strongest`] is applied before keypoints are described, [`Selection::Even`] by the host.

#[cfg(test)]
pub(crate) mod bisect;
mod layers;
mod pipeline;
mod stages;
#[cfg(test)]
mod tests;

use super::SurfOptions;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::feature::gpu::{Feed, GpuFeatures, Results, Search, nothing, same_size, size_of_all};
use crate::feature::order::GpuOrder;
use crate::feature::select::Selection;
use crate::filter::integral::GpuSum;
use crate::image::ImageView;
use crate::image::gpu::{GpuImage, GpuPixel, Staging};
use crate::{Error, Result};
use pipeline::{Kind, Pipeline};
use std::any::Any;
use std::slice;

/// Lanes of a group that computes or searches responses.
const TILE: [u32; 2] = [32, 8];

/// Responses of a lane, `TILE[1]` rows apart: what lies around a group's samples is then little against what lies
/// between them.
const ROWS_PER_LANE: usize = 4;

/// A SURF detector on a GPU whose programs, tables and memory are kept from image to image; made anew only when the
/// size, the kind or the number of images changes. Its features are those of [`super::Surf`], bit for bit.
///
/// With the paper's options it takes 24 (8 bits) to 31 bytes (f32) a pixel: the image, its sums and the responses, of
/// which the first octave has 16. There are no parts as for SIFT: an image for which the memory is too small is refused
/// with [`crate::Error::Memory`].
///
/// ```no_run
/// use tiepoint::device::gpu::{Api, Gpu};
/// use tiepoint::feature::surf::{GpuSurf, SurfOptions};
/// use tiepoint::image::gpu::GpuImage;
/// use tiepoint::image::{Image, Size};
/// let gpu = Gpu::open(Api::Cuda, 0)?;
/// let mut surf = GpuSurf::new(&gpu, SurfOptions::default())?;
/// let image = Image::<u8>::new(Size::new(1920, 1080));
/// let features = surf.detect(&GpuImage::upload(&gpu, image.view())?, None)?;
/// println!("{} features", features.len());
/// # Ok::<(), tiepoint::Error>(())
/// ```
pub struct GpuSurf {
    gpu: Gpu,
    options: SurfOptions,
    order: GpuOrder,
    /// Whose threads bring the results to the host.
    cpu: Cpu,
    /// The [`Pipeline`] for the latest kind of images.
    pipeline: Option<Box<dyn Any + Send + Sync>>,
    results: Results,
    launches: usize,
    /// Features of an image that there is room for at least; 0 for a guess from the image's size.
    capacity: usize,
    /// The [`Staging`] of images that came from the host.
    input: Option<Box<dyn Any + Send + Sync>>,
    /// The [`Feed`] of many such.
    feed: Option<Box<dyn Any + Send + Sync>>,
}

impl std::fmt::Debug for GpuSurf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpuSurf")
            .field("gpu", &self.gpu)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl GpuSurf {
    /// A detector with these options.
    ///
    /// # Errors
    /// [`Error::Option`] as [`SurfOptions::check`], [`Error::Device`] when the device refuses.
    pub fn new(gpu: &Gpu, options: SurfOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            gpu: gpu.clone(),
            options,
            order: GpuOrder::new(gpu)?,
            cpu: Cpu::sequential(),
            pipeline: None,
            results: Results::new(gpu)?,
            launches: 0,
            capacity: 0,
            input: None,
            feed: None,
        })
    }

    /// The options it was made with.
    pub fn options(&self) -> &SurfOptions {
        &self.options
    }

    /// Takes the threads of this CPU to bring the results of a batch to the host, instead of the calling one alone.
    #[must_use]
    pub fn with_cpu(self, cpu: &Cpu) -> Self {
        Self { cpu: cpu.clone(), ..self }
    }

    /// Makes room for this many features of an image, instead of a number guessed from its size. Where there are more,
    /// the room grows.
    #[must_use]
    pub fn with_capacity(self, features: usize) -> Self {
        Self { capacity: features.max(1), ..self }
    }

    /// The features of a grey image on the device. A keypoint is left out where the mask is 0 at its nearest pixel.
    ///
    /// # Errors
    /// [`Error::Image`] when the image has several channels or a side above 2²⁴; [`Error::Mismatch`] when the mask's
    /// size is not the image's or one of them lies on another device; [`Error::Device`] when memory is too small.
    pub fn detect<T: GpuPixel>(
        &mut self,
        image: &GpuImage<T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Features> {
        loop {
            self.search(slice::from_ref(image), mask, 0)?;
            if let Some(mut features) = Search::<T>::end(self, 0, true)? {
                return features.pop().ok_or_else(nothing);
            }
        }
    }

    /// The features of a grey image in the host's memory.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Image`] when the image is empty.
    pub fn detect_view<T: GpuPixel>(
        &mut self,
        view: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
    ) -> Result<Features> {
        view.require_grey()?;
        let mask = mask.map(|mask| GpuImage::upload(&self.gpu, mask)).transpose()?;
        let mut input = Staging::of(self.input.take(), &self.gpu, view.size())?;
        let features = self.detect(input.fill(view)?, mask.as_ref());
        self.input = Some(input);
        features
    }

    /// The features of several images of one size, each in turn.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), and [`Error::Mismatch`] when sizes differ.
    pub fn detect_batch<T: GpuPixel>(&mut self, images: &[GpuImage<T>]) -> Result<Vec<Features>> {
        let Some(image) = images.first() else { return Ok(Vec::new()) };
        self.check(images, None)?;
        self.images_in_turn(images, image.size().area())
    }

    /// The features of several images of one size in the host's memory: while some are searched, the next travel to the
    /// device.
    ///
    /// # Errors
    /// As [`detect_batch`](Self::detect_batch).
    pub fn detect_views<T: GpuPixel>(&mut self, images: &[ImageView<'_, T>]) -> Result<Vec<Features>> {
        let Some(size) = size_of_all(images)? else { return Ok(Vec::new()) };
        let device = (&self.gpu, &self.cpu);
        let mut feed = Feed::of(self.feed.take(), device, size, images.len(), size.area())?;
        let found = self.views_in_turn(images, &mut feed)?;
        self.feed = Some(feed);
        Ok(found)
    }

    /// Takes features that are no longer needed, of any image: the next take their memory. That is worth it for many
    /// images in a row, as new memory can cost more time than the search.
    pub fn recycle(&mut self, features: impl IntoIterator<Item = Features>) {
        self.results.recycle(features);
    }

    /// As [`detect`](Self::detect), and the features stay on the device.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn detect_on_device<T: GpuPixel>(
        &mut self,
        image: &GpuImage<T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<GpuFeatures> {
        if let Selection::Even(_) = self.options.selection {
            let features = self.detect(image, mask)?;
            return GpuFeatures::upload(&self.gpu, &features);
        }
        match T::WHITE {
            255.0 => self.kept::<T, u32>(image, mask),
            _ => self.kept::<T, u64>(image, mask),
        }
    }

    /// Puts the search of some grey images of one size into the device's queue and does not wait: what it takes by the
    /// device's clock, [`Gpu::seconds`] tells. The features are not read.
    ///
    /// # Errors
    /// As [`detect`](Self::detect).
    pub fn enqueue<T: GpuPixel>(
        &mut self,
        images: &[GpuImage<T>],
        mask: Option<&GpuImage<u8>>,
    ) -> Result<()> {
        self.check(images, mask)?;
        match T::WHITE {
            255.0 => self.ready::<T, u32>(images, mask.is_some())?.enqueue(images, mask),
            _ => self.ready::<T, u64>(images, mask.is_some())?.enqueue(images, mask),
        }
    }

    /// How many kernels a call launches, once one has been made.
    pub fn launches(&self) -> usize {
        self.launches
    }

    /// Puts a search, and the way of its results to one of two places, into the queue.
    fn search<T: GpuPixel>(
        &mut self,
        images: &[GpuImage<T>],
        mask: Option<&GpuImage<u8>>,
        place: usize,
    ) -> Result<()> {
        self.enqueue(images, mask)?;
        match T::WHITE {
            255.0 => self.results.fetch(place, &latest::<T, u32>(self.pipeline.as_deref())?.lists()),
            _ => self.results.fetch(place, &latest::<T, u64>(self.pipeline.as_deref())?.lists()),
        }
    }

    fn fetched<T: GpuPixel, A: GpuSum>(&mut self, place: usize, last: bool) -> Result<Option<Vec<Features>>> {
        let pipeline = latest::<T, A>(self.pipeline.as_deref())?;
        let arrival = self.results.arrival(place, &pipeline.lists(), last, &self.cpu)?;
        Ok(arrival.or_else_room(|most| self.capacity = most.next_power_of_two()))
    }

    /// The features of an image in memory of their own on the device.
    fn kept<T: GpuPixel, A: GpuSum>(
        &mut self,
        image: &GpuImage<T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<GpuFeatures> {
        loop {
            self.enqueue(slice::from_ref(image), mask)?;
            let pipeline = latest::<T, A>(self.pipeline.as_deref())?;
            let count = pipeline.count()?;
            if count <= pipeline.kind.capacity {
                return pipeline.lists().keep(count);
            }
            self.capacity = count.next_power_of_two();
        }
    }

    /// The pipeline for images like these, with room for as many features as have been found in one.
    fn ready<T: GpuPixel, A: GpuSum>(
        &mut self,
        images: &[GpuImage<T>],
        masked: bool,
    ) -> Result<&mut Pipeline<T, A>> {
        let size = images[0].size();
        // Of a photograph at the default threshold one pixel in a few hundred is a feature.
        let guess = (size.area() / 256).next_power_of_two().clamp(1024, 1 << 16);
        let capacity = if self.capacity > 0 { self.capacity } else { guess };
        let kind = Kind { size, images: images.len(), masked, capacity };
        // Dropped before another is made, for which its memory may be needed.
        let kept = self.pipeline.take().and_then(|p| p.downcast::<Pipeline<T, A>>().ok());
        let pipeline = match kept.filter(|p| p.kind == kind) {
            Some(pipeline) => pipeline,
            None => {
                let pitch = images[0].pitch();
                Box::new(Pipeline::new(&self.gpu, &self.options, &self.order, kind, pitch)?)
            }
        };
        self.launches = pipeline.launches;
        let pipeline = self.pipeline.insert(pipeline).downcast_mut();
        pipeline.ok_or_else(|| Error::Image("no pipeline".into()))
    }

    fn check<T: GpuPixel>(&self, images: &[GpuImage<T>], mask: Option<&GpuImage<u8>>) -> Result<()> {
        let Some(size) = images.first().map(GpuImage::size) else {
            return Err(nothing());
        };
        if size.width.max(size.height) > 1 << 24 {
            return Err(Error::Image(format!("{size}: SURF takes sides up to 16777216 pixels; cut it")));
        }
        for image in images {
            grey(image.channels())?;
            self.here(image.gpu())?;
            same_size(size, image.size())?;
        }
        let Some(mask) = mask else { return Ok(()) };
        grey(mask.channels())?;
        self.here(mask.gpu())?;
        match mask.size() == size {
            true => Ok(()),
            false => Err(Error::Mismatch(format!(
                "the mask has {} pixels, the image {size}: expected equal sizes",
                mask.size()
            ))),
        }
    }

    fn here(&self, gpu: &Gpu) -> Result<()> {
        match gpu.info() == self.gpu.info() {
            true => Ok(()),
            false => Err(Error::Mismatch(format!("an image on {gpu:?} for a detector on {:?}", self.gpu))),
        }
    }
}

impl<T: GpuPixel> Search<T> for GpuSurf {
    fn begin_task(&self, steps: usize) -> Cpu {
        self.cpu.begin_task("SURF", steps)
    }

    fn begin(&mut self, images: &[GpuImage<T>], place: usize) -> Result<()> {
        self.search(images, None, place)
    }

    fn end(&mut self, place: usize, last: bool) -> Result<Option<Vec<Features>>> {
        match T::WHITE {
            255.0 => self.fetched::<T, u32>(place, last),
            _ => self.fetched::<T, u64>(place, last),
        }
    }
}

/// The pipeline that was last made ready.
fn latest<T: GpuPixel, A: GpuSum>(pipeline: Option<&(dyn Any + Send + Sync)>) -> Result<&Pipeline<T, A>> {
    pipeline.and_then(|p| p.downcast_ref()).ok_or_else(nothing)
}

fn grey(channels: usize) -> Result<()> {
    match channels {
        1 => Ok(()),
        n => Err(Error::Image(format!("expected one channel, found {n}; convert to grey first"))),
    }
}
