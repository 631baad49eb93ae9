//! The table of costs learnt from a disparity map.
//!
//! **Formula** (H. Hirschmüller, PAMI 2008, section 2.1; the taps are those of the CUDA program of 2010). A disparity
//! map says which pixels correspond. P(i, k) is the share of them whose left value is i and whose right value
//! is k; its margins are P(i) and P(k). With ⊗g a Gaussian of seven taps
//!
//! ```text
//! h = −ln(P ⊗ g + ε) ⊗ g,  of P(i, k) in both directions and of the margins in theirs;  ε = 10⁻⁷
//! v(i, k) = h(i, k) − h(i) − h(k)
//! C(i, k) = round(4 (v − o)), at least 0 and at most 24
//! ```
//!
//! v is small for values that occur together more often than by chance. The offset o is the ¹⁄₂₀ quantile of v over the
//! pixels, rounded down to a multiple of 2⁻¹⁸: the twentieth of the pixels that fits best costs nothing.
//!
//! **Numbers.** Counts and their margins are integers. All else is f64 in a stated order: shares are count / total; a
//! smoothed value is Σ g(t) a(x + t), t ascending, where values beyond 0…255 repeat those at the ends; the logarithm is
//! [`numeric::ln`](crate::numeric::ln).

pub(super) mod gpu;

use super::{CostTable, LIMIT, VALUES};
use crate::device::{Cpu, dispatch};
use crate::image::Image;
use crate::numeric;
use fearless_simd::Simd;
use fearless_simd_macros::simd;

/// The Gaussian.
const TAPS: [f64; 7] = [0.006, 0.061, 0.242, 0.383, 0.242, 0.061, 0.006];
/// Keeps the logarithm finite for values that never occur together.
const EPSILON: f64 = 1e-7;
/// The cost of a nat.
const SCALE: f64 = 4.0;
/// The share of pixels that cost nothing.
const FREE: f64 = 0.05;

/// The lower end of the classes of v, each of [`PARTS`] steps: h is at most 16.2, so v is at least −2 · 16.2.
const LEAST: f64 = -40.0;
/// The number of steps in a nat.
const STEPS: f64 = 262_144.0;
/// The number of steps (parts) in a class.
const PARTS: usize = 256;
const CLASSES: usize = 1 << 16;

/// How far the Gaussian reaches to either side.
const REACH: usize = TAPS.len() / 2;
/// Rows of the table in a task.
const ROWS: usize = 32;

impl CostTable {
    /// The table learnt from a disparity map of the pair's size or, with `step` 2, of half the size, and so on: each of
    /// its pixels then stands for `step` × `step` pixels, with `step` times its disparity. If x − d lies outside the
    /// right image, the nearest column counts; pixels without a disparity do not count.
    pub(super) fn learn(
        [left, right]: [&Image<u8>; 2],
        (disparity, step): (&Image<f32>, usize),
        right_mask: Option<&Image<u8>>,
        cpu: &Cpu,
    ) -> Self {
        let _stage = cpu.stage("mutual information");
        // The joint histogram: how often each pair of values corresponds, rows by the left value.
        let (width, height) = (left.size().width, left.size().height);
        let parts = cpu.threads().min(height).max(1);
        let counted = cpu.map(parts, |part| {
            let mut counts = vec![0_u64; VALUES * VALUES];
            for y in part * height / parts..(part + 1) * height / parts {
                let (left, right) = (left.row(y), right.row(y));
                let mask = right_mask.map(|m| m.row(y));
                for (n, &d) in disparity.row(y / step).iter().enumerate().filter(|(_, d)| d.is_finite()) {
                    let d = step as f32 * d;
                    for x in n * step..(n * step + step).min(width) {
                        // The nearest column, halves upwards.
                        let other = ((x as f32 - d + 0.5).max(0.0) as usize).min(width - 1);
                        if mask.is_none_or(|m| m[other] != 0) {
                            counts[usize::from(left[x]) * VALUES + usize::from(right[other])] += 1;
                        }
                    }
                }
            }
            counts
        });
        let add = |mut sum: Vec<u64>, part: Vec<u64>| {
            sum.iter_mut().zip(&part).for_each(|(s, p)| *s += p);
            sum
        };
        Self::of(&counted.into_iter().reduce(add).unwrap_or_default(), cpu)
    }

