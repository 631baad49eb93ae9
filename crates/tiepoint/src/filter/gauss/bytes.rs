//! One row of a symmetric separable filter on 8-bit values, in integers and exact up to one rounding.
//!
//! Taps are in units of 1/256 and sum to 256. The vertical pass sums pixel · tap in 16 bits: at most 255 · 256,
//! without rounding. The horizontal pass sums these sums · tap in 32 bits and rounds once: (sum + 2¹⁵) >> 16. The
//! sums between the passes are stored less 2¹⁵, as i16, because the paired products of CPUs are signed; as the taps
//! sum to 256, this only subtracts a constant.

use crate::{filter::separable::Passes, image::Pixel};
use fearless_simd::{Simd, prelude::*};
use fearless_simd_macros::simd;

/// The bias that is subtracted from the sums between the passes.
const BIAS: u16 = 1 << 15;

/// 2¹⁵ for rounding, and 256 · 2¹⁵ to undo the bias.
const ROUND: i32 = (1 << 15) + (256 << 15);

/// The number of vectors of bytes computed together.
const BLOCK: usize = 2;

#[inline(always)]
fn column<S: Simd, const B: usize>(simd: S, rows: &[&[u8]], taps: &[u16], x: usize, out: &mut [i16]) {
    let (lanes, half) = (S::u8s::LEN, S::u16s::LEN);
    let n = B * lanes;
    let radius = taps.len() - 1;
    let bias = S::u16s::splat(simd, BIAS);
    let mut acc = [(bias, bias); B];
    let tap = S::u16s::splat(simd, taps[0]);
    let centre = &rows[radius][x..x + n];
    for (i, acc) in acc.iter_mut().enumerate() {
        let (low, high) = S::u8s::from_slice(simd, &centre[i * lanes..(i + 1) * lanes]).widen();
        *acc = (acc.0 + low * tap, acc.1 + high * tap);
    }
    for (k, &tap) in taps.iter().enumerate().skip(1) {
        let tap = S::u16s::splat(simd, tap);
        let (above, below) = (&rows[radius - k][x..x + n], &rows[radius + k][x..x + n]);
        for (i, acc) in acc.iter_mut().enumerate() {
            let at = i * lanes..(i + 1) * lanes;
            let above = S::u8s::from_slice(simd, &above[at.clone()]);
            let (low, high) = above.widening_add(S::u8s::from_slice(simd, &below[at]));
            *acc = (acc.0 + low * tap, acc.1 + high * tap);
        }
    }
    let out = &mut out[x..x + n];
    for (i, (low, high)) in acc.iter().enumerate() {
        low.bitcast::<S::i16s>().store_slice(&mut out[i * lanes..i * lanes + half]);
        high.bitcast::<S::i16s>().store_slice(&mut out[i * lanes + half..(i + 1) * lanes]);
    }
}

/// The vertical pass: `rows` are 2r + 1 rows at least as long as `out`, `taps` the centre and one side.
#[inline(always)]
fn vertical<S: Simd>(simd: S, rows: &[&[u8]], taps: &[u16], out: &mut [i16]) {
    let (lanes, n) = (S::u8s::LEN, out.len());
    let mut x = 0;
    while x + BLOCK * lanes <= n {
        column::<S, BLOCK>(simd, rows, taps, x, out);
        x += BLOCK * lanes;
    }
    while x + lanes <= n {
        column::<S, 1>(simd, rows, taps, x, out);
        x += lanes;
    }
    if x < n && n >= lanes {
        return column::<S, 1>(simd, rows, taps, n - lanes, out);
    }
    let radius = taps.len() - 1;
    for (x, out) in out.iter_mut().enumerate().skip(x) {
        let sides = taps.iter().enumerate().skip(1);
        let sides = sides.map(|(k, t)| (u16::from(rows[radius - k][x]) + u16::from(rows[radius + k][x])) * t);
        let sum = u16::from(rows[radius][x]) * taps[0] + sides.sum::<u16>();
        *out = sum.wrapping_sub(BIAS) as i16;
    }
}

/// Neighbouring taps of the whole kernel in pairs, the last with a zero, for [`horizontal`].
fn pairs(taps: &[u16]) -> Vec<[i16; 2]> {
    let all: Vec<i16> = taps.iter().rev().chain(&taps[1..]).map(|&t| t as i16).collect();
    all.chunks(2).map(|c| [c[0], c.get(1).copied().unwrap_or(0)]).collect()
}

