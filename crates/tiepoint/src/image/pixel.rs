//! The types of pixel: bytes, 16-bit integers and floats.

pub(crate) mod sealed {
    use crate::image::grey::{LUMA, level};

    /// Keeps [`Pixel`](super::Pixel) to the three types, and gives a generic slice its own type back, for code with a
    /// faster form for one type.
    pub trait Sealed: Copy + crate::image::by_pixel::OfKind {
        /// Rec. 709 luma.
        fn luma(rgb: [Self; 3]) -> Self;
        /// 0.5 · (a + b), rounded once, to nearest even.
        fn mean_of_two(a: Self, b: Self) -> Self;
        /// The mean of the means of `a` and of `b`; integers are rounded once, to nearest even.
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self;
        fn u8s(_: &[Self]) -> Option<&[u8]> {
            None
        }
        fn u8s_mut(_: &mut [Self]) -> Option<&mut [u8]> {
            None
        }
        fn f32s(_: &[Self]) -> Option<&[f32]> {
            None
        }
        fn f32s_mut(_: &mut [Self]) -> Option<&mut [f32]> {
            None
        }
    }
    /// Implements [`Sealed`] for an integer type; sums of four fit the second type.
    macro_rules! sealed_integer {
        ($type:ty, $sum:ty, { $($slices:tt)* }) => {
            impl Sealed for $type {
                $($slices)*
                #[inline(always)]
                fn luma(rgb: [Self; 3]) -> Self {
                    level(rgb.map(u32::from)) as Self
                }
                #[inline(always)]
                fn mean_of_two(a: Self, b: Self) -> Self {
                    let sum = <$sum>::from(a) + <$sum>::from(b);
                    ((sum + (sum >> 1 & 1)) >> 1) as Self
                }
                #[inline(always)]
                fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self {
                    let sum = <$sum>::from(a[0]) + <$sum>::from(a[1]);
                    let sum = sum + <$sum>::from(b[0]) + <$sum>::from(b[1]);
                    ((sum + 1 + (sum >> 2 & 1)) >> 2) as Self
                }
            }
        };
    }
    sealed_integer!(u8, u16, {
        fn u8s(values: &[Self]) -> Option<&[u8]> {
            Some(values)
        }
        fn u8s_mut(values: &mut [Self]) -> Option<&mut [u8]> {
            Some(values)
        }
    });
    sealed_integer!(u16, u32, {});
    impl Sealed for f32 {
        #[inline(always)]
        fn luma([r, g, b]: [Self; 3]) -> Self {
            LUMA[2].mul_add(b, LUMA[1].mul_add(g, LUMA[0] * r))
        }
        #[inline(always)]
        fn mean_of_two(a: Self, b: Self) -> Self {
            0.5 * (a + b)
        }
        #[inline(always)]
        fn mean_of_four(a: [Self; 2], b: [Self; 2]) -> Self {
            0.5 * (0.5 * (a[0] + a[1]) + 0.5 * (b[0] + b[1]))
        }
        fn f32s(values: &[Self]) -> Option<&[f32]> {
            Some(values)
        }
        fn f32s_mut(values: &mut [Self]) -> Option<&mut [f32]> {
            Some(values)
        }
    }
}

/// The type of one channel of a pixel: `u8`, `u16` or `f32`.
pub trait Pixel:
    Copy + Default + PartialOrd + PartialEq + Send + Sync + std::fmt::Debug + sealed::Sealed + 'static
{
    /// The value of white: 255, 65535 or 1.
    const WHITE: f32;

    /// The value as it is.
    fn to_f32(self) -> f32;

    /// The nearest value of this type, ties to even; integers saturate and take NaN as 0.
    fn from_f32(v: f32) -> Self;

    /// The value on the scale from 0 (black) to 1 (white). For f32: clamped to it, NaN as 0.
    fn unit(self) -> f32;

    /// The value on an integer scale of 0 to 65535 (8-bit: 0 to 255), for exact sums. For f32: 0 to 1 is scaled to 0 to
    /// 65535 and rounded to nearest even, NaN as 0.
    fn level(self) -> u32;
}

/// The nearest of 0, 1, …, `most`, ties to even, NaN as 0; `most` is below 2¹⁶.
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn nearest(v: f32, most: f32) -> u32 {
    // `clamp` would keep NaN.
    let v = if v > 0.0 { v } else { 0.0 };
    let v = if v < most { v } else { most };
    (v + crate::numeric::ROUNDER).to_bits() & 0xffff
}

/// The same by ARM's rounding conversion, which saturates and takes NaN as 0. The comparisons of the other form would
/// become `fmaxnm` there, which keeps a signalling NaN.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn nearest(v: f32, most: f32) -> u32 {
    (v.round_ties_even() as u32).min(most as u32)
}

macro_rules! integer_pixel {
    ($type:ty) => {
        impl Pixel for $type {
            const WHITE: f32 = Self::MAX as f32;

            #[inline(always)]
            fn to_f32(self) -> f32 {
                f32::from(self)
            }

            #[inline(always)]
            fn from_f32(v: f32) -> Self {
                nearest(v, Self::WHITE) as Self
            }

            #[inline(always)]
            fn unit(self) -> f32 {
                f32::from(self) * (1.0 / Self::WHITE)
            }

            #[inline(always)]
            fn level(self) -> u32 {
                u32::from(self)
            }
        }
    };
}
integer_pixel!(u8);
integer_pixel!(u16);

impl Pixel for f32 {
    const WHITE: f32 = 1.0;

    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }

    #[inline(always)]
    fn from_f32(v: f32) -> Self {
        v
    }

    #[inline(always)]
    fn unit(self) -> f32 {
        // NaN fails the comparison and becomes 0.
        if self > 0.0 { self.min(1.0) } else { 0.0 }
    }

    #[inline(always)]
    fn level(self) -> u32 {
        (self.unit() * 65535.0).round_ties_even() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixel_conversions() {
        assert_eq!(
            [u8::from_f32(-1.0), u8::from_f32(2.5), u8::from_f32(300.0), u8::from_f32(f32::NAN)],
            [0, 2, 255, 0]
        );
        let halves = (-9..=131_080).map(|i| i as f32 * 0.5);
        for v in halves.chain((0..=u32::MAX).step_by(9973).map(f32::from_bits)) {
            assert_eq!(u8::from_f32(v), v.round_ties_even() as u8, "{v}");
            assert_eq!(u16::from_f32(v), v.round_ties_even() as u16, "{v}");
        }
        assert_eq!(
            [f32::NAN.unit(), (-1.0_f32).unit(), 2.0_f32.unit(), f32::INFINITY.unit()],
            [0.0, 0.0, 1.0, 1.0]
        );
        assert_eq!([255_u8.unit(), 65535_u16.unit()], [1.0, 1.0]);
    }
}
