//! The way of features from a device's lists to the host's memory.

use super::readback::Place;
use super::{GpuDescriptors, GpuFeatures};
use crate::device::Cpu;
use crate::device::gpu::{Buffer, Commands, Gpu};
use crate::feature::select::Selection;
use crate::feature::{Descriptors, Features, WORDS};
use crate::image::Size;
use crate::{Error, Result};
use std::ops::Range;
use tiepoint_gpu::Element;

/// What a search of some images of one size leaves in the device's memory.
#[derive(Clone, Debug)]
pub(crate) struct Lists<'d> {
    /// How many there are in every image: more than `capacity` where that was too small, and not all are there.
    pub(crate) counts: &'d Buffer<u32>,
    /// In their total order; those of image i begin at number i · `capacity`.
    pub(crate) keypoints: &'d Buffer<u32>,
    pub(crate) descriptors: &'d GpuDescriptors,
    pub(crate) dimension: usize,
    pub(crate) capacity: usize,
    /// What is wanted of them. The strongest come first anyway, an even selection is the host's to make.
    pub(crate) selection: Selection,
    /// Of the images.
    pub(crate) size: Size,
}

impl Lists<'_> {
    pub(crate) fn images(&self) -> usize {
        self.counts.len()
    }

    /// No features.
    pub(crate) fn none(&self) -> Features {
        let descriptors = match self.descriptors {
            GpuDescriptors::U8(_) => Descriptors::U8(Vec::new()),
            GpuDescriptors::F32(_) => Descriptors::F32(Vec::new()),
        };
        Features { keypoints: Vec::new(), descriptors, dimension: self.dimension, image: self.size }
    }

    /// Of the `count` features of the first image those wanted, in memory of their own.
    ///
    /// # Errors
    /// [`Error::Device`] when it is too small.
    pub(crate) fn keep(&self, count: usize) -> Result<GpuFeatures> {
        let gpu = self.keypoints.gpu();
        let count = count.min(self.selection.most());
        let mut commands = Commands::new();
        let keypoints = first_of(self.keypoints, count * WORDS, &mut commands)?;
        let values = count * self.dimension;
        let descriptors = match self.descriptors {
            GpuDescriptors::U8(all) => GpuDescriptors::U8(first_of(all, values, &mut commands)?),
            GpuDescriptors::F32(all) => GpuDescriptors::F32(first_of(all, values, &mut commands)?),
        };
        gpu.run(&commands)?;
        let count = gpu.upload(&[count as u32])?;
        Ok(GpuFeatures { count, keypoints, descriptors, dimension: self.dimension, image: self.size })
    }
}

/// A buffer that will hold the first numbers of another.
fn first_of<T: Element>(all: &Buffer<T>, len: usize, commands: &mut Commands) -> Result<Buffer<T>> {
    let first = all.gpu().buffer(len)?;
    commands.copy((all, 0), (&first, 0), len)?;
    Ok(first)
}

/// What came of a search.
pub(crate) enum Arrival {
    All(Vec<Features>),
    /// An image has so many features, more than the lists have room for.
    BeyondCapacity(usize),
    /// There were more than had been expected, and the lists have been written again since. Next time they will be.
    Unexpected,
}

impl Arrival {
    /// The features; otherwise the images must be searched again, after room was made where it was too little.
    pub(crate) fn or_else_room(self, make_room: impl FnOnce(usize)) -> Option<Vec<Features>> {
        match self {
            Self::All(found) => Some(found),
            Self::BeyondCapacity(most) => {
                make_room(most);
                None
            }
            Self::Unexpected => None,
        }
    }
}

/// The results of two searches, one of which may still be under way.
#[derive(Debug)]
pub(crate) struct Results {
    places: [Place; 2],
    /// Memory for more.
    spare: Vec<Features>,
}

impl Results {
    pub(crate) fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Self { places: [Place::new(gpu)?, Place::new(gpu)?], spare: Vec::new() })
    }

    /// Takes features that are no longer needed, for their memory.
    pub(crate) fn recycle(&mut self, features: impl IntoIterator<Item = Features>) {
        self.spare.extend(features);
        self.spare.truncate(SPARE);
    }

    /// Sends the results of all images on their way to one of the places, as part of the work in the queue.
    pub(crate) fn fetch(&mut self, place: usize, lists: &Lists<'_>) -> Result<()> {
        self.places[place].prepare(lists)?;
        self.places[place].fetch(lists)
    }

    /// The same of many images, whose lists are yet to be completed: by each of some commands for so many images.
    pub(crate) fn fetch_completed(
        &mut self,
        place: usize,
        lists: &Lists<'_>,
        parcels: &[(Range<usize>, Commands)],
    ) -> Result<()> {
        let gpu = lists.keypoints.gpu();
        // The lists may still be read for the other place.
        self.places[1 - place].hold()?;
        // 2026-11-22: new pages that are taken while the device writes to others take so long (0.75 ms an image of
        // 10 000 features in place of 0.60) that parcels pay for memory that was given back alone.
        if self.spare.len() < lists.images() {
            parcels.iter().try_for_each(|(_, complete)| gpu.run(complete))?;
            return self.fetch(place, lists);
        }
        self.places[place].prepare(lists)?;
        for (images, complete) in parcels {
            gpu.run(complete)?;
            self.places[place].fetch_beside(lists, images.clone())?;
        }
        Ok(())
    }

    /// The features of every image in a place, once they have come. When there are more than were expected, the rest is
    /// fetched if the lists are still what was searched (`kept`).
    pub(crate) fn arrival(
        &mut self,
        place: usize,
        lists: &Lists<'_>,
        kept: bool,
        cpu: &Cpu,
    ) -> Result<Arrival> {
        self.places[place].arrival(lists, kept, &mut self.spare, cpu)
    }
}

/// Images whose features' memory is kept at most.
const SPARE: usize = 64;

/// For results of no search.
pub(crate) fn nothing() -> Error {
    Error::Image("no image was searched".into())
}
