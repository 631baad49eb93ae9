//! Census: a bit for each pair of pixels in a window, set where the first is darker; the cost is the number of bits
//! that differ (R. Zabih, J. Woodfill, *Non-parametric local transforms for computing visual correspondence*, ECCV
//! 1994). Pixels outside the image take the value of the nearest one inside.
//!
//! Bits are held in planes of eight: plane p of a row holds the bits 8p to 8p + 7 of all its pixels.

use crate::{
    image::{Image, Pixel},
    stereo::aggregation::Value,
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

    /// Bytes that hold the bits.
    pub(super) const fn planes(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    /// The pairs compared, as offsets (dx, dy) of the two from the centre, in the order of the bits.
    pub(super) fn pairs(self) -> Vec<[(isize, isize); 2]> {
        let (rx, ry) = self.radius();
        let (rx, ry) = (rx as isize, ry as isize);
        let window = (-ry..=ry).flat_map(|dy| (-rx..=rx).map(move |dx| (dx, dy)));
        match self {
            Self::Symmetric => {
                let upper = window.take_while(|&o| o != (0, 0));
                upper.map(|(dx, dy)| [(dx, dy), (-dx, -dy)]).collect()
            }
            _ => window.filter(|&o| o != (0, 0)).map(|o| [o, (0, 0)]).collect(),
        }
    }
}

/// The census of row y: its planes, one after the other.
pub(in crate::stereo) fn transform<T: Pixel>(image: &Image<T>, window: CensusWindow, y: usize) -> Vec<u8> {
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
    let mut out = vec![0; window.planes() * width];
    for (pairs, plane) in window.pairs().chunks(8).zip(out.chunks_mut(width)) {
        for (bit, pair) in pairs.iter().enumerate() {
            let compared = shifted(pair[0]).iter().zip(shifted(pair[1]));
            plane.iter_mut().zip(compared).for_each(|(o, (a, b))| *o |= u8::from(a < b) << bit);
        }
    }
    out
}

/// A pixel of the left row, whose planes lie `width` apart, and pixels of the right row, whose planes lie `reach` apart.
pub(super) struct Planes<'a> {
    pub(super) left: &'a [u8],
    pub(super) width: usize,
    pub(super) right: &'a [u8],
    pub(super) reach: usize,
}

impl Planes<'_> {
    /// Hamming distances of the left pixel to as many right ones as `out` has.
    #[inline(always)]
    pub(super) fn distance<S: Simd, T: Value, const PLANES: usize>(&self, simd: S, out: &mut [T]) {
        let n = S::u8s::LEN;
        let mut bits = [S::u8s::splat(simd, 0); PLANES];
        let mut rows = [&self.right[..0]; PLANES];
        for p in 0..PLANES {
            bits[p] = S::u8s::splat(simd, self.left[p * self.width]);
            rows[p] = &self.right[p * self.reach..p * self.reach + out.len()];
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
}
