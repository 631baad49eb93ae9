//! One number, or eight side by side, for the minimal solvers. Both forms give the same bits, because all operations
//! are those of IEEE 754.

#![allow(clippy::needless_range_loop, reason = "indices of rows, columns and lanes are the notation here")]

use super::matrix::Mat3;
use fearless_simd::{Simd, f64x8, mask64x8, prelude::*};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Sub};

pub(super) const WIDTH: usize = 8;

pub(super) trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + Mul<f64, Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
{
    /// A truth value for each number.
    type Mask: Copy + BitAnd<Output = Self::Mask> + BitOr<Output = Self::Mask>;
    /// A constant of the same form as `self`.
    fn constant(self, value: f64) -> Self;
    fn root(self) -> Self;
    fn magnitude(self) -> Self;
    fn with_sign(self, sign: Self) -> Self;
    /// Whether it is greater; false for NaN.
    fn above(self, other: Self) -> Self::Mask;
    fn at_most(self, other: Self) -> Self::Mask;
    fn choose(mask: Self::Mask, yes: Self, no: Self) -> Self;
}

/// Applies `f` to each value, as `map` does, but is always compiled for the instructions of the caller.
#[inline(always)]
pub(super) fn each<T: Copy, const N: usize>(mut values: [T; N], f: impl Fn(T) -> T) -> [T; N] {
    for value in &mut values {
        *value = f(*value);
    }
    values
}

#[inline(always)]
pub(super) fn negative<R: Real>(value: R) -> R {
    -value
}

#[inline(always)]
pub(super) fn splat<S: Simd>(simd: S, m: &[f64; 9]) -> [f64x8<S>; 9] {
    let mut model = [f64x8::splat(simd, 0.0); 9];
    for i in 0..9 {
        model[i] = f64x8::splat(simd, m[i]);
    }
    model
}

#[inline(always)]
pub(super) fn lane_of<S: Simd>(m: &[f64x8<S>; 9], lane: usize) -> Mat3 {
    let at = |i: usize| m[i][lane];
    [[at(0), at(1), at(2)], [at(3), at(4), at(5)], [at(6), at(7), at(8)]]
}

impl Real for f64 {
    type Mask = bool;
    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn with_sign(self, sign: Self) -> Self {
        self.copysign(sign)
    }
    #[inline(always)]
    fn above(self, other: Self) -> bool {
        self > other
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> bool {
        self <= other
    }
    #[inline(always)]
    fn choose(mask: bool, yes: Self, no: Self) -> Self {
        if mask { yes } else { no }
    }
}

impl<S: Simd> Real for f64x8<S> {
    type Mask = mask64x8<S>;
    #[inline(always)]
    fn constant(self, value: f64) -> Self {
        Self::splat(self.simd, value)
    }
    #[inline(always)]
    fn root(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn with_sign(self, sign: Self) -> Self {
        self.copysign(sign)
    }
    #[inline(always)]
    fn above(self, other: Self) -> Self::Mask {
        self.simd_gt(other)
    }
    #[inline(always)]
    fn at_most(self, other: Self) -> Self::Mask {
        self.simd_le(other)
    }
    #[inline(always)]
    fn choose(mask: Self::Mask, yes: Self, no: Self) -> Self {
        mask.select(yes, no)
    }
}
