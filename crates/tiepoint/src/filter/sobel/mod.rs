//! First derivatives by the 3×3 Sobel filters, and their magnitude.
//!
//! ```text
//!      −1 0 1        −1 −2 −1
//! gx = −2 0 2   gy =  0  0  0    magnitude = √(gx² + gy²)
//!      −1 0 1         1  2  1
//! ```
//!
//! Gradients are eight times the difference of grey levels from pixel to pixel, x to the right and y down. Those of
//! 8-bit images are i16, of 16-bit images i32, of float images f32. The magnitude has the pixel type of the image;
//! integers are truncated and saturate.
//!
//! **Numbers.** Integers are exact. f32: with s = fma(2, a₀, a₋₁ + a₊₁) down the column, gx = s₊₁ − s₋₁; with
//! d = a₊₁ − a₋₁ down the column, gy = fma(2, d₀, d₋₁ + d₊₁); magnitude = √fma(gx, gx, gy · gy).
//!
//! [`Border::Skip`] leaves the gradients of edge pixels at 0.

pub(crate) mod gpu;

use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::filter::border::{BAND, leaves};
use crate::image::{Border, Image, ImageView, ImageViewMut, Pixel};
use fearless_simd::Simd;
use std::ops::{Add, Sub};

/// The arithmetic of a pixel type's gradients.
pub trait Sobel: Pixel {
    /// The type of a gradient.
    type Gradient: Copy
        + Default
        + PartialEq
        + Send
        + Sync
        + std::fmt::Debug
        + From<Self>
        + Add<Output = Self::Gradient>
        + Sub<Output = Self::Gradient>;

    /// a + 2 b + c.
    #[inline(always)]
    fn smooth(a: Self::Gradient, b: Self::Gradient, c: Self::Gradient) -> Self::Gradient {
        a + b + b + c
    }
    /// √(x² + y²) as a pixel.
    fn magnitude(x: Self::Gradient, y: Self::Gradient) -> Self;
}

impl Sobel for u8 {
    type Gradient = i16;

    #[inline(always)]
    fn magnitude(x: i16, y: i16) -> Self {
        let (x, y) = (i32::from(x), i32::from(y));
        // Below 2²⁴: exact in f32, and the root of no k² − 1 rounds up to k.
        ((x * x + y * y) as f32).sqrt().min(255.0) as Self
    }
}

impl Sobel for u16 {
    type Gradient = i32;

    #[inline(always)]
    fn magnitude(x: i32, y: i32) -> Self {
        // Below 2³⁷: exact in f64.
        let (x, y) = (f64::from(x), f64::from(y));
        (x * x + y * y).sqrt().min(65535.0) as Self
    }
}

impl Sobel for f32 {
    type Gradient = Self;

    #[inline(always)]
    fn smooth(a: Self, b: Self, c: Self) -> Self {
        Self::mul_add(2.0, b, a + c)
    }
    #[inline(always)]
    fn magnitude(x: Self, y: Self) -> Self {
        x.mul_add(x, y * y).sqrt()
    }
}

/// The gradients of `view` in one [`Form`], [`X`], [`Y`] or [`Magnitude`].
///
/// # Errors
/// Never; the signature is that of every filter.
pub fn sobel<T: Sobel, F: Form<T>>(
    view: ImageView<'_, T>,
    form: F,
    border: Border,
    cpu: &Cpu,
) -> Result<Image<F::Out>> {
    let mut out = Image::filled(view.size(), view.channels(), Default::default());
    sobel_into(view, form, border, cpu, out.view_mut())?;
    Ok(out)
}

