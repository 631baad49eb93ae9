//! Census: a bit for each pair of pixels in a window, set where the first is darker; the cost is the number of bits
//! that differ (R. Zabih, J. Woodfill, *Non-parametric local transforms for computing visual correspondence*, ECCV
//! 1994). Pixels outside the image take the value of the nearest one inside.
//!
//! The grey of 8-bit colours is stored in 16 bits. One such pixel counts as darker than another only if the difference
//! exceeds half a step of 8 bits: a smaller difference may come from the rounding of the colours, which is noise where
//! there is no texture.
//!
//! Bits are held in planes of eight: plane p of a row holds the bits 8p to 8p + 7 of all its pixels.

use super::gpu::CostKernel;
use super::{CostDefinition, CostSource, DescriptorCost, Descriptors, Planes};
use crate::by_pixel;
use crate::device::{Level, dispatch};
use crate::image::{ImageView, Pixel};
use crate::options::named;
use crate::stereo::aggregation::Value;
use crate::stereo::pair::Pair;
use crate::stereo::{Penalties, View};
use fearless_simd::Simd;
use fearless_simd::prelude::*;
use fearless_simd_macros::simd;
use std::ops::Add;

named! {
    /// The pixels that a census transform compares.
    pub enum CensusWindow as "census_window" {
        /// 24 bits.
        #[default]
        "5x5": Five, "Each of 5x5 pixels with the centre";
        /// 48 bits.
        "7x7": Seven, "Each of 7x7 pixels with the centre";
        /// 62 bits.
        "9x7": NineBySeven, "Each of 9x7 pixels with the centre";
        /// 31 bits (R. Spangenberg et al. 2013).
        "symmetric": Symmetric, "9x7, opposite pixels compared with each other";
    }
}

impl CensusWindow {
    /// The number of comparisons, which is the greatest Hamming distance.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Five => 24,
            Self::Seven => 48,
            Self::NineBySeven => 62,
            Self::Symmetric => 31,
        }
    }

    /// How far the window reaches to the left and right, and up and down.
    pub const fn radius(self) -> (usize, usize) {
        match self {
            Self::Five => (2, 2),
            Self::Seven => (3, 3),
            Self::NineBySeven | Self::Symmetric => (4, 3),
        }
    }

    /// The pairs compared, as offsets (dx, dy) of the two from the centre, in the order of the bits.
    fn pairs(self) -> Vec<[(isize, isize); 2]> {
        let (rx, ry) = self.radius();
        let (rx, ry) = (rx as isize, ry as isize);
        let window = (-ry..=ry).flat_map(|dy| (-rx..=rx).map(move |dx| (dx, dy)));
        match self {
            Self::Symmetric => {
                let upper = window.take_while(|&o| o != (0, 0));
                upper.map(|(dx, dy)| [(dx, dy), (-dx, -dy)]).collect()
            }
            Self::Five | Self::Seven | Self::NineBySeven => {
                window.filter(|&o| o != (0, 0)).map(|o| [o, (0, 0)]).collect()
            }
        }
    }

    /// For kernels: the pairs, as `census.h` compares them.
    pub(super) fn comparisons(self) -> String {
        let compare = |(bit, [a, b]): (usize, [(isize, isize); 2])| {
            format!("COMPARE({bit}, {}, {}, {}, {}) ", a.0, a.1, b.0, b.1)
        };
        self.pairs().into_iter().enumerate().map(compare).collect()
    }
}

/// Writes the census of row y of a view, plane by plane.
pub(super) fn census(level: Level, pair: &Pair, view: View, window: CensusWindow, y: usize, out: &mut [u8]) {
    let rounding = pair.rounding(view);
    by_pixel!(pair.grey(view).view(), image => {
        dispatch!(level, simd => transform(simd, image, rounding, window, y, out));
    });
}

/// The census of row y: its planes, one after the other. `a` is darker than `b` where a + `rounding` < b.
#[simd]
fn transform<S: Simd, T: Pixel + From<u8> + Add<Output = T>>(
    _: S,
    image: ImageView<'_, T>,
    rounding: u8,
    window: CensusWindow,
    y: usize,
    out: &mut [u8],
) {
    let (width, height) = (image.size().width, image.size().height);
    let (rx, ry) = window.radius();
    // The rows of the window, extended to the columns outside the image.
    let rows: Vec<Vec<T>> = (0..=2 * ry)
        .map(|dy| {
            let row = image.row((y + dy).saturating_sub(ry).min(height - 1));
            let mut extended = Vec::with_capacity(width + 2 * rx);
            extended.resize(rx, row[0]);
            extended.extend_from_slice(row);
            extended.resize(width + 2 * rx, row[width - 1]);
            extended
        })
        .collect();
    let shifted =
        |(dx, dy): (isize, isize)| &rows[(ry as isize + dy) as usize][(rx as isize + dx) as usize..][..width];
    let rounding = T::from(rounding);
    out.fill(0);
    for (pairs, plane) in window.pairs().chunks(8).zip(out.chunks_mut(width)) {
        for (bit, pair) in pairs.iter().enumerate() {
            let compared = shifted(pair[0]).iter().zip(shifted(pair[1]));
            plane.iter_mut().zip(compared).for_each(|(o, (&a, &b))| *o |= u8::from(a + rounding < b) << bit);
        }
    }
}

impl CostDefinition for CensusWindow {
    fn penalties(&self) -> Penalties {
        let (p1, p2, p2_least) = match self {
            Self::Five => (10, 39, 14),
            Self::Seven => (20, 78, 28),
            Self::NineBySeven => (26, 100, 36),
            Self::Symmetric => (13, 50, 18),
        };
        Penalties { p1, p2, p2_least, gradient: 4 }
    }