    fn of(counts: &[u64], cpu: &Cpu) -> Self {
        let values = unlikeness(counts, cpu);
        let offset = offset(&values, counts);
        let mut table = vec![0; values.len()];
        cpu.for_chunks(&mut table, ROWS * VALUES, |chunk, table| {
            let values = &values[chunk * ROWS * VALUES..];
            dispatch!(cpu.level(), simd => costs(simd, values, offset, table));
        });
        Self(table)
    }
}

/// The mutual information of a joint histogram, in nats: the mean of −v over the counted pixels. The terms of a row are
/// added [in halves](sum_in_halves), and so are the sums of the rows.
pub(super) fn information(counts: &[u64], cpu: &Cpu) -> f64 {
    let values = unlikeness(counts, cpu);
    let mut sums = [0.0; VALUES];
    let rows = counts.chunks_exact(VALUES).zip(values.chunks_exact(VALUES));
    for (sum, (counts, values)) in sums.iter_mut().zip(rows) {
        let mut terms = [0.0; VALUES];
        terms.iter_mut().zip(counts.iter().zip(values)).for_each(|(term, (&n, v))| *term = n as f64 * v);
        *sum = sum_in_halves(terms);
    }
    -sum_in_halves(sums) / counts.iter().sum::<u64>().max(1) as f64
}

/// The sum of the terms: the second half is added to the first until one number is left.
fn sum_in_halves(mut terms: [f64; VALUES]) -> f64 {
    let mut half = VALUES / 2;
    while half > 0 {
        let (first, second) = terms.split_at_mut(half);
        first.iter_mut().zip(second).for_each(|(a, b)| *a += *b);
        half /= 2;
    }
    terms[0]
}

/// v of every pair of values.
fn unlikeness(counts: &[u64], cpu: &Cpu) -> Vec<f64> {
    let mut shares = vec![0.0; counts.len()];
    let margins = dispatch!(cpu.level(), simd => shares_and_margins(simd, counts, &mut shares));
    let [left, right] = margins.map(|m| smooth(&smooth(&m).map(|p| -numeric::ln(p + EPSILON))));
    let mut logarithms = vec![0.0; counts.len()];
    cpu.for_chunks(&mut logarithms, ROWS * VALUES, |chunk, out| {
        dispatch!(cpu.level(), simd => {
            smooth_both(simd, &shares, chunk * ROWS, out);
            negative_logarithms(simd, out);
        });
    });
    let mut values = shares;
    cpu.for_chunks(&mut values, ROWS * VALUES, |chunk, out| {
        dispatch!(cpu.level(), simd => {
            smooth_both(simd, &logarithms, chunk * ROWS, out);
            less_margins(simd, &left[chunk * ROWS..], &right, out);
        });
    });
    values
}

/// Writes P to `shares`; returns its margins along the rows and along the columns.
#[simd]
fn shares_and_margins<S: Simd>(_simd: S, counts: &[u64], shares: &mut [f64]) -> [[f64; VALUES]; 2] {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    shares.iter_mut().zip(counts).for_each(|(share, &count)| *share = count as f64 / total);
    let mut margins = [[0_u64; VALUES]; 2];
    let [left, right] = &mut margins;
    for (row, left) in counts.chunks_exact(VALUES).zip(left) {
        *left = row.iter().sum();
        right.iter_mut().zip(row).for_each(|(right, count)| *right += count);
    }
    margins.map(|margin| margin.map(|count| count as f64 / total))
}

fn smooth(a: &[f64; VALUES]) -> [f64; VALUES] {
    let mut out = [0.0; VALUES];
    smooth_row(a, &mut out);
    out
}

