//! Dot products of 6 descriptors with 64 others at a time: the inner kernel of the search.
//!
//! A panel holds 64 descriptors of B word by word: word w of all 64, then word w + 1. A word is the operand
//! of one lane of a multiply-add: four 8-bit values (`vpdpbusd`, `udot`), two 16-bit values (`pmaddwd`) or
//! one f32. A strip holds six descriptors of A in the same way; each of its words is multiplied with 64 words
//! of B.
//!
//! **Contract.** 8-bit: exact. `vpdpbusd` multiplies unsigned by signed bytes, so B is stored less 128 for
//! it, and a·b = a·(b − 128) + 128 Σa. On AArch64 a CPU without `udot` widens the bytes of the same words and
//! adds pairs. f32: each dot product is one chain of fused multiply-adds over the dimensions in ascending
//! order, starting at 0. Squared distance: |a|² + |b|² − 2ab, for f32 fma(−2, ab, |a|² + |b|²), where the
//! squared lengths are chains of the same kind. It is exactly 0 for equal descriptors, and symmetric.

#[cfg(target_arch = "aarch64")]
mod arm;

use crate::device::{Level, dispatch};
use fearless_simd::{Simd, f32x16, i32x16, prelude::*};

/// Descriptors of A in a strip.
pub(super) const ROWS: usize = 6;
/// Descriptors of B in a panel.
pub(super) const COLUMNS: usize = 64;
/// Lanes of a vector of the kernels.
pub(super) const LANES: usize = 16;

/// One value for each descriptor of a panel.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Line<T>(pub(super) [T; COLUMNS]);

/// Products of a strip with a panel.
pub(super) type Tile<T> = [Line<T>; ROWS];

/// A squared distance: i32 for 8-bit descriptors, f32 for float ones.
pub(super) trait Distance: Copy + PartialOrd + Default + Send + Sync + std::fmt::Debug {
    /// A value greater than every distance.
    const FAR: Self;

    /// The Euclidean distance between unit descriptors.
    fn euclidean(self) -> f32;

    /// Turns 16 products into squared distances and returns a bit for each that is below the limit of its row or of
    /// its column. `row` is the norm and the limit of the row.
    fn near<S: Simd>(simd: S, values: &mut [Self], row: (Self, Self), norms: &[Self], limits: &[Self])
    -> u64;
}

/// A value of a descriptor.
pub(super) trait Element: Copy + Send + Sync {
    type Sum: Distance;

    /// Values in a word at this SIMD level.
    fn per_word(level: Level) -> usize;

    /// These values as a word of A and as a word of B; fewer values are padded with 0.
    fn words(level: Level, values: &[Self]) -> [Self::Sum; 2];

    /// The term that this descriptor adds to every squared distance, as a descriptor of A and as one of B.
    fn norms(level: Level, descriptor: &[Self]) -> [Self::Sum; 2];

    fn products(
        level: Level,
        strip: &[[Self::Sum; ROWS]],
        panel: &[Line<Self::Sum>],
        out: &mut Tile<Self::Sum>,
    );

    /// The squared distances from a descriptor to those of `values` at `indices`; `lengths` are the squared lengths of
    /// all of `values`.
    fn distances(
        level: Level,
        a: &[Self],
        values: &[Self],
        lengths: &[Self::Sum],
        indices: &[u32],
        out: &mut Vec<Self::Sum>,
    );

    /// The squared length of a descriptor.
    fn length(descriptor: &[Self]) -> Self::Sum;
}

impl Distance for i32 {
    const FAR: Self = Self::MAX;

    fn euclidean(self) -> f32 {
        // The conversion is exact below 2²⁴, which squared distances of 8-bit descriptors do not exceed in
        // practice; the root is correctly rounded.
        (self as f32).sqrt() * (1.0 / 512.0)
    }

    #[inline(always)]
    fn near<S: Simd>(
        simd: S,
        values: &mut [Self],
        row: (Self, Self),
        norms: &[Self],
        limits: &[Self],
    ) -> u64 {
        let product = i32x16::from_slice(simd, values);
        let distance = i32x16::from_slice(simd, norms) + row.0 - (product + product);
        distance.store_slice(values);
        (distance.simd_lt(row.1) | distance.simd_lt(i32x16::from_slice(simd, limits))).to_bitmask()
    }
}

