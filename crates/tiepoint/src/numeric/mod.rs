//! Functions that give the same bits on every device: pseudorandom numbers ([`Random`]) and elementary functions: exp,
//! atan2, sine and cosine in f32, exp and ln in f64.
//!
//! C libraries differ in the last bits of their functions, so none is called: lints refuse `f64::ln` and the like.
//! Functions that need no vector or kernel form come from the crate `libm`, which is Rust on every platform. The
//! functions here are polynomials with a stated order of operations, and fused multiply-adds exactly where written, so
//! that a scalar loop, every SIMD level and a GPU kernel agree. They have no branches, so that loops over them
//! vectorise. The coefficients are minimax fits made for this project.

#[cfg(all(windows, target_env = "gnu"))]
mod fused;
mod narrow;
mod random;

pub(crate) use narrow::{float_24, half};
pub use random::Random;
pub(crate) use random::finish;

use std::f32::consts::{FRAC_2_PI, FRAC_PI_2, PI, TAU};
use tiepoint_gpu::KernelSource;

/// Adding 1.5·2²³ to a float below 2²² in magnitude leaves its nearest integer, ties to even, in the lowest bits;
/// subtracting it again gives that integer as a float. Unlike a cast, this has a vector form for every type.
pub(crate) const ROUNDER: f32 = 12_582_912.0;

/// ln 2 in two parts; the first has so few bits that a product with a whole number below 2¹² is exact.
const LN_2: [f32; 2] = [0.693_115_23, 3.194_618_3e-5];

/// (eʳ − 1 − r) / r² on |r| ≤ ln 2 / 2, powers ascending.
pub(crate) const EXP: [f32; 5] = [0.499_999_94, 0.166_665_15, 0.041_668_456, 0.008_369_411, 0.001_381_316_1];

/// atan(a) / a in powers of a², on 0 ≤ a ≤ 1, powers ascending.
pub(crate) const ATAN: [f32; 8] = [
    0.999_999_94,
    -0.333_320_95,
    0.199_713_74,
    -0.140_294_13,
    0.099_427_395,
    -0.059_904_426,
    0.024_556_912,
    -0.004_780_394_5,
];

/// π / 2 in two parts, as [`LN_2`].
const HALF_PI: [f32; 2] = [1.570_312_5, 4.838_268e-4];

/// (sin r / r − 1) / r² in powers of r², on |r| ≤ π / 4, powers ascending.
pub(crate) const SIN: [f32; 3] = [-0.166_666_55, 0.008_332_178, -1.951_732_7e-4];

/// (cos r − 1 + r² / 2) / r⁴ in powers of r², on |r| ≤ π / 4, powers ascending.
pub(crate) const COS: [f32; 3] = [0.041_666_646, -0.001_388_736_9, 2.443_855_2e-5];

/// Σ cᵢ xⁱ by Horner's rule, one fused multiply-add a step.
#[inline(always)]
fn polynomial<const N: usize>(c: [f32; N], x: f32) -> f32 {
    let mut sum = c[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, c[i]);
    }
    sum
}

/// eˣ with a relative error below 2·10⁻⁷; x is clamped to \[−87, 88\] first. The result for NaN is unspecified.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x > -87.0 { x } else { -87.0 };
    let x = if x < 88.0 { x } else { 88.0 };
    let rounded = x.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = rounded - ROUNDER;
    let r = n.mul_add(-LN_2[1], n.mul_add(-LN_2[0], x));
    let e = (r * r).mul_add(polynomial(EXP, r), r) + 1.0;
    // 2ⁿ is assembled from its exponent bits: n + 127 lies in 1..=254, and n is in the lowest bits of `rounded`.
    // (A cast of n would saturate, and saturating casts do not vectorise.)
    e * f32::from_bits(rounded.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(127) << 23)
}

/// The angle of (x, y) in \[0, 2π), turning from +x towards +y, with an error below 6·10⁻⁷; 0 for (0, 0).
#[inline(always)]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (ax, ay) = (x.abs(), y.abs());
    let (low, high) = if ay > ax { (ax, ay) } else { (ay, ax) };
    let a = low / if high > 0.0 { high } else { 1.0 };
    let r = a * polynomial(ATAN, a * a);
    let r = if ay > ax { FRAC_PI_2 - r } else { r };
    let r = if x < 0.0 { PI - r } else { r };
    let r = if y < 0.0 { TAU - r } else { r };
    // TAU − r rounds up to TAU for the smallest r.
    if r < TAU { r } else { 0.0 }
}

