//! What the pictures of a pair say of its disparities, by patches on a grid of some [`SAMPLES`] pixels with a disparity.
//!
//! **Rows.** How many rows lie between a pixel and the place in the right picture that looks most like it, near where its
//! disparity leads. A patch of the left picture is compared with patches of the right one, up to [`REACH`] rows higher
//! and lower, by the sum of the squared differences about their mean; a parabola through the least sum and its
//! neighbours gives parts of a row. Patches whose sums hardly depend on the row are left out. Pixels whose rows differ much
//! mostly have no disparity, so a plane through the differences must stay small in the corners, too. This takes much less time
//! than to find tie points ([`survey`](super::survey)), but it can only confirm that rows agree: if they do not, few
//! disparities are right.
//!
//! **Fit.** If a disparity is wrong, the place where it leads is no more like the pixel than places beside it. So the
//! patch is also correlated with patches [`BESIDE`] it, and the share of these that are correlated less, whatever the sign,
//! is counted for the half of the patches with the most contrast: about ½ for disparities that have nothing to do with the
//! pictures, near 1 for right ones.
//!
//! **Bare pixels.** Where the left picture shows one brightness, as a burnt-out sky does, nothing is measured, and a disparity
//! is that of what lies around. A patch is bare if the standard deviation of its pixels is at most a hundredth of the
//! value that a tenth of the patches exceed.
//!
//! **Beyond the range.** A thing that is nearer than the range has no disparity, or a wrong one. So the patches of pixels
//! without a disparity are correlated with all places of the range and of one as long beyond it. A patch lies beyond if
//! its best place does and is alike, and if a neighbour on the grid says about the same disparity.

use super::halving::Side;
use crate::device::Cpu;
use crate::geometry::linear::Plane;
use crate::image::{AnyCow, AnyView, Image, ImageView, Pixel, Size, grey, mapped};
use crate::numeric::median;
use crate::{Error, Result, by_pixel};
use std::array::from_fn;

/// About how many pixels the grid has.
const SAMPLES: usize = 2048;

/// The half width and half height of a patch.
const HALF: [usize; 2] = [4, 3];

/// The greatest difference of rows that is tried, and the number of differences.
const REACH: usize = 2;
const ROWS: usize = 2 * REACH + 1;

/// A patch tells a difference of rows only if its least sum is below this share of its greatest sum.
const DISTINCT: f32 = 0.25;

/// Rows agree if at least [`FEWEST`] patches tell so, their median difference is at most [`MOST_PX`], and a plane through
/// all of them differs by at most [`MOST_IN_CORNERS`] pixels in the corners of the picture.
const FEWEST: usize = 200;
const MOST_PX: f64 = 0.5;
const MOST_IN_CORNERS: f64 = 1.0;

/// Every second patch along each axis is compared with patches beside it. Of these the half with the most contrast
/// counts, if it has at least this many patches.
const FEWEST_FITS: usize = 50;

/// How far beside the matched point patches are compared, in pixels along the row.
const BESIDE: [f32; 6] = [-14.0, -9.0, -5.0, 5.0, 9.0, 14.0];

/// A patch without a disparity lies beyond the range if its squared correlation there is above the first number, and
/// its disparity there differs from that of a neighbour on the grid by at most the second, in pixels.
const ALIKE: f32 = 0.7;
const NEAR_PX: f32 = 2.0;

/// A patch is bare if its variance is at most this share of the variance at the quantile [`STRONG`].
const BARE: f32 = 1e-4;
const STRONG: f64 = 0.9;

/// The results of the checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Patches {
    /// The median difference of rows, in pixels, if enough patches show that it is at most half; else use tie points.
    pub(crate) rows: Option<f64>,
    /// The mean share of points beside that are less like the pixel than the matched one; none for too few pixels.
    pub(crate) fit: Option<f64>,
    /// The share of the patches that are bare; none without a patch.
    pub(crate) bare: Option<f64>,
    /// The share of a coarser grid's points that lie beyond the range that was searched; none without a point.
    pub(crate) beyond: Option<f64>,
}

