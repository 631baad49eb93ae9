//! Census: a bit for each pair of pixels in a window, set where the first is darker; the cost is the number of bits
//! that differ (R. Zabih, J. Woodfill, *Non-parametric local transforms for computing visual correspondence*, ECCV
//! 1994). Pixels outside the image take the value of the nearest one inside.
//!
//! Bits are held in planes of eight: plane p of a row holds the bits 8p to 8p + 7 of all its pixels.

use super::{CostDefinition, CostSource, DescriptorCost, Descriptors, Learn, gpu::CostKernel};
use crate::{
    Result, for_any_view,
    image::{ImageView, Pixel},
    options::named,
    stereo::{Penalties, View, aggregation::Value, pair::Pair},
};
use fearless_simd::{Simd, prelude::*};

/// The pixels that a census transform compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CensusWindow {
    /// 5×5, each with the centre: 24 bits.
    #[default]
    Five,
    /// 7×7: 48 bits.
    Seven,
    /// 9 wide, 7 high: 62 bits.
    NineBySeven,
    /// 9 wide, 7 high, pixels opposite each other compared with each other (R. Spangenberg et al. 2013): 31 bits.
    Symmetric,
}

named!(CensusWindow as "census_window" {
    "5x5": CensusWindow::Five, "Each of 5x5 pixels with the centre";
    "7x7": CensusWindow::Seven, "Each of 7x7 pixels with the centre";
    "9x7": CensusWindow::NineBySeven, "Each of 9x7 pixels with the centre";
    "symmetric": CensusWindow::Symmetric, "9x7, opposite pixels compared with each other";
});

impl CensusWindow {
    /// Comparisons, which is the greatest distance.
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
}

/// The census of row y: its planes, one after the other.
fn transform<T: Pixel>(image: ImageView<'_, T>, window: CensusWindow, y: usize, out: &mut [u8]) {
    let (width, height) = (image.size().width, image.size().height);
    let (rx, ry) = window.radius();
    // The rows of the window, with the columns outside the image.
    let rows: Vec<Vec<T>> = (0..=2 * ry)
        .map(|dy| {
            let row = image.row((y + dy).saturating_sub(ry).min(height - 1));
            let (first, last) = (row[0], row[width - 1]);
            let inner = std::iter::repeat_n(first, rx).chain(row.iter().copied());
            inner.chain(std::iter::repeat_n(last, rx)).collect()
        })
        .collect();
    let shifted =
        |(dx, dy): (isize, isize)| &rows[(ry as isize + dy) as usize][(rx as isize + dx) as usize..][..width];
    out.fill(0);
    for (pairs, plane) in window.pairs().chunks(8).zip(out.chunks_mut(width)) {
        for (bit, pair) in pairs.iter().enumerate() {
            let compared = shifted(pair[0]).iter().zip(shifted(pair[1]));
            plane.iter_mut().zip(compared).for_each(|(o, (a, b))| *o |= u8::from(a < b) << bit);
        }
    }
}

impl CostDefinition for CensusWindow {
    fn greatest(&self) -> u16 {
        self.bits().into()
    }

    fn penalties(&self) -> Penalties {
        let (p1, p2, p2_least) = match self {
            Self::Five => (10, 39, 14),
            Self::Seven => (20, 78, 28),
            Self::NineBySeven => (26, 100, 36),
            Self::Symmetric => (13, 50, 18),
        };
        Penalties { p1, p2, p2_least, gradient: 4 }
    }

    fn source(&self, _: Learn<'_, '_>) -> Result<Box<dyn CostSource>> {
        Ok(match self {
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

    fn describe(&self, pair: &Pair, view: View, y: usize, out: &mut [u8]) {
        for_any_view!(pair.grey(view).view(), image => transform(image, self.0, y, out));
    }

    #[inline(always)]
    fn pixel<S: Simd, T: Value>(&self, simd: S, descriptors: &Descriptors<'_>, out: &mut [T]) {
        let n = S::u8s::LEN;
        let Descriptors { left, width, right, reach } = *descriptors;
        let mut bits = [S::u8s::splat(simd, 0); PLANES];
        let mut rows = [&right[..0]; PLANES];
        for p in 0..PLANES {
            bits[p] = S::u8s::splat(simd, left[p * width]);
            rows[p] = &right[p * reach..p * reach + out.len()];
        }
        for (c, out) in out.chunks_exact_mut(n).enumerate() {
            let mut sum = S::u8s::splat(simd, 0);
            for p in 0..PLANES {
                let right = S::u8s::from_slice(simd, &rows[p][c * n..(c + 1) * n]);
                sum += (right ^ bits[p]).count_ones();
            }
            T::spread::<S>(sum, out);
        }
    }

    fn kernel(&self) -> CostKernel {
        let compare = |(bit, [a, b]): (usize, [(isize, isize); 2])| {
            format!("COMPARE({bit}, {}, {}, {}, {}) ", a.0, a.1, b.0, b.1)
        };
        CostKernel {
            text: include_str!("census.h"),
            words: usize::from(self.0.bits()).div_ceil(32),
            definitions: vec![("COMPARISONS", self.0.pairs().into_iter().enumerate().map(compare).collect())],
            table: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CensusWindow, Hamming};
    use crate::{
        image::{AnyImage, Size},
        options::Named,
        stereo::{View, cost::tests::check_formula, pair::Pair},
    };

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

    fn check_window<const PLANES: usize>(name: &str, window: CensusWindow) {
        let formula = |_: &_, pair: &Pair, x, other, y| hamming(pair, window, x, other, y);
        check_formula(name, |_| Hamming::<PLANES>(window), formula);
    }

    /// Comparisons that differ, one by one.
    fn hamming(pair: &Pair, window: CensusWindow, x: usize, other: usize, y: usize) -> u16 {
        let (rx, ry) = window.radius();
        let (rx, ry) = (rx as i64, ry as i64);
        let value = |view, x: i64, y: i64| {
            let Size { width, height } = pair.size();
            let (x, y) = (x.clamp(0, width as i64 - 1) as usize, y.clamp(0, height as i64 - 1) as usize);
            match pair.grey(view) {
                AnyImage::U8(i) => f32::from(i.row(y)[x]),
                AnyImage::U16(i) => f32::from(i.row(y)[x]),
                AnyImage::F32(i) => i.row(y)[x],
            }
        };
        let darker = |view, x: usize, dx: i64, dy: i64| {
            let (x, y) = (x as i64, y as i64);
            let against = match window {
                CensusWindow::Symmetric => value(view, x - dx, y - dy),
                CensusWindow::Five | CensusWindow::Seven | CensusWindow::NineBySeven => value(view, x, y),
            };
            value(view, x + dx, y + dy) < against
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
