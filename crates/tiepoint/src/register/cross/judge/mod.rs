//! Whether the structure of two aligned pictures agrees better than by chance.
//!
//! In every cell of 12 × 12 pixels at half the size (24 of the picture) both pictures' channels are correlated, each
//! less its mean in the cell. The same cell of A is also correlated with B displaced by 14, 20 and 28 pixels, in twelve
//! directions each, and the share of the displacements with a lower correlation is the cell's result. If the agreement
//! is due to chance, this share is uniformly distributed between 0 and 1, whatever the pictures show: mean ½, variance
//! 1/12. The mean over n cells less ½, times √(12 n), is the **score**, in standard deviations.
//!
//! A search tries about 84 combinations of turn and scale with all shifts that differ by 8 pixels: some 3·10⁵
//! hypotheses at 512². One of them reaches a score of 5.5 by chance in 1 of 150 pairs. Cells are not quite independent
//! in regular pictures, such as the streets of two towns, so the mean must be at least 0.66 as well.
//!
//! Cells also depend on each other if two things have one outline, such as two heads or two eyes in a round aperture:
//! outlines that meet agree in every cell along them, while what is inside does not agree. So the half of the cells
//! where both pictures show the most structure (the product of the variances of both cells' channels, which are those
//! of the correlation) must agree by themselves, with a mean of at least 0.68. It was at most 0.64 for outlines that
//! met, and at least 0.71 for pictures of one scene (`docs/notebook/structure.md`).
//!
//! A third of the displacements refuses most wrong hypotheses: where their mean is below 0.6, the rest is left out.

pub(crate) mod gpu;

use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::feature::structure::lanes::{BINS, COUNTS, LANES, pixels};
use crate::image::{Image, Size};
use fearless_simd::Simd;
use std::ops::Range;

/// Side of a cell, in pixels at half the size.
const CELL: usize = 12;
/// Displacements in pixels at half the size: lengths of 7, 10 and 14 in twelve directions each. The directions of the
/// second length lie 15° between those of the others.
const AROUND: [[i32; 2]; 36] = around();
/// The share of a cell's pixels that must count, without displacement and displaced.
const COUNTED: [f32; 2] = [0.7, 0.5];
/// A cell is judged if one in the first number of displacements can be compared; and the fewest cells that are judged.
const LEAST: [usize; 2] = [3, 6];
/// A ninth of the area agrees by chance alone if its mean is less than the first number of standard deviations above ½,
/// and more than the second number below the mean of the whole area.
const CHANCE: [f64; 2] = [3.0, 4.0];
/// The least mean by a third of the displacements (four directions of each length) with which the others are computed.
const LIKELY: f64 = 0.6;

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
    /// The mean of the half of the cells with the most structure.
    pub(super) clear: f64,
    /// Of the ninths of the judged area, how many agree by chance alone ([`by_chance`]), and how many hold cells.
    pub(super) by_chance: [usize; 2],
}

impl Agreement {
    pub(super) fn is_more_than_chance(self) -> bool {
        self.score >= 5.5 && self.mean >= 0.66 && self.clear >= 0.68
    }

    /// Whether further hypotheses can be skipped.
    pub(super) fn is_beyond_doubt(self) -> bool {
        self.is_more_than_chance() && self.score >= 9.0 && self.mean >= 0.7
    }
}

/// The comparison of a cell with its displacements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// Over displacements with enough pixels: 2 for a lower correlation than without displacement, 1 for an equal one.
    less: u32,
    others: u32,
    /// How much structure both pictures show there: the product of the variances of their channels, times the square of
    /// the number of pixels that count; negative if too few count without displacement.
    strength: f32,
}

/// How well the structure of two aligned pictures agrees, by cells in rows of `columns` and every `n`th displacement.
pub(super) fn agreement(columns: usize, cells: impl Fn(usize) -> Result<Vec<Cell>>) -> Result<Agreement> {
    let likely = by_every(3, columns, &cells)?;
    if likely.mean < LIKELY { Ok(likely) } else { by_every(1, columns, &cells) }
}

/// Whether two pictures that are not completely aligned yet may show one scene; `cells` as for [`agreement`].
pub(super) fn is_likely(cells: impl Fn(usize) -> Result<Vec<Cell>>) -> Result<bool> {
    Ok(by_every(3, usize::MAX, &cells)?.mean >= LIKELY)
}