impl Patches {
    /// Checks `disparity` against its pair, which was searched from the first disparity of `range` to below the second.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for pictures or a map of two sizes, [`Error::Image`] for more than four channels.
    pub(crate) fn compare(
        pair: &[Side; 2],
        disparity: ImageView<'_, f32>,
        range: [f32; 2],
        cpu: &Cpu,
    ) -> Result<Self> {
        let size = disparity.size();
        if let Some(side) = pair.iter().find(|side| side.image.size() != size) {
            return Err(Error::Mismatch(format!(
                "an image is {}, the disparity map {size}",
                side.image.size()
            )));
        }
        let [left, right] = pair.each_ref().map(|side| grey(side.image.view(), cpu));
        let [left, right] = of_usual_size([left?, right?], cpu);
        let mask = pair[0].mask.as_ref().map(Image::view);
        let (told, beyond) = by_pixel!(left.view(), left => by_pixel!(right.view(), right => {
            let greys = Greys { left, right };
            (greys.on_grid(disparity, cpu), greys.beyond(disparity, mask, range, cpu))
        }));
        let rows: Vec<Rows> = told.iter().filter_map(|(rows, ..)| *rows).collect();
        let is_level = || {
            let extent = [size.width, size.height].map(|side| side as f64);
            Plane::through(rows.iter().copied())
                .is_some_and(|plane| plane.greatest(extent) <= MOST_IN_CORNERS)
        };
        let of_most =
            || median(rows.iter().map(|(_, by)| by.abs())).filter(|px| *px <= MOST_PX && is_level());
        let mut fits: Vec<[f32; 2]> = told.iter().filter_map(|(_, fit, _)| *fit).collect();
        let mut contrasts: Vec<f32> = told.iter().map(|(.., contrast)| *contrast).collect();
        contrasts.sort_by(f32::total_cmp);
        let strong = contrasts.get((STRONG * contrasts.len() as f64) as usize);
        let bare = strong.map(|strong| {
            contrasts.partition_point(|contrast| *contrast <= BARE * strong) as f64 / contrasts.len() as f64
        });
        fits.sort_by(|a, b| b[0].total_cmp(&a[0]));
        fits.truncate(fits.len() / 2);
        let mean = fits.iter().map(|[_, share]| f64::from(*share)).sum::<f64>() / fits.len() as f64;
        Ok(Self {
            rows: if rows.len() >= FEWEST { of_most() } else { None },
            fit: (fits.len() >= FEWEST_FITS).then_some(mean),
            bare,
            beyond,
        })
    }
}

/// If the greatest value lies between these, products of four values stay in the range of f32.
const USUAL: [f32; 2] = [1e-4, 1e6];

/// The pictures, with floats divided by their greatest value if products of values would leave the range of f32.
fn of_usual_size<'a>(pair: [AnyCow<'a>; 2], cpu: &Cpu) -> [AnyCow<'a>; 2] {
    let greatest = |picture: &AnyCow<'_>| match picture.view() {
        AnyView::F32(view) => {
            let values = (0..view.size().height).flat_map(|y| view.row(y)).map(|v| v.abs());
            values.filter(|v| v.is_finite()).fold(0.0, f32::max)
        }
        AnyView::U8(_) | AnyView::U16(_) => 0.0,
    };
    let most = pair.iter().map(greatest).fold(0.0, f32::max);
    if most == 0.0 || (USUAL[0]..=USUAL[1]).contains(&most) {
        return pair;
    }
    pair.map(|picture| match picture.view() {
        AnyView::F32(view) => AnyCow::Owned(mapped(view, |v| v / most, cpu).into()),
        AnyView::U8(_) | AnyView::U16(_) => picture,
    })
}

/// The contrast of a pixel's patch, and the share of the points beside that are less like it than the matched one.
type Fit = [f32; 2];

/// A pixel, and by how many rows the matched point is below it.
type Rows = ([f64; 2], f64);

/// The spacing of the grid.
fn grid_step(size: Size) -> usize {
    (size.area() as f64 / SAMPLES as f64).sqrt().max(1.0) as usize
}

/// The grey pictures of a pair.
#[derive(Clone, Copy)]
struct Greys<'a, L, R> {
    left: ImageView<'a, L>,
    right: ImageView<'a, R>,
}

