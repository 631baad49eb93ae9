//! Features of photographs, kept in the memory of a device for later pairs.

use super::recent::Recent;
use crate::Result;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::matching::{GpuMatcher, GpuPacked, MatchOptions};
use std::sync::Arc;

/// Photographs may take one in this many bytes of a device's free memory.
const SHARE: u64 = 4;

/// The features of photographs in a device's memory, packed for the search.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) matcher: GpuMatcher,
    kept: Recent<Arc<GpuPacked>>,
}

impl Uploaded {
    pub(super) fn new(gpu: &Gpu) -> Self {
        let memory = gpu.info().memory;
        let room = gpu.free_memory().map_or(memory, |free| free.min(memory)) / SHARE;
        Self { matcher: GpuMatcher::new(gpu), kept: Recent::new(room, |packed| packed.bytes() as u64) }
    }

    /// The features of a photograph, uploaded unless they are on the device.
    pub(super) fn get(
        &self,
        index: u32,
        features: &Features,
        options: &MatchOptions,
    ) -> Result<Arc<GpuPacked>> {
        self.kept.get(index, || Ok(Arc::new(self.matcher.send(features, options)?)))
    }

    pub(super) fn clear(&self) {
        self.kept.clear();
    }
}
