//! Winner takes all: a pixel gets the disparity with the least sum, which is searched among all disparities of a left
//! pixel, and along the diagonals of the sums for a right pixel.
//!
//! If sums are equal, the least disparity is taken. In the right view the pixel x′ chooses among S(x′ + d, d); it is
//! invalid where the right image holds no data.
//!
//! Sub-pixel disparities ([`subpixel`](super::subpixel)) follow from the sums beside the least.
//!
//! **Uniqueness**: with s₂ the least sum of the disparities that are not within 1 of the best,
//! (100 − u) s₂ < 100 s₀ makes the pixel invalid. **Confidence** is (s₂ − s₀) / s₂: 0 when another disparity is as
//! good, near 1 when the best stands alone (the peak ratio of X. Hu and P. Mordohai, PAMI 2012, mapped to 0…1).

pub(crate) mod gpu;

use super::aggregation::{AggregationInput, AggregationOutput, Value};
use super::cost::{Column, CostRow};
use super::{INVALID, StereoResult, View, subpixel};
use crate::image::Image;
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;

pub(super) struct OutputRow<'a> {
    pub(super) disparity: &'a mut [f32],
    pub(super) right: Option<&'a mut [f32]>,
    pub(super) confidence: Option<&'a mut [f32]>,
    /// The sums themselves, all disparities of a pixel side by side.
    pub(super) sums: Option<&'a mut [u16]>,
}

/// The rows of a range of the results.
pub(super) fn rows<'a>(
    results: &'a mut AggregationOutput<'_>,
    input: &AggregationInput<'_>,
    range: std::ops::Range<usize>,
) -> Vec<OutputRow<'a>> {
    let width = input.size().width;
    let pixels = range.start * width..range.end * width;
    let (StereoResult { disparity, right, confidence, .. }, sums) = results;
    let cut = |image: &'a mut Image<f32>| image.data_mut()[pixels.clone()].chunks_mut(width);
    let mut disparity = cut(disparity);
    let [mut right, mut confidence] = [right, confidence].map(|image| image.as_mut().map(cut));
    let count = input.options.disparities;
    let sums = sums.as_mut().map(|s| &mut s[pixels.start * count..pixels.end * count]);
    let mut sums = sums.map(|s| s.chunks_mut(width * count));
    range
        .map(|_| OutputRow {
            disparity: disparity.next().unwrap_or_default(),
            right: right.as_mut().and_then(Iterator::next),
            confidence: confidence.as_mut().and_then(Iterator::next),
            sums: sums.as_mut().and_then(Iterator::next),
        })
        .collect()
}

/// The least key so far of each pixel of the right row, for every block of disparities. Place j belongs to column
/// width − 1 − j − (least disparity), so that ascending disparities of a left pixel lie side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct RightRow {
    keys: Vec<u16>,
    /// The number of places in a block.
    len: usize,
    /// The result of [`least_places`](Self::least_places), when the row is complete.
    places: Vec<u32>,
}

/// A sum and its disparity packed into one number, so that one minimum finds both.
///
/// Disparities are taken in blocks of 2ᵇ; a key is the sum times 2ᵇ plus the place in the block. A block has as many
/// disparities as the greatest sum leaves room for in 16 bits.
#[derive(Clone, Copy, Debug)]
struct Keys {
    bits: u32,
}

impl Keys {
    /// The greatest key stands for none, so sums must stay below the greatest value of the remaining bits. `None` if
    /// large penalties leave no room for the disparities of a vector; sums are then compared one by one.
    #[inline(always)]
    fn of(input: &AggregationInput<'_>) -> Option<Self> {
        let bits = (input.greatest_sum() + 1).leading_zeros().saturating_sub(16);
        (bits >= 5).then_some(Self { bits })
    }

    /// Disparities in a block.
    #[inline(always)]
    const fn block(self) -> usize {
        1 << self.bits
    }

    /// The better of the best so far and the best key of the block that begins with disparity `first`.
    #[inline(always)]
    fn better(self, best: (usize, u16), first: usize, key: u16) -> (usize, u16) {
        let (sum, place) = (key >> self.bits, usize::from(key) & (self.block() - 1));
        if sum < best.1 { (first + place, sum) } else { best }
    }
}

impl RightRow {
    pub(super) fn clear(&mut self, input: &AggregationInput<'_>, padded: usize) {
        self.len = input.size().width + padded;
        self.keys.clear();
        // Without keys: the sums, then their disparities.
        let blocks = Keys::of(input).map_or(2, |keys| padded.div_ceil(keys.block()));
        self.keys.resize(self.len * blocks, u16::MAX);
    }

