//! Filtering with any small kernel.
//!
//! ```text
//! out(x, y) = Σ k(i, j) · in(x + i − ax, y + j − ay),   anchor (ax, ay) = (⌊width / 2⌋, ⌊height / 2⌋)
//! ```
//!
//! The kernel is not flipped, as in OpenCV's `filter2D`. The anchor of an even size is the pixel right of and below the
//! middle.
//!
//! A kernel that is the product of a column and a row, to within 10⁻⁶ of its greatest weight, is applied in two passes:
//! width + height products for each pixel instead of width · height.
//!
//! **Numbers.** f32, not rescaled: the first product, then fused multiply-adds, rows from the top, in a row
//! from the left. As two passes: down the columns first, then along the row, in the same way. Integer results
//! are rounded to nearest even and saturate.

pub(crate) mod gpu;

use crate::device::{Cpu, dispatch};
use crate::filter::border::{BAND, extend, keep};
use crate::image::{Border, Image, ImageView, ImageViewMut, Pixel, Size};
use crate::{Error, Result};
use fearless_simd::{Simd, prelude::*};
use fearless_simd_macros::simd;

/// Longest side of a kernel.
pub const MAX_SIZE: usize = 255;

/// Outputs summed at a time in each of the two passes: their sums stay in registers.
const TILE: usize = 64;

/// The number of rows, and of vectors in each, summed at a time for a kernel that is not a product.
const LINES: usize = 4;
const VECTORS: usize = 3;

/// Lanes of the longest vector.
const MOST_LANES: usize = 16;

/// The weights of a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    weights: Vec<f32>,
    size: Size,
    /// Column and row whose product the weights are.
    factors: Option<(Vec<f32>, Vec<f32>)>,
}

impl Kernel {
    /// A kernel of `size` from its weights, row by row.
    ///
    /// # Errors
    /// [`Error::Option`] when the number of weights does not fit the size, a side is not 1 to [`MAX_SIZE`] or a
    /// weight is not finite.
    pub fn new(weights: Vec<f32>, size: Size) -> Result<Self> {
        if size.is_empty() || size.width > MAX_SIZE || size.height > MAX_SIZE {
            return Err(Error::option("kernel size", size, "1 to 255 columns and rows"));
        }
        if weights.len() != size.area() {
            return Err(Error::option("kernel weights", weights.len(), "as many as the size has places"));
        }
        if let Some(wrong) = weights.iter().find(|w| !w.is_finite()) {
            return Err(Error::option("kernel weight", wrong, "a finite number"));
        }
        let factors = factors(&weights, size);
        Ok(Self { weights, size, factors })
    }

    /// The product of a column and a row.
    ///
    /// # Errors
    /// As [`Kernel::new`].
    pub fn separable(column: Vec<f32>, row: Vec<f32>) -> Result<Self> {
        let weights = column.iter().flat_map(|c| row.iter().map(move |r| c * r)).collect();
        let kernel = Self::new(weights, Size::new(row.len(), column.len()))?;
        Ok(Self { factors: Some((column, row)), ..kernel })
    }
}

/// The column and the row through the greatest weight, if their product is the kernel.
fn factors(weights: &[f32], size: Size) -> Option<(Vec<f32>, Vec<f32>)> {
    if size.width == 1 || size.height == 1 {
        return None;
    }
    let greatest = (0..weights.len()).max_by(|&a, &b| weights[a].abs().total_cmp(&weights[b].abs()))?;
    let pivot = weights[greatest];
    if pivot == 0.0 {
        return None;
    }
    let (x, y) = (greatest % size.width, greatest / size.width);
    let row: Vec<f32> = weights[y * size.width..(y + 1) * size.width].to_vec();
    let column: Vec<f32> = (0..size.height).map(|j| weights[j * size.width + x] / pivot).collect();
    let is_product = weights.iter().enumerate().all(|(i, w)| {
        let product = f64::from(column[i / size.width]) * f64::from(row[i % size.width]);
        (product - f64::from(*w)).abs() <= 1e-6 * f64::from(pivot.abs())
    });
    is_product.then_some((column, row))
}

/// `view` filtered with `kernel`, each channel separately. `O` is the pixel type of the result: f32 keeps signs and
/// fractions.
///
/// # Errors
/// Never; the signature is that of every filter.
pub fn convolve<T: Pixel, O: Pixel>(
    view: ImageView<'_, T>,
    kernel: &Kernel,
    border: Border,
    cpu: &Cpu,
) -> Result<Image<O>> {
    let mut out = Image::filled(view.size(), view.channels(), O::default());
    convolve_into(view, kernel, border, cpu, out.view_mut())?;
    Ok(out)
}

