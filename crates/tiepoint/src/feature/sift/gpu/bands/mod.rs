//! Images whose scale space exceeds the device's memory, searched in bands of rows: the same bits with less memory.
//!
//! The finest octaves take nearly all memory. A band is some rows of the image, whose first octaves are made as if it
//! were an image of its own. Where it was cut they are wrong, by as many rows as Gaussians reach; so extrema are taken
//! in its core only, and the halo around it (see [`cut`]) holds the wrong rows and those that refinement and description
//! read. Level 0 of the octave after them is put together from all cores, and what remains is searched at once.
//!
//! Bands have one height, and so one plan and one graph in the same memory. They begin at rows that are whole and even
//! in every octave: then pixels are paired, kept and rounded as in the image.

mod cut;
#[cfg(test)]
mod tests;

use super::GpuSift;
use super::plan::{Part, Plan};
use crate::device::gpu::{Buffer, Commands};
use crate::error::{ErrorKind, Shortage};
use crate::feature::WORDS;
use crate::feature::select::Selection;
use crate::feature::sift::{DescriptorKind, SiftOptions};
use crate::feature::{Descriptors, Features};
use crate::image::gpu::{GpuImage, GpuPixel, Staging};
use crate::image::{ImageView, Rect, Size};
use crate::{Error, Result};
use cut::Cut;
use std::slice;

/// Where the pixels of an image lie.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pixels<'a, T> {
    Device(&'a GpuImage<T>),
    Host(ImageView<'a, T>),
}

impl<T: GpuPixel> Pixels<'_, T> {
    fn size(&self) -> Size {
        match self {
            Self::Device(image) => image.size(),
            Self::Host(view) => view.size(),
        }
    }

    /// Puts rows from `first` on into an image of its own.
    fn rows<'s>(&self, first: usize, staging: &'s mut Staging<T>) -> Result<&'s GpuImage<T>> {
        match self {
            Self::Device(image) => staging.copy_rows(image, first),
            Self::Host(view) => staging.fill(view.crop(Rect { x: 0, y: first, size: staging.size() })?),
        }
    }
}

/// Searches an image in bands, whose memory it keeps.
#[derive(Debug)]
pub(super) struct Bands {
    cut: Cut,
    band: GpuSift,
    rest: Option<GpuSift>,
}

impl Bands {
    /// Reserves the memory. `band` is a detector [for parts](GpuSift::for_parts).
    fn new<T: GpuPixel>(mut band: GpuSift, cut: Cut, masked: bool) -> Result<Self> {
        band.reserve::<T>(cut.band.clone(), masked)?;
        let rest = cut.rest.clone().map(|plan| {
            let mut rest = band.for_parts()?;
            rest.mask.clone_from(&band.mask);
            rest.reserve::<T>(plan, masked)?;
            Ok::<_, Error>(rest)
        });
        Ok(Self { cut, band, rest: rest.transpose()? })
    }

    /// Whether it is for such images.
    fn serves<T: GpuPixel>(&self, size: Size, masked: bool) -> bool {
        let purpose = self.band.work.as_ref().map(|w| &w.purpose);
        purpose.is_some_and(|p| p.plan.whole == size && p.masked == masked && p.pixel == T::NAME)
    }

    pub(super) fn count(&self) -> usize {
        self.cut.count()
    }

    /// All features in no particular order.
    fn detect<T: GpuPixel>(&mut self, image: Pixels<'_, T>, mask: Option<&GpuImage<u8>>) -> Result<Features> {
        let gpu = self.band.gpu.clone();
        if let (Some(mask), Some(own)) = (mask, &self.band.mask) {
            let mut commands = Commands::new();
            commands.copy((mask.buffer(), 0), (own.buffer(), 0), own.buffer().len())?;
            gpu.run(&commands)?;
        }
        let mut staging = Staging::<T>::of(self.band.input.take(), &gpu, self.cut.band.input)?;
        let cpu = self.band.cpu.begin_task("SIFT", self.cut.count() + usize::from(self.rest.is_some()));
        let mut found = Vec::new();
        for part in self.cut.parts() {
            found.push(self.search_band(image.rows(part.first, &mut staging)?, &part)?);
            cpu.advance(1);
        }
        self.band.input = Some(staging);
        found.extend(self.search_rest::<T>()?);
        let found = found.into_iter().reduce(together).ok_or_else(|| Error::Image("no image".into()))?;
        Ok(Features { image: image.size(), ..found })
    }