#[inline(always)]
fn smooth_row(row: &[f64], out: &mut [f64]) {
    let mut padded = [0.0; VALUES + 2 * REACH];
    padded[..REACH].fill(row[0]);
    padded[REACH..][..VALUES].copy_from_slice(row);
    padded[REACH + VALUES..].fill(row[VALUES - 1]);
    out.fill(0.0);
    for (t, tap) in TAPS.iter().enumerate() {
        out.iter_mut().zip(&padded[t..]).for_each(|(out, v)| *out += tap * v);
    }
}

/// The rows of `a ⊗ g` from `first` on, as many as `out` holds: along the rows, then along the columns.
#[simd]
fn smooth_both<S: Simd>(_simd: S, a: &[f64], first: usize, out: &mut [f64]) {
    let mut along = [0.0; (ROWS + 2 * REACH) * VALUES];
    for (n, along) in along.chunks_exact_mut(VALUES).enumerate() {
        let y = (first + n).saturating_sub(REACH).min(VALUES - 1);
        smooth_row(&a[y * VALUES..][..VALUES], along);
    }
    for (n, out) in out.chunks_exact_mut(VALUES).enumerate() {
        out.fill(0.0);
        for (t, tap) in TAPS.iter().enumerate() {
            let row = &along[(n + t) * VALUES..][..VALUES];
            out.iter_mut().zip(row).for_each(|(out, v)| *out += tap * v);
        }
    }
}

#[simd]
fn negative_logarithms<S: Simd>(_simd: S, shares: &mut [f64]) {
    shares.iter_mut().for_each(|p| *p = -numeric::ln(*p + EPSILON));
}

#[simd]
fn less_margins<S: Simd>(_simd: S, left: &[f64], right: &[f64], values: &mut [f64]) {
    for (row, l) in values.chunks_exact_mut(VALUES).zip(left) {
        row.iter_mut().zip(right).for_each(|(v, r)| *v = *v - l - r);
    }
}

#[simd]
fn costs<S: Simd>(_simd: S, values: &[f64], offset: f64, out: &mut [u8]) {
    for (out, v) in out.iter_mut().zip(values) {
        *out = (SCALE * (v - offset)).round().clamp(0.0, f64::from(LIMIT)) as u8;
    }
}