/// [`convolve`] into the caller's memory: an image of the shape of `view`.
///
/// # Errors
/// [`Error::Mismatch`] for an output of another shape.
pub fn convolve_into<T: Pixel, O: Pixel>(
    view: ImageView<'_, T>,
    kernel: &Kernel,
    border: Border,
    cpu: &Cpu,
    out: ImageViewMut<'_, O>,
) -> Result<()> {
    let _stage = cpu.stage("convolve");
    out.require_shape("the output", view.size(), view.channels())?;
    cpu.for_bands(out, BAND, |first, out| {
        match &kernel.factors {
            Some((column, row)) => two_passes(view, column, row, border, first, out, cpu),
            None => one_pass(view, kernel, border, first, out, cpu),
        }
        if border == Border::Skip {
            keep(view, kernel.size, first, out);
        }
    })
}

/// Writes row `y` as f32, with `margin` pixels at either end filled by the border rule, to `row`, which may be longer.
fn bring<T: Pixel>(
    view: ImageView<'_, T>,
    margin: usize,
    border: Border,
    y: isize,
    row: &mut [f32],
    cpu: &Cpu,
) {
    let channels = view.channels();
    let (row_len, end) = (view.size().width * channels, margin * channels);
    let inside = &mut row[end..end + row_len];
    match border.index(y, view.size().height) {
        Some(y) => dispatch!(cpu.level(), simd => convert(simd, view.row(y), inside)),
        None => inside.fill(0.0),
    }
    extend(&mut row[..row_len + 2 * end], margin, channels, border, 0.0);
}

#[inline(always)]
fn convert<S: Simd, T: Pixel>(_: S, from: &[T], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(o, v)| *o = v.to_f32());
}

fn two_passes<T: Pixel, O: Pixel>(
    view: ImageView<'_, T>,
    column: &[f32],
    row: &[f32],
    border: Border,
    first: usize,
    out: &mut ImageViewMut<'_, O>,
    cpu: &Cpu,
) {
    let channels = view.channels();
    let row_len = view.size().width * channels;
    // A row reaches no farther to the right than to the left.
    let (above, left) = (column.len() / 2, row.len() / 2);
    let margin = left * channels;
    let lines = out.size().height;
    let mut rows = vec![vec![0.0; row_len]; lines + column.len() - 1];
    for (j, row) in rows.iter_mut().enumerate() {
        bring(view, 0, border, (first + j) as isize - above as isize, row, cpu);
    }
    let mut padded = vec![0.0; row_len + 2 * margin];
    for i in 0..lines {
        let taps: Vec<(f32, &[f32])> = column.iter().zip(&rows[i..]).map(|(&k, r)| (k, &r[..])).collect();
        let inside = &mut padded[margin..margin + row_len];
        dispatch!(cpu.level(), simd => weigh(simd, &taps, inside));
        extend(&mut padded, left, channels, border, 0.0);
        let at = |i: usize| &padded[i * channels..][..row_len];
        let taps: Vec<(f32, &[f32])> = row.iter().enumerate().map(|(i, &k)| (k, at(i))).collect();
        dispatch!(cpu.level(), simd => weigh(simd, &taps, out.row_mut(i)));
    }
}

fn one_pass<T: Pixel, O: Pixel>(
    view: ImageView<'_, T>,
    kernel: &Kernel,
    border: Border,
    first: usize,
    out: &mut ImageViewMut<'_, O>,
    cpu: &Cpu,
) {
    let channels = view.channels();
    let row_len = view.size().width * channels;
    let Size { width, height } = kernel.size;
    let (above, margin) = (height / 2, width / 2);
    let weights = weights_by_place(kernel);
    // A vector may read beyond the end; those results are dropped.
    let padded = row_len + 2 * margin * channels + VECTORS * MOST_LANES;
    let mut rows = vec![vec![0.0; padded]; LINES + height - 1];
    for (group, mut out) in out.reborrow().bands(LINES).enumerate() {
        let known = if group == 0 { 0 } else { height - 1 };
        rows.rotate_left(if group == 0 { 0 } else { LINES });
        for (j, row) in rows.iter_mut().enumerate().skip(known) {
            let y = (first + group * LINES + j) as isize - above as isize;
            bring(view, margin, border, y, row, cpu);
        }
        dispatch!(cpu.level(), simd => lines(simd, &weights, channels, &rows, row_len, &mut out));
    }
}

/// For each position in the joint window of [`LINES`] rows of outputs, its weight in each of the rows; 0
/// outside a row's window.
fn weights_by_place(kernel: &Kernel) -> Vec<[f32; LINES]> {
    let Size { width, height } = kernel.size;
    let places = (0..height + LINES - 1).flat_map(|y| (0..width).map(move |x| (x, y)));
    let weight = |x, y: usize, line| y.checked_sub(line).and_then(|y| kernel.weights.get(y * width + x));
    places.map(|(x, y)| std::array::from_fn(|line| weight(x, y, line).copied().unwrap_or(0.0))).collect()
}

