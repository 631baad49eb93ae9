//! Where the paths of the rows in work lie.
//!
//! A row needs the paths of the row above only around its own column, so a few columns of each row suffice, taken in
//! turn. A *slot* holds the path values of one (row, column, direction); a pad on either side of it holds
//! [`Value::MAX`], which stands for the disparities that do not exist. One more slot is zero: paths that begin at the
//! border of the image come from there, and get L = C.

use super::{Directions, step::Value};

/// Places before the first disparity of a slot: a cache line of bytes, so that slots are aligned.
const PAD: usize = 64;

/// The slots of a band.
#[derive(Debug, Default)]
pub(super) struct Ring<T> {
    /// Path values of all slots.
    pub(super) paths: Vec<T>,
    /// The least path value of each slot.
    pub(super) least: Vec<T>,
    /// From slot to slot.
    pub(super) stride: usize,
    origin: usize,
    columns: usize,
    directions: usize,
    depth: usize,
    zero: usize,
}

impl<T: Value> Ring<T> {
    /// Makes room for a band of `rows` rows and `padded` disparities.
    pub(super) fn prepare<D: Directions<N>, const N: usize>(&mut self, rows: usize, padded: usize) {
        (self.columns, self.directions, self.depth) = (4 * D::SKEW, N, D::DEPTH);
        self.stride = padded + PAD;
        self.zero = (rows + D::DEPTH) * self.columns * N;
        let slots = self.zero + 1;
        let len = PAD * 3 + slots * self.stride;
        if self.paths.len() != len {
            self.paths = vec![T::MAX; len];
        }
        self.least.clear();
        self.least.resize(slots, T::default());
        let start = self.paths.as_ptr().align_offset(64);
        self.origin = PAD + if start < PAD { start } else { 0 };
        self.paths[..self.origin].fill(T::MAX);
        for slot in 0..slots {
            let end = self.at(slot) + padded;
            self.paths[end..end + PAD].fill(T::MAX);
        }
        let zeros = self.at(self.zero);
        self.paths[zeros..zeros + padded].fill(T::default());
    }

    /// The slot of a row and column for the first direction, the others following; rows above the band are negative.
    #[inline(always)]
    pub(super) fn slot(&self, row: isize, column: usize) -> usize {
        let row = (row + self.depth as isize) as usize;
        (row * self.columns + (column & (self.columns - 1))) * self.directions
    }

    /// The slot of zeros.
    #[inline(always)]
    pub(super) fn zero(&self) -> usize {
        self.zero
    }

    /// Where the first disparity of a slot lies.
    #[inline(always)]
    pub(super) fn at(&self, slot: usize) -> usize {
        self.origin + slot * self.stride
    }
}