/// As [`agreement`], by every `n`th of the displacements.
fn by_every(n: usize, columns: usize, cells: &impl Fn(usize) -> Result<Vec<Cell>>) -> Result<Agreement> {
    let least = AROUND.len().div_ceil(n) / LEAST[0];
    let is_judged = |(_, cell): &(usize, Cell)| cell.strength >= 0.0 && cell.others as usize >= least;
    let mut cells: Vec<(usize, Cell)> = cells(n)?.into_iter().enumerate().filter(is_judged).collect();
    if cells.len() < LEAST[1] {
        return Ok(Agreement { score: 0.0, mean: 0.5, clear: 0.5, by_chance: [0; 2] });
    }
    let share = |(_, cell): &(usize, Cell)| f64::from(cell.less) / f64::from(2 * cell.others);
    let shares = cells.iter().map(|cell| ([cell.0 % columns, cell.0 / columns], share(cell)));
    let by_chance = by_chance(&shares.collect::<Vec<_>>());
    cells.sort_by(|a, b| b.1.strength.total_cmp(&a.1.strength));
    let mean = |cells: &[(usize, Cell)]| cells.iter().map(share).sum::<f64>() / cells.len() as f64;
    let (all, clear) = (mean(&cells), mean(&cells[..cells.len() / 2]));
    Ok(Agreement { score: (all - 0.5) * deviations(cells.len()), mean: all, clear, by_chance })
}

/// The reciprocal of the standard deviation of a mean of `n` results that are due to chance.
fn deviations(n: usize) -> f64 {
    (12.0 * n as f64).sqrt()
}

/// Of the ninths of these cells' area, how many agree no better than by chance although the whole agrees, and how many
/// hold cells. Such ninths show a map that is right in the middle and wrong at an edge. A cell is column, row, result.
fn by_chance(cells: &[([usize; 2], f64)]) -> [usize; 2] {
    let ends = [0, 1].map(|c| {
        let of = || cells.iter().map(|(at, _)| at[c]);
        (of().min().unwrap_or(0), of().max().map_or(1, |last| last + 1))
    });
    let mut parts = [(0.0, 0); 9];
    for (at, share) in cells {
        let [x, y] = [0, 1].map(|c| 3 * (at[c] - ends[c].0) / (ends[c].1 - ends[c].0));
        let (sum, n) = &mut parts[3 * y + x];
        (*sum, *n) = (*sum + share, *n + 1);
    }
    let mean = cells.iter().map(|(_, share)| share).sum::<f64>() / cells.len() as f64;
    let agrees_by_chance = |(sum, n): &&(f64, usize)| {
        let part = sum / *n as f64;
        (part - 0.5) * deviations(*n) < CHANCE[0] && (mean - part) * deviations(*n) > CHANCE[1]
    };
    let there = || parts.iter().filter(|(_, n)| *n > 0);
    [there().filter(agrees_by_chance).count(), there().count()]
}

/// The cells of two aligned pictures, row by row, for every `n`th displacement: channels of A, and of B laid on them.
pub(super) fn cells(lanes: [&Image<f32>; 2], n: usize, cpu: &Cpu) -> Result<Vec<Cell>> {
    let of = cells_of(lanes[0].size());
    let rows = cpu.try_map(of.height, |y| {
        Ok((0..of.width).map(|x| cell(lanes, [x * CELL, y * CELL], n, cpu)).collect::<Vec<_>>())
    })?;
    Ok(rows.concat())
}

/// How many cells channels of this size have along each axis.
pub(super) fn cells_of(size: Size) -> Size {
    Size::new(size.width / CELL, size.height / CELL)
}

fn cell(lanes: [&Image<f32>; 2], at: [usize; 2], n: usize, cpu: &Cpu) -> Cell {
    let correlation = |by: [i32; 2], counted: f32| {
        let found = dispatch!(cpu.level(), simd => correlated(simd, lanes, at, by))?;
        (found.counted > counted * (CELL * CELL) as f32).then_some(found)
    };
    let mut cell = Cell { less: 0, others: 0, strength: -1.0 };
    let Some(own) = correlation([0, 0], COUNTED[0]) else { return cell };
    cell.strength = own.strength;
    for other in AROUND.iter().step_by(n).filter_map(|by| correlation(*by, COUNTED[1])) {
        cell.less += 2 * u32::from(other.value < own.value) + u32::from(other.value == own.value);
        cell.others += 1;
    }
    cell
}

/// The correlation of two cells, how many pixels count in both, and [`Cell::strength`].
#[derive(Clone, Copy, Debug)]
struct Correlated {
    value: f32,
    counted: f32,
    strength: f32,
}

