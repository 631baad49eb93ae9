//! Whether the structure of two aligned pictures agrees better than by chance.
//!
//! In every cell of 12 × 12 at half the size (24 pixels) both pictures' channels are correlated, each less its mean in
//! the cell. The same cell of A is also correlated with B displaced by 14, 20 and 28 pixels, in twelve directions each,
//! and the share of the displacements with a lower correlation is the cell's result. If the agreement is by chance,
//! this share is uniformly distributed between 0 and 1 whatever the pictures are like: mean ½, variance 1/12. The mean
//! over n cells less ½, times √(12 n), is the **score**, in standard deviations.
//!
//! A search tries about 84 combinations of turn and scale with all shifts that differ by 8 pixels: some 3·10⁵
//! hypotheses at 512². One of them reaches a score of 5.5 by chance in 1 of 150 pairs. Cells are not quite independent
//! in regular pictures, such as the streets of two towns, so the mean must be at least 0.66 as well.

use super::align::Aligned;
use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::structure::lanes::{BINS, COUNTS, LANES, pixels};
use crate::image::Image;
use fearless_simd::Simd;
use std::ops::Range;

/// Side of a cell, in pixels at half the size.
const CELL: usize = 12;
/// Displacements in pixels at half the size: lengths of 7, 10 and 14 in twelve directions each. The directions of the
/// second length lie 15° between those of the others.
const AROUND: [[i32; 2]; 36] = around();
/// The share of a cell's pixels that must count, in its own place and displaced.
const COUNTED: [f32; 2] = [0.7, 0.5];
/// The fewest displacements with which a cell is compared, and the fewest cells in all.
const LEAST: [usize; 2] = [12, 6];

const fn around() -> [[i32; 2]; 36] {
    // Rounded from r (cos, sin) of 0°, 30°, 60° for 7 and 14, of 15°, 45°, 75° for 10.
    let thirds = [[[7, 0], [6, 4], [4, 6]], [[10, 3], [7, 7], [3, 10]], [[14, 0], [12, 7], [7, 12]]];
    let mut out = [[0; 2]; 36];
    let mut i = 0;
    while i < 36 {
        let [x, y] = thirds[i / 12][i % 3];
        // Quarter turns.
        out[i] = match i % 12 / 3 {
            0 => [x, y],
            1 => [-y, x],
            2 => [-x, -y],
            _ => [y, -x],
        };
        i += 1;
    }
    out
}

/// How well structure agrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Agreement {
    pub(super) score: f64,
    pub(super) mean: f64,
}

impl Agreement {
    pub(super) fn is_more_than_chance(self) -> bool {
        self.score >= 5.5 && self.mean >= 0.66
    }

    /// Whether further hypotheses can be skipped.
    pub(super) fn is_beyond_doubt(self) -> bool {
        self.score >= 9.0 && self.mean >= 0.7
    }
}

/// How well the structure of two aligned pictures agrees.
pub(super) fn agreement(aligned: &Aligned, cpu: &Cpu) -> Result<Agreement> {
    let _stage = cpu.stage("judge");
    let size = aligned.lanes[0].size();
    let (columns, rows) = (size.width / CELL, size.height / CELL);
    let shares = cpu.try_map(rows, |y| {
        Ok((0..columns).filter_map(|x| share(&aligned.lanes, [x * CELL, y * CELL], cpu)).collect::<Vec<_>>())
    })?;
    let shares: Vec<f64> = shares.into_iter().flatten().collect();
    if shares.len() < LEAST[1] {
        return Ok(Agreement { score: 0.0, mean: 0.5 });
    }
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    Ok(Agreement { score: (mean - 0.5) * (12.0 * n).sqrt(), mean })
}

