//! Many images of one size, some at a time: while the results of some come home, the next are searched, and those after
//! them travel to the device.

use crate::device::Cpu;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::image::gpu::{GpuImage, GpuPixel, Staging};
use crate::image::{ImageView, Size};
use crate::{Error, Result};
use std::any::Any;
use tiepoint_gpu::Mark;

/// Pixels, as the detector's first octave has them, that are searched at a time: few enough for a device's memory.
// 2026-11-21: a quarter as many, so that more of the way home is hidden, lost more on the device than that gained.
pub(crate) const AT_A_TIME: usize = 1 << 27;

/// A detector that can begin a search before the results of the last one were read.
pub(crate) trait Search<T: GpuPixel> {
    /// The host, where work of so many steps begins.
    fn begin_task(&self, steps: usize) -> Cpu;

    /// Puts the search of some images into the queue, with the way of its results to one of two places.
    fn begin(&mut self, images: &[GpuImage<T>], place: usize) -> Result<()>;

    /// The features from a place; `None` when there was too little room, of which there will be more. `last`: nothing
    /// was begun since.
    fn end(&mut self, place: usize, last: bool) -> Result<Option<Vec<Features>>>;

    /// Searches images that are on the device.
    fn images_in_turn(&mut self, images: &[GpuImage<T>], pixels_an_image: usize) -> Result<Vec<Features>> {
        let part = part_of(images.len(), AT_A_TIME / pixels_an_image.max(1));
        let found = self.in_turn(images.len().div_ceil(part), |i| {
            let images = &images[i * part..];
            Ok(filled(images, part).cloned().collect())
        })?;
        Ok(found.into_iter().take(images.len()).collect())
    }

    /// Searches images in the host's memory.
    fn views_in_turn(&mut self, views: &[ImageView<'_, T>], feed: &mut Feed<T>) -> Result<Vec<Features>> {
        let part = feed.sets[0].len();
        let found =
            self.in_turn(views.len().div_ceil(part), |i| feed.send(filled(&views[i * part..], part), i))?;
        Ok(found.into_iter().take(views.len()).collect())
    }

    /// Searches parts one after the other, each with as many images; `images` gives those of a part.
    fn in_turn(
        &mut self,
        parts: usize,
        mut images: impl FnMut(usize) -> Result<Vec<GpuImage<T>>>,
    ) -> Result<Vec<Features>> {
        let cpu = self.begin_task(parts);
        let mut found = Vec::new();
        for i in 0..parts {
            self.begin(&images(i)?, i % 2)?;
            if i > 0 {
                found.push(self.end((i - 1) % 2, false)?);
                cpu.advance(1);
            }
        }
        if parts > 0 {
            found.push(self.end((parts - 1) % 2, true)?);
        }
        let mut all = Vec::new();
        for (i, mut found) in found.into_iter().enumerate() {
            // There was too little room.
            while found.is_none() {
                self.begin(&images(i)?, 0)?;
                found = self.end(0, true)?;
            }
            all.extend(found.into_iter().flatten());
        }
        Ok(all)
    }
}

/// The size of some grey views, which must be of one size; `None` of none.
pub(crate) fn size_of_all<T: GpuPixel>(views: &[ImageView<'_, T>]) -> Result<Option<Size>> {
    let size = views.first().map(ImageView::size);
    for view in views {
        view.require_grey()?;
        size.map_or(Ok(()), |size| same_size(size, view.size()))?;
    }
    Ok(size)
}

/// Refuses a batch of two sizes.
pub(crate) fn same_size(one: Size, other: Size) -> Result<()> {
    match one == other {
        true => Ok(()),
        false => {
            Err(Error::Mismatch(format!("the images of a batch are {one} and {other}: one size is needed")))
        }
    }
}

/// How many of some images to search at a time, `most` at most: all parts about equal.
fn part_of(images: usize, most: usize) -> usize {
    images.div_ceil(images.div_ceil(most.max(1)).max(1)).max(1)
}

/// The first few, the last one repeated when there are fewer: memory and work are for one number of images.
fn filled<I>(images: &[I], number: usize) -> impl Iterator<Item = &I> {
    images.iter().chain(images.last().into_iter().cycle()).take(number)
}

/// Two sets of images on the device that are filled from the host in turn: one while the other is searched.
#[derive(Debug)]
pub(crate) struct Feed<T: GpuPixel> {
    gpu: Gpu,
    cpu: Cpu,
    sets: [Vec<Staging<T>>; 2],
    /// After the last search of each set, or when it was made.
    searched: [Mark; 2],
}

impl<T: GpuPixel> Feed<T> {
    /// The one that was `kept`, or a new one, for `images` images of a size, of so many pixels in the detector's first
    /// octave: half of what is searched at a time when they come from the device, so that there is something to search
    /// while others travel.
    pub(crate) fn of(
        kept: Option<Box<dyn Any + Send + Sync>>,
        (gpu, cpu): (&Gpu, &Cpu),
        size: Size,
        images: usize,
        pixels_an_image: usize,
    ) -> Result<Box<Self>> {
        let part = part_of(images, (AT_A_TIME / 2 / pixels_an_image.max(1)).min(images.div_ceil(2)));
        let serves =
            |feed: &Self| feed.sets[0].len() == part && feed.sets[0].iter().all(|image| image.size() == size);
        match kept.and_then(|kept| kept.downcast::<Self>().ok()).filter(|feed| serves(feed)) {
            Some(feed) => Ok(feed),
            None => {
                let set = || (0..part).map(|_| Staging::new(gpu, size)).collect::<Result<_>>();
                let sets = [set()?, set()?];
                let searched = [gpu.mark()?, gpu.mark()?];
                Ok(Box::new(Self { gpu: gpu.clone(), cpu: cpu.clone(), sets, searched }))
            }
        }
    }

    /// Sends part i on its way, the search of the part before having been begun.
    fn send<'v>(
        &mut self,
        views: impl Iterator<Item = &'v ImageView<'v, T>>,
        i: usize,
    ) -> Result<Vec<GpuImage<T>>>
    where
        T: 'v,
    {
        self.searched[(i + 1) % 2] = self.gpu.mark()?;
        let (set, free) = (&mut self.sets[i % 2], &self.searched[i % 2]);
        set.iter_mut().zip(views).map(|(to, view)| to.send(*view, free, &self.cpu).cloned()).collect()
    }
}