/// Sine and cosine of an angle in \[−2π, 2π\] with an error below 2·10⁻⁷.
#[inline(always)]
pub fn sin_cos(angle: f32) -> (f32, f32) {
    let n = angle.mul_add(FRAC_2_PI, ROUNDER) - ROUNDER;
    let r = n.mul_add(-HALF_PI[1], n.mul_add(-HALF_PI[0], angle));
    let t = r * r;
    let sin = (r * t).mul_add(polynomial(SIN, t), r);
    let cos = (t * t).mul_add(polynomial(COS, t), t.mul_add(-0.5, 1.0));
    let quadrant = n as i32;
    let (sin, cos) = if quadrant & 1 == 0 { (sin, cos) } else { (cos, sin) };
    (if quadrant & 2 == 0 { sin } else { -sin }, if (quadrant + 1) & 2 == 0 { cos } else { -cos })
}

/// eˣ in f64, from additions and multiplications only, for tables that are computed once (Gaussian taps, scales).
/// Relative error below 10⁻¹⁵·(1 + |x|).
pub fn exp_f64(x: f64) -> f64 {
    let n = (x * std::f64::consts::LOG2_E).round().clamp(-1000.0, 1000.0);
    let r = x - n * std::f64::consts::LN_2;
    let mut sum = 1.0;
    for i in (1..=18).rev() {
        sum = 1.0 + sum * r / f64::from(i);
    }
    sum * f64::from_bits(((n as i64 + 1023) as u64) << 52)
}

/// artanh(s) / s in powers of s²: 1 / (2i + 1).
const ARTANH: [f64; 12] = {
    let mut terms = [1.0; 12];
    let mut i = 1;
    while i < 12 {
        terms[i] = 1.0 / (2 * i + 1) as f64;
        i += 1;
    }
    terms
};

/// ln x in f64 for a positive, finite, normal x, from arithmetic only, for tables that are computed once. Relative
/// error below 10⁻¹⁵; near 1 the absolute error is below 10⁻¹⁶.
///
/// x = 2ⁿ m with m between √½ and √2, and ln m = 2 artanh((m − 1) / (m + 1)) by its series.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (m, n) = if mantissa > std::f64::consts::SQRT_2 {
        (0.5 * mantissa, exponent + 1)
    } else {
        (mantissa, exponent)
    };
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for term in ARTANH.iter().rev() {
        sum = term + square * sum;
    }
    n as f64 * std::f64::consts::LN_2 + 2.0 * s * sum
}

/// An angle, reduced to \[0, 2π).
pub(crate) fn within_a_turn(angle: f32) -> f32 {
    let angle = angle.rem_euclid(TAU);
    // A tiny negative angle rounds to the whole turn.
    if angle < TAU { angle } else { 0.0 }
}

/// √(x² + y²), rounded at each step. (`f64::hypot` would call the C library.)
#[inline]
pub fn length([x, y]: [f64; 2]) -> f64 {
    (x * x + y * y).sqrt()
}

