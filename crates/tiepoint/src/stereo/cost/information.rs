//! Mutual information: which grey values of the two images belong together is learnt from the pair itself.
//!
//! **Formula** (H. Hirschmüller, PAMI 2008, section 2.1; the taps are those of the CUDA program of 2010). A disparity
//! map says which pixels lie upon each other. P(i, k) is the share of them whose left value is i and whose right value
//! is k; its margins are P(i) and P(k). With ⊗g a Gaussian of seven taps
//!
//! ```text
//! h = −ln(P ⊗ g + ε) ⊗ g,  of P(i, k) in both directions and of the margins in theirs;  ε = 10⁻⁷
//! v(i, k) = h(i, k) − h(i) − h(k)
//! C(i, k) = round(4 (v − o)), at least 0 and at most 24
//! ```
//!
//! v is small where values occur together more often than by chance. The offset o is the least v (of the table) that
//! is not exceeded on a twentieth of the pixels: what fits best costs nothing.
//!
//! **Numbers.** Counts are integers. From there on f64 in a stated order: shares are count / total; a smoothed value
//! is Σ g(t) a(x + t), t ascending, values beyond 0…255 being those at the end; the logarithm is
//! [`numeric::ln`](crate::numeric::ln).

use super::MI_LIMIT;
use crate::{device::Cpu, image::Image, numeric, stereo::aggregate::Value};
use fearless_simd::{Simd, prelude::*};

/// The Gaussian.
const TAPS: [f64; 7] = [0.006, 0.061, 0.242, 0.383, 0.242, 0.061, 0.006];
/// Keeps the logarithm of values that never met finite.
const EPSILON: f64 = 1e-7;
/// Costs in a nat.
const SCALE: f64 = 4.0;
/// The share of pixels that cost nothing.
const FREE: f64 = 0.05;

const VALUES: usize = 256;
/// Rows of the table in a task.
const ROWS: usize = 16;

/// The cost of every pair of grey values, rows by the left value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct Table(Vec<u8>);

impl Table {
    /// The costs of a left value.
    #[inline(always)]
    pub(super) fn row(&self, left: u8) -> &[u8] {
        &self.0[usize::from(left) * VALUES..][..VALUES]
    }

    /// The table that a disparity map teaches. Where x − d leaves the right image its nearest column stands in; pixels
    /// without a disparity teach nothing.
    pub(in crate::stereo) fn learn(
        left: &Image<u8>,
        right: &Image<u8>,
        disparity: &Image<f32>,
        right_mask: Option<&Image<u8>>,
        cpu: &Cpu,
    ) -> Self {
        let _stage = cpu.stage("mutual information");
        Self::of(&joint(left, right, disparity, right_mask, cpu), cpu)
    }

    /// The table for the pair with its images exchanged.
    pub(in crate::stereo) fn exchanged(&self) -> Self {
        Self((0..self.0.len()).map(|n| self.0[(n % VALUES) * VALUES + n / VALUES]).collect())
    }

    /// The table of a joint histogram.
    fn of(counts: &[u64], cpu: &Cpu) -> Self {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let shares: Vec<f64> = counts.iter().map(|&c| c as f64 / total).collect();
        let mut margins = [[0.0_f64; VALUES]; 2];
        for (n, &share) in shares.iter().enumerate() {
            margins[0][n / VALUES] += share;
            margins[1][n % VALUES] += share;
        }
        let joint = entropy(&shares, |a| smooth_both(a, cpu), cpu);
        let [left, right] = margins.map(|m| entropy(&m, smooth, cpu));
        let mut values = joint;
        for (row, &l) in values.chunks_mut(VALUES).zip(&left) {
            row.iter_mut().zip(&right).for_each(|(v, &r)| *v = *v - l - r);
        }
        let offset = quantile(&values, counts);
        let cost = |&v: &f64| (SCALE * (v - offset)).round().clamp(0.0, f64::from(MI_LIMIT)) as u8;
        Self(values.iter().map(cost).collect())
    }
}

/// How often each pair of values lies upon each other, rows by the left value.
fn joint(
    left: &Image<u8>,
    right: &Image<u8>,
    disparity: &Image<f32>,
    right_mask: Option<&Image<u8>>,
    cpu: &Cpu,
) -> Vec<u64> {
    let (width, height) = (left.size().width, left.size().height);
    let parts = cpu.threads().min(height).max(1);
    let counted = cpu.map(parts, |part| {
        let mut counts = vec![0_u64; VALUES * VALUES];
        for y in part * height / parts..(part + 1) * height / parts {
            let (left, right) = (left.row(y), right.row(y));
            for (x, &d) in disparity.row(y).iter().enumerate().filter(|(_, d)| d.is_finite()) {
                // The nearest column, halves upwards.
                let other = ((x as f32 - d + 0.5).max(0.0) as usize).min(width - 1);
                if right_mask.is_none_or(|m| m.row(y)[other] != 0) {
                    counts[usize::from(left[x]) * VALUES + usize::from(right[other])] += 1;
                }
            }
        }
        counts
    });
    let add = |mut sum: Vec<u64>, part: Vec<u64>| {
        sum.iter_mut().zip(&part).for_each(|(s, p)| *s += p);
        sum
    };
    counted.into_iter().reduce(add).unwrap_or_default()
}