/// Computes at most [`LINES`] rows of the output; the window of the first begins at `rows[0]`.
#[inline(always)]
fn lines<S: Simd, O: Pixel>(
    simd: S,
    weights: &[[f32; LINES]],
    channels: usize,
    rows: &[Vec<f32>],
    row_len: usize,
    out: &mut ImageViewMut<'_, O>,
) {
    let mut out_rows = out.rows_mut();
    let mut out: [&mut [O]; LINES] = std::array::from_fn(|_| out_rows.next().unwrap_or_default());
    for at in (0..row_len).step_by(VECTORS * S::f32s::LEN) {
        let sums = sums(simd, weights, channels, rows, at);
        for (sums, out) in sums.iter().zip(&mut out) {
            // A row below the image is empty.
            let Some(out) = out.get_mut(at..) else { continue };
            for (sum, out) in sums.iter().zip(out.chunks_mut(S::f32s::LEN)) {
                match O::f32s_mut(out) {
                    Some(out) if out.len() == S::f32s::LEN => sum.store_slice(out),
                    _ => out.iter_mut().zip(sum.as_slice()).for_each(|(o, &s)| *o = O::from_f32(s)),
                }
            }
        }
    }
}

/// Σ weight · pixel of a few vectors of outputs in each of a few rows, whose sums stay in registers: a vector
/// of pixels is loaded once for all rows.
#[inline(always)]
fn sums<S: Simd>(
    simd: S,
    weights: &[[f32; LINES]],
    channels: usize,
    rows: &[Vec<f32>],
    at: usize,
) -> [[S::f32s; VECTORS]; LINES] {
    // Starting at −0, the first fused multiply-add gives the plain product, including the sign of a zero.
    let mut sums = [[S::f32s::splat(simd, -0.0); VECTORS]; LINES];
    let width = weights.len() / rows.len();
    for (y, (row, weights)) in rows.iter().zip(weights.chunks_exact(width)).enumerate() {
        // Row y is the last of the window of output y + 1 − height.
        let lines = [(y + LINES).saturating_sub(rows.len()), y.min(LINES - 1)];
        match lines {
            [0, last] if last == LINES - 1 => {
                add_row::<S, true>(simd, weights, channels, &row[at..], lines, &mut sums);
            }
            _ => add_row::<S, false>(simd, weights, channels, &row[at..], lines, &mut sums),
        }
    }
    sums
}

/// Adds a row of the window to the sums of output rows `first` to `last`, or to those of all rows.
#[inline(always)]
fn add_row<S: Simd, const ALL: bool>(
    simd: S,
    weights: &[[f32; LINES]],
    channels: usize,
    row: &[f32],
    [first, last]: [usize; 2],
    sums: &mut [[S::f32s; VECTORS]; LINES],
) {
    let lanes = S::f32s::LEN;
    for (x, weights) in weights.iter().enumerate() {
        let row = &row[x * channels..][..VECTORS * lanes];
        let pixels: [S::f32s; VECTORS] =
            std::array::from_fn(|v| S::f32s::from_slice(simd, &row[v * lanes..(v + 1) * lanes]));
        for (line, (&weight, sums)) in weights.iter().zip(sums.iter_mut()).enumerate() {
            if ALL || (first <= line && line <= last) {
                let weight = S::f32s::splat(simd, weight);
                for (sum, &pixels) in sums.iter_mut().zip(&pixels) {
                    *sum = weight.mul_add_precise(pixels, *sum);
                }
            }
        }
    }
}

