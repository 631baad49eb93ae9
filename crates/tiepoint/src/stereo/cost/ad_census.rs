//! Census and colour in one cost (after X. Mei et al., *On building an accurate stereo matching system on graphics
//! hardware*, ICCV workshops 2011):
//!
//! ```text
//! C = min(H + ⌊min(Δ, 55) / 8⌋, 24)
//! Δ = |left − right| of red + of green + of blue
//! ```
//!
//! H is the Hamming distance of the census 5×5; values have 8 bits. If an image of the pair is grey, grey is compared
//! in place of all three colours.
//!
//! **Why.** On a surface without texture the census is noise, and surfaces of equal grey may differ in colour: in both
//! cases colour decides. Its cost is at most 6, a quarter of that of the census, because a different exposure or light
//! changes all colours but the order of few neighbours. The sum is at most 24: pixels that do not correspond differ in
//! half of the 24 bits by chance, so a greater sum means little.
//!
//! Mei et al. map both parts to 0 to 1 by 1 − exp(−c / λ) and add them. Truncated integers are used here instead, so
//! that the sums of four paths fit a byte.

use super::census::{census, hamming};
use super::gpu::CostKernel;
use super::{CensusWindow, CostDefinition, CostSource, DescriptorCost, Descriptors, Planes};
use crate::device::Level;
use crate::stereo::aggregation::Value;
use crate::stereo::pair::Pair;
use crate::stereo::{Penalties, View};
use fearless_simd::Simd;
use fearless_simd::prelude::*;

const WINDOW: CensusWindow = CensusWindow::Five;
/// Bytes of a census.
const CENSUS: usize = 3;
/// Greater sums of differences are truncated to this.
const DIFFERENCE: u8 = 55;
/// Differences of 2 to this power cost 1.
const SHIFT: u32 = 3;
/// Greater costs are truncated to this.
const LIMIT: u8 = WINDOW.bits();

#[derive(Clone, Copy, Debug)]
pub(super) struct AdCensus;

impl CostDefinition for AdCensus {
    fn penalties(&self) -> Penalties {
        Penalties { p1: 14, p2: 39, p2_least: 18, gradient: 4 }
    }

    fn compares_colour(&self) -> bool {
        true
    }

    fn known(&self, channels: usize) -> Option<Box<dyn CostSource>> {
        match channels {
            3 => Some(Box::new(Joined::<3>)),
            _ => Some(Box::new(Joined::<1>)),
        }
    }
}

/// The cost of images of one channel or three.
#[derive(Clone, Copy, Debug)]
struct Joined<const CHANNELS: usize>;

impl<const CHANNELS: usize> DescriptorCost for Joined<CHANNELS> {
    fn greatest(&self) -> u16 {
        LIMIT.into()
    }

    fn planes(&self) -> usize {
        CENSUS + CHANNELS
    }

    fn describe(&self, level: Level, pair: &Pair, view: View, y: usize, out: &mut [u8]) {
        let (bits, colours) = out.split_at_mut(CENSUS * pair.size().width);
        census(level, pair, view, WINDOW, y, bits);
        let pixels = pair.compared(view).row(y).as_chunks::<CHANNELS>().0;
        for (c, plane) in colours.chunks_exact_mut(pair.size().width).enumerate() {
            plane.iter_mut().zip(pixels).for_each(|(out, pixel)| *out = pixel[c]);
        }
    }

    #[inline(always)]
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]) {
        let bits = Planes::<S, CENSUS>::new(simd, descriptors, 0, out.len());
        let colours = Planes::<S, CHANNELS>::new(simd, descriptors, CENSUS, out.len());
        for (c, out) in out.chunks_exact_mut(S::u8s::LEN).enumerate() {
            let cost = hamming(bits, c) + (difference(colours, c).min(DIFFERENCE) >> SHIFT);
            T::spread::<S>(cost.min(LIMIT), out);
        }
    }

    fn kernel(&self) -> CostKernel {
        CostKernel {
            text: concat!(include_str!("census.h"), include_str!("ad_census.h")),
            words: if CHANNELS == 1 { 1 } else { 2 },
            definitions: vec![
                ("COMPARISONS", WINDOW.comparisons()),
                ("CENSUS_BITS", WINDOW.bits().to_string()),
                ("CHANNELS", CHANNELS.to_string()),
                ("DIFFERENCE", format!("{DIFFERENCE}u")),
                ("SHIFT", SHIFT.to_string()),
                ("LIMIT", format!("{LIMIT}u")),
            ],
            table: Vec::new(),
        }
    }
}

/// Δ, at most 255, for the c-th vector of disparities.
#[inline(always)]
fn difference<S: Simd, const CHANNELS: usize>(colours: Planes<'_, S, CHANNELS>, c: usize) -> S::u8s {
    let mut sum = S::u8s::splat(colours.simd, 0);
    for channel in 0..3 {
        let p = channel.min(CHANNELS - 1);
        let (left, right) = (colours.left[p], colours.right(p, c));
        sum = sum.saturating_add(left.saturating_sub(right) | right.saturating_sub(left));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::census::tests::distance;
    use super::*;
    use crate::device::Cpu;
    use crate::stereo::cost::tests::check_formula;
    use crate::stereo::pair::Pictures;

    /// The cost of two pixels by its formula.
    fn formula(pair: &Pair, x: usize, other: usize, y: usize) -> u16 {
        let pixel = |view, x: usize| {
            let image = pair.compared(view);
            let n = image.channels();
            [0, 1, 2].map(|c| i32::from(image.row(y)[x * n + c.min(n - 1)]))
        };
        let (left, right) = (pixel(View::Left, x), pixel(View::Right, other));
        let differences: u32 = left.iter().zip(right).map(|(l, r)| l.abs_diff(r)).sum();
        (distance(pair, CensusWindow::Five, x, other, y) + differences.min(55) as u16 / 8).min(24)
    }

    #[test]
    fn is_its_formula() {
        check_formula("grey", 1, |_, _| Joined::<1>, |_, pair, x, other, y| formula(pair, x, other, y));
        let learn = |pictures: &Pictures<'_>, pair: &mut Pair| {
            *pair = Pair::for_cost(pictures, &AdCensus, &Cpu::sequential()).unwrap();
            assert_eq!(pair.compared(View::Left).channels(), 3, "noise in three channels has colour");
            Joined::<3>
        };
        check_formula("colour", 3, learn, |_, pair, x, other, y| formula(pair, x, other, y));
    }
}
