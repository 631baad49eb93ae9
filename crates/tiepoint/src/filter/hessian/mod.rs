//! Blobs at one scale: the determinant of the Hessian from 9×9 box filters, and its 3×3 maxima.
//!
//! With Σ over whole pixels about (x, y), i to the right and j down:
//!
//! ```text
//! Dxx = Σ |i| ≤ 4, |j| ≤ 2  −  3 Σ |i| ≤ 1, |j| ≤ 2          Dyy = its transpose
//! Dxy = Σ 1 ≤ i ≤ 3, −3 ≤ j ≤ −1  +  Σ −3 ≤ i ≤ −1, 1 ≤ j ≤ 3
//!     − Σ −3 ≤ i ≤ −1, −3 ≤ j ≤ −1  −  Σ 1 ≤ i ≤ 3, 1 ≤ j ≤ 3
//! det = dxx · dyy − weight · dxy²,   d = D / (81 · white)
//! ```
//!
//! These are the filters of SURF's first layer, σ = 1.2 (Bay et al. 2008); the chain of determinant,
//! magnitude, maximum and threshold at this one scale follows M. Schösau, Hochschule Mittweida 2019.
//!
//! **Numbers.** Everything is f32. The D of 8- and 16-bit images are integers below 2²⁴, and exact; those of floats are
//! rounded in the same way on every device. d = D · (1 / (81 · white)), det = fma(−weight, dxy · dxy, dxx · dyy).
//!
//! **Speed.** Three rows of column sums for each row, then 17 additions for each pixel; nothing else is stored.

pub(crate) mod gpu;

use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::filter::border::{BAND, extend, leaves};
use crate::image::{Border, Image, ImageView, ImageViewMut, Pixel};
use crate::options::options;
use fearless_simd::Simd;

/// Pixels from the centre to the edge of the filters.
const RADIUS: usize = 4;

options! {
    /// How to find blobs.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct HessianOptions {
        /// Weight of dxy².
        ///
        /// 1 as in the source; SURF has 0.81, which makes up for boxes in the place of Gaussians.
        weight / with_weight: f32 = 1.0 => 0.0..=10.0, unit "W";
        /// Least magnitude of a local maximum, for an image from 0 to 1.
        ///
        /// The default is that of SURF's fast Hessian.
        threshold / with_threshold: f32 = 0.0004 => 0.0.., unit "T";
        /// What lies beyond the edge.
        ///
        /// [`Border::Skip`] sets det to 0 at pixels whose window leaves the image.
        border / with_border: Border = Border::Clamp;
    }
}

/// A local maximum of |det|.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blob {
    /// Column.
    pub x: usize,
    /// Row.
    pub y: usize,
    /// det at (x, y); negative at saddles.
    pub response: f32,
    /// The sign of dxx + dyy: −1 for a bright blob on a dark ground, 1 for a dark one, 0 for neither.
    pub laplacian: i8,
}

impl Blob {
    /// The order of blobs: by descending |det|, then y, then x.
    fn order(&self, other: &Self) -> std::cmp::Ordering {
        other.response.abs().total_cmp(&self.response.abs()).then((self.y, self.x).cmp(&(other.y, other.x)))
    }
}

/// det at every pixel of a one-channel image.
///
/// # Errors
/// [`Error::Image`](crate::Error::Image) for an empty image or more than one channel,
/// [`Error::Option`](crate::Error::Option) for options out of range.
pub fn response<T: Pixel>(view: ImageView<'_, T>, options: &HessianOptions, cpu: &Cpu) -> Result<Image<f32>> {
    let mut out = Image::new(view.size());
    response_into(view, options, cpu, out.view_mut())?;
    Ok(out)
}

/// [`response`] into the caller's memory: an image of one channel and the size of `view`.
///
/// # Errors
/// As [`response`], and [`Error::Mismatch`](crate::Error::Mismatch) for an output of another shape.
pub fn response_into<T: Pixel>(
    view: ImageView<'_, T>,
    options: &HessianOptions,
    cpu: &Cpu,
    out: ImageViewMut<'_, f32>,
) -> Result<()> {
    options.check()?;
    view.require_grey()?;
    out.require_shape("the output", view.size(), 1)?;
    let _stage = cpu.stage("hessian");
    let (width, height) = (view.size().width, view.size().height);
    let HessianOptions { weight, border, .. } = *options;
    cpu.for_bands(out, BAND, |first, out| {
        let black = vec![T::default(); width];
        let mut columns: Columns = std::array::from_fn(|_| vec![0.0; width + 2 * RADIUS]);
        for i in 0..out.size().height {
            let (y, out) = (first + i, out.row_mut(i));
            if border == Border::Skip && leaves(y, RADIUS, height) {
                out.fill(0.0);
                continue;
            }
            let rows: [&[T]; 9] = std::array::from_fn(|j| {
                let source = border.index(y as isize + j as isize - RADIUS as isize, height);
                source.map_or(&black[..], |y| view.row(y))
            });
            dispatch!(cpu.level(), simd => sum_columns(simd, &rows, &mut columns));
            columns.iter_mut().for_each(|row| extend(row, RADIUS, 1, border, 0.0));
            dispatch!(cpu.level(), simd => determinants(simd, &columns, scale::<T>(), weight, out));
            if border == Border::Skip {
                let n = RADIUS.min(width);
                out[..n].fill(0.0);
                out[width - n..].fill(0.0);
            }
        }
    })
}

