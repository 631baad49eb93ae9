//! One row of a symmetric separable filter in f32, on which all smoothing is based.
//!
//! A kernel of 2r + 1 taps is given by its centre and one side, `taps[0..=r]`. Both passes compute
//!
//! ```text
//! acc = taps[0] · a₀;  for k in 1..=r: acc = fma(taps[k], a₋ₖ + a₊ₖ, acc)
//! ```
//!
//! in that order, so every SIMD level and every division into tiles gives the same bits. An image is smoothed row by
//! row: [`vertical`] sums 2r + 1 source rows into a row with r free places at either end, these are filled by the
//! border rule, then [`horizontal`] writes the result.

use crate::{filter::separable::Passes, image::Pixel};
use fearless_simd::{Simd, prelude::*};

/// The number of vectors computed together: they share each broadcast tap, and eight chains hide the latency of an fma.
const BLOCK: usize = 8;

/// A source of the pairs (a₋ₖ, a₊ₖ) of `n` outputs that begin at `x`; a₀ twice for k = 0.
trait Source {
    fn pair(&self, k: usize, x: usize, n: usize) -> (&[f32], &[f32]);
}

struct Column<'a> {
    rows: &'a [&'a [f32]],
    radius: usize,
}

impl Source for Column<'_> {
    #[inline(always)]
    fn pair(&self, k: usize, x: usize, n: usize) -> (&[f32], &[f32]) {
        (&self.rows[self.radius - k][x..x + n], &self.rows[self.radius + k][x..x + n])
    }
}

struct Line<'a> {
    padded: &'a [f32],
    centre: usize,
    step: usize,
}

impl Source for Line<'_> {
    #[inline(always)]
    fn pair(&self, k: usize, x: usize, n: usize) -> (&[f32], &[f32]) {
        let (low, high) = (self.centre - k * self.step + x, self.centre + k * self.step + x);
        (&self.padded[low..low + n], &self.padded[high..high + n])
    }
}

/// `B` vectors of outputs from `x` on.
#[inline(always)]
fn block<S: Simd, const B: usize>(simd: S, source: &impl Source, taps: &[f32], x: usize, out: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let n = B * lanes;
    let mut acc = [S::f32s::splat(simd, 0.0); B];
    let centre = source.pair(0, x, n).0;
    let tap = S::f32s::splat(simd, taps[0]);
    for (i, acc) in acc.iter_mut().enumerate() {
        *acc = S::f32s::from_slice(simd, &centre[i * lanes..(i + 1) * lanes]) * tap;
    }
    for (k, &tap) in taps.iter().enumerate().skip(1) {
        let tap = S::f32s::splat(simd, tap);
        let (low, high) = source.pair(k, x, n);
        for (i, acc) in acc.iter_mut().enumerate() {
            let at = i * lanes..(i + 1) * lanes;
            let sum = S::f32s::from_slice(simd, &low[at.clone()]) + S::f32s::from_slice(simd, &high[at]);
            *acc = tap.mul_add_precise(sum, *acc);
        }
    }
    let out = &mut out[x..x + n];
    for (i, acc) in acc.iter().enumerate() {
        acc.store_slice(&mut out[i * lanes..(i + 1) * lanes]);
    }
}

/// Outputs from `from` to the end, one at a time.
#[inline(always)]
fn rest(source: &impl Source, taps: &[f32], from: usize, out: &mut [f32]) {
    for (x, out) in out.iter_mut().enumerate().skip(from) {
        let mut acc = source.pair(0, x, 1).0[0] * taps[0];
        for (k, &tap) in taps.iter().enumerate().skip(1) {
            let (low, high) = source.pair(k, x, 1);
            acc = tap.mul_add(low[0] + high[0], acc);
        }
        *out = acc;
    }
}

#[inline(always)]
fn filter<S: Simd>(simd: S, source: &impl Source, taps: &[f32], out: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let n = out.len();
    let mut x = 0;
    while x + BLOCK * lanes <= n {
        block::<S, BLOCK>(simd, source, taps, x, out);
        x += BLOCK * lanes;
    }
    while x + lanes <= n {
        block::<S, 1>(simd, source, taps, x, out);
        x += lanes;
    }
    // The last vector may overlap the one before; it computes the same values again.
    if x < n && n >= lanes {
        block::<S, 1>(simd, source, taps, n - lanes, out);
    } else {
        rest(source, taps, x, out);
    }
}

