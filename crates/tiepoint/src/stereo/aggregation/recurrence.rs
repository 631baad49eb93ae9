//! The recurrence of the path costs L, for one pixel and all directions of a pass.

use super::path_ring::PixelPaths;
use crate::{
    device::Level,
    stereo::cost::{Column, CostRow, Costs},
};
use fearless_simd::{Simd, SimdIntElement, prelude::*};

/// The type of costs and path costs: a byte or 16 bits.
pub(in crate::stereo) trait Value:
    SimdIntElement + Copy + Ord + Default + Send + Sync + std::fmt::Debug + 'static
{
    /// The cost where there is no disparity.
    const MAX: Self;

    /// From a value that is known to fit.
    fn of(value: u16) -> Self;

    /// A sum that is known to fit.
    fn plus(self, other: Self) -> Self;

    /// Writes a vector of bytes.
    fn spread<S: Simd>(bytes: S::u8s, out: &mut [Self]);

    /// The costs of a column from `costs`, in this type.
    fn column(costs: &Costs<'_>, level: Level, column: Column, rows: &mut [CostRow], out: &mut [Self]);

    /// Sums a + b of as many values as a vector of bytes has, in 16 bits.
    fn totals<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> [S::u16s; 2];
}

impl Value for u8 {
    const MAX: Self = Self::MAX;

    fn column(costs: &Costs<'_>, level: Level, column: Column, rows: &mut [CostRow], out: &mut [Self]) {
        costs.source.column_u8(level, costs, column, rows, out);
    }

    #[inline(always)]
    fn of(value: u16) -> Self {
        value as Self
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn spread<S: Simd>(bytes: S::u8s, out: &mut [Self]) {
        bytes.store_slice(out);
    }

    #[inline(always)]
    fn totals<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> [S::u16s; 2] {
        let (a, b) = (S::u8s::from_slice(simd, a).widen(), S::u8s::from_slice(simd, b).widen());
        [a.0 + b.0, a.1 + b.1]
    }
}

impl Value for u16 {
    const MAX: Self = Self::MAX;

    fn column(costs: &Costs<'_>, level: Level, column: Column, rows: &mut [CostRow], out: &mut [Self]) {
        costs.source.column_u16(level, costs, column, rows, out);
    }

    #[inline(always)]
    fn of(value: u16) -> Self {
        value
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn spread<S: Simd>(bytes: S::u8s, out: &mut [Self]) {
        let (low, high) = bytes.widen();
        let (first, second) = out.split_at_mut(S::u16s::LEN);
        low.store_slice(first);
        high.store_slice(second);
    }

    #[inline(always)]
    fn totals<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> [S::u16s; 2] {
        let n = S::u16s::LEN;
        let (a, b) = (a.split_at(n), b.split_at(n));
        [(a.0, b.0), (a.1, b.1)]
            .map(|(a, b)| S::u16s::from_slice(simd, a).saturating_add(S::u16s::from_slice(simd, b)))
    }
}

/// The type of the sum of the paths of a pass.
pub(super) trait Sum<T: Value>: Value {
    /// The sums of as many disparities as a vector of `T` has.
    type Gathered<S: Simd>: Copy;

    /// The first path.
    fn first<S: Simd>(path: T::Native<S>) -> Self::Gathered<S>;

    /// Another path.
    fn gather<S: Simd>(sum: Self::Gathered<S>, path: T::Native<S>) -> Self::Gathered<S>;

    /// Writes the sums.
    fn store<S: Simd>(sum: Self::Gathered<S>, out: &mut [Self]);
}

impl<T: Value> Sum<T> for T {
    type Gathered<S: Simd> = T::Native<S>;

    #[inline(always)]
    fn first<S: Simd>(path: T::Native<S>) -> T::Native<S> {
        path
    }

    #[inline(always)]
    fn gather<S: Simd>(sum: T::Native<S>, path: T::Native<S>) -> T::Native<S> {
        sum.saturating_add(path)
    }

    #[inline(always)]
    fn store<S: Simd>(sum: T::Native<S>, out: &mut [T]) {
        sum.store_slice(out);
    }
}

impl Sum<u8> for u16 {
    type Gathered<S: Simd> = (S::u16s, S::u16s);

    #[inline(always)]
    fn first<S: Simd>(path: S::u8s) -> (S::u16s, S::u16s) {
        path.widen()
    }

    #[inline(always)]
    fn gather<S: Simd>(sum: (S::u16s, S::u16s), path: S::u8s) -> (S::u16s, S::u16s) {
        let (low, high) = path.widen();
        (sum.0 + low, sum.1 + high)
    }

    #[inline(always)]
    fn store<S: Simd>(sum: (S::u16s, S::u16s), out: &mut [Self]) {
        let (low, high) = out.split_at_mut(S::u16s::LEN);
        sum.0.store_slice(low);
        sum.1.store_slice(high);
    }
}

/// Computes L(p, ·) of every direction and writes their sum. `cap` is min L(p − r, ·) + P2 of each direction.
///
/// `costs` and `sums` hold equally many disparities, a multiple of the vector; costs beyond the last disparity are
/// [`Value::MAX`], and so are the path costs before the first and after the last.
#[inline(always)]
pub(super) fn update_paths<S: Simd, T: Value, A: Sum<T>, const N: usize>(
    simd: S,
    costs: &[T],
    paths: PixelPaths<'_, T, N>,
    cap: [T; N],
    p1: T,
    sums: &mut [A],
) {
    let n = T::Native::<S>::LEN;
    let PixelPaths { from, least: low, to, to_least } = paths;
    let padded = costs.len();
    // Checked once, so that the compiler drops the check of every load.
    let whole = from.iter().all(|f| f.len() == padded + 2) && to.iter().all(|t| t.len() == padded);
    if !whole || sums.len() != padded {
        return;
    }
    let mut least = [T::Native::<S>::splat(simd, T::MAX); N];
    for c in 0..padded / n {
        let at = c * n;
        let cost = T::Native::<S>::from_slice(simd, &costs[at..at + n]);
        let mut path = [cost; N];
        for k in 0..N {
            let last = &from[k][at..at + n + 2];
            let below = T::Native::<S>::from_slice(simd, &last[..n]);
            let same = T::Native::<S>::from_slice(simd, &last[1..n + 1]);
            let above = T::Native::<S>::from_slice(simd, &last[2..]);
            let beside = below.min(above).saturating_add(p1);
            let best = same.min(beside).min(T::Native::<S>::splat(simd, cap[k]));
            path[k] = (best - low[k]).saturating_add(cost);
            least[k] = least[k].min(path[k]);
            path[k].store_slice(&mut to[k][at..at + n]);
        }
        let mut sum = A::first::<S>(path[0]);
        for &path in &path[1..] {
            sum = A::gather::<S>(sum, path);
        }
        A::store::<S>(sum, &mut sums[at..at + n]);
    }
    // 2026-11-21: weaving four vectors together and folding them at once takes a third of the instructions and as long.
    *to_least.0 = least[0].reduce_min();
    for (out, least) in to_least.1.iter_mut().zip(&least[1..]) {
        *out = least.reduce_min();
    }
}
