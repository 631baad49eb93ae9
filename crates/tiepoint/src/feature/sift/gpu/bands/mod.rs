//! Images whose scale space exceeds the device's memory, searched in bands of rows: the same bits with less memory.
//!
//! The finest octaves take nearly all memory. A band is some rows of the image; its first octaves are made as if it
//! were a separate image. Rows within reach of the Gaussians from a cut are wrong. Extrema are therefore taken only in
//! its core; the halo around that (see [`cut`]) holds the wrong rows and those that refinement and description read.
//! Level 0 of the octave after these is assembled from all cores, and the remaining octaves are searched as a whole.
//!
//! All bands have the same height, and use one plan and one graph in the same memory. They begin at rows that are whole
//! and even in every octave, so that pixels are paired, kept and rounded as in the image.

mod cut;
#[cfg(test)]
mod tests;

use super::pipeline::{SiftPipeline, lists_and_levels};
use super::plan::{Part, Plan};
use crate::device::gpu::Commands;
use crate::feature::Features;
use crate::feature::gpu::pipeline::{Core, Parts, Pipeline, Purpose, is_of_memory};
use crate::feature::gpu::search::Search;
use crate::feature::gpu::staging::Staging;
use crate::feature::sift::SiftOptions;
use crate::image::gpu::{AnyGpuImage, GpuImage};
use crate::image::{PixelKind, Pixels, Size};
use crate::{Error, Result};
use cut::Cut;
use std::slice;
use std::sync::Arc;

/// Searches an image in bands, and keeps their memory.
#[derive(Debug)]
pub struct Bands {
    cut: Cut,
    band: Search<SiftPipeline>,
    /// The search of the octaves after the bands'. It has no memory limit, because its memory is reserved beforehand.
    rest: Option<Search<SiftPipeline>>,
}

impl Bands {
    /// Reserves the memory. `core` is made by [`for_parts`].
    fn new(core: Core<SiftPipeline>, cut: Cut, pixel: PixelKind, masked: bool) -> Result<Self> {
        let mut band = Search::new(Arc::new(core))?;
        band.reserve(cut.band.clone(), pixel, masked)?;
        let rest = cut.rest.clone().map(|plan| {
            let mut rest = Search::new(Arc::new(for_parts(&band.core)?))?;
            rest.mask.clone_from(&band.mask);
            rest.reserve(plan, pixel, masked)?;
            Ok::<_, Error>(rest)
        });
        Ok(Self { rest: rest.transpose()?, cut, band })
    }

    fn search_band(&mut self, image: &AnyGpuImage, part: &Part) -> Result<Features> {
        let (masked, Self { cut, band, rest }) = (self.band.mask.is_some(), self);
        band.fetch_one(|band| {
            band.reserve(cut.band.clone(), image.pixel(), masked)?;
            let pipeline = band.reserved()?;
            pipeline.levels.octaves.write(0, &pipeline.levels.plan.table(part))?;
            pipeline.begin(slice::from_ref(image), None)?;
            let (Some(seed), Some(rest)) = (cut.band.seed, &rest) else { return Ok(()) };
            // The core's rows become level 0 of the octaves after the band's.
            let (band, rest) = (&pipeline.levels, &rest.reserved()?.levels);
            let [first, start, end] = [part.first, part.taken.start, part.taken.end].map(|n| seed.rows_of(n));
            let from = seed.offset + (start - first) * seed.pitch;
            let to = rest.plan.octaves[0].offset + start * seed.pitch;
            let mut commands = Commands::new();
            commands.stage("scale space");
            commands.copy((&band.values, from), (&rest.values, to), (end - start) * seed.pitch)?;
            Ok(band.values.gpu().run(&commands)?)
        })
    }
}

impl Parts<SiftPipeline> for Bands {
    fn serves(&self, size: Size, pixel: PixelKind, masked: bool) -> bool {
        let purpose = self.band.pipeline.as_ref().map(Pipeline::purpose);
        purpose.is_some_and(|p| p.layout.whole == size && p.masked == masked && p.pixel == pixel)
    }

    fn count(&self) -> usize {
        self.cut.count()
    }

    fn detect(&mut self, image: &Pixels<'_>, mask: Option<&GpuImage<u8>>) -> Result<Features> {
        let gpu = self.band.core.gpu.clone();
        if let (Some(mask), Some(own)) = (mask, &self.band.mask) {
            let mut commands = Commands::new();
            mask.copy_rows(&mut commands, 0, (own.buffer(), 0, own.pitch()), own.size().height)?;
            gpu.run(&commands)?;
        }
        let mut staging = Staging::of(self.band.input.take(), &gpu, image.pixel(), self.cut.band.input)?;
        let steps = self.cut.count() + usize::from(self.rest.is_some());
        let cpu = self.band.core.cpu.begin_task(SiftPipeline::NAME, steps);
        let mut found = Vec::new();
        for part in self.cut.parts() {
            found.push(self.search_band(&staging.rows(image, part.first)?, &part)?);
            cpu.advance(1);
        }
        self.band.input = Some(staging);
        // All rows are complete: the octaves after the bands'.
        if let (Some(plan), Some(rest)) = (&self.cut.rest, &mut self.rest) {
            let masked = rest.mask.is_some();
            found.push(rest.fetch_one(|rest| {
                rest.reserve(plan.clone(), image.pixel(), masked)?;
                Ok(rest.reserved()?.graph.run()?)
            })?);
        }
        let mut found = found.into_iter();
        let first = found.next().ok_or_else(|| Error::Image("no image".into()))?;
        let mut all = Features { image: image.size(), ..first };
        found.try_for_each(|more| all.append(&more))?;
        Ok(all)
    }

    fn fit(
        core: &Core<SiftPipeline>,
        image: &Pixels<'_>,
        mask: Option<&GpuImage<u8>>,
        refused: Error,
    ) -> Result<(Self, Features)> {
        let (options, pixel, masked) = (&core.options, image.pixel(), mask.is_some());
        let whole = Plan::new(image.size(), 1, options)?;
        let purpose = |plan: &Plan| {
            let capacity = SiftPipeline::usual_capacity(plan);
            Purpose { layout: plan.clone(), pixel, masked, capacity }
        };
        let needed = SiftPipeline::bytes(options, &purpose(&whole));
        core.gpu.release_memory()?;
        // A part is left to the driver.
        let free = core.gpu.free_memory().map(|free| free - free / 16);
        let mut limit = core.limit.into_iter().chain(free).min().unwrap_or(needed / 2);
        loop {
            let others =
                |cut: &Cut| cut.rest.as_ref().map_or(0, |rest| lists_and_levels(options, &purpose(rest)));
            let bytes = |cut: &Cut| SiftPipeline::bytes(options, &purpose(&cut.band)) + others(cut);
            let Some(cut) = Cut::within(&whole, options, limit, bytes) else { return Err(refused) };
            let taken = bytes(&cut);
            let part = Core { limit: Some(limit - others(&cut)), ..for_parts(core)? };
            let found = Self::new(part, cut, pixel, masked)
                .and_then(|mut bands| bands.detect(image, mask).map(|found| (bands, found)));
            match found {
                Err(error) if is_of_memory(&error) => limit = taken / 2,
                found => return found,
            }
        }
    }
}

/// A core with these stages for parts of an image, whose features are selected later.
fn for_parts(core: &Core<SiftPipeline>) -> Result<Core<SiftPipeline>> {
    let options = SiftOptions { selection: core.options.selection.of_part(), ..core.options };
    Core::new(&core.gpu, &core.cpu, options)
}