    fn search_band<T: GpuPixel>(&mut self, image: &GpuImage<T>, part: &Part) -> Result<Features> {
        let masked = self.band.mask.is_some();
        loop {
            self.band.reserve::<T>(self.cut.band.clone(), masked)?;
            let work = self.band.reserved()?;
            work.levels.place(part)?;
            work.begin(slice::from_ref(image), None)?;
            self.hand_on(part)?;
            if let Some(features) = self.band.fetch_one()? {
                return Ok(features);
            }
        }
    }

    /// Gives the core's rows to the octaves after the band's.
    fn hand_on(&self, part: &Part) -> Result<()> {
        let (Some(seed), Some(rest)) = (self.cut.band.seed, &self.rest) else { return Ok(()) };
        let (band, rest) = (&self.band.reserved()?.levels, &rest.reserved()?.levels);
        let [first, start, end] = [part.first, part.taken.start, part.taken.end].map(|n| seed.rows_of(n));
        let from = seed.offset + (start - first) * seed.pitch;
        let to = rest.plan.octaves[0].offset + start * seed.pitch;
        let mut commands = Commands::new();
        commands.stage("scale space");
        commands.copy((&band.values, from), (&rest.values, to), (end - start) * seed.pitch)?;
        Ok(band.values.gpu().run(&commands)?)
    }

    /// The features of the octaves after the bands', once all rows have come.
    fn search_rest<T: GpuPixel>(&mut self) -> Result<Option<Features>> {
        let (Some(plan), Some(rest)) = (&self.cut.rest, &mut self.rest) else { return Ok(None) };
        loop {
            rest.reserve::<T>(plan.clone(), rest.mask.is_some())?;
            rest.reserved()?.graph.run()?;
            if let Some(features) = rest.fetch_one()? {
                return Ok(Some(features));
            }
        }
    }
}

fn together(mut all: Features, more: Features) -> Features {
    all.keypoints.extend(more.keypoints);
    match (&mut all.descriptors, more.descriptors) {
        (Descriptors::U8(all), Descriptors::U8(more)) => all.extend(more),
        (Descriptors::F32(all), Descriptors::F32(more)) => all.extend(more),
        // One detector gives one kind.
        _ => {}
    }
    all
}

impl GpuSift {
    /// The features of an image, in bands when the memory is too small for the whole.
    pub(super) fn whole_or_bands<T: GpuPixel>(
        &mut self,
        image: Pixels<'_, T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Features> {
        // What there was no memory for is not tried again.
        let kept = self.bands.take().filter(|b| b.serves::<T>(image.size(), mask.is_some()));
        let found = match kept {
            Some(bands) => self.search_bands(bands, image, mask),
            None => self.search_whole(image, mask),
        };
        match found {
            Err(refused) => self.in_bands(image, mask, refused),
            found => found,
        }
    }

    fn search_whole<T: GpuPixel>(
        &mut self,
        image: Pixels<'_, T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Features> {
        match image {
            Pixels::Device(image) => loop {
                self.enqueue(slice::from_ref(image), mask)?;
                if let Some(features) = self.fetch_one()? {
                    return Ok(features);
                }
            },
            Pixels::Host(view) => {
                // So that its pixels do not travel in vain.
                self.reserve::<T>(Plan::new(view.size(), 1, &self.options)?, mask.is_some())?;
                let mut input = Staging::of(self.input.take(), &self.gpu, view.size())?;
                let found = self.search_whole(Pixels::Device(input.fill(view)?), mask);
                self.input = Some(input);
                found
            }
        }
    }

