//! Median filter of a disparity map over the valid pixels of a window.
//!
//! Every valid pixel takes the median of the valid pixels in the part of the 3×3 or 5×5 window around it that lies in
//! the image; for an even number, the lower of the middle two. Invalid pixels stay [`INVALID`]: the filter does not
//! fill holes.
//!
//! **Numbers.** Results are values of the input, with −0 as 0. Values that are not finite are invalid.
//!
//! **Algorithm.** Half of a window's invalid pixels, rounded up, are replaced by −∞ and the others by +∞, so that
//! the median of the valid ones is the middle of all. The middle of n values is found by elimination: it is neither
//! the least nor the greatest of the first n/2 + 2 values, so the next value replaces one of these two and the other
//! is dropped, until three are left. Two rows are filtered together, so that the pixels in both windows are read
//! once.

pub(crate) mod gpu;

use super::INVALID;
use crate::device::{Cpu, dispatch};
use crate::image::{Image, ImageView, ImageViewMut};
use crate::{Error, Result};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;

/// Rows that one task filters. It also prepares the rows just above and below, which neighbouring tasks prepare, too.
const BAND: usize = 64;

/// The filtered map, `side` 3 or 5 pixels wide.
///
/// # Errors
/// As [`median_into`].
pub fn median(disparity: ImageView<'_, f32>, side: usize, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::new(disparity.size());
    median_into(disparity, side, cpu, out.view_mut())?;
    Ok(out)
}

/// [`median`] into the caller's memory, of the same size.
///
/// # Errors
/// [`Error::Option`] when `side` is neither 3 nor 5, [`Error::Image`] for an empty map or several channels,
/// [`Error::Mismatch`] when the sizes differ.
pub fn median_into(
    disparity: ImageView<'_, f32>,
    side: usize,
    cpu: &Cpu,
    out: ImageViewMut<'_, f32>,
) -> Result<()> {
    disparity.require_grey()?;
    out.require_shape("the filtered map", disparity.size(), 1)?;
    match side {
        3 => filter::<3, 4>(disparity, cpu, out),
        5 => filter::<5, 6>(disparity, cpu, out),
        _ => Err(Error::option("median", side, "3 or 5")),
    }
}

/// Filters two rows at a time, whose windows cover `ROWS` = `SIDE` + 1 rows.
fn filter<const SIDE: usize, const ROWS: usize>(
    disparity: ImageView<'_, f32>,
    cpu: &Cpu,
    out: ImageViewMut<'_, f32>,
) -> Result<()> {
    let _stage = cpu.stage("median");
    let (width, height) = (disparity.size().width, disparity.size().height);
    let reach = SIDE / 2;
    cpu.for_bands(out, BAND, |start, out| {
        // Windows reach beyond both ends of a row, and the last vector reaches farther.
        let mut ring: [Vec<f32>; ROWS] =
            std::array::from_fn(|_| vec![INVALID; width + 2 * reach + LANES_MOST]);
        let mut loaded = start;
        let mut out = out.reborrow().bands(1);
        // The ring begins `reach` rows above the image.
        for y in (start..).step_by(2) {
            let (Some(mut upper), mut lower) = (out.next(), out.next()) else { break };
            for y in loaded..y + ROWS {
                let row = &mut ring[y % ROWS][reach..reach + width];
                match y.checked_sub(reach).filter(|&y| y < height) {
                    Some(y) => row.iter_mut().zip(disparity.row(y)).for_each(|(o, &v)| *o = valid(v)),
                    None => row.fill(INVALID),
                }
            }
            loaded = y + ROWS;
            let rows = std::array::from_fn(|i| &ring[(y + i) % ROWS][..]);
            let lower = lower.as_mut().map_or(&mut [][..], |row| row.row_mut(0));
            let out = [upper.row_mut(0), lower];
            dispatch!(cpu.level(), simd => filter_rows::<_, SIDE, ROWS>(simd, rows, out));
        }
    })
}

/// More than any vector's lanes.
const LANES_MOST: usize = 64;

#[inline(always)]
fn valid(v: f32) -> f32 {
    if v.abs() < f32::INFINITY { v + 0.0 } else { INVALID }
}

/// Filters two rows; the second is empty where it lies below the image.
#[simd]
fn filter_rows<S: Simd, const SIDE: usize, const ROWS: usize>(
    simd: S,
    rows: [&[f32]; ROWS],
    [upper, lower]: [&mut [f32]; 2],
) {
    let lanes = S::f32s::LEN;
    let invalid = S::f32s::splat(simd, INVALID);
    for x in (0..upper.len()).step_by(lanes) {
        let window = Window::<S, SIDE, ROWS>::new(simd, rows, x);
        let middles = if SIDE == 3 { window.middles_of_9() } else { window.middles_of_25() };
        for (i, out) in [&mut *upper, &mut *lower].into_iter().enumerate() {
            let centre = S::f32s::from_slice(simd, &rows[SIDE / 2 + i][x + SIDE / 2..][..lanes]);
            let result = centre.simd_lt(invalid).select(middles[i], invalid);
            match out.len().saturating_sub(x) {
                0 => {}
                n if n < lanes => out[x..].copy_from_slice(&result.as_slice()[..n]),
                _ => result.store_slice(&mut out[x..x + lanes]),
            }
        }
    }
}