/// Which result is computed from the gradients.
pub trait Form<T: Sobel>: Copy + std::fmt::Debug {
    /// The type of the result.
    type Out: Copy + Default + Send;
    /// The form's name in kernels.
    #[doc(hidden)]
    const NAME: &'static str;
    /// A row of results; `s` and `d` are buffers for column sums and differences, one pixel longer at either end.
    #[doc(hidden)]
    fn row(s: &mut [T::Gradient], d: &mut [T::Gradient], rows: &Rows<'_, T>, out: &mut [Self::Out]);
}

/// The horizontal derivative.
#[derive(Clone, Copy, Debug)]
pub struct X;

/// The vertical derivative.
#[derive(Clone, Copy, Debug)]
pub struct Y;

/// The magnitude of the gradient.
#[derive(Clone, Copy, Debug)]
pub struct Magnitude;

/// Bytes of a tile's row. All rows of a band are computed for one tile before the next tile: see `separable`.
const TILE_BYTES: usize = 2048;

/// The parts of the rows above, at and below the output row that one tile reads, and the tile's position.
#[doc(hidden)]
#[derive(Debug)]
pub struct Rows<'a, T> {
    above: &'a [T],
    centre: &'a [T],
    below: &'a [T],
    tile: Tile,
}

/// The elements of a row from `from` up to `to`.
#[derive(Clone, Copy, Debug)]
struct Tile {
    from: usize,
    to: usize,
    row_len: usize,
    channels: usize,
    border: Border,
}

impl Tile {
    /// Sets the column values beyond the image in `row`, which begins a pixel before the tile.
    #[inline(always)]
    fn fill_ends<G: Copy + Default>(&self, row: &mut [G]) {
        let (n, width) = (self.channels, self.row_len / self.channels);
        let mut fill = |to: usize, x: isize| match self.border.index(x, width) {
            Some(x) => row.copy_within((x + 1) * n - self.from..(x + 2) * n - self.from, to),
            None => row[to..to + n].fill(G::default()),
        };
        if self.from == 0 {
            fill(0, -1);
        }
        if self.to == self.row_len {
            fill(self.row_len + n - self.from, width as isize);
        }
    }
}

/// Values computed together, so that all loads of the row that comes from memory are issued before the first
/// is used.
const BLOCK: usize = 128;

/// out[i] = f(a[i], b[i], c[i]), in pieces of constant length, which the compiler unrolls.
#[inline(always)]
fn in_blocks<V: Copy, O>([a, b, c]: [&[V]; 3], out: &mut [O], f: impl Fn(V, V, V) -> O) {
    let n = out.len();
    let (a, b, c) = (&a[..n], &b[..n], &c[..n]);
    let mut from = 0;
    while from + BLOCK <= n {
        let at = from..from + BLOCK;
        let (a, b, c, out) = (&a[at.clone()], &b[at.clone()], &c[at.clone()], &mut out[at]);
        for i in 0..BLOCK {
            out[i] = f(a[i], b[i], c[i]);
        }
        from += BLOCK;
    }
    for i in from..n {
        out[i] = f(a[i], b[i], c[i]);
    }
}

impl<T: Sobel> Rows<'_, T> {
    #[inline(always)]
    fn columns(&self, out: &mut [T::Gradient], f: impl Fn(T, T, T) -> T::Gradient) {
        // The row begins a pixel before the tile.
        let start = if self.tile.from == 0 { self.tile.channels } else { 0 };
        let inside = &mut out[start..][..self.centre.len()];
        in_blocks([self.above, self.centre, self.below], inside, f);
        self.tile.fill_ends(out);
    }

    #[inline(always)]
    fn sums(&self, s: &mut [T::Gradient]) {
        self.columns(s, |a, b, c| T::smooth(a.into(), b.into(), c.into()));
    }

    #[inline(always)]
    fn differences(&self, d: &mut [T::Gradient]) {
        self.columns(d, |a, _, c| T::Gradient::from(c) - a.into());
    }
}

impl<T: Sobel> Form<T> for X {
    type Out = T::Gradient;
    const NAME: &'static str = "X";
    #[inline(always)]
    fn row(s: &mut [T::Gradient], _: &mut [T::Gradient], rows: &Rows<'_, T>, out: &mut [T::Gradient]) {
        rows.sums(s);
        let right = &s[2 * rows.tile.channels..];
        in_blocks([s, right, right], out, |a, c, _| c - a);
    }
}