    /// What is tried when memory was refused: bands for what is free, or for ever less.
    pub(super) fn in_bands<T: GpuPixel>(
        &mut self,
        image: Pixels<'_, T>,
        mask: Option<&GpuImage<u8>>,
        refused: Error,
    ) -> Result<Features> {
        if !is_of_memory(&refused) {
            return Err(refused);
        }
        (self.work, self.mask, self.input, self.bands) = (None, None, None, None);
        let whole = Plan::new(image.size(), 1, &self.options)?;
        let masked = mask.is_some();
        let mut limit = self.memory()?.unwrap_or(self.needed::<T>(&whole, masked) / 2);
        loop {
            let mut part = self.for_parts()?;
            let others = |cut: &Cut| cut.rest.as_ref().map_or(0, |rest| part.bytes(rest));
            let bytes = |cut: &Cut| part.needed::<T>(&cut.band, masked) + others(cut);
            let Some(cut) = Cut::within(&whole, &self.options, limit, bytes) else { return Err(refused) };
            let taken = bytes(&cut);
            part.limit = Some(limit - others(&cut));
            let bands = Bands::new::<T>(part, cut, masked);
            match bands.and_then(|bands| self.search_bands(Box::new(bands), image, mask)) {
                Err(error) if is_of_memory(&error) => limit = taken / 2,
                found => return found,
            }
        }
    }

    fn search_bands<T: GpuPixel>(
        &mut self,
        mut bands: Box<Bands>,
        image: Pixels<'_, T>,
        mask: Option<&GpuImage<u8>>,
    ) -> Result<Features> {
        let found = bands.detect(image, mask)?;
        self.bands = Some(bands);
        Ok(self.options.selection.apply(&found, &self.cpu))
    }

    /// The features of the one image that was searched, or `None`, as [`fetched`](Self::fetched).
    fn fetch_one(&mut self) -> Result<Option<Features>> {
        self.fetch(0)?;
        Ok(self.fetched(0, true)?.and_then(|mut found| found.pop()))
    }

    /// The same for parts of an image, whose features are yet to be selected from.
    fn for_parts(&self) -> Result<Self> {
        let selection = match self.options.selection {
            Selection::Even(_) => Selection::All,
            other => other,
        };
        Ok(Self::new(&self.gpu, SiftOptions { selection, ..self.options })?.with_cpu(&self.cpu))
    }

    /// Bytes that may be taken, as far as one knows.
    fn memory(&self) -> Result<Option<u64>> {
        self.gpu.release_memory()?;
        // A part is left to the driver.
        let free = self.gpu.free_memory().map(|free| free - free / 16);
        Ok(self.limit.into_iter().chain(free).min())
    }

    /// Bytes of the device's memory for images, their mask, and all work on them.
    fn needed<T: GpuPixel>(&self, plan: &Plan, masked: bool) -> u64 {
        let image = Buffer::<T>::taken(GpuImage::<T>::pitch_of(plan.input.width) * plan.input.height);
        let mask = Buffer::<u8>::taken(GpuImage::<u8>::pitch_of(plan.whole.width) * plan.whole.height);
        self.bytes(plan) + (plan.images * image + usize::from(masked) * mask) as u64
    }

    /// Bytes of the device's memory for levels and lists.
    fn bytes(&self, plan: &Plan) -> u64 {
        let room = plan.images * self.capacity(plan);
        let lists = if self.options.upright { 2 } else { 3 } * Buffer::<u32>::taken(room * WORDS);
        let descriptors = match self.options.descriptors {
            DescriptorKind::F32 => Buffer::<f32>::taken(room * self.options.dimension()),
            _ => Buffer::<u8>::taken(room * self.options.dimension()),
        };
        let order = 2 * Buffer::<u64>::taken(room);
        (Buffer::<f32>::taken(plan.len()) + lists + descriptors + order) as u64
    }

    /// Holds the work to the limit that the caller has set.
    pub(super) fn within_limit<T: GpuPixel>(&self, plan: &Plan, masked: bool) -> Result<()> {
        let needed = self.needed::<T>(plan, masked);
        match self.limit {
            Some(limit) if needed > limit => {
                Err(Error::Memory { what: "SIFT on a GPU", needed, shortage: Shortage::Limit(limit) })
            }
            _ => Ok(()),
        }
    }
}

/// Whether something smaller may succeed.
pub(super) fn is_of_memory(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::DeviceMemory | ErrorKind::MemoryLimit)
}