/// −ln(a ⊗ g + ε) ⊗ g.
fn entropy(shares: &[f64], smooth: impl Fn(&[f64]) -> Vec<f64>, cpu: &Cpu) -> Vec<f64> {
    // Most pairs of values never meet.
    let never = -numeric::ln(EPSILON);
    let mut values = smooth(shares);
    cpu.for_chunks(&mut values, ROWS * VALUES, |_, values| {
        values.iter_mut().for_each(|p| *p = if *p == 0.0 { never } else { -numeric::ln(*p + EPSILON) });
    });
    smooth(&values)
}

fn smooth(a: &[f64]) -> Vec<f64> {
    let reach = TAPS.len() / 2;
    let [first, last] =
        [a.first(), a.last()].map(|end| std::iter::repeat_n(end.copied().unwrap_or(0.0), reach));
    let padded: Vec<f64> = first.chain(a.iter().copied()).chain(last).collect();
    let sum = |around: &[f64]| around.iter().zip(TAPS).fold(0.0, |sum, (v, tap)| sum + tap * v);
    padded.windows(TAPS.len()).map(sum).collect()
}

/// Along the rows, then along the columns.
fn smooth_both(a: &[f64], cpu: &Cpu) -> Vec<f64> {
    let turned =
        |a: &[f64]| -> Vec<f64> { (0..a.len()).map(|n| a[(n % VALUES) * VALUES + n / VALUES]).collect() };
    let rows = |a: &[f64]| -> Vec<f64> {
        let mut out = vec![0.0; a.len()];
        cpu.for_chunks(&mut out, ROWS * VALUES, |chunk, out| {
            for (out, row) in out.chunks_mut(VALUES).zip(a.chunks(VALUES).skip(chunk * ROWS)) {
                out.copy_from_slice(&smooth(row));
            }
        });
        out
    };
    turned(&rows(&turned(&rows(a))))
}

/// The least of `values` that is not exceeded on [`FREE`] of what is counted. Only the values around it are sorted.
fn quantile(values: &[f64], counts: &[u64]) -> f64 {
    const CLASSES: usize = 1024;
    let met = || values.iter().copied().zip(counts.iter().copied()).filter(|m| m.1 > 0);
    let (low, high) = met().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (v, _)| (l.min(v), h.max(v)));
    let class = |v: f64| (((v - low) / (high - low) * CLASSES as f64) as usize).min(CLASSES - 1);
    let mut classes = [0_u64; CLASSES];
    met().for_each(|(v, count)| classes[class(v)] += count);
    let wanted = FREE * counts.iter().sum::<u64>() as f64;
    let mut seen = 0_u64;
    let reached = classes.iter().position(|count| {
        let here = (seen + count) as f64 >= wanted;
        seen += if here { 0 } else { *count };
        here
    });
    let mut around: Vec<(f64, u64)> = met().filter(|m| Some(class(m.0)) == reached).collect();
    around.sort_by(|a, b| a.0.total_cmp(&b.0));
    let found = around.iter().find(|(_, count)| {
        seen += count;
        seen as f64 >= wanted
    });
    found.map_or(0.0, |m| m.0)
}

/// Costs of a left value against right values.
#[inline(always)]
pub(super) fn look_up<S: Simd, T: Value>(simd: S, table: &Table, left: u8, right: &[u8], out: &mut [T]) {
    let row = table.row(left);
    let n = S::u8s::LEN;
    if n == 64 {
        // Four vectors hold the row: two look-ups in pairs of them, and a choice by the highest bit.
        let mut parts = [S::u8s::splat(simd, 0); 4];
        for (part, row) in parts.iter_mut().zip(row.chunks_exact(n)) {
            *part = S::u8s::from_slice(simd, row);
        }
        for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            T::spread::<S>(of_parts::<S>(parts, S::u8s::from_slice(simd, right)), out);
        }
        return;
    }
    let mut costs = [0_u8; 64];
    for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let costs = &mut costs[..n];
        costs.iter_mut().zip(right).for_each(|(c, &r)| *c = row[usize::from(r)]);
        T::spread::<S>(S::u8s::from_slice(simd, costs), out);
    }
}

#[inline(always)]
fn of_parts<S: Simd>(parts: [S::u8s; 4], values: S::u8s) -> S::u8s {
    let place = values & 127;
    let low = parts[0].concat_swizzle_dyn(parts[1], place);
    let high = parts[2].concat_swizzle_dyn(parts[3], place);
    values.simd_gt(127).select(high, low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Size;

    /// The formula, value by value.
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
        let offset = sorted_quantile(&values, &counts);
        assert_eq!(quantile(&values, &counts), offset, "the twentieth");
        let table = Table::of(&counts, &Cpu::with_threads(2).unwrap());
        for (n, v) in values.iter().enumerate() {
            let expected = (SCALE * (v - offset)).clamp(0.0, f64::from(MI_LIMIT));
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

    #[test]
    fn nothing_teaches_nothing() {
        let image = Image::filled(Size::new(5, 4), 1, 9_u8);
        let nowhere = Image::filled(Size::new(5, 4), 1, f32::INFINITY);
        let table = Table::learn(&image, &image, &nowhere, None, &Cpu::sequential());
        assert!(table.0.iter().all(|&c| c == table.0[0]), "one cost for all");
    }
}
