//! Absolute difference of grey: C = min(|left − right|, [`AD_LIMIT`](super::AD_LIMIT)).
//!
//! The limit keeps one noisy or occluded pixel from outweighing its neighbours, and costs in a byte.

use super::AD_LIMIT;
use crate::stereo::aggregation::Value;
use fearless_simd::{Simd, prelude::*};

/// `right` rises with the disparity.
#[inline(always)]
pub(super) fn difference<S: Simd, T: Value>(simd: S, left: u8, right: &[u8], out: &mut [T]) {
    let n = S::u8s::LEN;
    let (left, limit) = (S::u8s::splat(simd, left), S::u8s::splat(simd, AD_LIMIT));
    for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let right = S::u8s::from_slice(simd, right);
        let difference = left.max(right) - left.min(right);
        T::spread::<S>(difference.min(limit), out);
    }
}