    /// Writes the disparities of the right row.
    #[inline(always)]
    pub(super) fn finish(&mut self, input: &AggregationInput<'_>, y: usize, row: &mut OutputRow<'_>) {
        let Some(out) = &mut row.right else { return };
        let (width, min) = (input.size().width as i64, i64::from(input.options.min_disparity));
        let count = input.options.disparities as u32;
        let places = self.least_places(Keys::of(input));
        // Pixel x has the place width − 1 − min − x, if that is a valid index.
        let last = width - 1 - min;
        let inside = (last + 1 - places.len() as i64).clamp(0, width)..(last + 1).clamp(0, width);
        let columns = inside.start as usize..inside.end.max(inside.start) as usize;
        out.fill(INVALID);
        if !columns.is_empty() {
            let first = (last + 1) as usize - columns.end;
            let places = &places[first..first + columns.len()];
            for (out, &place) in out[columns].iter_mut().zip(places.iter().rev()) {
                // Vectors reach beyond the last disparity. A pixel that only such disparities reach is invalid.
                let d = place & 0xffff;
                *out = if d < count { (min as i32 + d as i32) as f32 } else { INVALID };
            }
        }
        if let Some(mask) = input.pair.mask(View::Right) {
            out.iter_mut().zip(mask.row(y)).filter(|(_, m)| **m == 0).for_each(|(out, _)| *out = INVALID);
        }
    }

    /// For every place its least sum times 2¹⁶ plus the index of the disparity; all bits set if it has none.
    #[inline(always)]
    fn least_places(&mut self, keys: Option<Keys>) -> &[u32] {
        self.places.clear();
        self.places.resize(self.len, u32::MAX);
        let mut blocks = self.keys.chunks_exact(self.len.max(1));
        let Some(Keys { bits }) = keys else {
            if let (Some(sums), Some(disparities)) = (blocks.next(), blocks.next()) {
                for ((place, &sum), &d) in self.places.iter_mut().zip(sums).zip(disparities) {
                    *place = if sum == u16::MAX { u32::MAX } else { u32::from(sum) << 16 | u32::from(d) };
                }
            }
            return &self.places;
        };
        for (block, row) in blocks.enumerate() {
            let first = (block as u32) << bits;
            for (place, &key) in self.places.iter_mut().zip(row) {
                let (sum, within) = (u32::from(key) >> bits, u32::from(key) & ((1 << bits) - 1));
                let found = sum << 16 | (first + within);
                *place = if key == u16::MAX { *place } else { found.min(*place) };
            }
        }
        &self.places
    }
}

/// The place of each of `padded` disparities in its block; all bits set beyond the last disparity.
pub(super) fn places(input: &AggregationInput<'_>, padded: usize, out: &mut Vec<u16>) {
    let block = Keys::of(input).map_or(1, Keys::block);
    let place = |d| if d < input.options.disparities { (d & (block - 1)) as u16 } else { u16::MAX };
    out.clear();
    out.extend((0..padded).map(place));
}

/// The sums of a pixel of both passes, its disparities side by side.
type Parts<'a, A> = [&'a [A]; 2];

/// Adds the parts; sums beyond the last of `count` disparities are set to the greatest value.
#[inline(always)]
fn add<S: Simd, A: Value>(simd: S, [a, b]: Parts<'_, A>, count: usize, sums: &mut [u16]) {
    let n = S::u16s::LEN;
    let pairs = a.chunks_exact(2 * n).zip(b.chunks_exact(2 * n));
    for ((a, b), out) in pairs.zip(sums.chunks_exact_mut(2 * n)) {
        let [low, high] = A::totals(simd, a, b);
        low.store_slice(&mut out[..n]);
        high.store_slice(&mut out[n..]);
    }
    sums[count..].fill(u16::MAX);
}

/// Updates the keys of the right row, whose place for the least disparity is `start`, and returns the place of the
/// least sum and that sum. `places` are those of [`places`].
#[inline(always)]
fn least<S: Simd, A: Value>(
    simd: S,
    keys: Keys,
    [a, b]: Parts<'_, A>,
    places: &[u16],
    right: Option<&mut RightRow>,
    start: usize,
) -> (usize, u16) {
    let n = S::u16s::LEN;
    let vector = |values: &[u16]| S::u16s::from_slice(simd, values);
    let none = S::u16s::splat(simd, u16::MAX);
    let (to_block, right) = right.map_or((0, &mut [][..]), |right| (right.len, &mut right.keys[start..]));
    let (mut best, mut least) = ((0, u16::MAX), none);
    // The first disparity of the vector, and its place in the right row.
    let (mut first, mut at) = (0, 0);
    let pairs = a.chunks_exact(2 * n).zip(b.chunks_exact(2 * n)).zip(places.chunks_exact(2 * n));
    for ((a, b), places) in pairs {
        for (sum, places) in A::totals(simd, a, b).into_iter().zip(places.chunks_exact(n)) {
            if first > 0 && first & (keys.block() - 1) == 0 {
                best = keys.better(best, first - keys.block(), least.reduce_min());
                least = none;
                at += to_block;
            }
            let key = (sum << keys.bits) | vector(places);
            least = least.min(key);
            if let Some(before) = right.get_mut(at..at + n) {
                key.min(vector(before)).store_slice(before);
            }
            first += n;
            at += n;
        }
    }
    keys.better(best, (first - 1) & !(keys.block() - 1), least.reduce_min())
}

