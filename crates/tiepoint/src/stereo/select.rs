//! Selection: of all disparities of a pixel the one with the least sum, in the left view and along the diagonals in
//! the right one.
//!
//! Of equal sums the least disparity is taken. In the right view the pixel x′ chooses among S(x′ + d, d).
//!
//! **Between whole disparities**, with s₋, s₀, s₊ the sums beside and at the least: the parabola through them has its
//! lowest point at d + (s₋ − s₊) / (2 (s₋ − 2 s₀ + s₊)); two lines of opposite slope meet at
//! d + (s₋ − s₊) / (2 (max(s₋, s₊) − s₀)). Sums are integers below 2¹⁶: numerator and denominator are exact, the
//! quotient and the result are rounded once each.
//!
//! **Uniqueness**: with s₂ the least sum of the disparities that are not within 1 of the best,
//! (100 − u) s₂ < 100 s₀ makes the pixel invalid. **Confidence** is (s₂ − s₀) / s₂: 0 when another disparity is as
//! good, near 1 when the best stands alone (the peak ratio of X. Hu and P. Mordohai, PAMI 2012, turned to 0…1).

use super::{
    INVALID, Subpixel,
    aggregate::{Problem, Results},
    cost::Line,
};
use crate::image::Image;
use fearless_simd::{Simd, prelude::*};

/// How disparities are chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) subpixel: Subpixel,
    pub(super) uniqueness: u8,
}

/// Where the results of a row go.
#[derive(Default)]
pub(super) struct Row<'a> {
    pub(super) disparity: &'a mut [f32],
    pub(super) right: Option<&'a mut [f32]>,
    pub(super) confidence: Option<&'a mut [f32]>,
    /// The sums themselves, all disparities of a pixel side by side.
    pub(super) sums: Option<&'a mut [u16]>,
}

/// The rows of a range of the results.
pub(super) fn rows<'a>(
    results: &'a mut Results<'_>,
    problem: &Problem<'_>,
    range: std::ops::Range<usize>,
) -> Vec<Row<'a>> {
    let width = problem.size.width;
    let pixels = range.start * width..range.end * width;
    let cut = |image: &'a mut Option<&mut Image<f32>>| {
        let data = image.as_mut().map(|i| &mut i.data_mut()[pixels.clone()]);
        let mut rows = data.map(|d| d.chunks_mut(width));
        move || rows.as_mut().and_then(Iterator::next)
    };
    let Results { disparity, right, confidence, sums } = results;
    let (mut disparity, mut right, mut confidence) = (cut(disparity), cut(right), cut(confidence));
    let count = problem.disparities();
    let sums = sums.as_mut().map(|s| &mut s[pixels.start * count..pixels.end * count]);
    let mut sums = sums.map(|s| s.chunks_mut(width * count));
    range
        .map(|_| Row {
            disparity: disparity().unwrap_or_default(),
            right: right(),
            confidence: confidence(),
            sums: sums.as_mut().and_then(Iterator::next),
        })
        .collect()
}

/// The least sum seen so far for each pixel of the right row, and its disparity. Place j belongs to the pixel
/// width − 1 − min_disparity − j, so that rising disparities of a left pixel lie side by side.
#[derive(Clone, Debug, Default)]
pub(super) struct RightRow {
    least: Vec<u16>,
    disparity: Vec<u16>,
}

impl RightRow {
    pub(super) fn clear(&mut self, len: usize) {
        self.least.clear();
        self.least.resize(len, u16::MAX);
        self.disparity.clear();
        self.disparity.resize(len, 0);
    }

    /// Takes the sums of the left pixel x into account. Pixels must come from the right: then of equal sums the last
    /// has the least disparity, and replaces the others.
    #[inline(always)]
    fn add<S: Simd>(&mut self, simd: S, start: usize, sums: &[u16]) {
        let n = S::u16s::LEN;
        let least = self.least[start..].chunks_exact_mut(n);
        let disparity = self.disparity[start..].chunks_exact_mut(n);
        let mut index = ramp(simd);
        for ((sums, least), disparity) in sums.chunks_exact(n).zip(least).zip(disparity) {
            let (sum, before) = (S::u16s::from_slice(simd, sums), S::u16s::from_slice(simd, least));
            let better = sum.simd_le(before);
            sum.min(before).store_slice(least);
            better.select(index, S::u16s::from_slice(simd, disparity)).store_slice(disparity);
            index += n as u16;
        }
    }

