//! The boundary between two bands: the paths of a band's last rows, handed to the band below in segments.

use super::path_ring::{PAD, aligned, line_start};
use super::recurrence::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tiepoint_gpu::lock;

/// Columns in a segment.
pub(super) const SEGMENT: usize = 32;

/// How often a thread polls before it yields its core: for the time of a few segments, 10 µs each. If other threads
/// are waiting for the core, the thread gets it back only milliseconds later, and the next band waits as long
/// (`docs/notebook/stereo.md`).
const SPINS: usize = 2000;

/// The paths of up to [`SEGMENT`] columns: for each column, row and direction the path values of all disparities.
#[derive(Debug, Default)]
pub(super) struct Segment<T> {
    /// The path costs begin at a cache line.
    values: Vec<T>,
    least: Vec<T>,
}

impl<T: Value> Segment<T> {
    pub(super) fn resize(&mut self, paths: usize, padded: usize) {
        aligned(&mut self.values, paths * padded);
        self.least.resize(paths, T::default());
    }

    /// `count` paths from the `first` on, of `padded` disparities, and their minima.
    #[inline(always)]
    pub(super) fn paths(
        &mut self,
        first: usize,
        count: usize,
        padded: usize,
    ) -> impl Iterator<Item = (&mut [T], &mut T)> {
        let values = &mut aligned(&mut self.values, (first + count) * padded)[first * padded..];
        values.chunks_exact_mut(padded).zip(self.least.iter_mut().skip(first))
    }
}

impl<T: Value> Clone for Segment<T> {
    /// The copy begins with a cache line of its own.
    fn clone(&self) -> Self {
        let mut copy = Self { values: Vec::new(), least: self.least.clone() };
        let len = self.values.len().saturating_sub(PAD);
        aligned(&mut copy.values, len).copy_from_slice(&self.values[line_start(&self.values)..][..len]);
        copy
    }
}

/// The segments along a row: one band puts them here, from the left on, and the next band takes them.
#[derive(Debug)]
pub(super) struct Boundary<T> {
    segments: Vec<Mutex<Option<Segment<T>>>>,
}

impl<T: Value> Boundary<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { segments: (0..width.div_ceil(SEGMENT)).map(|_| Mutex::new(None)).collect() }
    }

    pub(super) fn put(&self, index: usize, segment: Segment<T>) {
        *lock(&self.segments[index]) = Some(segment);
    }

    pub(super) fn take(&self, index: usize) -> Option<Segment<T>> {
        lock(&self.segments[index]).take()
    }

    /// A copy, to start again from here.
    pub(super) fn checkpoint(&self) -> Self {
        let copy = |p: &Mutex<Option<Segment<T>>>| Mutex::new(lock(p).clone());
        Self { segments: self.segments.iter().map(copy).collect() }
    }
}

/// The progress of each band of a pass: the number of segments it has put.
#[derive(Debug)]
pub(super) struct Wavefront {
    put: Vec<AtomicUsize>,
    failed: AtomicBool,
}

impl Wavefront {
    pub(super) fn new(bands: usize) -> Self {
        Self { put: (0..bands).map(|_| AtomicUsize::new(0)).collect(), failed: AtomicBool::new(false) }
    }

    pub(super) fn publish(&self, band: usize, segments: usize) {
        self.put[band].store(segments, Ordering::Release);
    }

    /// Waits until the previous band has put more than `segment` segments. Bands are started in order, so that band is
    /// running; the segments that the first band takes were put by an earlier pass.
    pub(super) fn wait(&self, band: usize, segment: usize) {
        let Some(before) = band.checked_sub(1).map(|b| &self.put[b]) else { return };
        let mut turns = 0;
        while before.load(Ordering::Acquire) <= segment && !self.failed.load(Ordering::Relaxed) {
            turns += 1;
            if turns < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(&self.failed)
    }
}

/// Releases all waiting threads when a thread unwinds.
pub(super) struct Guard<'a>(&'a AtomicBool);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