/// The offset o: the start of the first part of a class that, with all lower parts, holds the share [`FREE`] of pixels.
fn offset(values: &[f64], counts: &[u64]) -> f64 {
    let met = || values.iter().map(|v| ((v - LEAST) * STEPS) as usize).zip(counts).filter(|m| *m.1 > 0);
    let wanted = FREE * counts.iter().sum::<u64>() as f64;
    let mut below = 0_u64;
    // Finds the first count that, with all before it, reaches `wanted`; adds the counts before it to `below`.
    let mut find = |counts: &[u64]| {
        let found = counts.iter().position(|count| {
            let reached = (below + count) as f64 >= wanted;
            below += if reached { 0 } else { *count };
            reached
        });
        found.unwrap_or(0)
    };
    let mut classes = vec![0_u64; CLASSES];
    met().for_each(|(part, count)| classes[part / PARTS] += count);
    let class = find(&classes);
    let mut parts = [0_u64; PARTS];
    met().filter(|m| m.0 / PARTS == class).for_each(|(part, count)| parts[part % PARTS] += count);
    (class * PARTS + find(&parts)) as f64 / STEPS + LEAST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;
    use crate::numeric::Random;
    use crate::stereo::testing::cpus;

    #[test]
    fn follows_the_formula() {
        let mut counts = vec![0_u64; VALUES * VALUES];
        for i in 0..VALUES {
            counts[i * VALUES + (255 - i)] = 40;
            counts[i * VALUES + (i * 7) % VALUES] += 3;
        }
        let total: u64 = counts.iter().sum();
        let tap = |a: &dyn Fn(isize) -> f64, x: isize| -> f64 {
            (0..7).map(|t| TAPS[t as usize] * a((x + t - 3).clamp(0, 255))).sum()
        };
        let p = |i: isize, k: isize| counts[i as usize * VALUES + k as usize] as f64 / total as f64;
        let grid = |f: &dyn Fn(isize, isize) -> f64| -> Vec<f64> {
            (0..65536).map(|n| f(n / 256, n % 256)).collect()
        };
        let both = |a: Vec<f64>| {
            let across = grid(&|i, k| tap(&|k| a[(i * 256 + k) as usize], k));
            grid(&|i, k| tap(&|i| across[(i * 256 + k) as usize], i))
        };
        let log = |a: Vec<f64>| -> Vec<f64> { a.iter().map(|p| -(p + EPSILON).ln()).collect() };
        let joint = both(log(both(grid(&p))));
        let margin = |share: &dyn Fn(isize) -> f64| -> Vec<f64> {
            let once: Vec<f64> = (0..256).map(|x| -(tap(share, x) + EPSILON).ln()).collect();
            (0..256).map(|x| tap(&|x| once[x as usize], x)).collect()
        };
        let left = margin(&|i| (0..256).map(|k| p(i, k)).sum());
        let right = margin(&|k| (0..256).map(|i| p(i, k)).sum());
        let values = grid(&|i, k| joint[(i * 256 + k) as usize] - left[i as usize] - right[k as usize]);
        let offset = (sorted_quantile(&values, &counts) * STEPS).floor() / STEPS;
        assert_eq!(super::offset(&values, &counts), offset, "the offset is the quantile");
        let table = CostTable::of(&counts, &Cpu::with_threads(2).unwrap());
        for (n, v) in values.iter().enumerate() {
            let expected = (SCALE * (v - offset)).clamp(0.0, f64::from(LIMIT));
            let found = f64::from(table.0[n]);
            assert!((found - expected).abs() < 0.5 + 1e-6, "{n}: {found} for {expected}");
        }
        assert!(table.row(3)[252] < 3 && table.row(3)[100] > 20, "the mirrored value fits, others do not");
    }

    fn sorted_quantile(values: &[f64], counts: &[u64]) -> f64 {
        let mut met: Vec<(f64, u64)> = values.iter().copied().zip(counts.iter().copied()).collect();
        met.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = FREE * counts.iter().sum::<u64>() as f64;
        let before = |n: usize| met[..=n].iter().map(|m| m.1).sum::<u64>() as f64;
        (0..met.len()).find(|&n| met[n].1 > 0 && before(n) >= wanted).map_or(0.0, |n| met[n].0)
    }

    /// A map at half or a quarter of the size gives the table of the enlarged map, on any threads and SIMD level.
    #[test]
    fn a_reduced_map_gives_the_table_of_the_enlarged_one() {
        let mut random = Random::new(11);
        for size in [Size::new(1, 1), Size::new(37, 1), Size::new(1, 20), Size::new(51, 34)] {
            let mut image =
                || Image::from_fn(size, |x, y| (random.bits() as usize % 40 + 3 * x + 5 * y) as u8);
            let (left, right, mask) = (image(), image(), image());
            let mask = Image::from_fn(size, |x, y| u8::from(mask.row(y)[x] % 8 != 0));
            for step in [2, 4] {
                let small = Size::new(size.width.div_ceil(step), size.height.div_ceil(step));
                let small = Image::from_fn(small, |_, _| match random.bits() % 5 {
                    0 => f32::INFINITY,
                    n => n as f32 * 1.3 - 2.0,
                });
                let whole = Image::from_fn(size, |x, y| step as f32 * small.row(y / step)[x / step]);
                let images = [&left, &right];
                let expected = CostTable::learn(images, (&whole, 1), Some(&mask), &Cpu::sequential());
                for cpu in cpus() {
                    let found = CostTable::learn(images, (&small, step), Some(&mask), &cpu);
                    let what = format!("{size}, 1/{step}, {} threads", cpu.threads());
                    assert!(found == expected, "{what}, {}", cpu.level_name());
                }
            }
        }
    }

    #[test]
    fn without_disparities_all_costs_are_equal() {
        let image = Image::filled(Size::new(5, 4), 1, 9_u8);
        let nowhere = Image::filled(Size::new(5, 4), 1, f32::INFINITY);
        let table = CostTable::learn([&image; 2], (&nowhere, 1), None, &Cpu::sequential());
        assert!(table.0.iter().all(|&c| c == table.0[0]), "one cost for all");
    }
}
