//! Median filter of a disparity map over the valid pixels of a window.
//!
//! Every valid pixel takes the median of the valid pixels in the 3×3 or 5×5 window about it, as far as the window
//! lies in the image; of an even number the lower of the middle two. Invalid pixels stay [`INVALID`]: the filter
//! smooths what was found and invents nothing.
//!
//! **Numbers.** Selection only: results are values of the input, −0 counting as 0. Whatever is not finite is invalid.
//!
//! **How.** Half of a window's invalid pixels, rounded up, stand at −∞ and the others at +∞, which leaves the median
//! of the valid ones in the middle. The middle of n values is found by forgetting: of the first n/2 + 2 the least and
//! the greatest cannot be it; they make room for the next, until three are left.

use super::INVALID;
use crate::{Error, Result, device::Cpu, image::Image};
use fearless_simd::{Simd, dispatch, prelude::*};
use fearless_simd_macros::simd;

/// Rows that one task filters: the rows above and below are prepared again by its neighbours.
const BAND: usize = 64;

/// The filtered map, `side` 3 or 5 pixels wide.
///
/// # Errors
/// As [`median_into`].
pub fn median(disparity: &Image<f32>, side: usize, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::default();
    median_into(disparity, side, cpu, &mut out)?;
    Ok(out)
}

/// [`median`] into an image whose memory is used again.
///
/// # Errors
/// [`Error::Option`] when `side` is neither 3 nor 5, [`Error::Image`] for an empty map or several channels.
pub fn median_into(disparity: &Image<f32>, side: usize, cpu: &Cpu, out: &mut Image<f32>) -> Result<()> {
    disparity.view().require_grey()?;
    out.reshape(disparity.size(), 1);
    match side {
        3 => filter::<3>(disparity, cpu, out),
        5 => filter::<5>(disparity, cpu, out),
        _ => return Err(Error::option("median", side, "3 or 5")),
    }
    Ok(())
}

fn filter<const SIDE: usize>(disparity: &Image<f32>, cpu: &Cpu, out: &mut Image<f32>) {
    let _stage = cpu.stage("median");
    let (width, height) = (disparity.size().width, disparity.size().height);
    let reach = SIDE / 2;
    cpu.for_chunks(out.data_mut(), width * BAND, |band, out| {
        // A row and its window beyond both ends; the last vector reads past it.
        let mut ring: [Vec<f32>; SIDE] =
            std::array::from_fn(|_| vec![INVALID; width + 2 * reach + LANES_MOST]);
        let load = |ring: &mut [Vec<f32>; SIDE], y: usize| {
            let row = &mut ring[y % SIDE][reach..reach + width];
            // Rows count from `reach` rows above the image.
            match y.checked_sub(reach).filter(|&y| y < height) {
                Some(y) => row.iter_mut().zip(disparity.row(y)).for_each(|(o, &v)| *o = valid(v)),
                None => row.fill(INVALID),
            }
        };
        let first = band * BAND;
        (first..first + SIDE - 1).for_each(|y| load(&mut ring, y));
        for (y, out) in (first..).zip(out.chunks_mut(width)) {
            load(&mut ring, y + SIDE - 1);
            let rows = std::array::from_fn(|i| &ring[(y + i) % SIDE][..]);
            dispatch!(cpu.level(), simd => filter_row::<_, SIDE>(simd, rows, out));
        }
    });
}

/// More than any vector's lanes.
const LANES_MOST: usize = 64;

#[inline(always)]
fn valid(v: f32) -> f32 {
    if v.abs() < f32::INFINITY { v + 0.0 } else { INVALID }
}

#[simd]
fn filter_row<S: Simd, const SIDE: usize>(simd: S, rows: [&[f32]; SIDE], out: &mut [f32]) {
    let lanes = S::f32s::LEN;
    for (i, out) in out.chunks_mut(lanes).enumerate() {
        let mut window = Window::<S, SIDE>::new(simd, rows, i * lanes);
        let middle = if SIDE == 3 { window.middle_of_9() } else { window.middle_of_25() };
        let centre = S::f32s::from_slice(simd, &rows[SIDE / 2][i * lanes + SIDE / 2..][..lanes]);
        let invalid = S::f32s::splat(simd, INVALID);
        let result = centre.simd_lt(invalid).select(middle, invalid);
        match out.len() == lanes {
            true => result.store_slice(out),
            false => out.copy_from_slice(&result.as_slice()[..out.len()]),
        }
    }
}

/// The pixels of the windows of a vector of pixels, one after the other.
struct Window<'a, S: Simd, const SIDE: usize> {
    simd: S,
    rows: [&'a [f32]; SIDE],
    x: usize,
    next: usize,
    /// Where the next invalid pixel goes to −∞.
    below: <S::f32s as SimdBase<S>>::Mask,
}

/// Takes the least and the greatest of `M` values, replaces the former and leaves the latter behind the rest.
macro_rules! forget {
    ($window:ident, $kept:ident, $($m:literal)*) => {
        $(extremes::<S, $m>(&mut $kept); $kept[0] = $window.pixel();)*
    };
}

impl<'a, S: Simd, const SIDE: usize> Window<'a, S, SIDE> {
    #[inline(always)]
    fn new(simd: S, rows: [&'a [f32]; SIDE], x: usize) -> Self {
        let zero = S::f32s::splat(simd, 0.0);
        Self { simd, rows, x, next: 0, below: zero.simd_eq(zero) }
    }

    #[inline(always)]
    fn pixel(&mut self) -> S::f32s {
        let (row, column) = (self.next / SIDE, self.x + self.next % SIDE);
        self.next += 1;
        let v = S::f32s::from_slice(self.simd, &self.rows[row][column..][..S::f32s::LEN]);
        let invalid = v.simd_eq(S::f32s::splat(self.simd, INVALID));
        let sunk = invalid & self.below;
        self.below = self.below ^ invalid;
        sunk.select(S::f32s::splat(self.simd, f32::NEG_INFINITY), v)
    }

    #[inline(always)]
    fn middle_of_9(&mut self) -> S::f32s {
        let mut kept: [S::f32s; 6] = std::array::from_fn(|_| self.pixel());
        forget!(self, kept, 6 5 4);
        extremes::<S, 3>(&mut kept);
        kept[1]
    }

    #[inline(always)]
    fn middle_of_25(&mut self) -> S::f32s {
        let mut kept: [S::f32s; 14] = std::array::from_fn(|_| self.pixel());
        forget!(self, kept, 14 13 12 11 10 9 8 7 6 5 4);
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
    use crate::stereo::testing::{bits, cpus, maps};

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
                let expected = bits(&reference(&map, side));
                for cpu in cpus() {
                    let found = bits(&median(&map, side, &cpu).unwrap());
                    assert_eq!(found, expected, "{} side {side} {}", map.size(), cpu.level_name());
                }
            }
        }
    }

    #[test]
    fn refuses_other_sides() {
        let map = Image::filled(crate::image::Size::new(4, 4), 1, 1.0);
        assert!(median(&map, 4, &Cpu::sequential()).is_err(), "even side");
        assert!(median(&Image::default(), 3, &Cpu::sequential()).is_err(), "empty map");
    }
}
