//! Features of photographs, kept in the memory of a device for later pairs.

use crate::Result;
use crate::device::gpu::Gpu;
use crate::feature::Features;
use crate::matching::{GpuMatcher, GpuPacked, MatchOptions};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tiepoint_gpu::lock;

/// Photographs may take one in this many bytes of a device's free memory.
const SHARE: u64 = 4;

/// The features of photographs in a device's memory, packed for the search. The least recently used ones are dropped to
/// make room.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) matcher: GpuMatcher,
    /// The bytes that all may take.
    room: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    photographs: HashMap<u32, Photograph>,
    bytes: u64,
    /// The number of uses so far.
    clock: u64,
}

#[derive(Debug)]
struct Photograph {
    packed: Arc<GpuPacked>,
    used: u64,
}

impl Uploaded {
    pub(super) fn new(gpu: &Gpu) -> Self {
        let memory = gpu.info().memory;
        let room = gpu.free_memory().map_or(memory, |free| free.min(memory)) / SHARE;
        Self { matcher: GpuMatcher::new(gpu), room, kept: Mutex::default() }
    }

    /// The features of a photograph, uploaded unless they are on the device.
    pub(super) fn get(
        &self,
        index: u32,
        features: &Features,
        options: &MatchOptions,
    ) -> Result<Arc<GpuPacked>> {
        if let Some(packed) = lock(&self.kept).take(index) {
            return Ok(packed);
        }
        // The lock is not held meanwhile, so that other threads go on. Two threads may upload the same photograph; the
        // bytes are the same.
        let packed = Arc::new(self.matcher.send(features, options)?);
        lock(&self.kept).keep(index, packed.clone(), self.room);
        Ok(packed)
    }

    pub(super) fn clear(&self) {
        *lock(&self.kept) = Kept::default();
    }
}

impl Kept {
    fn take(&mut self, index: u32) -> Option<Arc<GpuPacked>> {
        self.clock += 1;
        let photograph = self.photographs.get_mut(&index)?;
        photograph.used = self.clock;
        Some(photograph.packed.clone())
    }

    /// Keeps a photograph, and drops the least recently used others that have no room beside it.
    fn keep(&mut self, index: u32, packed: Arc<GpuPacked>, room: u64) {
        self.clock += 1;
        self.bytes += packed.bytes() as u64;
        if let Some(before) = self.photographs.insert(index, Photograph { packed, used: self.clock }) {
            self.bytes -= before.packed.bytes() as u64;
        }
        while self.bytes > room && self.photographs.len() > 1 {
            let oldest = self.photographs.iter().min_by_key(|(_, p)| p.used).map(|(index, _)| *index);
            let Some(removed) = oldest.and_then(|oldest| self.photographs.remove(&oldest)) else { break };
            self.bytes -= removed.packed.bytes() as u64;
        }
    }
}