/// The pixels of a cell along one axis in A, and those displaced by `by` in B, as far as both lie within `n` pixels.
#[inline(always)]
fn places(start: i32, by: i32, n: i32) -> (Range<usize>, Range<usize>) {
    let from = start.max(-by);
    let to = (start + CELL as i32).min(n - by);
    match from < to {
        true => (from as usize..to as usize, (from + by) as usize..(to + by) as usize),
        false => (0..0, 0..0),
    }
}

/// The correlation of a cell of A with the cell of B displaced by `by`; `None` where no pixel counts.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "places of both pictures and sums are told by their indices")]
fn correlated<S: Simd>(_: S, lanes: [&Image<f32>; 2], at: [usize; 2], by: [i32; 2]) -> Option<Correlated> {
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
    let strength = squares[0].max(0.0) * squares[1].max(0.0);
    Some(Correlated { value: product / (strength + 1e-9).sqrt(), counted, strength })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Random;

    /// Random channels from one seed in the left half and another in the right half. The right half's values are
    /// `stronger` times as large, but the share `flat` of them is a constant.
    fn channels(seeds: [u64; 2], stronger: f32, flat: f32) -> Image<f32> {
        let size = Size::new(12 * CELL, 12 * CELL);
        let mut lanes = Image::try_filled(size, LANES, 1.0).unwrap();
        let mut random = seeds.map(Random::new);
        for pixel in lanes.data_mut().as_chunks_mut::<{ 12 * CELL * LANES }>().0 {
            for (half, values) in pixel.chunks_exact_mut(6 * CELL * LANES).enumerate() {
                for pixel in values.as_chunks_mut::<LANES>().0 {
                    let (factor, flat) = if half == 0 { (1.0, 0.0) } else { (stronger, flat) };
                    let value = |random: &mut Random| factor * (flat + (1.0 - flat) * random.unit() as f32);
                    pixel[..BINS].iter_mut().for_each(|v| *v = value(&mut random[half]));
                }
            }
        }
        lanes
    }

    /// Half of the cells agree perfectly, half by chance: the mean alone does not show which.
    #[test]
    fn agreement_only_where_there_is_little_structure_is_refused() {
        let cpu = Cpu::with_threads(2).unwrap();
        // Last, noise without structure, which is as strong everywhere: it does not count as much.
        for (stronger, flat, expected) in [(0.5, 0.0, true), (2.0, 0.0, false), (2.0, 0.8, true)] {
            let lanes = [channels([1, 2], stronger, flat), channels([1, 3], stronger, flat)];
            let cells = |n| cells(lanes.each_ref(), n, &cpu);
            let found = agreement(12, cells).unwrap();
            assert!(found.score > 5.5 && found.mean > 0.66, "{found:?}");
            assert_eq!(found.is_more_than_chance(), expected, "{stronger}: {found:?}");
            assert_eq!(found.is_beyond_doubt(), expected, "{stronger}: {found:?}");
            assert!(is_likely(cells).unwrap());
        }
        let unlike = [channels([1, 2], 1.0, 0.0), channels([4, 3], 1.0, 0.0)];
        let cells = |n| cells(unlike.each_ref(), n, &cpu);
        assert!(!is_likely(cells).unwrap());
        assert!(!agreement(12, cells).unwrap().is_more_than_chance());
    }

    #[test]
    fn parts_that_agree_by_chance_are_counted_where_others_agree() {
        let by = |share: fn(usize, usize) -> f64, columns: usize| {
            let cells = (0..20).flat_map(|y| (0..columns).map(move |x| ([x + 3, y + 2], share(x, y))));
            by_chance(&cells.collect::<Vec<_>>())
        };
        let even = |x: usize, y: usize| ((7 * x + 3 * y) % 10) as f64 / 9.0;
        assert_eq!(by(|_, _| 0.8, 30), [0, 9]);
        assert_eq!(by(even, 30), [0, 9], "chance everywhere is refused elsewhere");
        assert_eq!(by(|x, _| if x < 10 { 0.5 } else { 1.0 }, 30), [3, 9]);
        assert_eq!(by(|x, y| if x < 10 && y > 13 { 0.5 } else { 0.8 }, 30), [1, 9]);
        assert_eq!(by(|x, _| if x < 1 { 0.5 } else { 1.0 }, 2), [0, 6], "too few cells to tell");
        assert_eq!(by_chance(&[]), [0, 0]);
    }

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