/// The vertical pass: `rows` are 2r + 1 rows, each at least as long as `out`, `taps` the r + 1 taps from the
/// centre outwards. With other lengths `out` is left as it is.
#[inline(always)]
pub(crate) fn vertical<S: Simd>(simd: S, rows: &[&[f32]], taps: &[f32], out: &mut [f32]) {
    let radius = taps.len().wrapping_sub(1);
    let fits = !taps.is_empty() && rows.len() == 2 * radius + 1 && rows.iter().all(|r| r.len() >= out.len());
    debug_assert!(fits, "{} rows for {} taps", rows.len(), taps.len());
    if fits {
        filter(simd, &Column { rows, radius }, taps, out);
    }
}

/// Rows that [`vertical_rows`] makes at a time.
pub(crate) const ROWS: usize = 4;

/// [`ROWS`] vertical passes at once, from 2r + [`ROWS`] rows, so that each source row is loaded once for all
/// of them. With other lengths `out` is left as it is.
///
/// The arrays of vectors are moved one by one, which stays in registers; `rotate_left` goes through memory.
#[inline(always)]
pub(crate) fn vertical_rows<S: Simd>(simd: S, rows: &[&[f32]], taps: &[f32], mut out: [&mut [f32]; ROWS]) {
    let radius = taps.len().wrapping_sub(1);
    let n = out[0].len();
    let fits = !taps.is_empty()
        && rows.len() == 2 * radius + ROWS
        && rows.iter().all(|r| r.len() >= n)
        && out.iter().all(|o| o.len() == n);
    debug_assert!(fits, "{} rows for {} taps", rows.len(), taps.len());
    if !fits {
        return;
    }
    let lanes = S::f32s::LEN;
    let mut x = 0;
    while x + WIDE * lanes <= n {
        block_of_rows::<S, WIDE>(simd, rows, taps, x, &mut out);
        x += WIDE * lanes;
    }
    while x + lanes <= n {
        block_of_rows::<S, 1>(simd, rows, taps, x, &mut out);
        x += lanes;
    }
    if x < n && n >= lanes {
        block_of_rows::<S, 1>(simd, rows, taps, n - lanes, &mut out);
    } else {
        for (i, out) in out.into_iter().enumerate() {
            rest(&Column { rows: &rows[i..=i + 2 * radius], radius }, taps, x, out);
        }
    }
}

/// The number of vectors side by side in [`vertical_rows`]; with [`ROWS`] rows they are enough independent chains.
const WIDE: usize = 2;

/// `B` vectors from `x` on of every output row.
#[inline(always)]
fn block_of_rows<S: Simd, const B: usize>(
    simd: S,
    rows: &[&[f32]],
    taps: &[f32],
    x: usize,
    out: &mut [&mut [f32]; ROWS],
) {
    let lanes = S::f32s::LEN;
    let radius = taps.len() - 1;
    let zero = [[S::f32s::splat(simd, 0.0); B]; ROWS];
    let (mut low, mut acc) = (zero, zero);
    let tap = S::f32s::splat(simd, taps[0]);
    for r in 0..ROWS {
        let row = &rows[radius + r][x..x + B * lanes];
        for b in 0..B {
            low[r][b] = S::f32s::from_slice(simd, &row[b * lanes..(b + 1) * lanes]);
            acc[r][b] = low[r][b] * tap;
        }
    }
    let mut high = low;
    // At tap k output r needs the rows k above and k below it: those of its neighbours at the tap before.
    for (k, &tap) in taps.iter().enumerate().skip(1) {
        let tap = S::f32s::splat(simd, tap);
        for r in 1..ROWS {
            (low[ROWS - r], high[r - 1]) = (low[ROWS - 1 - r], high[r]);
        }
        let (first, last) =
            (&rows[radius - k][x..x + B * lanes], &rows[radius + ROWS - 1 + k][x..x + B * lanes]);
        for b in 0..B {
            low[0][b] = S::f32s::from_slice(simd, &first[b * lanes..(b + 1) * lanes]);
            high[ROWS - 1][b] = S::f32s::from_slice(simd, &last[b * lanes..(b + 1) * lanes]);
        }
        for r in 0..ROWS {
            for b in 0..B {
                acc[r][b] = tap.mul_add_precise(low[r][b] + high[r][b], acc[r][b]);
            }
        }
    }
    for r in 0..ROWS {
        let out = &mut out[r][x..x + B * lanes];
        for b in 0..B {
            acc[r][b].store_slice(&mut out[b * lanes..(b + 1) * lanes]);
        }
    }
}