/// As [`least`], from the sums, if keys would exceed 16 bits.
#[inline(always)]
fn least_one_by_one(sums: &[u16], right: Option<&mut RightRow>, start: usize) -> (usize, u16) {
    let mut best = (0, u16::MAX);
    let (least, disparities) = right.map_or((&mut [][..], &mut [][..]), |r| r.keys.split_at_mut(r.len));
    for (d, &sum) in sums.iter().enumerate() {
        if sum < best.1 {
            best = (d, sum);
        }
        // Left pixels are processed from right to left, so of equal sums the last has the least disparity.
        if let Some(least) = least.get_mut(start + d).filter(|least| sum <= **least) {
            *least = sum;
            disparities[start + d] = d as u16;
        }
    }
    best
}

/// Chooses the disparities of the left pixels of a column, one in each of `rows`, given the parts of their sums from
/// both passes, a pixel's disparities side by side. `places` are those of [`places`], `sums` is room for the sums of a
/// pixel. The body is compiled once for a SIMD level and a width of the sums.
#[simd]
pub(super) fn select_column<S: Simd, A: Value>(
    simd: S,
    input: &AggregationInput<'_>,
    (column, rows): (Column, &[CostRow]),
    parts: Parts<'_, A>,
    (places, sums): (&[u16], &mut [u16]),
    (output, right): (&mut [OutputRow<'_>], &mut [RightRow]),
) {
    let (keys, count) = (Keys::of(input), input.options.disparities);
    let parts = parts[0].chunks_exact(sums.len()).zip(parts[1].chunks_exact(sums.len()));
    let outputs = output.iter_mut().zip(right);
    for (r, ((row, (before, after)), (output, right))) in rows.iter().zip(parts).zip(outputs).enumerate() {
        let x = column.x(r);
        // A left pixel without data is no candidate for right pixels.
        let hole = row.is_hole(x);
        let right = (output.right.is_some() && !hole).then_some(right);
        let start = input.size().width - 1 - x;
        if keys.is_none() || output.needs_sums(input) {
            add(simd, [before, after], count, sums);
        }
        let winner = match keys {
            Some(keys) => least(simd, keys, [before, after], places, right, start),
            None => least_one_by_one(&sums[..count], right, start),
        };
        if let Some(out) = &mut output.sums {
            out[x * count..(x + 1) * count].copy_from_slice(&sums[..count]);
        }
        let sum = |d: usize| before[d].into().saturating_add(after[d].into());
        output.set(x, input, (sum, sums), (!hole).then_some(winner));
    }
}

impl OutputRow<'_> {
    /// Whether other sums are needed than the least and those beside it.
    #[inline(always)]
    fn needs_sums(&self, input: &AggregationInput<'_>) -> bool {
        input.options.uniqueness > 0 || self.confidence.is_some() || self.sums.is_some()
    }

    /// Writes the disparity and the confidence of pixel x, whose least sum and its place are `winner`. `sum` is the sum
    /// of a disparity, `sums` are all of them where they are [needed](Self::needs_sums).
    #[inline(always)]
    fn set(
        &mut self,
        x: usize,
        input: &AggregationInput<'_>,
        (sum, sums): (impl Fn(usize) -> u16, &[u16]),
        winner: Option<(usize, u16)>,
    ) {
        let Some((best, value)) = winner else {
            self.disparity[x] = INVALID;
            if let Some(confidence) = &mut self.confidence {
                confidence[x] = 0.0;
            }
            return;
        };
        let count = input.options.disparities;
        let mut unique = true;
        if input.options.uniqueness > 0 || self.confidence.is_some() {
            let beside = best.saturating_sub(1)..(best + 2).min(count);
            let second = sums[..beside.start].iter().chain(&sums[beside.end..count]).copied().min();
            let second = second.unwrap_or(u16::MAX);
            unique = u32::from(second) * u32::from(100 - input.options.uniqueness) >= 100 * u32::from(value);
            if let Some(confidence) = &mut self.confidence {
                confidence[x] = f32::from(second - value.min(second)) / f32::from(second.max(1));
            }
        }
        self.disparity[x] = if unique {
            let offset = if best > 0 && best + 1 < count {
                subpixel::offset(input.options.subpixel, [sum(best - 1), value, sum(best + 1)].map(i32::from))
            } else {
                0.0
            };
            (input.options.min_disparity + best as i32) as f32 + offset
        } else {
            INVALID
        };
    }
}
