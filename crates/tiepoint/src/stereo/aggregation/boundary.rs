//! The boundary between two bands: the paths of a band's last rows, handed to the band below in segments.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Columns in a segment.
pub(super) const SEGMENT: usize = 32;

/// The paths of up to [`SEGMENT`] columns: for each column, row and direction the path values of all disparities.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment<T> {
    pub(super) values: Vec<T>,
    pub(super) least: Vec<T>,
}

/// The segments along a row. One band puts them, from the left; the next takes them.
#[derive(Debug)]
pub(super) struct Boundary<T> {
    segments: Vec<Mutex<Option<Segment<T>>>>,
}

impl<T: Clone> Boundary<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { segments: (0..width.div_ceil(SEGMENT)).map(|_| Mutex::new(None)).collect() }
    }

    pub(super) fn put(&self, index: usize, segment: Segment<T>) {
        *self.segments[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(segment);
    }

    pub(super) fn take(&self, index: usize) -> Option<Segment<T>> {
        self.segments[index].lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A copy, to start again from here.
    pub(super) fn checkpoint(&self) -> Self {
        let copy = |p: &Mutex<Option<Segment<T>>>| {
            Mutex::new(p.lock().unwrap_or_else(PoisonError::into_inner).clone())
        };
        Self { segments: self.segments.iter().map(copy).collect() }
    }
}

/// How far each band of a pass has got: the number of segments it has put.
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

    /// Waits until the band before this one has put more than `segment` segments. Bands are started in order, so the one
    /// waited for is running; the segments that the first band takes were put by an earlier pass.
    pub(super) fn wait(&self, band: usize, segment: usize) {
        let Some(before) = band.checked_sub(1).map(|b| &self.put[b]) else { return };
        let mut turns = 0;
        while before.load(Ordering::Acquire) <= segment && !self.failed.load(Ordering::Relaxed) {
            turns += 1;
            if turns < 200 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Releases the waiting threads should this thread unwind.
    pub(super) fn guard(&self) -> Guard<'_> {
        Guard(&self.failed)
    }
}

/// Ends all waiting when a thread unwinds.
pub(super) struct Guard<'a>(&'a AtomicBool);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
