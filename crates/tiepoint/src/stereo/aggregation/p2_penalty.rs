//! The P2 penalty of every pixel and direction of a row, which depends on the difference of grey along the step.

use super::Directions;
use super::recurrence::Value;
use crate::stereo::Penalties;
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;

/// P2 by difference of 8-bit grey.
pub(super) struct P2Penalty<T> {
    table: [T; 256],
    /// The first values of the table, for look-ups in a vector, if they fit bytes and all later values equal the last.
    first: Option<[u8; FEW]>,
}

/// Values in a block of a vector.
const FEW: usize = 16;

impl<T: Value> P2Penalty<T> {
    pub(super) fn new(penalties: &Penalties) -> Self {
        let table = penalties.table();
        let few = table[FEW..].iter().all(|&p2| p2 == table[FEW - 1]) && table[0] <= u8::MAX.into();
        let first = few.then(|| std::array::from_fn(|delta| table[delta] as u8));
        Self { table: table.map(T::of), first }
    }

    /// P2 for each pair of pixels of two rows.
    #[inline(always)]
    fn of_pairs<S: Simd>(&self, simd: S, [a, b]: [&[u8]; 2], out: &mut [T]) {
        let n = S::u8s::LEN;
        let mut done = 0;
        if let Some(first) = self.first {
            let mut table = [0; 64];
            for (i, value) in table.iter_mut().enumerate() {
                *value = first[i % FEW];
            }
            let (table, last) = (S::u8s::from_slice(simd, &table[..n]), S::u8s::splat(simd, FEW as u8 - 1));
            let pairs = a.chunks_exact(n).zip(b.chunks_exact(n));
            for ((a, b), out) in pairs.zip(out.chunks_exact_mut(n)) {
                let (a, b) = (S::u8s::from_slice(simd, a), S::u8s::from_slice(simd, b));
                let delta = (a.max(b) - a.min(b)).min(last);
                T::spread::<S>(table.swizzle_dyn_within_blocks(delta), out);
            }
            done = out.len() / n * n;
        }
        for ((out, &a), &b) in out[done..].iter_mut().zip(&a[done..]).zip(&b[done..]) {
            *out = self.table[usize::from(a.abs_diff(b))];
        }
    }
}

/// Writes P2 for all pixels of the row `grey`, the directions of a pixel side by side. Values are undefined where p − r
/// is outside the image. `above(n)` is the row n rows earlier in the pass, `planes` is scratch memory.
#[simd]
pub(super) fn p2_of_row<'a, S: Simd, T: Value, D: Directions<N>, const N: usize>(
    simd: S,
    penalty: &P2Penalty<T>,
    grey: &[u8],
    (above, backward): (impl Fn(usize) -> Option<&'a [u8]>, bool),
    planes: &mut Vec<T>,
    out: &mut [[T; N]],
    _directions: D,
) {
    let width = out.len();
    planes.resize(N * width, T::default());
    for (&(dx, dy), plane) in D::STEPS.iter().zip(planes.chunks_exact_mut(width)) {
        let Some(before) = above(dy) else { continue };
        let dx = if backward { -dx } else { dx };
        let shift = dx.unsigned_abs().min(width);
        // Pairs of pixels that lie dx apart, in the order of the image.
        let (pairs, plane) = if dx >= 0 {
            ([&grey[shift..], &before[..width - shift]], &mut plane[shift..])
        } else {
            ([&grey[..width - shift], &before[shift..]], &mut plane[..width - shift])
        };
        penalty.of_pairs(simd, pairs, plane);
    }
    for (x, out) in out.iter_mut().enumerate() {
        for k in 0..N {
            out[k] = planes[k * width + x];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Star;
    use super::*;
    use crate::device::{Cpu, dispatch};

    #[test]
    fn follows_the_difference_of_grey() {
        let rows =
            [3_u32, 5].map(|factor| (0..131).map(|x| (x * factor * 7 % 256) as u8).collect::<Vec<_>>());
        let penalties = |p2, gradient| Penalties { p1: 2, p2, p2_least: 7, gradient };
        // A short table, a long one, and one whose values exceed bytes.
        for penalties in [penalties(20, 4), penalties(100, 40), penalties(900, 1)] {
            let table = penalties.table();
            for level in Cpu::levels() {
                let cpu = Cpu::sequential().at_level(level).unwrap();
                for backward in [false, true] {
                    let penalty = P2Penalty::<u16>::new(&penalties);
                    let above = |n: usize| (n <= 1).then(|| &rows[n][..]);
                    let mut out = [[0; 4]; 131];
                    dispatch!(cpu.level(), simd => p2_of_row(
                        simd, &penalty, &rows[0], (above, backward), &mut Vec::new(), &mut out, Star
                    ));
                    for (x, found) in out.iter().enumerate() {
                        for (&(dx, dy), &p2) in Star::STEPS.iter().zip(found) {
                            let from = x as isize + if backward { dx } else { -dx };
                            if let Some(&there) = rows[dy].get(from as usize) {
                                let expected = table[usize::from(rows[0][x].abs_diff(there))];
                                assert_eq!(p2, expected, "{penalties:?}, {level:?}, {x}, step {dx}, {dy}");
                            }
                        }
                    }
                }
            }
        }
    }
}