impl<L: Pixel, R: Pixel> Greys<'_, L, R> {
    /// For each pixel of the grid with a disparity: the difference of rows, how well the matched point fits, and the
    /// contrast of its patch.
    fn on_grid(self, disparity: ImageView<'_, f32>, cpu: &Cpu) -> Vec<(Option<Rows>, Option<Fit>, f32)> {
        let size = disparity.size();
        let border = HALF[1] + REACH;
        let step = grid_step(size);
        let rows: Vec<usize> = (border..size.height.saturating_sub(border)).step_by(step).collect();
        let of_row = |i: usize| {
            let y = rows[i];
            let places = (HALF[0]..size.width.saturating_sub(HALF[0])).step_by(step).enumerate();
            let told = places.filter(|(_, x)| disparity.row(y)[*x].is_finite()).map(|(n, x)| {
                let d = disparity.row(y)[x];
                let fit = if (i | n).is_multiple_of(2) { self.fit([x, y], d) } else { None };
                let rows = self.difference([x, y], d).map(|by| ([x as f64, y as f64], f64::from(by)));
                (rows, fit, self.contrast([x, y]))
            });
            told.collect::<Vec<_>>()
        };
        cpu.map(rows.len(), of_row).concat()
    }

    /// The share of the points of a grid with twice the spacing that lie beyond the range.
    fn beyond(
        self,
        disparity: ImageView<'_, f32>,
        mask: Option<ImageView<'_, u8>>,
        [least, end]: [f32; 2],
        cpu: &Cpu,
    ) -> Option<f64> {
        let Size { width, height } = disparity.size();
        let step = 2 * grid_step(disparity.size());
        let [columns, rows] = [(width, HALF[0]), (height, HALF[1])].map(|(length, border)| {
            (border..length.saturating_sub(border)).step_by(step).collect::<Vec<usize>>()
        });
        let best = |x: usize, y: usize| {
            let lacks = mask.is_none_or(|mask| mask.row(y)[x] != 0) && !disparity.row(y)[x].is_finite();
            if !lacks || self.contrast([x, y]) <= 0.0 {
                return None;
            }
            let most = (2.0 * end - least).min((x - HALF[0]) as f32 + 1.0);
            let count = (most - least).max(0.0) as usize;
            let places = (0..count).map(|i| least + i as f32);
            let alike = places.filter_map(|d| Some((self.correlation([x, y], d)?[1], d)));
            alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(alike, d)| *alike > ALIKE && *d >= end)
        };
        let best = cpu.map(rows.len(), |j| columns.iter().map(|&x| best(x, rows[j])).collect::<Vec<_>>());
        let is_beyond = |i: usize, j: usize| {
            let around = [(i.wrapping_sub(1), j), (i + 1, j), (i, j.wrapping_sub(1)), (i, j + 1)];
            let near = |(i, j): (usize, usize)| best.get(j).and_then(|row| *row.get(i)?);
            near((i, j)).is_some_and(|(_, d)| {
                around.into_iter().filter_map(near).any(|(_, other)| (other - d).abs() <= NEAR_PX)
            })
        };
        let count =
            (0..rows.len()).map(|j| (0..columns.len()).filter(|&i| is_beyond(i, j)).count()).sum::<usize>();
        let all = rows.len() * columns.len();
        (all > 0).then(|| count as f64 / all as f64)
    }

    /// How much more the matched point looks like a pixel than points beside it.
    fn fit(self, [x, y]: [usize; 2], d: f32) -> Option<Fit> {
        let own = self.correlation([x, y], d)?;
        let others = BESIDE.iter().filter_map(|by| self.correlation([x, y], d + by));
        let (mut less, mut count) = (0.0, 0.0);
        for other in others {
            (less, count) = (less + f32::from(u8::from(other[1] < own[1])), count + 1.0);
        }
        (2.0 * count >= BESIDE.len() as f32).then(|| [own[0], less / count])
    }

    /// The contrast of the left patch and the square of its correlation with a patch of the right picture; none where either
    /// patch is not whole or has no contrast.
    fn correlation(self, [x, y]: [usize; 2], d: f32) -> Option<[f32; 2]> {
        let Self { left, right } = self;
        let first = ((x - HALF[0]) as f32 - d).round();
        if !(first >= 0.0 && first + (2 * HALF[0] + 1) as f32 <= right.size().width as f32) {
            return None;
        }
        let (column, n) = (first as usize, ((2 * HALF[0] + 1) * (2 * HALF[1] + 1)) as f32);
        let base = [left.row(y)[x].to_f32(), right.row(y)[column].to_f32()];
        let mut sums = [0.0_f32; 5];
        for row in y - HALF[1]..=y + HALF[1] {
            let a = &left.row(row)[x - HALF[0]..=x + HALF[0]];
            for (a, b) in a.iter().zip(&right.row(row)[column..column + a.len()]) {
                let (a, b) = (a.to_f32() - base[0], b.to_f32() - base[1]);
                let terms = [a, b, a * a, b * b, a * b];
                (0..5).for_each(|k| sums[k] += terms[k]);
            }
        }
        let [a, b, aa, bb, ab] = sums.map(|sum| sum / n);
        let (left, right, both) = (aa - a * a, bb - b * b, ab - a * b);
        (left > 0.0 && right > 0.0).then(|| [left, both * both / (left * right)])
    }

    /// The contrast of the left patch, as a variance.
    fn contrast(self, [x, y]: [usize; 2]) -> f32 {
        let base = self.left.row(y)[x].to_f32();
        let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
        for row in y - HALF[1]..=y + HALF[1] {
            for v in &self.left.row(row)[x - HALF[0]..=x + HALF[0]] {
                let v = v.to_f32() - base;
                (sum, squares, n) = (sum + v, squares + v * v, n + 1.0);
            }
        }
        (squares - sum * sum / n) / n
    }

    /// By how many rows the place in the right picture is below the pixel. `None` if patches do not tell.
    fn difference(self, [x, y]: [usize; 2], d: f32) -> Option<f32> {
        let Self { left, right } = self;
        let first = (x - HALF[0]) as f32 - d;
        // The right patch has one column more, because it is interpolated between columns.
        if !(first >= 0.0 && first + ((2 * HALF[0] + 1) as f32) < right.size().width as f32) {
            return None;
        }
        let (column, part) = (first as usize, first.fract());
        let sums: [f32; ROWS] = from_fn(|k| {
            let (mut sum, mut squares) = (0.0, 0.0);
            for row in y - HALF[1]..=y + HALF[1] {
                let a = &left.row(row)[x - HALF[0]..=x + HALF[0]];
                let b = &right.row(row + k - REACH)[column..=column + a.len()];
                for (a, b) in a.iter().zip(b.windows(2)) {
                    let [b, next] = [b[0].to_f32(), b[1].to_f32()];
                    let apart = a.to_f32() - (b + part * (next - b));
                    (sum, squares) = (sum + apart, squares + apart * apart);
                }
            }
            squares - sum * sum / ((2 * HALF[0] + 1) * (2 * HALF[1] + 1)) as f32
        });
        let least = (0..ROWS).min_by(|&a, &b| sums[a].total_cmp(&sums[b]))?;
        // With NaN the comparison is false, so the patch is left out.
        if !sums.iter().any(|sum| sums[least] < DISTINCT * sum) {
            return None;
        }
        let Some([above, at, below]) = least.checked_sub(1).and_then(|first| sums.get(first..first + 3))
        else {
            return Some(least as f32 - REACH as f32);
        };
        let off = 0.5 * (above - below) / (above - 2.0 * at + below);
        Some(least as f32 + off - REACH as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{AnyImage, Image, Size};
    use crate::stereo::testing::{scene, sides};

    const RANGE: [f32; 2] = [0.0, 41.0];

    #[test]
    fn things_beyond_the_range_are_noticed() {
        for seed in 0..6 {
            let pair = scene(Size::new(320, 240), [4.0, 40.0], 5, seed);
            let sides = sides([&pair.left, &pair.right]);
            let (size, truth) = (pair.left.size(), &pair.truth_left);
            let share = |most: f32, threads: usize| {
                let known =
                    |x: usize, y: usize| Some(truth.row(y)[x]).filter(|d| *d < most).unwrap_or(f32::INFINITY);
                let (map, cpu) = (Image::from_fn(size, known), Cpu::with_threads(threads).unwrap());
                Patches::compare(&sides, map.view(), [0.0, most], &cpu).unwrap().beyond.unwrap()
            };
            let values = || truth.data().iter().filter(|d| d.is_finite());
            let near = values().filter(|d| **d >= 25.0).count() as f64 / values().count() as f64;
            assert!(share(41.0, 1) < 0.01, "{seed}: {}", share(41.0, 1));
            assert!(near < 0.1 || share(25.0, 1) > 0.3 * near, "{seed}: {} of {near}", share(25.0, 1));
            assert_eq!(share(25.0, 1), share(25.0, 3), "for any number of threads");
        }
    }

    #[test]
    fn patches_tell_rows_and_fit() {
        let pair = scene(Size::new(320, 240), [4.0, 40.0], 12, 2);
        let (size, map) = (pair.left.size(), pair.truth_left.view());
        let found = |left: AnyImage, right: AnyImage, threads| {
            let sides = [left, right].map(|image| Side { image, mask: None });
            Patches::compare(&sides, map, RANGE, &Cpu::with_threads(threads).unwrap()).unwrap().rows
        };
        // The right picture, moved down by parts of a row.
        let moved = |down: f32| {
            Image::from_fn(size, |x, y| {
                let at = |y: usize| f32::from(pair.right.row(y.min(size.height - 1))[x]);
                let (row, part) = (y + down as usize, down.fract());
                at(row) + part * (at(row + 1) - at(row))
            })
        };
        let bytes = |image: &Image<f32>| Image::from_fn(size, |x, y| image.row(y)[x] as u8);
        let beside =
            |down: f32, threads| found(pair.left.clone().into(), bytes(&moved(down)).into(), threads);
        for (down, least, most) in [(0.0, 0.0, 0.1), (0.3, 0.2, 0.4)] {
            let rows = beside(down, 1).unwrap();
            assert!((least..most).contains(&rows), "{down}: {rows}");
            assert_eq!(Some(rows), beside(down, 3), "for any number of threads");
        }
        for down in [0.8, 1.0, 2.0, 5.0] {
            assert_eq!(beside(down, 2), None, "{down} rows down");
        }
        let floats = Image::from_fn(size, |x, y| f32::from(pair.left.row(y)[x]));
        for scale in [1.0, 1e-30, 1e-20, 1e12, 1e30] {
            let sides = [&floats, &moved(0.0)].map(|image| {
                let scaled = Image::from_fn(size, |x, y| scale * image.row(y)[x]);
                Side { image: scaled.into(), mask: None }
            });
            let Patches { rows, fit, bare, .. } =
                Patches::compare(&sides, map, RANGE, &Cpu::sequential()).unwrap();
            assert!(rows.is_some() && fit.unwrap() > 0.9 && bare.unwrap() < 0.05, "floats times {scale}");
        }
        let told = |left: &Image<u8>, map: &Image<f32>| {
            let sides = sides([left, &pair.right]);
            Patches::compare(&sides, map.view(), RANGE, &Cpu::sequential()).unwrap()
        };
        let fit = |map: &Image<f32>| told(&pair.left, map).fit.unwrap();
        assert!(fit(&pair.truth_left) > 0.9, "{}", fit(&pair.truth_left));
        let wrong = Image::from_fn(size, |x, y| pair.truth_left.row(y)[x] + 45.0 - 3.0 * (x % 9) as f32);
        assert!(fit(&wrong) < 0.65, "{}", fit(&wrong));
        let unknown = Image::filled(size, 1, f32::NAN);
        assert_eq!(found(floats.into(), unknown.into(), 2), None, "no data");
        let flat = Image::filled(size, 1, 90_u8);
        assert_eq!(found(pair.left.clone().into(), flat.clone().into(), 2), None, "nothing to see");
        let white = Image::from_fn(size, |x, y| if y < size.height / 2 { 255 } else { pair.left.row(y)[x] });
        for (left, least, most) in [(&pair.left, 0.0, 0.05), (&white, 0.4, 0.55), (&flat, 1.0, 1.0)] {
            let bare = told(left, &pair.truth_left).bare;
            assert!((least..=most).contains(&bare.unwrap()), "{bare:?}");
        }
        let small = [16, 17].map(|n| Side { image: Image::<u8>::new(Size::new(n, 9)).into(), mask: None });
        let map = Image::filled(Size::new(16, 9), 1, 1.0);
        assert!(Patches::compare(&small, map.view(), RANGE, &Cpu::sequential()).is_err(), "two sizes");
        let small = [&small[0], &small[0]].map(Side::clone);
        let found = Patches::compare(&small, map.view(), RANGE, &Cpu::sequential()).unwrap();
        let expected = Patches { rows: None, fit: None, bare: None, beyond: Some(0.0) };
        assert_eq!(found, expected, "no room for a patch that is compared with others");
    }
}