/// The horizontal pass: output x has its centre at `padded[x + r · step]` and its neighbours `step` apart
/// (the channels of a pixel). `padded` is 2r · step longer than `out`. With other lengths `out` is left as it
/// is.
#[inline(always)]
pub(crate) fn horizontal<S: Simd>(simd: S, padded: &[f32], step: usize, taps: &[f32], out: &mut [f32]) {
    let centre = taps.len().wrapping_sub(1).wrapping_mul(step);
    let fits = !taps.is_empty() && padded.len() >= out.len() + 2 * centre;
    debug_assert!(fits, "{} values for {} outputs and {} taps", padded.len(), out.len(), taps.len());
    if fits {
        filter(simd, &Line { padded, centre, step }, taps, out);
    }
}

/// The two passes over a whole image with these taps, centre and one side.
pub(super) struct Float(pub(super) Vec<f32>);

impl Passes for Float {
    type Value = f32;
    type Mid = f32;
    const TILE: usize = 256;
    const BLACK: f32 = 0.0;

    fn radius(&self) -> usize {
        self.0.len() - 1
    }

    fn input<T: Pixel>(values: &[T]) -> Option<&[f32]> {
        T::f32s(values)
    }

    fn output<T: Pixel>(values: &mut [T]) -> Option<&mut [f32]> {
        T::f32s_mut(values)
    }

    #[inline(always)]
    fn vertical<S: Simd>(&self, simd: S, rows: &[&[f32]], out: &mut [f32]) {
        vertical(simd, rows, &self.0, out);
    }

    #[inline(always)]
    fn horizontal<S: Simd>(&self, simd: S, padded: &[f32], channels: usize, out: &mut [f32]) {
        horizontal(simd, padded, channels, &self.0, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Cpu, dispatch};
    use crate::filter::testing::noise;

    fn reference(at: impl Fn(isize, usize) -> f32, taps: &[f32], n: usize) -> Vec<f32> {
        (0..n)
            .map(|x| {
                let mut acc = at(0, x) * taps[0];
                for (k, tap) in taps.iter().enumerate().skip(1) {
                    acc = tap.mul_add(at(-(k as isize), x) + at(k as isize, x), acc);
                }
                acc
            })
            .collect()
    }

    #[test]
    fn rows_made_together_equal_rows_made_alone_at_every_level() {
        for n in [0, 1, 3, 8, 15, 16, 17, 31, 63, 65, 300] {
            for radius in [0, 1, 2, 5, 13] {
                let taps = noise::<f32>(radius + 1, n as u32, 1.0);
                let rows: Vec<Vec<f32>> =
                    (0..2 * radius + ROWS).map(|i| noise(n, i as u32 + 9, 1.0)).collect();
                let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
                for level in Cpu::levels() {
                    let level = Cpu::sequential().at_level(level).unwrap().level();
                    let mut out: [_; ROWS] = std::array::from_fn(|_| vec![0.0; n]);
                    let each = out.each_mut().map(|row| &mut row[..]);
                    dispatch!(level, simd => vertical_rows(simd, &rows, &taps, each));
                    for (i, out) in out.iter().enumerate() {
                        let alone = reference(|k, x| rows[(i + radius).wrapping_add_signed(k)][x], &taps, n);
                        assert_eq!(*out, alone, "row {i}, {n} values, radius {radius}, {level:?}");
                    }
                }
            }
        }
    }
}
