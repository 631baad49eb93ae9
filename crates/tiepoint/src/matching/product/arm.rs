//! Products of 8-bit descriptors on AArch64.

use super::{COLUMNS, Line, ROWS, Tile};
use fearless_simd::{Neon, i32x4, prelude::*};
use std::arch::aarch64::{
    uint8x16_t, vdupq_n_s32, vdupq_n_u32, vget_low_u8, vmull_high_u8, vmull_u8, vpadalq_u16, vpaddq_u32,
    vreinterpretq_s32_u32, vreinterpretq_u8_s32,
};
use std::arch::{asm, is_aarch64_feature_detected};

/// Columns of a vector.
const LANES: usize = 4;

/// Words of four bytes, with the dot-product instructions of Armv8.2 where the CPU has them.
pub(super) fn quads(neon: Neon, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
    if is_aarch64_feature_detected!("dotprod") {
        #[expect(unsafe_code, reason = "the instructions were detected just now")]
        // SAFETY: the CPU has the feature that the function enables.
        unsafe {
            quads_dot(neon, strip, panel, out);
        }
    } else {
        quads_widened(neon, strip, panel, out);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(neon: Neon, words: &[i32]) -> uint8x16_t {
    vreinterpretq_u8_s32(i32x4::from_slice(neon, words).into())
}

/// With `udot`, which adds four products to the sum of each lane. 24 sums stay in registers; each row and
/// word takes one broadcast and four multiply-adds.
///
/// The intrinsic `vdotq_u32` is not stable.
#[target_feature(enable = "neon,dotprod")]
#[expect(unsafe_code, reason = "an instruction without a stable intrinsic")]
fn quads_dot(neon: Neon, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
    const VECTORS: usize = 4;
    for start in (0..COLUMNS).step_by(VECTORS * LANES) {
        let mut sums = [[vdupq_n_u32(0); VECTORS]; ROWS];
        for (a, Line(b)) in strip.iter().zip(panel) {
            let b: [uint8x16_t; VECTORS] =
                std::array::from_fn(|j| load(neon, &b[start + j * LANES..start + (j + 1) * LANES]));
            for (row, &a) in sums.iter_mut().zip(a) {
                let a = vreinterpretq_u8_s32(vdupq_n_s32(a));
                for (sum, b) in row.iter_mut().zip(b) {
                    // SAFETY: registers only; the function enables the instruction.
                    unsafe {
                        asm!(
                            "udot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
                            sum = inout(vreg) *sum,
                            a = in(vreg) a,
                            b = in(vreg) b,
                            options(pure, nomem, nostack, preserves_flags),
                        );
                    }
                }
            }
        }
        for (Line(out), row) in out.iter_mut().zip(sums) {
            for (out, sum) in out[start..].chunks_exact_mut(LANES).zip(row) {
                let sum: i32x4<_> = vreinterpretq_s32_u32(sum).simd_into(neon);
                sum.store_slice(out);
            }
        }
    }
}

fearless_simd::kernel!(
    /// Without `udot`: pairs of 16-bit products are added to 32-bit sums, for two vectors of columns at a
    /// time.
    fn quads_widened(neon: Neon, strip: &[[i32; ROWS]], panel: &[Line<i32>], out: &mut Tile<i32>) {
        const VECTORS: usize = 2;
        for start in (0..COLUMNS).step_by(VECTORS * LANES) {
            let mut sums = [[[vdupq_n_u32(0); 2]; VECTORS]; ROWS];
            for (a, Line(b)) in strip.iter().zip(panel) {
                let b: [uint8x16_t; VECTORS] =
                    std::array::from_fn(|j| load(neon, &b[start + j * LANES..start + (j + 1) * LANES]));
                for (row, &a) in sums.iter_mut().zip(a) {
                    let a = vreinterpretq_u8_s32(vdupq_n_s32(a));
                    for ([low, high], b) in row.iter_mut().zip(b) {
                        *low = vpadalq_u16(*low, vmull_u8(vget_low_u8(a), vget_low_u8(b)));
                        *high = vpadalq_u16(*high, vmull_high_u8(a, b));
                    }
                }
            }
            for (Line(out), row) in out.iter_mut().zip(sums) {
                for (out, [low, high]) in out[start..].chunks_exact_mut(LANES).zip(row) {
                    let sum: i32x4<_> = vreinterpretq_s32_u32(vpaddq_u32(low, high)).simd_into(neon);
                    sum.store_slice(out);
                }
            }
        }
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_equal_the_sums_of_products() {
        let neon = fearless_simd::Level::baseline().as_neon().unwrap();
        for words in [0, 1, 2, 16, 32] {
            let byte = |i: usize| (i * 151 + i / 7 * 13) as u8;
            let quad = |i: usize| [0, 1, 2, 3].map(|k| if words == 32 { 255 } else { byte(4 * i + k) });
            let strip: Vec<[i32; ROWS]> =
                (0..words).map(|w| std::array::from_fn(|r| i32::from_le_bytes(quad(w * ROWS + r)))).collect();
            let panel: Vec<Line<i32>> = (0..words)
                .map(|w| Line(std::array::from_fn(|c| i32::from_le_bytes(quad(w * COLUMNS + c + 5)))))
                .collect();
            let product = |r: usize, c: usize| -> i32 {
                let word = |w: usize| {
                    let both = quad(w * ROWS + r).into_iter().zip(quad(w * COLUMNS + c + 5));
                    both.map(|(a, b)| i32::from(a) * i32::from(b)).sum::<i32>()
                };
                (0..words).map(word).sum()
            };
            let expected: [_; ROWS] = std::array::from_fn(|r| std::array::from_fn(|c| product(r, c)));
            let mut out = [Line([-1; COLUMNS]); ROWS];
            quads_widened(neon, &strip, &panel, &mut out);
            assert_eq!(out.map(|l| l.0), expected, "widened, {words} words");
            let mut out = [Line([-1; COLUMNS]); ROWS];
            quads(neon, &strip, &panel, &mut out);
            assert_eq!(out.map(|l| l.0), expected, "the best of this CPU, {words} words");
        }
    }
}
