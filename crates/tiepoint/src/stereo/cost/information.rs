//! Mutual information: which grey values of the two images belong together is learnt from the pair itself.

use crate::{image::Image, stereo::aggregate::Value};
use fearless_simd::{Simd, prelude::*};

/// The cost of every pair of grey values, rows by the left value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::stereo) struct Table(Vec<u8>);

impl Table {
    /// The costs of a left value.
    #[inline(always)]
    pub(super) fn row(&self, left: u8) -> &[u8] {
        &self.0[usize::from(left) * 256..][..256]
    }
}

/// The table that a disparity map teaches.
pub(in crate::stereo) fn learn(_left: &Image<u8>, _right: &Image<u8>, _disparity: &Image<f32>) -> Table {
    Table(vec![0; 65536])
}

/// Costs of a left value against right values.
#[inline(always)]
pub(super) fn look_up<S: Simd, T: Value>(simd: S, table: &Table, left: u8, right: &[u8], out: &mut [T]) {
    let row = table.row(left);
    let n = S::u8s::LEN;
    for (right, out) in right.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        let mut costs = [0_u8; 64];
        for (o, &r) in costs.iter_mut().zip(right) {
            *o = row[usize::from(r)];
        }
        T::spread::<S>(S::u8s::from_slice(simd, &costs[..n]), out);
    }
}