/// The share of displacements at which the structure of a cell agrees less; `None` where too few of its pixels count.
fn share(lanes: &[Image<f32>; 2], at: [usize; 2], cpu: &Cpu) -> Option<f64> {
    let correlation = |by: [i32; 2], counted: f32| {
        let found = dispatch!(cpu.level(), simd => correlated(simd, lanes, at, by));
        found.filter(|(_, n)| *n > counted * (CELL * CELL) as f32).map(|(c, _)| c)
    };
    let own = correlation([0, 0], COUNTED[0])?;
    let others: Vec<f32> = AROUND.iter().filter_map(|by| correlation(*by, COUNTED[1])).collect();
    let less: usize = others.iter().map(|c| 2 * usize::from(*c < own) + usize::from(*c == own)).sum();
    (others.len() >= LEAST[0]).then(|| less as f64 / (2 * others.len()) as f64)
}

/// Places of a cell in A along one axis, and those in B displaced by `by`, where both pictures, of `n` pixels, have them.
#[inline(always)]
fn places(start: i32, by: i32, n: i32) -> (Range<usize>, Range<usize>) {
    let from = start.max(-by);
    let to = (start + CELL as i32).min(n - by);
    match from < to {
        true => (from as usize..to as usize, (from + by) as usize..(to + by) as usize),
        false => (0..0, 0..0),
    }
}

/// The correlation of a cell of A with the cell of B displaced by `by`, and how many pixels count in both.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "places of both pictures and sums are told by their indices")]
fn correlated<S: Simd>(_: S, lanes: &[Image<f32>; 2], at: [usize; 2], by: [i32; 2]) -> Option<(f32, f32)> {
    let size = lanes[0].size();
    let mut sums = [[0.0_f32; LANES]; 5];
    let mut counted = 0.0;
    let [columns, rows] = [(at[0], by[0], size.width), (at[1], by[1], size.height)]
        .map(|(start, by, n)| places(start as i32, by, n as i32));
    for (y, v) in rows.0.zip(rows.1) {
        let a = &pixels(lanes[0].row(y))[columns.0.clone()];
        let b = &pixels(lanes[1].row(v))[columns.1.clone()];
        for (a, b) in a.iter().zip(b) {
            let counts = a[COUNTS] * b[COUNTS];
            counted += counts;
            for i in 0..LANES {
                let (a, b) = (a[i] * counts, b[i] * counts);
                let terms = [a, b, a * a, b * b, a * b];
                (0..5).for_each(|k| sums[k][i] += terms[k]);
            }
        }
    }
    if counted == 0.0 {
        return None;
    }
    let (mut product, mut squares) = (0.0, [0.0; 2]);
    for i in 0..BINS {
        let [a, b, aa, bb, ab] = [0, 1, 2, 3, 4].map(|k| sums[k][i]);
        product += ab - a * b / counted;
        squares = [squares[0] + aa - a * a / counted, squares[1] + bb - b * b / counted];
    }
    Some((product / (squares[0].max(0.0) * squares[1].max(0.0) + 1e-9).sqrt(), counted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displaced_cells_are_cut_at_the_edges() {
        // The last cell of 132 pixels begins at 120.
        assert_eq!(places(120, 14, 132), (0..0, 0..0), "beyond the edge");
        assert_eq!(places(120, 12, 132), (0..0, 0..0));
        assert_eq!(places(120, 7, 132), (120..125, 127..132));
        assert_eq!(places(120, -7, 132), (120..132, 113..125));
        assert_eq!(places(0, -7, 132), (7..12, 0..5));
        assert_eq!(places(0, -14, 132), (0..0, 0..0));
        for (start, by, n) in [(108, 14, 121), (0, 10, 12), (24, 0, 40)] {
            let expected: Vec<_> =
                (start..start + CELL as i32).filter(|x| (0..n).contains(&(x + by))).collect();
            let (a, b) = places(start, by, n);
            assert_eq!(a.clone().map(|x| x as i32).collect::<Vec<_>>(), expected);
            assert!(a.zip(b).all(|(a, b)| b as i32 == a as i32 + by), "{start} by {by} of {n}");
        }
    }
}