/// The pixels not on the edge whose |det| is at least the threshold and greater than that of their eight
/// neighbours; by descending |det|, then y, then x.
///
/// # Errors
/// As [`response`].
pub fn blobs<T: Pixel>(view: ImageView<'_, T>, options: &HessianOptions, cpu: &Cpu) -> Result<Vec<Blob>> {
    let det = response(view, options, cpu)?;
    let _stage = cpu.stage("maxima");
    let inner = view.size().height.saturating_sub(2);
    let rows = cpu.try_map(inner.div_ceil(BAND), |band| {
        let end = inner.min((band + 1) * BAND);
        let maxima = (band * BAND..end).flat_map(|y| maxima(&det, y + 1, options.threshold));
        let blob = |(x, y): (usize, usize)| {
            let [dxx, dyy, _] = derivatives(view, options.border, x, y);
            let sum = dxx + dyy;
            Blob { x, y, response: det.row(y)[x], laplacian: i8::from(sum > 0.0) - i8::from(sum < 0.0) }
        };
        Ok(maxima.map(blob).collect::<Vec<_>>())
    })?;
    let mut blobs = rows.concat();
    blobs.sort_by(Blob::order);
    Ok(blobs)
}

fn scale<T: Pixel>() -> f32 {
    1.0 / (81.0 * T::WHITE)
}

/// Sums down the columns of one row's window, with [`RADIUS`] places at either end for the border: rows −2 to 2; rows −4
/// to 4, less three times rows −1 to 1; rows −3 to −1 less rows 1 to 3.
type Columns = [Vec<f32>; 3];

#[inline(always)]
fn sum_columns<S: Simd, T: Pixel>(_: S, rows: &[&[T]; 9], columns: &mut Columns) {
    let n = rows[0].len();
    let rows = rows.map(|r| &r[..n]);
    let inside = RADIUS..RADIUS + n;
    let [five, lobes, halves] = columns;
    let (five, lobes) = (&mut five[inside.clone()], &mut lobes[inside.clone()]);
    let halves = &mut halves[inside];
    for x in 0..n {
        let v = rows.map(|r| r[x].to_f32());
        let (above, middle, below) = (v[1] + v[2] + v[3], v[3] + v[4] + v[5], v[5] + v[6] + v[7]);
        five[x] = v[2] + middle + v[6];
        lobes[x] = v[0] + v[1] + v[2] - 2.0 * middle + v[6] + v[7] + v[8];
        halves[x] = above - below;
    }
}

#[inline(always)]
fn determinants<S: Simd>(_: S, columns: &Columns, scale: f32, weight: f32, out: &mut [f32]) {
    let n = out.len();
    let [five, lobes, halves] = columns;
    let five: [&[f32]; 9] = std::array::from_fn(|i| &five[i..i + n]);
    let lobes: [&[f32]; 9] = std::array::from_fn(|i| &lobes[i..i + n]);
    let halves: [&[f32]; 9] = std::array::from_fn(|i| &halves[i..i + n]);
    for (x, out) in out.iter_mut().enumerate() {
        let middle = five[3][x] + five[4][x] + five[5][x];
        let sides = five[0][x] + five[1][x] + five[2][x] + five[6][x] + five[7][x] + five[8][x];
        let dxx = (sides - 2.0 * middle) * scale;
        let dyy = (lobes[2][x] + lobes[3][x] + lobes[4][x] + lobes[5][x] + lobes[6][x]) * scale;
        let right = halves[5][x] + halves[6][x] + halves[7][x];
        let left = halves[1][x] + halves[2][x] + halves[3][x];
        let dxy = (right - left) * scale;
        *out = (-weight).mul_add(dxy * dxy, dxx * dyy);
    }
}

/// (x, y) of the maxima in row `y`, which has rows above and below.
fn maxima(det: &Image<f32>, y: usize, threshold: f32) -> impl Iterator<Item = (usize, usize)> {
    let [above, row, below] = [det.row(y - 1), det.row(y), det.row(y + 1)];
    (1..row.len().saturating_sub(1)).filter_map(move |x| {
        let v = row[x].abs();
        let less = |other: &f32| other.abs() < v;
        let is_maximum = v >= threshold
            && less(&row[x - 1])
            && less(&row[x + 1])
            && above[x - 1..=x + 1].iter().all(less)
            && below[x - 1..=x + 1].iter().all(less);
        is_maximum.then_some((x, y))
    })
}