/// Σ weight · row, in the order of `taps`.
#[simd]
fn weigh<S: Simd, O: Pixel>(_: S, taps: &[(f32, &[f32])], out: &mut [O]) {
    let Some(((first, first_row), rest)) = taps.split_first() else { return };
    for (tile, out) in out.chunks_mut(TILE).enumerate() {
        let at = tile * TILE;
        let n = out.len();
        let mut sums = [0.0_f32; TILE];
        sums.iter_mut().zip(&first_row[at..at + n]).for_each(|(s, v)| *s = first * v);
        for (weight, row) in rest {
            sums.iter_mut().zip(&row[at..at + n]).for_each(|(s, &v)| *s = weight.mul_add(v, *s));
        }
        out.iter_mut().zip(sums).for_each(|(o, s)| *o = O::from_f32(s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::sobel;
    use crate::filter::testing::{BORDERS, cpus, noise, sizes, strided};
    use crate::image::testing::assert_same;

    fn reference<T: Pixel, O: Pixel>(view: ImageView<'_, T>, kernel: &Kernel, border: Border) -> Vec<O> {
        let (size, channels, k) = (view.size(), view.channels(), kernel.size);
        let sum = |terms: Vec<(f32, f32)>| {
            let first = terms[0].0 * terms[0].1;
            terms[1..].iter().fold(first, |acc, (k, v)| k.mul_add(*v, acc))
        };
        let mut out = Vec::new();
        for (y, x, c) in (0..size.height)
            .flat_map(|y| (0..size.width).flat_map(move |x| (0..channels).map(move |c| (y, x, c))))
        {
            let column =
                |by: Border, i: usize| by.index((x + i) as isize - (k.width / 2) as isize, size.width);
            let row =
                |by: Border, j: usize| by.index((y + j) as isize - (k.height / 2) as isize, size.height);
            let at = |i: usize, j: usize| {
                let place = column(border, i).zip(row(border, j));
                place.map_or(0.0, |(x, y)| view.row(y)[x * channels + c].to_f32())
            };
            let leaves = (0..k.width).any(|i| column(Border::Skip, i).is_none())
                || (0..k.height).any(|j| row(Border::Skip, j).is_none());
            let value = if border == Border::Skip && leaves {
                view.row(y)[x * channels + c].to_f32()
            } else if let Some((col, r)) = &kernel.factors {
                let down = |i: usize| sum(col.iter().enumerate().map(|(j, &w)| (w, at(i, j))).collect());
                sum(r.iter().enumerate().map(|(i, &w)| (w, down(i))).collect())
            } else {
                let terms = kernel.weights.iter().enumerate();
                sum(terms.map(|(n, &w)| (w, at(n % k.width, n / k.width))).collect())
            };
            out.push(O::from_f32(value));
        }
        out
    }

    fn twins<T: Pixel, O: Pixel>() {
        let random = |w: usize, h: usize| Kernel::new(noise(w * h, 5, 0.2), Size::new(w, h)).unwrap();
        let product = |w: usize, h: usize| Kernel::separable(noise(h, 1, 0.5), noise(w, 2, 0.5)).unwrap();
        let kernels = [
            random(3, 3),
            random(1, 4),
            random(5, 2),
            random(4, 1),
            product(3, 3),
            product(4, 7),
            product(2, 1),
        ];
        for (n, (size, channels)) in sizes().into_iter().enumerate() {
            let (buffer, stride) = strided::<T>(size, channels, n as u32);
            let view = ImageView::new(&buffer, size, channels, stride).unwrap();
            for (k, kernel) in kernels.iter().enumerate() {
                let border = BORDERS[(n + k) % 4];
                let expected: Image<O> =
                    Image::from_vec(reference(view, kernel, border), size, channels).unwrap();
                for cpu in cpus() {
                    let found = convolve::<T, O>(view, kernel, border, &cpu).unwrap();
                    let what = format_args!("{size} x {channels}, {border:?}, {:?}", kernel.size);
                    assert_same(&found, &expected, what);
                }
            }
        }
    }

    #[test]
    fn every_form_equals_the_reference() {
        twins::<u8, u8>();
        twins::<u8, f32>();
        twins::<u16, u16>();
        twins::<f32, f32>();
    }

    #[test]
    fn products_are_recognised() {
        let size = Size::new(3, 3);
        let edges = Kernel::new(vec![-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0], size).unwrap();
        assert!(edges.factors.is_some(), "Sobel");
        let laplace = Kernel::new(vec![0.0, 1.0, 0.0, 1.0, -4.0, 1.0, 0.0, 1.0, 0.0], size).unwrap();
        assert!(laplace.factors.is_none(), "Laplace");
        assert!(Kernel::new(vec![0.0; 9], size).unwrap().factors.is_none(), "nothing");
        let image = Image::from_fn(Size::new(20, 20), |x, y| (x * 7 + y * y) as u8);
        let cpu = Cpu::sequential();
        let found: Image<f32> = convolve(image.view(), &edges, Border::Clamp, &cpu).unwrap();
        let gx = sobel::sobel(image.view(), sobel::X, Border::Clamp, &cpu).unwrap();
        let gx: Vec<f32> = gx.data().iter().map(|&v| f32::from(v)).collect();
        assert_eq!(found.data(), gx, "the Sobel kernel is the Sobel filter");
    }

    #[test]
    fn wrong_kernels_are_refused() {
        assert!(Kernel::new(vec![], Size::new(0, 0)).is_err(), "empty");
        assert!(Kernel::new(vec![1.0; 8], Size::new(3, 3)).is_err(), "too few weights");
        assert!(Kernel::new(vec![1.0; 256], Size::new(256, 1)).is_err(), "too long");
        assert!(Kernel::new(vec![f32::NAN], Size::new(1, 1)).is_err(), "not a number");
    }
}
