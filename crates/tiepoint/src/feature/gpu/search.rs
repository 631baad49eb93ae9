//! One search at a time: the memory that a thread uses while it searches.

use super::pipeline::{Core, Parts, Pipeline, Purpose, is_of_memory};
use super::readback::ReadbackSlot;
use super::staging::Staging;
use super::{FoundFeatures, GpuFeatures};
use crate::error::Shortage;
use crate::feature::Features;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::{PixelKind, Pixels};
use crate::{Error, Result};
use std::slice;
use std::sync::Arc;

/// The pipeline for the latest images, with its inputs and results.
#[derive(Debug)]
pub(crate) struct Search<P: Pipeline> {
    pub(crate) core: Arc<Core<P>>,
    pub(crate) pipeline: Option<P>,
    /// The mask that the pipeline reads.
    pub(crate) mask: Option<GpuImage<u8>>,
    /// The number of features of an image to make room for, after a smaller number was exceeded; 0 before that.
    pub(crate) capacity: usize,
    /// For images that come from the host one at a time.
    pub(crate) input: Option<Staging>,
    /// For many images that come from the host.
    pub(super) feed: Option<super::batch::Feed>,
    /// For images for which there is too little memory.
    pub(crate) parts: Option<Box<P::Parts>>,
    /// The results of two searches, one of which may still be running.
    slots: [ReadbackSlot; 2],
}

impl<P: Pipeline> Search<P> {
    pub(crate) fn new(core: Arc<Core<P>>) -> Result<Self> {
        Ok(Self {
            slots: [ReadbackSlot::new(&core.gpu)?, ReadbackSlot::new(&core.gpu)?],
            pipeline: None,
            mask: None,
            capacity: core.capacity,
            input: None,
            feed: None,
            parts: None,
            core,
        })
    }

    /// Reserves memory and records the work for these images.
    pub(crate) fn reserve(&mut self, layout: P::Layout, pixel: PixelKind, masked: bool) -> Result<()> {
        let capacity = if self.capacity > 0 { self.capacity } else { P::usual_capacity(&layout) };
        let purpose = Purpose { layout, pixel, masked, capacity };
        if self.pipeline.as_ref().is_some_and(|pipeline| *pipeline.purpose() == purpose) {
            return Ok(());
        }
        // The old memory may be needed for the new.
        let old = self.pipeline.take();
        self.parts = None;
        let needed = P::bytes(&self.core.options, &purpose);
        if let Some(limit) = self.core.limit.filter(|&limit| needed > limit) {
            return Err(Error::Memory { what: P::NAME, needed, shortage: Shortage::Limit(limit) });
        }
        let size = P::mask_size(&purpose.layout);
        self.mask = match self.mask.take().filter(|mask| masked && mask.size() == size) {
            Some(mask) => Some(mask),
            None => masked.then(|| GpuImage::new(&self.core.gpu, size)).transpose()?,
        };
        self.pipeline = Some(P::new(&self.core, purpose, self.mask.as_ref(), old)?);
        Ok(())
    }

    pub(crate) fn reserved(&self) -> Result<&P> {
        self.pipeline.as_ref().ok_or_else(nothing)
    }

    /// Queues the search of these images, of one size and one type of pixel, without its parcels.
    pub(super) fn begin(&mut self, images: &[AnyGpuImage], mask: Option<&GpuImage<u8>>) -> Result<()> {
        let first = images.first().ok_or_else(nothing)?;
        let layout = P::layout(&self.core.options, first.size(), images.len())?;
        self.reserve(layout, first.pixel(), mask.is_some())?;
        let mask = mask.zip(self.mask.as_ref()).map(|(from, to)| [from, to]);
        self.reserved()?.begin(images, mask)
    }

    pub(super) fn enqueue(&mut self, images: &[AnyGpuImage], mask: Option<&GpuImage<u8>>) -> Result<()> {
        self.begin(images, mask)?;
        let parcels = self.reserved()?.parcels();
        parcels.iter().try_for_each(|(_, complete)| Ok(self.core.gpu.run(complete)?))
    }

    /// The features of one image, in parts when the memory is too small for the whole.
    pub(super) fn detect(&mut self, image: &Pixels<'_>, mask: Option<&GpuImage<u8>>) -> Result<Features> {
        // An image that did not fit as a whole is not tried as a whole again.
        let kept = self.parts.take().filter(|p| p.serves(image.size(), image.pixel(), mask.is_some()));
        let found = match kept {
            None => self.whole(image, mask),
            Some(mut parts) => parts.detect(image, mask).map(|found| {
                self.parts = Some(parts);
                P::selection(&self.core.options).of(&found, &self.core.cpu)
            }),
        };
        match found {
            Err(refused) if is_of_memory(&refused) => self.in_parts(image, mask, refused),
            found => found,
        }
    }

    /// Searches an image in parts, after memory for the whole was refused.
    pub(crate) fn in_parts(
        &mut self,
        image: &Pixels<'_>,
        mask: Option<&GpuImage<u8>>,
        refused: Error,
    ) -> Result<Features> {
        (self.pipeline, self.mask, self.input, self.feed, self.parts) = (None, None, None, None, None);
        let (parts, found) = P::Parts::fit(&self.core, image, mask, refused)?;
        self.parts = Some(Box::new(parts));
        Ok(P::selection(&self.core.options).of(&found, &self.core.cpu))
    }

