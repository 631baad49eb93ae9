//! What a band hands to the one below: the paths of its last rows, in pieces that change owner.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Columns in a piece.
pub(super) const SEGMENT: usize = 32;

/// The paths of up to [`SEGMENT`] columns: for each column, row and direction the path values of all disparities.
#[derive(Clone, Debug, Default)]
pub(super) struct Segment<T> {
    pub(super) values: Vec<T>,
    pub(super) least: Vec<T>,
}

/// The pieces along a row. One band puts them, from the left; the next takes them.
#[derive(Debug)]
pub(super) struct Boundary<T> {
    pieces: Vec<Mutex<Option<Segment<T>>>>,
}

impl<T: Clone> Boundary<T> {
    pub(super) fn new(width: usize) -> Self {
        Self { pieces: (0..width.div_ceil(SEGMENT)).map(|_| Mutex::new(None)).collect() }
    }

    pub(super) fn put(&self, index: usize, piece: Segment<T>) {
        *self.pieces[index].lock().unwrap_or_else(PoisonError::into_inner) = Some(piece);
    }

    pub(super) fn take(&self, index: usize) -> Option<Segment<T>> {
        self.pieces[index].lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A copy, to begin again from here.
    pub(super) fn checkpoint(&self) -> Self {
        let copy = |p: &Mutex<Option<Segment<T>>>| {
            Mutex::new(p.lock().unwrap_or_else(PoisonError::into_inner).clone())
        };
        Self { pieces: self.pieces.iter().map(copy).collect() }
    }
}

/// How many pieces each band of a pass has put.
#[derive(Debug)]
pub(super) struct Wavefront {
    put: Vec<AtomicUsize>,
    failed: AtomicBool,
}

impl Wavefront {
    pub(super) fn new(bands: usize) -> Self {
        Self { put: (0..bands).map(|_| AtomicUsize::new(0)).collect(), failed: AtomicBool::new(false) }
    }

    pub(super) fn publish(&self, band: usize, pieces: usize) {
        self.put[band].store(pieces, Ordering::Release);
    }

    /// Waits until the band before this one has put more than `piece` pieces. Bands are begun in order, so that one is
    /// at work; before the first all pieces lie ready.
    pub(super) fn wait(&self, band: usize, piece: usize) {
        let Some(before) = band.checked_sub(1).map(|b| &self.put[b]) else { return };
        let mut turns = 0;
        while before.load(Ordering::Acquire) <= piece && !self.failed.load(Ordering::Relaxed) {
            turns += 1;
            if turns < 200 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// Lets the others go on, should this thread be unwinding.
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
