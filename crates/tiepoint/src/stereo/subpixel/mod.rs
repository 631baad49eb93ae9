//! Sub-pixel disparities, from a pixel's least sum s₀, at disparity d, and the sums s₋ and s₊ at d − 1 and d + 1.
//!
//! The parabola through them has its lowest point at d + (s₋ − s₊) / (2 (s₋ − 2 s₀ + s₊)); two lines of opposite slope
//! meet at d + (s₋ − s₊) / (2 (max(s₋, s₊) − s₀)). Sums are integers below 2¹⁶: numerator and denominator are exact,
//! the quotient and the result are rounded once each.

use super::Subpixel;
use tiepoint_gpu::KernelSource;

/// The offset of the least sum from the whole disparity, −½ to ½.
#[inline(always)]
pub(super) fn offset(subpixel: Subpixel, [below, at, above]: [i32; 3]) -> f32 {
    let twice = match subpixel {
        Subpixel::Off => 0,
        Subpixel::Parabola => below - 2 * at + above,
        Subpixel::Equiangular => below.max(above) - at,
    };
    if twice == 0 { 0.0 } else { (below - above) as f32 / (2 * twice) as f32 }
}

/// For kernels: `subpixel_offset`.
pub(super) fn for_kernels(source: KernelSource, subpixel: Subpixel) -> KernelSource {
    source
        .define("PARABOLA", Subpixel::Parabola as u8)
        .define("EQUIANGULAR", Subpixel::Equiangular as u8)
        .define("SUBPIXEL", subpixel as u8)
        .text(include_str!("subpixel.h"))
}