/// Dxx, Dyy and Dxy at one pixel by the definition: the reference for tests; also gives the sign of a blob.
fn derivatives<T: Pixel>(view: ImageView<'_, T>, border: Border, x: usize, y: usize) -> [f32; 3] {
    let at = |i: isize, j: isize| {
        let x = border.index(x as isize + i, view.size().width);
        let y = border.index(y as isize + j, view.size().height);
        x.zip(y).map_or(0.0, |(x, y)| view.row(y)[x].to_f32())
    };
    let sum = |[left, right]: [isize; 2], [top, bottom]: [isize; 2]| {
        let all = (top..=bottom).flat_map(|j| (left..=right).map(move |i| (i, j)));
        all.fold(0.0, |sum, (i, j)| sum + at(i, j))
    };
    [
        sum([-4, 4], [-2, 2]) - 3.0 * sum([-1, 1], [-2, 2]),
        sum([-2, 2], [-4, 4]) - 3.0 * sum([-2, 2], [-1, 1]),
        sum([1, 3], [-3, -1]) + sum([-3, -1], [1, 3]) - sum([-3, -1], [-3, -1]) - sum([1, 3], [1, 3]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::testing::{BORDERS, cpus, sizes, strided};
    use crate::image::{Size, testing::assert_same};

    fn reference<T: Pixel>(view: ImageView<'_, T>, options: &HessianOptions) -> Vec<f32> {
        let Size { width, height } = view.size();
        let det = |x, y| {
            if options.border == Border::Skip && (leaves(x, RADIUS, width) || leaves(y, RADIUS, height)) {
                return 0.0;
            }
            let d = derivatives(view, options.border, x, y).map(|d| d * scale::<T>());
            (-options.weight).mul_add(d[2] * d[2], d[0] * d[1])
        };
        (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| det(x, y)).collect()
    }

    fn twins<T: Pixel>() {
        for (n, (size, _)) in sizes().into_iter().enumerate() {
            let (mut buffer, stride) = strided::<T>(size, 1, n as u32);
            // Floats whose sums are exact in any order.
            buffer.iter_mut().for_each(|v| *v = T::from_f32((v.to_f32() * 4096.0).round() / 4096.0));
            let view = ImageView::new(&buffer, size, 1, stride).unwrap();
            let options = HessianOptions { border: BORDERS[n % 4], weight: 0.81, ..Default::default() };
            let expected = Image::from_vec(reference(view, &options), size, 1).unwrap();
            let one = blobs(view, &options, &Cpu::sequential()).unwrap();
            for cpu in cpus() {
                let found = response(view, &options, &cpu).unwrap();
                assert_same(&found, &expected, format_args!("{size}, {options:?}"));
                assert_eq!(blobs(view, &options, &cpu).unwrap(), one, "{size}, {options:?}");
            }
        }
    }

    #[test]
    fn responses_equal_the_reference() {
        twins::<u8>();
        twins::<u16>();
        twins::<f32>();
    }

    #[test]
    fn a_disc_is_one_blob_at_its_centre() {
        for (inside, outside, sign) in [(255_u8, 0, -1), (0, 255, 1)] {
            let disc = Image::from_fn(Size::new(41, 37), |x, y| {
                let (dx, dy) = (x as f32 - 20.0, y as f32 - 17.0);
                if dx.mul_add(dx, dy * dy) < 6.0 { inside } else { outside }
            });
            let found = blobs(disc.view(), &HessianOptions::default(), &Cpu::sequential()).unwrap();
            let best = found[0];
            assert_eq!((best.x, best.y, best.laplacian), (20, 17, sign), "{best:?}");
            assert!(best.response > 0.0, "a blob, not a saddle: {best:?}");
        }
    }

    #[test]
    fn floats_are_taken_as_they_are() {
        let noise = Image::from_fn(Size::new(40, 30), |x, y| (x * x * 31 + y * 77 + x * y * 13) as u8);
        let floats = Image::from_fn(noise.size(), |x, y| f32::from(noise.row(y)[x]) - 300.0);
        let options = HessianOptions { border: Border::Reflect, ..Default::default() };
        let cpu = Cpu::sequential();
        let [bytes, floats] = [
            response(noise.view(), &options, &cpu).unwrap(),
            response(floats.view(), &options, &cpu).unwrap(),
        ];
        let most = floats.data().iter().fold(0.0, |most: f32, v| most.max(v.abs()));
        for (a, b) in bytes.data().iter().zip(floats.data()) {
            assert!((a * 65025.0 - b).abs() < 1e-4 * most, "{a} and {b}");
        }
    }

    #[test]
    fn wrong_input_is_refused() {
        let cpu = Cpu::sequential();
        let options = HessianOptions::default();
        assert!(response(Image::<u8>::default().view(), &options, &cpu).is_err(), "empty");
        let colour = Image::<u8>::filled(Size::new(9, 9), 3, 0);
        assert!(response(colour.view(), &options, &cpu).is_err(), "three channels");
        let grey = Image::<u8>::new(Size::new(9, 9));
        for wrong in [f32::NAN, -1.0, f32::INFINITY] {
            let options = HessianOptions { threshold: wrong, ..options };
            assert!(blobs(grey.view(), &options, &cpu).is_err(), "threshold {wrong}");
        }
        assert!(blobs(grey.view(), &options, &cpu).unwrap().is_empty(), "black has no blobs");
    }
}
