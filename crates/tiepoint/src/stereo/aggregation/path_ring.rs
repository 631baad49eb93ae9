//! A ring buffer for the path costs L of the rows of a band.
//!
//! A row needs the path costs of the row above only around its own column, so a few columns of each row suffice, used
//! in turn; of the path along the row it needs one pixel. A *slot* holds the costs of one path at one pixel for all
//! disparities, with a pad on either side that holds [`Value::MAX`]: disparities that do not exist. One more slot is
//! zero: paths that begin at the border of the image continue from there, which gives L = C.

use super::{Directions, recurrence::Value};

/// Elements before the first disparity of a slot: a cache line of bytes, so that slots are aligned.
const PAD: usize = 64;

/// How the slots of a band lie.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    padded: usize,
    stride: usize,
    /// Columns kept of a row, a power of two.
    columns: usize,
    /// Directions that come from rows above.
    vertical: usize,
    /// Rows above the band.
    depth: usize,
}

/// The slots of a band.
#[derive(Debug, Default)]
pub(super) struct PathRing<T> {
    shape: Shape,
    /// Paths from above: by row, column, direction. Rows above the band come first.
    paths: Vec<T>,
    /// Their least values.
    least: Vec<T>,
    /// Paths along the row: two pixels a row, in turn.
    along: Vec<T>,
    /// The least value of the last pixel's, by row.
    along_least: Vec<T>,
    /// Where paths begin.
    zeros: Vec<T>,
}

/// Slots with their pads, of which the first is aligned.
fn slots<T: Value>(paths: &mut Vec<T>, count: usize, shape: Shape) -> usize {
    let len = PAD * 2 + count * shape.stride;
    if paths.len() != len {
        *paths = vec![T::MAX; len];
    }
    let start = paths.as_ptr().align_offset(64);
    PAD + if start < PAD { start } else { 0 }
}

impl Shape {
    /// The first slot of a row and column; rows above the band are negative.
    #[inline(always)]
    fn slot(self, row: isize, column: usize) -> usize {
        let row = (row + self.depth as isize) as usize;
        (row * self.columns + (column & (self.columns - 1))) * self.vertical
    }
}

/// The path costs that a pixel's are computed from, and where its own go.
pub(super) struct PixelPaths<'a, T, const N: usize> {
    /// L(p − r, ·) for each direction r, with one more element at either end.
    pub(super) from: [&'a [T]; N],
    /// Their minima.
    pub(super) least: [T; N],
    /// L(p, ·) for each direction.
    pub(super) to: [&'a mut [T]; N],
    /// Their minima: of the path along the row, and of the others.
    pub(super) to_least: (&'a mut T, &'a mut [T]),
}

impl<T: Value> PathRing<T> {
    /// Makes room for a band of `rows` rows and `padded` disparities.
    pub(super) fn prepare<D: Directions<N>, const N: usize>(&mut self, rows: usize, padded: usize) {
        let (columns, vertical) = (D::COLUMNS, N - 1);
        let shape = Shape { padded, stride: padded + PAD, columns, vertical, depth: D::DEPTH };
        let count = (rows + D::DEPTH) * columns * vertical;
        if shape.stride != self.shape.stride {
            *self = Self::default();
        }
        self.shape = shape;
        self.zeros.clear();
        self.zeros.resize(padded + 2, T::default());
        self.least.resize(count, T::default());
        self.along_least.resize(rows, T::default());
        slots(&mut self.paths, count, shape);
        slots(&mut self.along, 2 * rows, shape);
    }
}

/// The slots of a band, borrowed while it is aggregated.
pub(super) struct PathSlots<'a, T> {
    shape: Shape,
    paths: &'a mut [T],
    least: &'a mut [T],
    along: &'a mut [T],
    along_least: &'a mut [T],
    zeros: &'a [T],
}

impl<T: Value> PathRing<T> {
    /// The slots, from the pad before the first.
    pub(super) fn slots(&mut self) -> PathSlots<'_, T> {
        let shape = self.shape;
        let (count, rows) = (self.least.len(), self.along_least.len());
        let first = slots(&mut self.paths, count, shape) - 1;
        let along = slots(&mut self.along, 2 * rows, shape) - 1;
        PathSlots {
            shape,
            paths: &mut self.paths[first..],
            least: &mut self.least,
            along: &mut self.along[along..],
            along_least: &mut self.along_least,
            zeros: &self.zeros,
        }
    }
}

impl<T: Value> PathSlots<'_, T> {
    /// The paths of direction `k` ≥ 1 at a row and column, and their least value.
    pub(super) fn path(&mut self, row: isize, column: usize, k: usize) -> (&mut [T], &mut T) {
        let slot = self.shape.slot(row, column) + k - 1;
        let at = slot * self.shape.stride + 1;
        (&mut self.paths[at..at + self.shape.padded], &mut self.least[slot])
    }

    /// The paths of pixel `u` of row `r`. `inside`: every p − r lies in the image; else `known` tells for each step
    /// whether it does.
    #[inline(always)]
    pub(super) fn pixel<D: Directions<N>, const N: usize>(
        &mut self,
        r: usize,
        u: usize,
        inside: bool,
        known: impl Fn(isize, usize) -> bool,
    ) -> PixelPaths<'_, T, N> {
        let Shape { padded, stride, columns, vertical, .. } = self.shape;
        let own = self.shape.slot(r as isize, 0);
        let (above, below) = self.paths.split_at_mut(own * stride);
        let (least_above, least_below) = self.least.split_at_mut(own);
        let (even, odd) = self.along[2 * r * stride..].split_at_mut(stride);
        let (to_along, from_along) = if u.is_multiple_of(2) { (even, &*odd) } else { (odd, &*even) };
        let along_least = &mut self.along_least[r];
        let mut from = [self.zeros; N];
        let mut least = [T::default(); N];
        if u > 0 {
            from[0] = &from_along[..padded + 2];
            least[0] = *along_least;
        }
        for k in 1..N {
            let (dx, dy) = D::STEPS[k];
            if inside || known(dx, dy) {
                let before = u.wrapping_add_signed(-dx) & (columns - 1);
                let slot = own - dy * columns * vertical + before * vertical + k - 1;
                from[k] = &above[slot * stride..slot * stride + padded + 2];
                least[k] = least_above[slot];
            }
        }
        let column = (u & (columns - 1)) * vertical;
        let to_least = &mut least_below[column..column + vertical];
        let mut slots = below[column * stride..].chunks_exact_mut(stride.max(1));
        let mut to_along = Some(&mut to_along[1..padded + 1]);
        let to = std::array::from_fn(|k| match k {
            0 => to_along.take().unwrap_or_default(),
            _ => slots.next().map_or(&mut [][..], |slot| &mut slot[1..padded + 1]),
        });
        PixelPaths { from, least, to, to_least: (along_least, to_least) }
    }
}