    /// Writes the disparities of the right row.
    pub(super) fn finish(&self, problem: &Problem<'_>, width: usize, row: &mut Row<'_>) {
        let Some(out) = &mut row.right else { return };
        let min = problem.cost.min_disparity;
        for (x, out) in out.iter_mut().enumerate() {
            let place = width as i64 - 1 - i64::from(min) - x as i64;
            let place = usize::try_from(place).ok().filter(|&j| self.least.get(j).is_some_and(|&s| s < u16::MAX));
            *out = place.map_or(INVALID, |j| (min + i32::from(self.disparity[j])) as f32);
        }
    }
}

/// 0, 1, 2, …
#[inline(always)]
fn ramp<S: Simd>(simd: S) -> S::u16s {
    let mut values = [0_u16; 64];
    for (i, v) in values.iter_mut().enumerate() {
        *v = i as u16;
    }
    S::u16s::from_slice(simd, &values[..S::u16s::LEN])
}

/// The least of the sums and the first place that holds it.
#[inline(always)]
fn least<S: Simd>(simd: S, sums: &[u16]) -> (usize, u16) {
    let n = S::u16s::LEN;
    let mut best = S::u16s::splat(simd, u16::MAX);
    for s in sums.chunks_exact(n) {
        best = best.min(S::u16s::from_slice(simd, s));
    }
    let value = best.reduce_min();
    for (c, s) in sums.chunks_exact(n).enumerate() {
        let bits = S::u16s::from_slice(simd, s).simd_eq(value).to_bitmask();
        if bits != 0 {
            return (c * n + bits.trailing_zeros() as usize, value);
        }
    }
    (0, value)
}

/// Chooses the disparity of the left pixel x from its sums, whose tail beyond the last disparity is overwritten.
#[inline(always)]
pub(super) fn pixel<S: Simd>(
    simd: S,
    problem: &Problem<'_>,
    line: &Line,
    x: usize,
    sums: &mut [u16],
    row: &mut Row<'_>,
    right: &mut RightRow,
) {
    let count = problem.cost.disparities;
    if count < sums.len() {
        sums[count..].fill(u16::MAX);
    }
    if let Some(out) = &mut row.sums {
        out[x * count..(x + 1) * count].copy_from_slice(&sums[..count]);
    }
    if line.is_hole(x) {
        row.disparity[x] = INVALID;
        if let Some(confidence) = &mut row.confidence {
            confidence[x] = 0.0;
        }
        return;
    }
    if row.right.is_some() {
        right.add(simd, problem.cost.size.width - 1 - x, sums);
    }
    let (best, value) = least(simd, sums);
    let Choice { subpixel, uniqueness } = problem.choice;
    let mut unique = true;
    if uniqueness > 0 || row.confidence.is_some() {
        let beside = best.saturating_sub(1)..(best + 2).min(count);
        let second = sums[..beside.start].iter().chain(&sums[beside.end..count]).copied().min();
        let second = second.unwrap_or(u16::MAX);
        unique = u32::from(second) * u32::from(100 - uniqueness) >= 100 * u32::from(value);
        if let Some(confidence) = &mut row.confidence {
            confidence[x] = f32::from(second - value.min(second)) / f32::from(second.max(1));
        }
    }
    row.disparity[x] = if unique {
        let offset = if best > 0 && best + 1 < count {
            offset(subpixel, [sums[best - 1], value, sums[best + 1]].map(i32::from))
        } else {
            0.0
        };
        (problem.cost.min_disparity + best as i32) as f32 + offset
    } else {
        INVALID
    };
}

/// How far from the whole disparity the least cost is supposed, −½ to ½.
fn offset(subpixel: Subpixel, [below, at, above]: [i32; 3]) -> f32 {
    let twice = match subpixel {
        Subpixel::Off => 0,
        Subpixel::Parabola => below - 2 * at + above,
        Subpixel::Equiangular => below.max(above) - at,
    };
    if twice == 0 { 0.0 } else { (below - above) as f32 / (2 * twice) as f32 }
}