impl<T: Sobel> Form<T> for Y {
    type Out = T::Gradient;
    const NAME: &'static str = "Y";
    #[inline(always)]
    fn row(_: &mut [T::Gradient], d: &mut [T::Gradient], rows: &Rows<'_, T>, out: &mut [T::Gradient]) {
        rows.differences(d);
        let n = rows.tile.channels;
        in_blocks([d, &d[n..], &d[2 * n..]], out, T::smooth);
    }
}

impl<T: Sobel> Form<T> for Magnitude {
    type Out = T;
    const NAME: &'static str = "MAGNITUDE";
    #[inline(always)]
    fn row(s: &mut [T::Gradient], d: &mut [T::Gradient], rows: &Rows<'_, T>, out: &mut [T]) {
        rows.sums(s);
        rows.differences(d);
        let n = rows.tile.channels;
        let (left, right) = (&s[..out.len()], &s[2 * n..2 * n + out.len()]);
        let (a, b, c) = (&d[..out.len()], &d[n..n + out.len()], &d[2 * n..2 * n + out.len()]);
        for (i, o) in out.iter_mut().enumerate() {
            *o = T::magnitude(right[i] - left[i], T::smooth(a[i], b[i], c[i]));
        }
    }
}

#[inline(always)]
fn row<S: Simd, T: Sobel, F: Form<T>>(
    _: S,
    s: &mut [T::Gradient],
    d: &mut [T::Gradient],
    rows: &Rows<'_, T>,
    out: &mut [F::Out],
) {
    F::row(s, d, rows, out);
}

/// [`sobel`] into the caller's memory: an image of the shape of `view`.
///
/// # Errors
/// [`Error::Mismatch`](crate::Error::Mismatch) for an output of another shape.
pub fn sobel_into<T: Sobel, F: Form<T>>(
    view: ImageView<'_, T>,
    _: F,
    border: Border,
    cpu: &Cpu,
    out: ImageViewMut<'_, F::Out>,
) -> Result<()> {
    let _stage = cpu.stage("sobel");
    out.require_shape("the output", view.size(), view.channels())?;
    let (channels, height) = (view.channels(), view.size().height);
    let row_len = view.size().width * channels;
    let width = (TILE_BYTES / size_of::<T>()).div_ceil(channels) * channels;
    cpu.for_bands(out, BAND, |first, out| {
        let black = vec![T::default(); row_len];
        let mut s = vec![T::Gradient::default(); width + 2 * channels];
        let mut d = s.clone();
        for from in (0..row_len).step_by(width) {
            let tile = Tile { from, to: (from + width).min(row_len), row_len, channels, border };
            let reach = from.saturating_sub(channels)..(tile.to + channels).min(row_len);
            for i in 0..out.size().height {
                let y = (first + i) as isize;
                let source = |y: isize| border.index(y, height).map_or(&black[..], |y| view.row(y));
                let [above, centre, below] = [y - 1, y, y + 1].map(|y| &source(y)[reach.clone()]);
                let rows = Rows { above, centre, below, tile };
                let out = &mut out.row_mut(i)[tile.from..tile.to];
                dispatch!(cpu.level(), simd => row::<_, T, F>(simd, &mut s, &mut d, &rows, out));
            }
        }
        if border == Border::Skip {
            clear_edge(out, first, height);
        }
    })
}

