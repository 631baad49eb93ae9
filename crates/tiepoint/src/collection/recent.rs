//! A cache of values that were read or computed for photographs.

use crate::Result;
use std::collections::HashMap;
use std::sync::Mutex;
use tiepoint_gpu::lock;

/// Values of photographs, by their numbers. The least recently used ones are dropped to make room.
#[derive(Debug)]
pub(super) struct Recent<V> {
    /// What all values may take together, and what one takes.
    room: u64,
    size: fn(&V) -> u64,
    kept: Mutex<Kept<V>>,
}

#[derive(Debug)]
struct Kept<V> {
    /// Each value with the number of its last use.
    values: HashMap<u32, (V, u64)>,
    size: u64,
    uses: u64,
}

impl<V: Clone> Recent<V> {
    pub(super) fn new(room: u64, size: fn(&V) -> u64) -> Self {
        Self { room, size, kept: Mutex::new(Kept { values: HashMap::new(), size: 0, uses: 0 }) }
    }

    /// The value of a photograph, from `make` unless it is kept.
    pub(super) fn get(&self, index: u32, make: impl FnOnce() -> Result<V>) -> Result<V> {
        let use_again = |kept: &mut Kept<V>| {
            kept.uses += 1;
            let (value, used) = kept.values.get_mut(&index)?;
            *used = kept.uses;
            Some(value.clone())
        };
        if let Some(value) = use_again(&mut lock(&self.kept)) {
            return Ok(value);
        }
        // The lock is not held meanwhile, so that other threads go on. Two threads may make the same value.
        let value = make()?;
        let kept = &mut *lock(&self.kept);
        kept.uses += 1;
        kept.size += (self.size)(&value);
        let mut dropped = kept.values.insert(index, (value.clone(), kept.uses));
        loop {
            kept.size -= dropped.map_or(0, |(value, _)| (self.size)(&value));
            if kept.size <= self.room || kept.values.len() <= 1 {
                return Ok(value);
            }
            let oldest = kept.values.iter().min_by_key(|(_, (_, used))| *used).map(|(index, _)| *index);
            dropped = oldest.and_then(|oldest| kept.values.remove(&oldest));
        }
    }

    pub(super) fn clear(&self) {
        let kept = &mut *lock(&self.kept);
        kept.values.clear();
        kept.size = 0;
    }
}
