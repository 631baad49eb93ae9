//! The recurrence of the path costs L, for one pixel and all directions of a pass.

use super::path_ring::{PAD, PixelPaths};
use crate::device::Level;
use crate::stereo::cost::{Column, CostRow, CostSource};
use fearless_simd::prelude::*;
use fearless_simd::{Simd, SimdIntElement};

/// The type of costs and path costs: a byte or 16 bits.
pub(in crate::stereo) trait Value:
    SimdIntElement + Into<u16> + Copy + Ord + Default + Send + Sync + std::fmt::Debug + 'static
{
    const MAX: Self;
    /// Half of the number of values.
    const HALF: Self;

    /// From a value that is known to fit.
    fn of(value: u16) -> Self;

    /// Writes a vector of bytes.
    fn spread<S: Simd>(bytes: S::u8s, out: &mut [Self]);

    /// The costs of one pixel of each of `rows`, in this type, the disparities of a pixel side by side: `out` holds a
    /// multiple of the bytes of a vector for each row. Values beyond the last disparity are undefined.
    fn column(source: &dyn CostSource, level: Level, column: Column, rows: &[CostRow], out: &mut [Self]);

    /// The sums of as many values as a vector of bytes has.
    fn totals<S: Simd>(simd: S, a: &[Self], b: &[Self]) -> [S::u16s; 2];
}

impl Value for u8 {
    const MAX: Self = Self::MAX;
    const HALF: Self = 1 << (Self::BITS - 1);

    fn column(source: &dyn CostSource, level: Level, column: Column, rows: &[CostRow], out: &mut [Self]) {
        source.column_u8(level, column, rows, out);
    }

    #[inline(always)]
    fn of(value: u16) -> Self {
        value as Self
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
    const HALF: Self = 1 << (Self::BITS - 1);

    fn column(source: &dyn CostSource, level: Level, column: Column, rows: &[CostRow], out: &mut [Self]) {
        source.column_u16(level, column, rows, out);
    }

    #[inline(always)]
    fn of(value: u16) -> Self {
        value
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
    /// The cost, and the least path cost, of disparities that do not exist: so large that no path continues from them.
    const NONE: T;

    /// The sums of as many disparities as a vector of `T` has.
    type Gathered<S: Simd>: Copy;

    /// Adds a cost or P1 to a path cost; may saturate at the greatest value of `T`.
    fn plus<S: Simd>(a: T::Native<S>, b: T::Native<S>) -> T::Native<S>;

    /// The sum of one path.
    fn first<S: Simd>(path: T::Native<S>) -> Self::Gathered<S>;

    /// Adds another path to a sum.
    fn gather<S: Simd>(sum: Self::Gathered<S>, path: T::Native<S>) -> Self::Gathered<S>;

    fn store<S: Simd>(sum: Self::Gathered<S>, out: &mut [Self]);
}

/// For sums of the type of the path costs: as the sum of two path costs fits, none exceeds half of the type's range,
/// and no addition overflows. For disparities that do not exist sums may wrap around, but they are not read, and the
/// path costs stay between [`Sum::NONE`] and [`Sum::NONE`] + P2.
impl<T: Value> Sum<T> for T {
    const NONE: T = T::HALF;

    type Gathered<S: Simd> = T::Native<S>;

    #[inline(always)]
    fn plus<S: Simd>(a: T::Native<S>, b: T::Native<S>) -> T::Native<S> {
        a + b
    }

    #[inline(always)]
    fn first<S: Simd>(path: T::Native<S>) -> T::Native<S> {
        path
    }

    #[inline(always)]
    fn gather<S: Simd>(sum: T::Native<S>, path: T::Native<S>) -> T::Native<S> {
        sum + path
    }

    #[inline(always)]
    fn store<S: Simd>(sum: T::Native<S>, out: &mut [T]) {
        sum.store_slice(out);
    }
}

impl Sum<u8> for u16 {
    const NONE: u8 = u8::MAX;

    type Gathered<S: Simd> = (S::u16s, S::u16s);

    #[inline(always)]
    fn plus<S: Simd>(a: S::u8s, b: S::u8s) -> S::u8s {
        a.saturating_add(b)
    }

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

/// Computes L(p, ·) of every direction and writes their sum; `p2` is P2 of each direction. Returns vectors of which
/// each holds the least cost of a direction.
///
/// `costs` and `sums` hold equally many disparities, a multiple of the vector; costs beyond the last disparity are
/// [`Sum::NONE`], and so are the path costs before the first and after the last.
#[inline(always)]
pub(super) fn update_paths<S: Simd, T: Value, A: Sum<T>, const N: usize>(
    simd: S,
    costs: &[T],
    paths: PixelPaths<'_, T, N>,
    (p1, p2): (T, &[T; N]),
    sums: &mut [A],
) -> [T::Native<S>; N] {
    let PixelPaths { before, before_least, own, stride } = paths;
    let n = T::Native::<S>::LEN;
    let padded = costs.len();
    let splat = |value| T::Native::<S>::splat(simd, value);
    let p1 = splat(p1);
    let (mut low, mut high) = ([p1; N], [p1; N]);
    for k in 0..N {
        low[k] = splat(before_least[k][k]);
        high[k] = splat(p2[k]);
    }
    let mut least = [splat(T::MAX); N];
    let mut below = [splat(A::NONE); N];
    // Plain loops over the directions: the compiler does not inline iterators made with `array::map`.
    for c in 0..padded / n {
        let at = c * n;
        let cost = T::Native::<S>::from_slice(simd, &costs[at..at + n]);
        let mut path = [cost; N];
        for k in 0..N {
            let before = &before[k][at..at + PAD + n + 1];
            let same = T::Native::<S>::from_slice(simd, &before[PAD..PAD + n]);
            let above = T::Native::<S>::from_slice(simd, &before[PAD + 1..]);
            // If a vector is a whole cache line, an unaligned load crosses into the next line and takes twice as long.
            below[k] = match n * size_of::<T>() {
                64 if n == 64 => below[k].slide::<63>(same),
                64 => below[k].slide::<31>(same),
                _ => T::Native::<S>::from_slice(simd, &before[PAD - 1..PAD + n - 1]),
            };
            let beside = A::plus::<S>(below[k].min(above), p1);
            path[k] = A::plus::<S>((same.min(beside) - low[k]).min(high[k]), cost);
            below[k] = same;
            least[k] = least[k].min(path[k]);
            let to = PAD + k * stride + at;
            path[k].store_slice(&mut own[to..to + n]);
        }
        let mut sum = A::first::<S>(path[0]);
        for &path in &path[1..] {
            sum = A::gather::<S>(sum, path);
        }
        A::store::<S>(sum, &mut sums[at..at + n]);
    }
    least
}

/// Writes the least element of each of `N` vectors, a power of two: they are interleaved and reduced together.
#[inline(always)]
pub(super) fn write_least<S: Simd, T: Value, const N: usize>(
    mut vectors: [T::Native<S>; N],
    out: &mut [T; N],
) {
    let mut count = N;
    while count > 1 {
        count /= 2;
        for k in 0..count {
            let (a, b) = (vectors[k], vectors[k + count]);
            vectors[k] = a.zip_low(b).min(a.zip_high(b));
        }
    }
    let mut least = vectors[0];
    // The elements of each vector are N apart.
    macro_rules! reduce {
        ($($half:literal)*) => {
            $(if T::Native::<S>::LEN > $half && $half >= N {
                least = least.min(least.slide::<$half>(least));
            })*
        };
    }
    reduce!(32 16 8 4 2 1);
    out.copy_from_slice(&least.as_slice()[..N]);
}