impl Distance for f32 {
    const FAR: Self = Self::INFINITY;

    fn euclidean(self) -> f32 {
        self.max(0.0).sqrt()
    }

    #[inline(always)]
    fn near<S: Simd>(
        simd: S,
        values: &mut [Self],
        row: (Self, Self),
        norms: &[Self],
        limits: &[Self],
    ) -> u64 {
        let norms = f32x16::from_slice(simd, norms) + row.0;
        let distance = f32x16::from_slice(simd, values).mul_add_precise(-2.0, norms);
        distance.store_slice(values);
        (distance.simd_lt(row.1) | distance.simd_lt(f32x16::from_slice(simd, limits))).to_bitmask()
    }
}

/// The contents of a word of 8-bit descriptors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Two values of 16 bits.
    Pairs,
    /// Four bytes.
    #[cfg(target_arch = "aarch64")]
    Quads,
    /// Four bytes, those of B less 128.
    #[cfg(target_arch = "x86_64")]
    SignedQuads,
}

impl Words {
    #[cfg(target_arch = "x86_64")]
    fn at(level: Level) -> Self {
        match level {
            Level::Avx512(_) => Self::SignedQuads,
            Level::Avx2(_) | Level::Sse2(_) => Self::Pairs,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn at(Level::Native(level): Level) -> Self {
        #[cfg(target_arch = "aarch64")]
        if level.as_neon().is_some() {
            return Self::Quads;
        }
        let _ = level;
        Self::Pairs
    }
}

impl Element for u8 {
    type Sum = i32;

    fn per_word(level: Level) -> usize {
        if Words::at(level) == Words::Pairs { 2 } else { 4 }
    }

    fn words(level: Level, values: &[Self]) -> [i32; 2] {
        let at = |i: usize| values.get(i).copied().unwrap_or(0);
        let quad = [at(0), at(1), at(2), at(3)];
        match Words::at(level) {
            Words::Pairs => [i32::from(at(0)) | i32::from(at(1)) << 16; 2],
            #[cfg(target_arch = "aarch64")]
            Words::Quads => [i32::from_le_bytes(quad); 2],
            #[cfg(target_arch = "x86_64")]
            Words::SignedQuads => [quad, quad.map(|v| v ^ 0x80)].map(i32::from_le_bytes),
        }
    }

    fn norms(level: Level, descriptor: &[Self]) -> [i32; 2] {
        let square = Self::length(descriptor);
        match Words::at(level) {
            Words::Pairs => [square; 2],
            #[cfg(target_arch = "aarch64")]
            Words::Quads => [square; 2],
            #[cfg(target_arch = "x86_64")]
            Words::SignedQuads => {
                let sum: i32 = descriptor.iter().map(|&v| i32::from(v)).sum();
                [square - 256 * sum, square]
            }
        }
    }

    #[inline]
    fn products(level: Level, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
        #[cfg(target_arch = "x86_64")]
        match level {
            Level::Avx512(avx512) => quads_avx512(avx512, strip, panel, out),
            Level::Avx2(avx2) => pairs_avx2(avx2, strip, panel, out),
            Level::Sse2(sse2) => pairs_sse2(sse2, strip, panel, out),
        }
        #[cfg(target_arch = "aarch64")]
        {
            let Level::Native(native) = level;
            if let Some(neon) = native.as_neon() {
                return arm::quads(neon, strip, panel, out);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        dispatch!(level, simd => pairs(simd, strip, panel, out));
    }

    fn distances(
        level: Level,
        a: &[Self],
        values: &[Self],
        _lengths: &[i32],
        indices: &[u32],
        out: &mut Vec<i32>,
    ) {
        dispatch!(level, simd => differences(simd, a, values, indices, out));
    }

    fn length(descriptor: &[Self]) -> i32 {
        descriptor.iter().map(|&v| i32::from(v) * i32::from(v)).sum()
    }
}

impl Element for f32 {
    type Sum = Self;

    fn per_word(_: Level) -> usize {
        1
    }

    fn words(_: Level, values: &[Self]) -> [Self; 2] {
        [values.first().copied().unwrap_or(0.0); 2]
    }

    fn norms(_: Level, descriptor: &[Self]) -> [Self; 2] {
        [Self::length(descriptor); 2]
    }

    #[inline]
    fn products(level: Level, strip: &[[Self; ROWS]], panel: &[Line<Self>], out: &mut Tile<Self>) {
        #[cfg(target_arch = "x86_64")]
        if let Level::Avx512(avx512) = level {
            return avx512.vectorize(
                #[inline(always)]
                || singles::<_, 4>(avx512, strip, panel, out),
            );
        }
        dispatch!(level, simd => singles::<_, 1>(simd, strip, panel, out));
    }

    fn distances(
        level: Level,
        a: &[Self],
        values: &[Self],
        lengths: &[Self],
        indices: &[u32],
        out: &mut Vec<Self>,
    ) {
        dispatch!(level, simd => chains(simd, a, values, lengths, indices, out));
    }

    fn length(descriptor: &[Self]) -> Self {
        descriptor.iter().fold(0.0, |sum: Self, v| v.mul_add(*v, sum))
    }
}

/// Squared distances of 8-bit descriptors, by the differences of their values.
#[inline(always)]
fn differences<S: Simd>(_simd: S, a: &[u8], values: &[u8], indices: &[u32], out: &mut Vec<i32>) {
    out.clear();
    out.extend(indices.iter().map(|&j| {
        let b = &values[j as usize * a.len()..(j as usize + 1) * a.len()];
        a.iter()
            .zip(b)
            .map(|(&a, &b)| (i32::from(a) - i32::from(b)) * (i32::from(a) - i32::from(b)))
            .sum::<i32>()
    }));
}

/// Squared distances of floats. Sixteen chains are computed side by side, because each step of a chain depends on the
/// one before.
#[inline(always)]
fn chains<S: Simd>(
    _simd: S,
    a: &[f32],
    values: &[f32],
    lengths: &[f32],
    indices: &[u32],
    out: &mut Vec<f32>,
) {
    out.clear();
    let own = <f32 as Element>::length(a);
    for part in indices.chunks(LANES) {
        // The last part is padded with its first candidate.
        let at: [usize; LANES] = std::array::from_fn(|j| part.get(j).unwrap_or(&part[0]).to_owned() as usize);
        let rows = at.map(|j| &values[j * a.len()..(j + 1) * a.len()]);
        let mut sums = [0.0_f32; LANES];
        for (k, a) in a.iter().enumerate() {
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum = a.mul_add(row[k], *sum);
            }
        }
        let squared = part.iter().zip(sums).map(|(&j, s)| s.mul_add(-2.0, own + lengths[j as usize]));
        out.extend(squared);
    }
}

#[cfg(target_arch = "x86_64")]
fearless_simd::kernel!(
    /// Words of four bytes. 24 sums stay in registers; each row and word takes one broadcast and four
    /// multiply-adds.
    fn quads_avx512(avx512: Avx512, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
        use std::arch::x86_64::{__m512i, _mm512_dpbusd_epi32, _mm512_set1_epi32};
        let mut sums = [[_mm512_set1_epi32(0); COLUMNS / LANES]; ROWS];
        for (a, Line(b)) in strip.iter().zip(panel) {
            let b: [__m512i; COLUMNS / LANES] =
                std::array::from_fn(|j| i32x16::from_slice(avx512, &b[j * LANES..(j + 1) * LANES]).into());
            for (row, &a) in sums.iter_mut().zip(a) {
                let a = _mm512_set1_epi32(a);
                for (sum, b) in row.iter_mut().zip(b) {
                    *sum = _mm512_dpbusd_epi32(*sum, a, b);
                }
            }
        }
        for (Line(out), row) in out.iter_mut().zip(sums) {
            for (out, sum) in out.chunks_exact_mut(LANES).zip(row) {
                let sum: i32x16<_> = sum.simd_into(avx512);
                sum.store_slice(out);
            }
        }
    }
);

/// A kernel for words of two 16-bit values. It takes two vectors of columns at a time; 12 sums stay in
/// registers.
#[cfg(target_arch = "x86_64")]
macro_rules! pairs_kernel {
    ($name:ident, $level:ident, $vector:ident, $raw:ident, $splat:ident, $add:ident, $multiply_add:ident) => {
        fearless_simd::kernel!(
            fn $name(level: $level, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
                use fearless_simd::$vector;
                use std::arch::x86_64::{$add, $multiply_add, $raw, $splat};
                const WIDTH: usize = std::mem::size_of::<$raw>() / 4;
                for start in (0..COLUMNS).step_by(2 * WIDTH) {
                    let mut sums = [[$splat(0); 2]; ROWS];
                    for (a, Line(b)) in strip.iter().zip(panel) {
                        let b: [$raw; 2] = std::array::from_fn(|j| {
                            let at = start + j * WIDTH;
                            $vector::from_slice(level, &b[at..at + WIDTH]).into()
                        });
                        for (row, &a) in sums.iter_mut().zip(a) {
                            let a = $splat(a);
                            for (sum, b) in row.iter_mut().zip(b) {
                                *sum = $add(*sum, $multiply_add(a, b));
                            }
                        }
                    }
                    for (Line(out), row) in out.iter_mut().zip(sums) {
                        for (out, sum) in out[start..start + 2 * WIDTH].chunks_exact_mut(WIDTH).zip(row) {
                            let sum: $vector<_> = sum.simd_into(level);
                            sum.store_slice(out);
                        }
                    }
                }
            }
        );
    };
}

#[cfg(target_arch = "x86_64")]
pairs_kernel!(pairs_avx2, Avx2, i32x8, __m256i, _mm256_set1_epi32, _mm256_add_epi32, _mm256_madd_epi16);
#[cfg(target_arch = "x86_64")]
pairs_kernel!(pairs_sse2, Sse2, i32x4, __m128i, _mm_set1_epi32, _mm_add_epi32, _mm_madd_epi16);

/// Words of two 16-bit values by plain loops, for other architectures.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn pairs<S: Simd>(_simd: S, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
    for (r, Line(out)) in out.iter_mut().enumerate() {
        for start in (0..COLUMNS).step_by(LANES) {
            let mut sums = [0_i32; LANES];
            for (a, Line(b)) in strip.iter().zip(panel) {
                let (low, high) = (i32::from(a[r] as i16), a[r] >> 16);
                for (sum, &b) in sums.iter_mut().zip(&b[start..start + LANES]) {
                    *sum += i32::from(b as i16) * low + (b >> 16) * high;
                }
            }
            out[start..start + LANES].copy_from_slice(&sums);
        }
    }
}

/// The products of f32 descriptors, `PARTS` · 16 columns at a time.
#[inline(always)]
fn singles<S: Simd, const PARTS: usize>(
    simd: S,
    strip: &[[f32; ROWS]],
    panel: &[Line<f32>],
    out: &mut Tile<f32>,
) {
    for start in (0..COLUMNS).step_by(PARTS * LANES) {
        let mut sums = [[f32x16::splat(simd, 0.0); PARTS]; ROWS];
        for (a, Line(b)) in strip.iter().zip(panel) {
            let b: [f32x16<S>; PARTS] = std::array::from_fn(|j| {
                f32x16::from_slice(simd, &b[start + j * LANES..start + (j + 1) * LANES])
            });
            for (row, &a) in sums.iter_mut().zip(a) {
                for (sum, b) in row.iter_mut().zip(b) {
                    *sum = b.mul_add_precise(a, *sum);
                }
            }
        }
        for (Line(out), row) in out.iter_mut().zip(sums) {
            for (out, sum) in out[start..start + PARTS * LANES].chunks_exact_mut(LANES).zip(row) {
                sum.store_slice(out);
            }
        }
    }
}