    fn known(&self, _: usize) -> Option<Box<dyn CostSource>> {
        Some(match self {
            Self::Five => Box::new(Hamming::<3>(*self)),
            Self::Symmetric => Box::new(Hamming::<4>(*self)),
            Self::Seven => Box::new(Hamming::<6>(*self)),
            Self::NineBySeven => Box::new(Hamming::<8>(*self)),
        })
    }
}

/// The Hamming distance of transforms of `PLANES` bytes.
#[derive(Clone, Copy, Debug)]
struct Hamming<const PLANES: usize>(CensusWindow);

impl<const PLANES: usize> DescriptorCost for Hamming<PLANES> {
    fn greatest(&self) -> u16 {
        self.0.bits().into()
    }

    fn planes(&self) -> usize {
        PLANES
    }

    fn describe(&self, level: Level, pair: &Pair, view: View, y: usize, out: &mut [u8]) {
        census(level, pair, view, self.0, y, out);
    }

    #[inline(always)]
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]) {
        let planes = Planes::<S, PLANES>::new(simd, descriptors, 0, out.len());
        for (c, out) in out.chunks_exact_mut(S::u8s::LEN).enumerate() {
            T::spread::<S>(hamming(planes, c), out);
        }
    }

    fn kernel(&self) -> CostKernel {
        CostKernel {
            text: concat!(include_str!("census.h"), include_str!("hamming.h")),
            words: usize::from(self.0.bits()).div_ceil(32),
            definitions: vec![("COMPARISONS", self.0.comparisons())],
            table: Vec::new(),
        }
    }
}

/// The number of bits that differ, for the c-th vector of disparities.
#[inline(always)]
pub(super) fn hamming<S: Simd, const N: usize>(planes: Planes<'_, S, N>, c: usize) -> S::u8s {
    let mut sum = S::u8s::splat(planes.simd, 0);
    for p in 0..N {
        sum += (planes.right(p, c) ^ planes.left[p]).count_ones();
    }
    sum
}

#[cfg(test)]
pub(super) mod tests {
    use super::{CensusWindow, Hamming, census};
    use crate::by_pixel;
    use crate::device::Cpu;
    use crate::image::{Image, Pixel, Size};
    use crate::options::Named;
    use crate::stereo::cost::tests::check_formula;
    use crate::stereo::pair::{Pair, Pictures};
    use crate::stereo::{Masks, View};

    #[test]
    fn is_its_formula() {
        for choice in CensusWindow::ALL {
            let window = choice.value;
            match window {
                CensusWindow::Five => check_window::<3>(choice.name, window),
                CensusWindow::Symmetric => check_window::<4>(choice.name, window),
                CensusWindow::Seven => check_window::<6>(choice.name, window),
                CensusWindow::NineBySeven => check_window::<8>(choice.name, window),
            }
        }
    }

    /// A difference of grey that may come from rounding 8-bit colours does not count as darker.
    #[test]
    fn rounding_is_not_darker() {
        let size = Size::new(7, 5);
        let bits = |colour: [u8; 3]| {
            let other = |x, y| (x * y) % 3 == 1;
            let data = (0..35).flat_map(|i| if other(i % 7, i / 7) { colour } else { [100; 3] }).collect();
            let image = Image::from_vec(data, size, 3).unwrap();
            let pictures = Pictures::new([(&image).into(), (&image).into()], Masks::default()).unwrap();
            let pair = Pair::new(&pictures, &Cpu::sequential()).unwrap();
            let mut out = [0; 3 * 7];
            census(Cpu::sequential().level(), &pair, View::Left, CensusWindow::Five, 2, &mut out);
            out.iter().map(|plane| plane.count_ones()).sum::<u32>()
        };
        assert_eq!(bits([102, 100, 100]), 0, "two values of red are 0.43 of grey");
        assert!(bits([103, 100, 100]) > 0, "three are 0.64");
    }

    fn check_window<const PLANES: usize>(name: &str, window: CensusWindow) {
        let formula = |_: &_, pair: &Pair, x, other, y| distance(pair, window, x, other, y);
        for channels in [1, 3] {
            check_formula(name, channels, |_, _| Hamming::<PLANES>(window), formula);
        }
    }

    /// The number of comparisons that differ, counted one by one.
    pub(in super::super) fn distance(
        pair: &Pair,
        window: CensusWindow,
        x: usize,
        other: usize,
        y: usize,
    ) -> u16 {
        let (rx, ry) = window.radius();
        let (rx, ry) = (rx as i64, ry as i64);
        let value = |view, x: i64, y: i64| {
            let Size { width, height } = pair.size();
            let (x, y) = (x.clamp(0, width as i64 - 1) as usize, y.clamp(0, height as i64 - 1) as usize);
            by_pixel!(pair.grey(view), i => i.row(y)[x].to_f32())
        };
        let darker = |view, x: usize, dx: i64, dy: i64| {
            let (x, y) = (x as i64, y as i64);
            let against = match window {
                CensusWindow::Symmetric => value(view, x - dx, y - dy),
                CensusWindow::Five | CensusWindow::Seven | CensusWindow::NineBySeven => value(view, x, y),
            };
            value(view, x + dx, y + dy) + f32::from(pair.rounding(view)) < against
        };
        let mut differing = 0;
        for dy in -ry..=ry {
            for dx in -rx..=rx {
                let second = (dy, dx) > (0, 0);
                if (dx, dy) == (0, 0) || (window == CensusWindow::Symmetric && second) {
                    continue;
                }
                let bits = [(View::Left, x), (View::Right, other)].map(|(view, x)| darker(view, x, dx, dy));
                differing += u16::from(bits[0] != bits[1]);
            }
        }
        differing
    }
}
