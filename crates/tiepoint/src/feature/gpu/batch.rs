//! Many images of one size, some at a time: while the results of some are copied to the host, the next are searched,
//! and those after them are copied to the device.

use super::pipeline::{Core, Pipeline};
use super::search::Search;
use super::staging::Staging;
use super::{FoundFeatures, GpuFeatures};
use crate::Result;
use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::image::gpu::AnyGpuImage;
use crate::image::{AnyView, PixelKind, Pixels, Size};
use tiepoint_gpu::Mark;

/// The number of pixels of the first octave that are searched at a time, small enough for a device's memory.
// With fewer pixels, more of the transfers overlap with work, but the search itself slows down by more than that gains.
pub(crate) const AT_A_TIME: usize = 1 << 27;

impl<P: Pipeline> Search<P> {
    /// Searches images that are all on the device or all in the host's memory, `pixels` at a time. With `keep` the
    /// features also stay on the device.
    pub(crate) fn detect_batch(
        &mut self,
        images: &[Pixels<'_>],
        (pixels, keep): (usize, bool),
    ) -> Result<Vec<FoundFeatures>> {
        let Some(first) = images.first() else { return Ok(Vec::new()) };
        let layout = P::layout(&self.core.options, first.size(), 1)?;
        let at_a_time = pixels / P::pixels(&layout).max(1);
        let (mut views, mut on_device) = (Vec::new(), Vec::new());
        for image in images {
            match image {
                Pixels::Host(view) => views.push(*view),
                Pixels::Device(image) => on_device.push(image.clone()),
            }
        }
        if on_device.is_empty() {
            let shape = (first.size(), first.pixel());
            let mut feed = Feed::of(self.feed.take(), &self.core, shape, (views.len(), at_a_time))?;
            let part = feed.sets[0].len();
            let send = |i: usize| feed.send(filled(&views[i * part..], part), i);
            let found = self.in_turn((views.len(), part), keep, send)?;
            self.feed = Some(feed);
            return Ok(found);
        }
        if !views.is_empty() {
            // Some images lie in the host's memory and some on the device.
            return images.iter().map(|image| self.detect(image, None).map(Into::into)).collect();
        }
        let part = part_of(on_device.len(), at_a_time);
        self.in_turn((on_device.len(), part), keep, |i| {
            Ok(filled(&on_device[i * part..], part).cloned().collect())
        })
    }

    /// Searches `count` images, `part` at a time; `images(i)` gives those of part i, the last part filled up.
    fn in_turn(
        &mut self,
        (count, part): (usize, usize),
        keep: bool,
        mut images: impl FnMut(usize) -> Result<Vec<AnyGpuImage>>,
    ) -> Result<Vec<FoundFeatures>> {
        let parts = count.div_ceil(part);
        let cpu = self.core.cpu.begin_task(P::NAME, parts);
        let (mut found, mut copies) = (Vec::new(), Vec::new());
        for i in 0..parts {
            copies.push(self.begin_part(&images(i)?, i % 2, keep)?);
            if i > 0 {
                found.push(self.fetched((i - 1) % 2, false)?);
                cpu.advance(1);
            }
        }
        if parts > 0 {
            found.push(self.fetched((parts - 1) % 2, true)?);
        }
        let mut all = Vec::new();
        for (i, (mut found, mut copies)) in found.into_iter().zip(copies).enumerate() {
            // There was too little room: search again with more.
            while found.is_none() {
                copies = self.begin_part(&images(i)?, 0, keep)?;
                found = self.fetched(0, true)?;
            }
            let copies = copies.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
            let both = found.into_iter().flatten().zip(copies);
            all.extend(both.map(|(features, on_device)| FoundFeatures { features, on_device }));
        }
        all.truncate(count);
        Ok(all)
    }

    /// Queues the search of a part. With `keep`, copies of its features stay on the device, unless the host selects.
    fn begin_part(&mut self, images: &[AnyGpuImage], slot: usize, keep: bool) -> Result<Vec<GpuFeatures>> {
        self.begin(images, None)?;
        self.fetch(slot)?;
        let lists = self.reserved()?.lists();
        match keep && !lists.selection.is_finished_by_host() {
            true => (0..images.len()).map(|i| lists.copy(i, None)).collect(),
            false => Ok(Vec::new()),
        }
    }

    /// Reserves memory and records the work for two images in the host's memory that are searched one after the other.
    pub(super) fn reserve_for_two(&mut self, size: Size, pixel: PixelKind) -> Result<()> {
        self.reserve(P::layout(&self.core.options, size, 1)?, pixel, false)?;
        self.feed = Some(Feed::of(self.feed.take(), &self.core, (size, pixel), (2, 2))?);
        self.expect()
    }
}

/// The number of images to search at a time, at most `most`, so that all parts are about equal.
fn part_of(images: usize, most: usize) -> usize {
    images.div_ceil(images.div_ceil(most.max(1)).max(1)).max(1)
}

/// The first `number` images. A shorter list is filled up with its last image, because memory and work are made for
/// one number of images.
fn filled<I>(images: &[I], number: usize) -> impl Iterator<Item = &I> {
    images.iter().chain(images.last().into_iter().cycle()).take(number)
}

/// Two sets of images on the device that are filled from the host in turn: one while the other is searched.
#[derive(Debug)]
pub(super) struct Feed {
    gpu: Gpu,
    cpu: Cpu,
    sets: [Vec<Staging>; 2],
    /// For each set, a mark after its last search, or at first after its creation.
    searched: [Mark; 2],
}

impl Feed {
    /// `kept`, or a new feed if it does not fit. It takes half as many images at a time as a search of images on the
    /// device, so that the device can search some while others are copied.
    fn of<P: Pipeline>(
        kept: Option<Self>,
        core: &Core<P>,
        (size, pixel): (Size, PixelKind),
        (images, at_a_time): (usize, usize),
    ) -> Result<Self> {
        let part = part_of(images, (at_a_time / 2).min(images.div_ceil(2)));
        let serves =
            |feed: &Self| feed.sets[0].len() == part && feed.sets[0].iter().all(|s| s.serves(pixel, size));
        match kept.filter(|feed| serves(feed)) {
            Some(feed) => Ok(feed),
            None => {
                let set = || (0..part).map(|_| Staging::new(&core.gpu, pixel, size)).collect::<Result<_>>();
                let sets = [set()?, set()?];
                let searched = [core.gpu.mark()?, core.gpu.mark()?];
                Ok(Self { gpu: core.gpu.clone(), cpu: core.cpu.clone(), sets, searched })
            }
        }
    }

    /// Sends part i to the device. The search of the part before must already be in the queue.
    fn send<'v>(
        &mut self,
        views: impl Iterator<Item = &'v AnyView<'v>>,
        i: usize,
    ) -> Result<Vec<AnyGpuImage>> {
        self.searched[(i + 1) % 2] = self.gpu.mark()?;
        let (set, free) = (&mut self.sets[i % 2], &self.searched[i % 2]);
        set.iter_mut().zip(views).map(|(to, view)| to.send(*view, free, &self.cpu)).collect()
    }
}