/// Reads, one after the other, the pixels of the windows of two vectors of pixels, one below the other.
#[derive(Clone, Copy)]
struct Window<'a, S: Simd, const SIDE: usize, const ROWS: usize> {
    simd: S,
    rows: [&'a [f32]; ROWS],
    x: usize,
    /// The lanes in which the next invalid pixel becomes −∞.
    below: <S::f32s as SimdBase<S>>::Mask,
}

/// Eliminates the least and the greatest of the first `M` values: the next pixel replaces the least, and the greatest
/// stays behind the values in use.
macro_rules! eliminate {
    ($kept:ident, $next:expr, $($m:literal)*) => {
        $(extremes::<S, $m>(&mut $kept); $kept[0] = $next;)*
    };
}

impl<'a, S: Simd, const SIDE: usize, const ROWS: usize> Window<'a, S, SIDE, ROWS> {
    #[inline(always)]
    fn new(simd: S, rows: [&'a [f32]; ROWS], x: usize) -> Self {
        let zero = S::f32s::splat(simd, 0.0);
        Self { simd, rows, x, below: zero.simd_eq(zero) }
    }

    #[inline(always)]
    fn pixel(&mut self, row: usize, column: usize) -> S::f32s {
        let v = S::f32s::from_slice(self.simd, &self.rows[row][self.x + column..][..S::f32s::LEN]);
        let invalid = v.simd_eq(S::f32s::splat(self.simd, INVALID));
        let sunk = invalid & self.below;
        self.below ^= invalid;
        sunk.select(S::f32s::splat(self.simd, f32::NEG_INFINITY), v)
    }

    /// The next pixel of the rows that lie in both windows.
    #[inline(always)]
    fn shared(&mut self, taken: &mut usize) -> S::f32s {
        let i = *taken;
        *taken += 1;
        self.pixel(1 + i / SIDE, i % SIDE)
    }

    /// The first pixels. A closure would be compiled without this function's SIMD level.
    #[inline(always)]
    fn first<const N: usize>(&mut self, taken: &mut usize) -> [S::f32s; N] {
        let mut kept = [S::f32s::splat(self.simd, 0.0); N];
        for v in &mut kept {
            *v = self.shared(taken);
        }
        kept
    }

    #[inline(always)]
    fn middles_of_9(mut self) -> [S::f32s; 2] {
        let kept = self.first::<6>(&mut 0);
        [self.finish(kept, 0), self.finish(kept, ROWS - 1)]
    }

    #[inline(always)]
    fn middles_of_25(mut self) -> [S::f32s; 2] {
        let mut taken = 0;
        let mut kept = self.first::<14>(&mut taken);
        eliminate!(kept, self.shared(&mut taken), 14 13 12 11 10 9);
        [self.finish(kept, 0), self.finish(kept, ROWS - 1)]
    }

    /// The middle value, after adding the pixels of the row that lies only in this window.
    #[inline(always)]
    fn finish<const N: usize>(mut self, mut kept: [S::f32s; N], row: usize) -> S::f32s {
        let mut column = 0..SIDE;
        if SIDE == 5 {
            eliminate!(kept, self.pixel(row, column.next().unwrap_or(0)), 8 7);
        }
        eliminate!(kept, self.pixel(row, column.next().unwrap_or(0)), 6 5 4);
        extremes::<S, 3>(&mut kept);
        kept[1]
    }
}

/// Brings the least of the first `M` values to the front and the greatest to the end.
#[inline(always)]
fn extremes<S: Simd, const M: usize>(v: &mut [S::f32s]) {
    for i in 0..M / 2 {
        order::<S>(v, i, M - 1 - i);
    }
    for i in 1..M.div_ceil(2) {
        order::<S>(v, 0, i);
    }
    for i in M / 2..M - 1 {
        order::<S>(v, i, M - 1);
    }
}

#[inline(always)]
fn order<S: Simd>(v: &mut [S::f32s], i: usize, j: usize) {
    (v[i], v[j]) = (v[i].min(v[j]), v[i].max(v[j]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::assert_same;
    use crate::stereo::testing::{cpus, maps};

    fn reference(map: &Image<f32>, side: usize) -> Image<f32> {
        let (size, reach) = (map.size(), side / 2);
        Image::from_fn(size, |x, y| {
            if !map.row(y)[x].is_finite() {
                return INVALID;
            }
            let mut window: Vec<f32> = Vec::new();
            for y in y.saturating_sub(reach)..(y + reach + 1).min(size.height) {
                window.extend(&map.row(y)[x.saturating_sub(reach)..(x + reach + 1).min(size.width)]);
            }
            window.retain(|v| v.is_finite());
            window.sort_by(f32::total_cmp);
            window[(window.len() - 1) / 2] + 0.0
        })
    }

    #[test]
    fn equals_sorting_the_window() {
        for map in maps() {
            for side in [3, 5] {
                let expected = reference(&map, side);
                for cpu in cpus() {
                    let what = format_args!("{} side {side} {}", map.size(), cpu.level_name());
                    assert_same(&median(map.view(), side, &cpu).unwrap(), &expected, what);
                }
            }
        }
    }

    #[test]
    fn refuses_other_sides() {
        let map = Image::filled(crate::image::Size::new(4, 4), 1, 1.0);
        assert!(median(map.view(), 4, &Cpu::sequential()).is_err(), "even side");
        assert!(median(Image::default().view(), 3, &Cpu::sequential()).is_err(), "empty map");
    }
}