/// For [`Border::Skip`]: no gradient on the edge of the image.
fn clear_edge<O: Copy + Default>(out: &mut ImageViewMut<'_, O>, first: usize, height: usize) {
    let channels = out.channels();
    for i in 0..out.size().height {
        let out = out.row_mut(i);
        let row_len = out.len();
        if leaves(first + i, 1, height) {
            out.fill(O::default());
        }
        out[..channels].fill(O::default());
        out[row_len - channels..].fill(O::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::testing::{BORDERS, cpus, data, sizes, strided};
    use crate::image::testing::{Value, assert_same};

    /// (gx, gy) of one element by the definition, in the stated order.
    fn reference<T: Sobel>(view: ImageView<'_, T>, border: Border, i: usize, y: usize) -> [T::Gradient; 2] {
        let (channels, size) = (view.channels(), view.size());
        let (x, c) = ((i / channels) as isize, i % channels);
        if border == Border::Skip && (leaves(y, 1, size.height) || leaves(x as usize, 1, size.width)) {
            return Default::default();
        }
        let at = |dx: isize, dy: isize| {
            let x = border.index(x + dx, size.width);
            let y = border.index(y as isize + dy, size.height);
            T::Gradient::from(x.zip(y).map_or(T::default(), |(x, y)| view.row(y)[x * channels + c]))
        };
        let s = |dx| T::smooth(at(dx, -1), at(dx, 0), at(dx, 1));
        let d = |dx| at(dx, 1) - at(dx, -1);
        [s(1) - s(-1), T::smooth(d(-1), d(0), d(1))]
    }

    fn twins<T: Sobel<Gradient: Value>>() {
        for (n, (size, channels)) in sizes().into_iter().enumerate() {
            let (buffer, stride) = strided::<T>(size, channels, n as u32);
            let view = ImageView::new(&buffer, size, channels, stride).unwrap();
            for border in BORDERS {
                let each = |y| (0..size.width * channels).map(move |i| reference(view, border, i, y));
                let expected: Vec<_> = (0..size.height).flat_map(each).collect();
                let gradient = |of: fn(&[_; 2]) -> _| {
                    Image::from_vec(expected.iter().map(of).collect(), size, channels).unwrap()
                };
                let (gx, gy) = (gradient(|g| g[0]), gradient(|g| g[1]));
                let m = expected.iter().map(|g| T::magnitude(g[0], g[1])).collect();
                let m = Image::from_vec(m, size, channels).unwrap();
                for cpu in cpus() {
                    let what = |part| format!("{part} of {size} x {channels}, {border:?}");
                    assert_same(&sobel(view, X, border, &cpu).unwrap(), &gx, what("x"));
                    assert_same(&sobel(view, Y, border, &cpu).unwrap(), &gy, what("y"));
                    assert_same(&sobel(view, Magnitude, border, &cpu).unwrap(), &m, what("magnitude"));
                }
            }
        }
    }

    #[test]
    fn every_form_equals_the_reference() {
        twins::<u8>();
        twins::<u16>();
        twins::<f32>();
    }

    #[test]
    fn a_ramp_has_its_slope() {
        let image = Image::from_fn(crate::image::Size::new(9, 7), |x, y| (3 * x + 10 * y) as u8);
        let cpu = Cpu::sequential();
        let image = image.view();
        assert_eq!(sobel(image, X, Border::Skip, &cpu).unwrap().row(3)[4], 24, "eight times 3");
        assert_eq!(sobel(image, Y, Border::Skip, &cpu).unwrap().row(3)[4], 80, "eight times 10");
        let magnitude = sobel(image, Magnitude, Border::Skip, &cpu).unwrap();
        assert_eq!(magnitude.row(3)[4], 83, "√(24² + 80²) cut off");
        assert_eq!(sobel(image, X, Border::Skip, &cpu).unwrap().row(0), [0; 9], "skipped");
    }

    #[test]
    fn elephant_is_exact() {
        let names = ["filters/elephant.png", "filters/elephant_gradients.png"];
        let Some((source, expected)) = data(names[0]).zip(data(names[1])) else {
            println!("no ../shared/data here: skipped");
            return;
        };
        let found = sobel(source.view(), Magnitude, Border::Clamp, &Cpu::sequential()).unwrap();
        assert_same(&found, &expected, "the reference picture");
    }
}
