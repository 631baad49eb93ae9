//! A vertical and a horizontal pass over an image, tile by tile.
//!
//! A task is a band of rows. The band is cut into narrow tiles, and all rows of one tile are computed before
//! the next tile, so that the window of the vertical pass stays in the first-level cache, however wide the
//! image is. The horizontal pass follows row by row, from a buffer of one row of the tile. Only the tiles'
//! margins are computed twice. Every value depends only on its window, so tiles and bands do not affect
//! results.

use super::border::{BAND, keep};
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::image::{Border, ImageView, ImageViewMut, Pixel, Size};
use fearless_simd::Simd;

/// The arithmetic of a separable filter of 2r + 1 rows and columns.
pub(super) trait Passes: Sync {
    /// The type that the vertical pass reads and the horizontal pass writes.
    type Value: Pixel;
    /// The type of the sums between the passes.
    type Mid: Copy;
    /// Elements of a tile's row; about a kilobyte.
    const TILE: usize;
    /// The vertical sum of black.
    const BLACK: Self::Mid;

    /// Rows above and below the centre, columns left and right of it.
    fn radius(&self) -> usize;
    /// The pixels without conversion, if the types agree.
    fn input<T: Pixel>(values: &[T]) -> Option<&[Self::Value]>;
    /// The output without conversion, if the types agree.
    fn output<T: Pixel>(values: &mut [T]) -> Option<&mut [Self::Value]>;
    /// Computes one row from 2r + 1 rows.
    fn vertical<S: Simd>(&self, simd: S, rows: &[&[Self::Value]], out: &mut [Self::Mid]);
    /// Computes one row from another with r more pixels at either end, and one spare element after it.
    fn horizontal<S: Simd>(&self, simd: S, padded: &[Self::Mid], channels: usize, out: &mut [Self::Value]);
}

/// Filters `view` into `out`, which has its shape.
pub(super) fn separable<T: Pixel, P: Passes>(
    view: ImageView<'_, T>,
    border: Border,
    passes: &P,
    cpu: &Cpu,
    out: ImageViewMut<'_, T>,
) -> Result<()> {
    let side = 2 * passes.radius() + 1;
    cpu.for_bands(out, BAND, |first, out| {
        band(view, border, passes, first, out, cpu);
        if border == Border::Skip {
            keep(view, Size::new(side, side), first, out);
        }
    })
}

/// The columns of one tile, as elements of a row.
struct Tile {
    /// The range of elements written, `to` excluded.
    from: usize,
    to: usize,
    /// The range of elements read, which lie inside the image.
    reach_from: usize,
    reach_to: usize,
    margin: usize,
    row_len: usize,
    channels: usize,
    border: Border,
}

fn band<T: Pixel, P: Passes>(
    view: ImageView<'_, T>,
    border: Border,
    passes: &P,
    first: usize,
    out: &mut ImageViewMut<'_, T>,
    cpu: &Cpu,
) {
    let (channels, height) = (view.channels(), view.size().height);
    let row_len = view.size().width * channels;
    let radius = passes.radius();
    let margin = radius * channels;
    // Whole pixels, and wide enough that the margins do not take more work than the tile.
    let width = P::TILE.max(4 * margin).div_ceil(channels) * channels;
    let black = vec![P::Value::default(); width + 2 * margin];
    let mut converted = Vec::new();
    let mut padded = vec![P::BLACK; width + 2 * margin + 1];
    let mut result = vec![P::Value::default(); width];
    let source = |k: usize| border.index((first + k) as isize - radius as isize, height);
    let window = out.size().height + 2 * radius;
    for from in (0..row_len).step_by(width) {
        let to = (from + width).min(row_len);
        let (reach_from, reach_to) = (from.saturating_sub(margin), (to + margin).min(row_len));
        let tile = Tile { from, to, reach_from, reach_to, margin, row_len, channels, border };
        let reach = reach_to - reach_from;
        let row = |y: usize| &view.row(y)[reach_from..reach_to];
        converted.clear();
        if P::input::<T>(&[]).is_none() {
            let rows = (0..window).map(|k| source(k).map_or(&[][..], row));
            rows.for_each(|r| {
                converted.extend(r.iter().map(|&v| P::Value::from_f32(v.to_f32())));
                converted.extend(&black[..reach - r.len()]);
            });
        }
        let rows: Vec<&[P::Value]> = (0..window)
            .map(|k| {
                let direct = source(k).map_or(Some(&black[..reach]), |y| P::input(row(y)));
                direct.unwrap_or_else(|| &converted[k * reach..(k + 1) * reach])
            })
            .collect();
        dispatch!(cpu.level(), simd => {
            rows_of_tile(simd, passes, &rows, &tile, &mut padded, &mut result, out);
        });
    }
}

/// Fills the vertical sums of a tile beyond the left and right edge of the image from those inside.
fn fill_ends<P: Passes>(padded: &mut [P::Mid], tile: &Tile) {
    let (channels, width) = (tile.channels, tile.row_len / tile.channels);
    // Element e of the image's row lies at e + margin − from.
    let mut fill = |x: isize| {
        let at = |x: isize| ((x * channels as isize) + tile.margin as isize - tile.from as isize) as usize;
        match tile.border.index(x, width) {
            Some(source) => {
                let source = at(source as isize);
                padded.copy_within(source..source + channels, at(x));
            }
            None => padded[at(x)..at(x) + channels].fill(P::BLACK),
        }
    };
    let radius = tile.margin / channels;
    let missing_left = (tile.margin - (tile.from - tile.reach_from)) / channels;
    let missing_right = (tile.margin - (tile.reach_to - tile.to)) / channels;
    let left = (tile.from / channels) as isize - radius as isize;
    (left..left + missing_left as isize).for_each(&mut fill);
    (width..width + missing_right).for_each(|x| fill(x as isize));
}

/// Computes all rows of a band, for one tile.
#[inline(always)]
fn rows_of_tile<S: Simd, T: Pixel, P: Passes>(
    simd: S,
    passes: &P,
    rows: &[&[P::Value]],
    tile: &Tile,
    padded: &mut [P::Mid],
    result: &mut [P::Value],
    out: &mut ImageViewMut<'_, T>,
) {
    let at_edge = tile.reach_to - tile.reach_from < tile.to - tile.from + 2 * tile.margin;
    let start = tile.margin - (tile.from - tile.reach_from);
    let inside = start..start + tile.reach_to - tile.reach_from;
    let used = tile.to - tile.from + 2 * tile.margin + 1;
    for (i, rows) in rows.windows(2 * passes.radius() + 1).enumerate() {
        passes.vertical(simd, rows, &mut padded[inside.clone()]);
        if at_edge {
            fill_ends::<P>(padded, tile);
        }
        let out = &mut out.row_mut(i)[tile.from..tile.to];
        if let Some(out) = P::output(out) {
            passes.horizontal(simd, &padded[..used], tile.channels, out);
            continue;
        }
        let result = &mut result[..out.len()];
        passes.horizontal(simd, &padded[..used], tile.channels, result);
        out.iter_mut().zip(result).for_each(|(o, v)| *o = T::from_f32(v.to_f32()));
    }
}