    fn whole(&mut self, image: &Pixels<'_>, mask: Option<&GpuImage<u8>>) -> Result<Features> {
        self.with_image(image, mask.is_some(), |search, image| {
            search.fetch_one(|search| search.enqueue(slice::from_ref(image), mask))
        })
    }

    /// Calls `search` with the image on the device. An image in the host's memory is sent only after the memory for its
    /// search has been reserved, so that it is not sent in vain.
    fn with_image<R>(
        &mut self,
        image: &Pixels<'_>,
        masked: bool,
        search: impl FnOnce(&mut Self, &AnyGpuImage) -> Result<R>,
    ) -> Result<R> {
        let view = match image {
            Pixels::Device(image) => return search(self, image),
            Pixels::Host(view) => *view,
        };
        self.reserve(P::layout(&self.core.options, view.size(), 1)?, view.pixel(), masked)?;
        let mut staging = Staging::of(self.input.take(), &self.core.gpu, view.pixel(), view.size())?;
        let found = staging.fill(view).and_then(|image| search(self, &image));
        self.input = Some(staging);
        found
    }

    /// The features of one image, left on the device.
    pub(super) fn detect_on_device(
        &mut self,
        image: &Pixels<'_>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<GpuFeatures> {
        // In these cases the result is completed on the host.
        if P::selection(&self.core.options).is_finished_by_host() || self.parts.is_some() {
            return GpuFeatures::upload(&self.core.gpu.clone(), &self.detect(image, mask)?);
        }
        let kept = self.with_image(image, mask.is_some(), |search, image| {
            loop {
                search.enqueue(slice::from_ref(image), mask)?;
                let lists = search.reserved()?.lists();
                let count = lists.found.counts.to_vec()?.first().map_or(0, |&n| n as usize);
                if count <= lists.found.capacity {
                    return lists.copy(0, Some(count));
                }
                search.make_room(count);
            }
        });
        match kept {
            Err(refused) if is_of_memory(&refused) => {
                GpuFeatures::upload(&self.core.gpu.clone(), &self.in_parts(image, mask, refused)?)
            }
            kept => kept,
        }
    }

    /// The features of the one image whose search `enqueue` queues, again where there was too little room.
    pub(crate) fn fetch_one(&mut self, enqueue: impl Fn(&mut Self) -> Result<()>) -> Result<Features> {
        loop {
            enqueue(self)?;
            self.fetch(0)?;
            if let Some(features) = self.fetched(0, true)?.and_then(|mut found| found.pop()) {
                return Ok(features);
            }
        }
    }

    /// Reserves memory of the host for as many features of one image as the lists have room for.
    pub(super) fn expect(&mut self) -> Result<()> {
        let lists = self.pipeline.as_ref().ok_or_else(nothing)?.lists();
        self.slots.iter_mut().try_for_each(|slot| slot.expect(&lists))
    }

    /// The features of one image, and a copy that stays on the device unless parts of it were searched or the host
    /// selects.
    pub(super) fn detect_and_keep(
        &mut self,
        image: &Pixels<'_>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<FoundFeatures> {
        let features = self.detect(image, mask)?;
        let whole = self.parts.is_none() && !P::selection(&self.core.options).is_finished_by_host();
        let on_device = if whole { Some(self.reserved()?.lists().copy(0, None)?) } else { None };
        Ok(FoundFeatures { features, on_device })
    }

    /// Queues the copying of the results to one of the two slots; parcels are completed first.
    pub(super) fn fetch(&mut self, slot: usize) -> Result<()> {
        let pipeline = self.pipeline.as_ref().ok_or_else(nothing)?;
        let (lists, parcels, gpu) = (pipeline.lists(), pipeline.parcels(), &self.core.gpu);
        if !parcels.is_empty() {
            // The lists may still be read for the other slot.
            self.slots[1 - slot].hold()?;
        }
        // Taking new pages while the device writes to others is slow, so parcels pay off only in memory that was used
        // before (`docs/notebook/features.md`).
        let one_by_one = !parcels.is_empty() && self.core.recycled.len() >= lists.images();
        if !one_by_one {
            parcels.iter().try_for_each(|(_, complete)| gpu.run(complete))?;
        }
        let slot = &mut self.slots[slot];
        slot.prepare(&lists)?;
        if !one_by_one {
            return slot.fetch(&lists);
        }
        for (images, complete) in parcels {
            gpu.run(complete)?;
            slot.fetch_beside(&lists, images.clone())?;
        }
        Ok(())
    }

    /// Waits for the features in a slot; `None` if the images must be searched again. If there was too little room, it
    /// has then been enlarged. `last` means that nothing has been searched since.
    pub(super) fn fetched(&mut self, slot: usize, last: bool) -> Result<Option<Vec<Features>>> {
        let lists = self.pipeline.as_ref().ok_or_else(nothing)?.lists();
        let capacity = lists.found.capacity;
        let (most, found) = self.slots[slot].arrival(&lists, last, &self.core.recycled, &self.core.cpu)?;
        if most > capacity {
            self.make_room(most);
        }
        Ok(found)
    }

    fn make_room(&mut self, most: usize) {
        // Half as much again, because a point may have more than one direction.
        self.capacity = most.saturating_add(most / 2).div_ceil(1024).saturating_mul(1024);
    }
}

/// The error for results that are fetched before anything was searched.
fn nothing() -> Error {
    Error::Image("no image was searched".into())
}
