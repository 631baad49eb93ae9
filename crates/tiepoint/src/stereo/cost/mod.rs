//! Matching costs: how unlike the left pixel (x, y) and the right pixel (x − d, y) are.
//!
//! A cost is an integer from 0 to a bound that is known ahead, so that sums of costs stay exact and are the same
//! on every machine. Where x − d lies outside the right image its nearest column stands in (as in the CUDA program
//! of 2010 that this follows), which errs less than leaving the disparity out. A left pixel without data costs
//! nothing at any disparity, so that paths cross it unchanged; a right one costs the most.
//!
//! Costs are not stored. For each row in work a [`CostRow`] holds what they are computed from, the right row reversed,
//! so that rising disparities lie side by side.

mod absolute_difference;
mod census;

pub(super) mod mutual_information;
#[cfg(test)]
mod tests;

pub use census::CensusWindow;
pub(in crate::stereo) use census::transform;

pub(super) use mutual_information::information::Table;

use super::{aggregation::Value, pair::Grey};
use crate::image::{Image, Size};
use fearless_simd::Simd;

/// The greatest absolute difference that is told from others.
pub const AD_LIMIT: u8 = 24;
/// The greatest entry of the table of mutual information.
pub const MI_LIMIT: u8 = 24;

/// A cost of the caller's own.
pub trait MatchingCost: Sync {
    /// The greatest cost it gives, at most 4000.
    fn greatest(&self) -> u16;

    /// Costs of the left pixel (x, y) for all disparities searched, from the least: `out[i]` for x − (min + i), which
    /// may lie outside the right image.
    fn costs(&self, x: usize, y: usize, out: &mut [u16]);
}

/// Where costs come from.
#[derive(Clone, Copy)]
pub(super) enum CostSource<'a> {
    Census { window: CensusWindow, left: &'a Grey, right: &'a Grey },
    Absolute { left: &'a Image<u8>, right: &'a Image<u8> },
    Information { left: &'a Image<u8>, right: &'a Image<u8>, table: &'a Table },
    Custom(&'a dyn MatchingCost),
}

/// The costs of a pair: where they come from, which disparities, which pixels hold nothing.
#[derive(Clone, Copy)]
pub(super) struct Costs<'a> {
    pub(super) source: CostSource<'a>,
    pub(super) size: Size,
    pub(super) min_disparity: i32,
    pub(super) disparities: usize,
    /// The greatest cost.
    pub(super) greatest: u16,
    /// 0 where there is no data.
    pub(super) left_mask: Option<&'a Image<u8>>,
    pub(super) right_mask: Option<&'a Image<u8>>,
}

/// What the costs of a row are computed from.
#[derive(Clone, Debug, Default)]
pub(super) struct CostRow {
    /// One byte a pixel, or a byte of the census of every pixel, then the next.
    left: Vec<u8>,
    /// The same of the right row, reversed: place j belongs to x = width − 1 − j, less the least disparity, held to
    /// the image.
    right: Vec<u8>,
    /// 0 where the left row holds nothing; empty: it holds something everywhere.
    left_mask: Vec<u8>,
    /// 255 where the right row, reversed, holds nothing.
    right_holes: Vec<u8>,
    /// A cost of the caller's own on its way.
    own: Vec<u16>,
}

impl CostRow {
    /// Whether the left pixel holds nothing.
    #[inline(always)]
    pub(super) fn is_hole(&self, x: usize) -> bool {
        self.left_mask.get(x).is_some_and(|&m| m == 0)
    }
}

impl Costs<'_> {
    /// Prepares the row y for `padded` disparities.
    pub(super) fn line(&self, y: usize, padded: usize, line: &mut CostRow) {
        line.left.clear();
        line.right.clear();
        match self.source {
            CostSource::Census { window, left, right } => {
                let (left, right) = (left.census(window, y), right.census(window, y));
                line.left.extend(left);
                right.chunks(self.size.width).for_each(|plane| self.reverse(plane, padded, &mut line.right));
            }
            CostSource::Absolute { left, right } | CostSource::Information { left, right, .. } => {
                line.left.extend_from_slice(left.row(y));
                self.reverse(right.row(y), padded, &mut line.right);
            }
            CostSource::Custom(_) => line.own.resize(self.disparities, 0),
        }
        line.left_mask.clear();
        line.left_mask.extend(self.left_mask.iter().flat_map(|m| m.row(y)));
        line.right_holes.clear();
        if let Some(mask) = self.right_mask {
            let holes: Vec<u8> = mask.row(y).iter().map(|&m| if m == 0 { 255 } else { 0 }).collect();
            self.reverse(&holes, padded, &mut line.right_holes);
        }
    }

    fn reverse(&self, row: &[u8], padded: usize, out: &mut Vec<u8>) {
        let width = self.size.width as i64;
        let start = width - 1 - i64::from(self.min_disparity);
        // Places to the right of the image, inside, to the left.
        let len = width + padded as i64;
        let outside = (start - (width - 1)).clamp(0, len);
        let inside = (start.min(width - 1) + 1).clamp(0, len - outside);
        let end = start.clamp(-1, width - 1) + 1;
        out.extend(std::iter::repeat_n(row[row.len() - 1], outside as usize));
        out.extend(row[(end - inside) as usize..end as usize].iter().rev());
        out.extend(std::iter::repeat_n(row[0], (len - outside - inside) as usize));
    }

    /// The costs of a pixel of the row, for as many disparities as `out` has: a multiple of the bytes of a vector.
    /// What is written beyond the last disparity has no meaning.
    #[inline(always)]
    pub(super) fn at<S: Simd, T: Value>(
        &self,
        simd: S,
        line: &mut CostRow,
        x: usize,
        y: usize,
        out: &mut [T],
    ) {
        if line.is_hole(x) {
            return out.fill(T::default());
        }
        let (width, start) = (self.size.width, self.size.width - 1 - x);
        let reach = width + out.len();
        match &self.source {
            CostSource::Census { window, .. } => {
                let planes =
                    census::Planes { left: &line.left[x..], width, right: &line.right[start..], reach };
                match window.planes() {
                    3 => planes.distance::<S, T, 3>(simd, out),
                    4 => planes.distance::<S, T, 4>(simd, out),
                    6 => planes.distance::<S, T, 6>(simd, out),
                    _ => planes.distance::<S, T, 8>(simd, out),
                }
            }
            CostSource::Absolute { .. } => {
                absolute_difference::difference(simd, line.left[x], &line.right[start..], out)
            }
            CostSource::Information { table, .. } => {
                mutual_information::information::look_up(
                    simd,
                    table,
                    line.left[x],
                    &line.right[start..],
                    out,
                );
            }
            CostSource::Custom(cost) => {
                cost.costs(x, y, &mut line.own);
                let greatest = self.greatest;
                out.iter_mut().zip(&line.own).for_each(|(o, &c)| *o = T::of(c.min(greatest)));
            }
        }
        if !line.right_holes.is_empty() {
            let most = T::of(self.greatest);
            let holes = &line.right_holes[start..start + out.len()];
            out.iter_mut().zip(holes).for_each(|(o, &h)| *o = if h == 0 { *o } else { most });
        }
    }
}