/// `B` vectors of outputs from `x` on.
#[inline(always)]
fn line<S: Simd, const B: usize>(simd: S, padded: &[i16], pairs: &[[i16; 2]], x: usize, out: &mut [u8]) {
    let (lanes, half) = (S::u8s::LEN, S::i16s::LEN);
    let n = B * lanes;
    let round = S::i32s::splat(simd, ROUND);
    // Sums of outputs at even and at odd places, for the two halves of each vector of bytes.
    let mut acc = [[(round, round); 2]; B];
    for (j, &[first, second]) in pairs.iter().enumerate() {
        let pair = i32::from(first) & 0xffff | i32::from(second) << 16;
        let pair = S::i32s::splat(simd, pair).bitcast::<S::i16s>();
        let from = &padded[x + 2 * j..x + 2 * j + n + 1];
        for (b, acc) in acc.iter_mut().enumerate() {
            for (h, (even, odd)) in acc.iter_mut().enumerate() {
                let at = b * lanes + h * half;
                *even += S::i16s::from_slice(simd, &from[at..at + half]).pairwise_dot_product(pair);
                *odd += S::i16s::from_slice(simd, &from[at + 1..at + 1 + half]).pairwise_dot_product(pair);
            }
        }
    }
    let upper = S::i32s::splat(simd, -65536);
    let out = &mut out[x..x + n];
    for (b, acc) in acc.iter().enumerate() {
        let [low, high] = acc.map(|(even, odd)| {
            let even = even.bitcast::<S::u32s>() >> 16;
            (even.bitcast::<S::i32s>() | odd & upper).bitcast::<S::u16s>()
        });
        low.relaxed_narrow(high).store_slice(&mut out[b * lanes..(b + 1) * lanes]);
    }
}

/// The horizontal pass on grey rows: `padded` is 2r + 1 longer than `out`.
#[inline(always)]
fn horizontal<S: Simd>(simd: S, padded: &[i16], pairs: &[[i16; 2]], out: &mut [u8]) {
    let (lanes, n) = (S::u8s::LEN, out.len());
    let mut x = 0;
    while x + lanes <= n {
        line::<S, 1>(simd, padded, pairs, x, out);
        x += lanes;
    }
    if x < n && n >= lanes {
        return line::<S, 1>(simd, padded, pairs, n - lanes, out);
    }
    for (x, out) in out.iter_mut().enumerate().skip(x) {
        let products = pairs.iter().zip(padded[x..].chunks(2));
        let sum: i32 = products
            .map(|(p, a)| i32::from(p[0]) * i32::from(a[0]) + i32::from(p[1]) * i32::from(a[1]))
            .sum();
        *out = ((sum + ROUND) >> 16) as u8;
    }
}

/// The horizontal pass with `step` channels a pixel, `padded` 2r · step longer than `out`: the same sums.
#[simd]
fn horizontal_channels<S: Simd>(_: S, padded: &[i16], step: usize, taps: &[u16], out: &mut [u8]) {
    let centre = (taps.len() - 1) * step;
    for (tile, out) in out.chunks_mut(64).enumerate() {
        let mut sums = [ROUND; 64];
        let at = centre + tile * 64;
        let n = out.len();
        for (k, &tap) in taps.iter().enumerate() {
            let (low, high) = (&padded[at - k * step..][..n], &padded[at + k * step..][..n]);
            let tap = i32::from(tap);
            for ((sum, &low), &high) in sums.iter_mut().zip(low).zip(high) {
                let both = if k == 0 { i32::from(low) } else { i32::from(low) + i32::from(high) };
                *sum += tap * both;
            }
        }
        out.iter_mut().zip(&sums).for_each(|(o, s)| *o = (s >> 16) as u8);
    }
}

pub(super) struct Fixed {
    /// The taps: the centre and one side, in units of 1/256.
    taps: Vec<u16>,
    pairs: Vec<[i16; 2]>,
}

impl Fixed {
    pub(super) fn new(taps: Vec<u16>) -> Self {
        Self { pairs: pairs(&taps), taps }
    }
}

impl Passes for Fixed {
    type Value = u8;
    type Mid = i16;
    const TILE: usize = 1024;
    const BLACK: i16 = i16::MIN;

    fn radius(&self) -> usize {
        self.taps.len() - 1
    }

    fn input<T: Pixel>(values: &[T]) -> Option<&[u8]> {
        T::u8s(values)
    }

    fn output<T: Pixel>(values: &mut [T]) -> Option<&mut [u8]> {
        T::u8s_mut(values)
    }

    #[inline(always)]
    fn vertical<S: Simd>(&self, simd: S, rows: &[&[u8]], out: &mut [i16]) {
        vertical(simd, rows, &self.taps, out);
    }

    #[inline(always)]
    fn horizontal<S: Simd>(&self, simd: S, padded: &[i16], channels: usize, out: &mut [u8]) {
        match channels {
            1 => horizontal(simd, padded, &self.pairs, out),
            _ => horizontal_channels(simd, padded, channels, &self.taps, out),
        }
    }
}
