//! The data that the costs of one row are computed from.

use super::super::aggregation::Value;
use super::Descriptors;
use crate::stereo::View;
use crate::stereo::pair::Pair;

/// The pixels of one step of a band's wavefront: one in each row, each a fixed number of columns from the one above.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct Column {
    /// The column of the pixel of the first row.
    pub(in crate::stereo) first: usize,
    /// How many columns to the right the pixel of the next row is.
    pub(in crate::stereo) slope: isize,
}

impl Column {
    /// The column of the pixel of row `r`, counted from the first.
    #[inline(always)]
    pub(in crate::stereo) fn x(self, r: usize) -> usize {
        self.first.wrapping_add_signed(self.slope.wrapping_mul(r as isize))
    }
}

/// The layout of a right row that is reversed and extended to all disparities of all left pixels.
///
/// Place j holds column x = width − 1 − j − (least disparity), clamped to the image: the right pixel at the i-th
/// disparity of left pixel x is at place width − 1 − x + i.
#[derive(Clone, Copy, Debug)]
pub(in crate::stereo) struct RowLayout {
    pub(super) width: usize,
    /// How many places at the beginning repeat the last column.
    beyond: usize,
    /// Next come the columns `start..end`, from the last to the first.
    start: usize,
    end: usize,
    /// How many places at the end repeat the first column.
    before: usize,
}

impl RowLayout {
    pub(in crate::stereo) fn new(width: usize, min_disparity: i32, padded: usize) -> Self {
        let columns = width as i64;
        let start = columns - 1 - i64::from(min_disparity);
        let len = columns + padded as i64;
        let beyond = (start - (columns - 1)).clamp(0, len);
        let inside = (start.min(columns - 1) + 1).clamp(0, len - beyond);
        let end = start.clamp(-1, columns - 1) + 1;
        Self {
            width,
            beyond: beyond as usize,
            start: (end - inside) as usize,
            end: end as usize,
            before: (len - beyond - inside) as usize,
        }
    }

    fn len(self) -> usize {
        self.beyond + (self.end - self.start) + self.before
    }

    /// Appends a row, reversed and extended.
    fn reverse(self, row: &[u8], out: &mut Vec<u8>) {
        out.extend(std::iter::repeat_n(row[row.len() - 1], self.beyond));
        out.extend(row[self.start..self.end].iter().rev());
        out.extend(std::iter::repeat_n(row[0], self.before));
    }
}

/// The data that the costs of a row are computed from.
#[derive(Clone, Debug, Default)]
pub(in crate::stereo) struct CostRow {
    pub(super) y: usize,
    /// The descriptors of the left row, plane by plane.
    left: Vec<u8>,
    width: usize,
    /// The descriptors of the right row, each plane reversed and extended (see [`RowLayout`]) to `reach` bytes.
    right: Vec<u8>,
    reach: usize,
    /// 0 where the left row has no data; empty if it has data everywhere.
    left_mask: Vec<u8>,
    /// 0 where the right row, reversed and extended, has no data; empty if it has data everywhere.
    right_mask: Vec<u8>,
    /// The descriptors of the right row in the order of the columns.
    planes: Vec<u8>,
}

impl CostRow {
    /// Takes the masks of row y.
    pub(super) fn prepare(&mut self, pair: &Pair, y: usize, layout: RowLayout) {
        (self.y, self.width, self.reach) = (y, layout.width, layout.len());
        self.left_mask.clear();
        self.left_mask.extend(pair.mask(View::Left).iter().flat_map(|m| m.row(y)));
        self.right_mask.clear();
        if let Some(mask) = pair.mask(View::Right) {
            layout.reverse(mask.row(y), &mut self.right_mask);
        }
    }

    /// Takes the descriptors, which `describe` writes.
    pub(super) fn describe(&mut self, planes: usize, layout: RowLayout, describe: impl Fn(View, &mut [u8])) {
        let bytes = planes * layout.width;
        self.left.resize(bytes, 0);
        self.planes.resize(bytes, 0);
        describe(View::Left, &mut self.left);
        describe(View::Right, &mut self.planes);
        self.right.clear();
        self.right.reserve(planes * layout.len());
        self.planes.chunks_exact(layout.width).for_each(|plane| layout.reverse(plane, &mut self.right));
    }

    /// The number of disparities for which the row was prepared.
    #[inline(always)]
    pub(super) fn padded(&self) -> usize {
        self.reach - self.width
    }

    /// Whether the left pixel has no data.
    #[inline(always)]
    pub(in crate::stereo) fn is_hole(&self, x: usize) -> bool {
        self.left_mask.get(x).is_some_and(|&m| m == 0)
    }

    /// The descriptors that the costs of the left pixel x are computed from.
    #[inline(always)]
    pub(super) fn descriptors(&self, x: usize) -> Descriptors<'_> {
        Descriptors {
            left: &self.left,
            width: self.width,
            x,
            right: &self.right,
            reach: self.reach,
            start: self.width - 1 - x,
        }
    }

    /// Sets the costs of the left pixel x to `greatest` where the right pixel has no data.
    #[inline(always)]
    pub(super) fn mask<T: Value>(&self, x: usize, greatest: T, costs: &mut [T]) {
        if !self.right_mask.is_empty() {
            let start = self.width - 1 - x;
            let mask = &self.right_mask[start..start + costs.len()];
            costs.iter_mut().zip(mask).for_each(|(cost, &m)| *cost = if m == 0 { greatest } else { *cost });
        }
    }
}
