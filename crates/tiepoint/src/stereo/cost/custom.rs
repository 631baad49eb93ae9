//! Costs that the caller computes.

use super::gpu::CostKernel;
use super::{Column, CostRow, CostSource, Costs, RowLayout, Value};
use crate::device::Level;
use crate::stereo::Penalties;
use crate::stereo::pair::Pair;
use std::ops::Range;

/// The number of columns that are computed at a time.
const BLOCK: usize = 64;

/// A matching cost that the caller computes, for [`Stereo::compute_with`](crate::stereo::Stereo::compute_with).
pub trait MatchingCost: Sync {
    /// The greatest cost it gives, at most 4000. Greater values are truncated to this.
    fn greatest(&self) -> u16;

    /// Penalties that suit the cost, in its unit; used unless
    /// [`StereoOptions::penalties`](crate::stereo::StereoOptions::penalties) states others.
    fn penalties(&self) -> Penalties;

    /// Writes the costs of the left pixels (x, y), x in `columns`, at every disparity searched.
    ///
    /// `out` has `columns.len()` × n elements, n being
    /// [`StereoOptions::disparities`](crate::stereo::StereoOptions::disparities): the cost of (x, y) and
    /// (x − (least disparity + i), y) goes to `out[(x - columns.start) * n + i]`. The right pixel may lie outside the
    /// image. Several threads call it, for parts of a row and in any order; once for each pass over the image, so at
    /// least twice for each part.
    fn row(&self, y: usize, columns: Range<usize>, out: &mut [u16]);
}

/// A custom cost as a source.
pub(in crate::stereo) struct Custom<'a>(pub(in crate::stereo) &'a dyn MatchingCost);

impl Custom<'_> {
    fn column<T: Value>(&self, costs: &Costs<'_>, column: Column, rows: &mut [CostRow], out: &mut [T]) {
        let (count, greatest) = (costs.disparities, self.0.greatest());
        let padded = out.len() / rows.len().max(1);
        for (r, (row, out)) in rows.iter_mut().zip(out.chunks_exact_mut(padded.max(1))).enumerate() {
            let x = column.x(r);
            let out = &mut out[..count];
            if row.is_hole(x) {
                out.fill(T::default());
                continue;
            }
            if !row.block.columns.contains(&x) {
                let start = x / BLOCK * BLOCK;
                let columns = start..(start + BLOCK).min(costs.pair.size().width);
                row.block.costs.clear();
                row.block.costs.resize(columns.len() * count, 0);
                self.0.row(row.y, columns.clone(), &mut row.block.costs);
                row.block.columns = columns;
            }
            let start = (x - row.block.columns.start) * count;
            let given = &row.block.costs[start..start + count];
            out.iter_mut().zip(given).for_each(|(out, &cost)| *out = T::of(cost.min(greatest)));
            row.mask(x, T::of(greatest), out);
        }
    }
}

impl CostSource for Custom<'_> {
    fn greatest(&self) -> u16 {
        self.0.greatest()
    }

    fn prepare(&self, _: Level, pair: &Pair, y: usize, layout: RowLayout, row: &mut CostRow) {
        row.prepare(pair, y, layout);
        row.block.columns = 0..0;
    }

    fn column_u8(&self, _: Level, costs: &Costs<'_>, column: Column, rows: &mut [CostRow], out: &mut [u8]) {
        self.column(costs, column, rows, out);
    }

    fn column_u16(&self, _: Level, costs: &Costs<'_>, column: Column, rows: &mut [CostRow], out: &mut [u16]) {
        self.column(costs, column, rows, out);
    }

    fn exchanged(&self) -> Option<Box<dyn CostSource>> {
        None
    }

    fn kernel(&self) -> Option<CostKernel> {
        None
    }
}
