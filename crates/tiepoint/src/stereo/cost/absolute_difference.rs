//! Absolute difference of grey: C = min(|left − right|, [`LIMIT`]).
//!
//! The limit keeps a single noisy or occluded pixel from outweighing its neighbours, and lets costs fit a byte.

use super::gpu::CostKernel;
use super::{CostDefinition, CostSource, DescriptorCost, Descriptors};
use crate::stereo::Penalties;
use crate::stereo::aggregation::Value;
use fearless_simd::Simd;
use fearless_simd::prelude::*;

/// Greater differences are truncated to this.
const LIMIT: u8 = 24;

#[derive(Clone, Copy, Debug)]
pub(super) struct AbsoluteDifference;

impl CostDefinition for AbsoluteDifference {
    fn penalties(&self) -> Penalties {
        Penalties { p1: 10, p2: 39, p2_least: 14, gradient: 4 }
    }

    fn known(&self, _: usize) -> Option<Box<dyn CostSource>> {
        Some(Box::new(*self))
    }
}

impl DescriptorCost for AbsoluteDifference {
    fn greatest(&self) -> u16 {
        LIMIT.into()
    }

    #[inline(always)]
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]) {
        let n = S::u8s::LEN;
        let (left, right) = descriptors.bytes(out.len());
        let (left, limit) = (S::u8s::splat(simd, left), S::u8s::splat(simd, LIMIT));
        for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            let right = S::u8s::from_slice(simd, right);
            let difference = left.max(right) - left.min(right);
            T::spread::<S>(difference.min(limit), out);
        }
    }

    fn kernel(&self) -> CostKernel {
        CostKernel {
            text: include_str!("absolute_difference.h"),
            words: 1,
            definitions: vec![("LIMIT", format!("{LIMIT}u"))],
            table: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AbsoluteDifference, LIMIT};
    use crate::stereo::View;
    use crate::stereo::cost::tests::check_formula;

    #[test]
    fn is_its_formula() {
        check_formula(
            "absolute difference",
            1,
            |_, _| AbsoluteDifference,
            |_, pair, x, other, y| {
                let [left, right] =
                    [(View::Left, x), (View::Right, other)].map(|(v, x)| pair.bytes(v).row(y)[x]);
                left.abs_diff(right).min(LIMIT).into()
            },
        );
    }
}