/// The middle value, or the upper of the two in the middle; `None` of none. NaN is above or below all, by its sign.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Adds to a kernel's source `exp_f32`, `ln_f64` (if there is f64), `atan2_f32`, `sin_cos_f32`, and multiples of π.
pub(crate) fn for_kernels(source: KernelSource) -> KernelSource {
    source
        .define_f32("ROUNDER", ROUNDER)
        .define_f32("LOG2_E", std::f32::consts::LOG2_E)
        .define_f32("LN_2_HIGH", LN_2[0])
        .define_f32("LN_2_LOW", LN_2[1])
        .define_f32("QUARTER_TURN", FRAC_PI_2)
        .define_f32("HALF_TURN", PI)
        .define_f32("TURN", TAU)
        .define_f32("TWO_OVER_PI", FRAC_2_PI)
        .define_f32("HALF_PI_HIGH", HALF_PI[0])
        .define_f32("HALF_PI_LOW", HALF_PI[1])
        .table_f32("EXP", &EXP)
        .table_f32("ATAN", &ATAN)
        .table_f32("SIN", &SIN)
        .table_f32("COS", &COS)
        .text(include_str!("numeric.h"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::{Commands, all};

    tiepoint_gpu::kernel! {
        unsafe kernel all_four(groups) = AllFour {
            write out: f32 [4 * n],
            read x: f32 [n],
            read y: f32 [n],
        } {
            n: i32,
        }
    }

    const ALL_FOUR: &str = "
KERNEL(all_four) {
    i32 i = GROUP_X * 64 + LANE_X;
    if (i >= args.n) return;
    f32 s, c;
    sin_cos_f32(atan2_f32(y[i], x[i]), &s, &c);
    out[4 * i] = exp_f32(x[i]);
    out[4 * i + 1] = atan2_f32(y[i], x[i]);
    out[4 * i + 2] = s;
    out[4 * i + 3] = c;
}";

    #[test]
    fn kernels_have_the_same_bits() {
        let mut random = Random::new(1);
        let mut next = || random.range(-0.5, 0.5) as f32;
        let mut x: Vec<f32> = (0..100_000).map(|i| next() * [0.01, 1.0, 20.0, 180.0][i % 4]).collect();
        let mut y: Vec<f32> = (0..100_000).map(|i| next() * [1.0, 0.0, 1e-30, 300.0][i % 4]).collect();
        x.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40]);
        y.extend([0.0, -0.0, -1e-30, 0.0, 1.0, -1.0, -1e-40]);
        for gpu in all() {
            let source = for_kernels(KernelSource::new("all_four"));
            let source = source.kernel::<AllFour<'_>>([64, 1]).text(ALL_FOUR);
            let kernel = gpu.program(&source).unwrap().kernel::<AllFour<'_>>().unwrap();
            let (dx, dy, out) =
                (gpu.upload(&x).unwrap(), gpu.upload(&y).unwrap(), gpu.buffer::<f32>(4 * x.len()).unwrap());
            let mut commands = Commands::new();
            let arguments = AllFour { out: &out, x: &dx, y: &dy, n: x.len() as i32 };
            commands.launch(&kernel, kernel.covering(x.len(), 1), arguments).unwrap();
            gpu.run(&commands).unwrap();
            for (i, found) in out.to_vec().unwrap().chunks_exact(4).enumerate() {
                let angle = atan2(y[i], x[i]);
                let (sin, cos) = sin_cos(angle);
                let expected = [exp(x[i]), angle, sin, cos].map(f32::to_bits);
                let found: Vec<u32> = found.iter().map(|v| v.to_bits()).collect();
                assert_eq!(found, expected, "{gpu:?}: x {}, y {}", x[i], y[i]);
            }
        }
    }

    #[test]
    fn functions_are_close_to_those_of_the_standard_library() {
        let near = |name: &str, x: f64, found: f64, wanted: f64, bound: f64| {
            assert!((found - wanted).abs() <= bound, "{name}({x}) = {found}, not {wanted}");
        };
        for i in 1..200_000 {
            let x = exp_f64(f64::from(i) * 1e-3 - 100.0);
            near("ln", x, ln(x), x.ln(), 2e-15 * x.ln().abs().max(0.1));
        }
        for i in -60_000..=60_000 {
            let x = f64::from(i) * 1e-2;
            near("exp_f64", x, exp_f64(x) / x.exp(), 1.0, 1e-15 * (1.0 + x.abs()));
        }
        for i in -86_000..=87_000 {
            let x = i as f32 * 1e-3;
            near("exp", x.into(), f64::from(exp(x)) / f64::from(x).exp(), 1.0, 2e-7);
        }
        for i in -62_831..=62_831 {
            let x = i as f32 * 1e-4;
            let (sin, cos) = sin_cos(x);
            near("sin", x.into(), sin.into(), f64::from(x).sin(), 2e-7);
            near("cos", x.into(), cos.into(), f64::from(x).cos(), 2e-7);
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0), "exactly");
        assert!(exp(f32::NEG_INFINITY) > 0.0 && exp(f32::INFINITY).is_finite(), "clamped at both ends");
    }

    #[test]
    fn atan2_is_close() {
        for i in 0..200_000 {
            let a = f64::from(i) * std::f64::consts::TAU / 200_000.0;
            for scale in [1e-20, 1.0, 1e20] {
                let (x, y) = ((a.cos() * scale) as f32, (a.sin() * scale) as f32);
                let found = f64::from(atan2(y, x));
                let true_ = f64::from(y).atan2(f64::from(x)).rem_euclid(std::f64::consts::TAU);
                let off = (found - true_).abs();
                let off = off.min((off - std::f64::consts::TAU).abs());
                assert!(off < 6e-7, "atan2({y}, {x}) = {found}, not {true_}");
                assert!((0.0..TAU).contains(&atan2(y, x)), "atan2({y}, {x}) leaves [0, 2π)");
            }
        }
        let angles = [atan2(0.0, 0.0), atan2(-0.0, 0.0), atan2(-1e-30, 1.0)];
        assert_eq!(angles, [0.0; 3], "zero, and just below 2π");
    }
}
