//! Images of twice and of half the size, as scale pyramids use them.
//!
//! ```text
//! double:  out[2i] = in[i],  out[2i + 1] = (in[i] + in[i + 1]) / 2, the last pixel repeated, on both axes
//! halve:   out[i] = in[2i]
//! mean:    out[i] = mean of in[2i] and in[2i + 1] on both axes, the last pixel repeated
//! ```
//!
//! [`Scaling::Double`] is the rule of Lowe 2004 as in VLFeat: pixel i of the image lies at exactly 2i.
//! [`Scaling::Halve`] keeps positions in the same way and expects a smoothed image; [`Scaling::HalveMean`] smooths by
//! itself and moves the image by a quarter of a new pixel. Half sizes are rounded up: width ⌈w/2⌉.
//!
//! **Numbers.** Two rows are averaged first, then neighbours in the row, as 0.5 · (a + b) in f32. Integers are summed
//! as integers and rounded once, to nearest even, which gives the same result.

pub(crate) mod gpu;

use crate::Result;
use crate::device::{Cpu, dispatch};
use crate::filter::border::BAND;
use crate::image::{Image, ImageView, ImageViewMut, Pixel, Size};
use crate::options::named;
use fearless_simd::Simd;

named! {
    /// The new size, and how its pixels are computed.
    pub enum Scaling as "how" {
        #[default]
        "double": Double, "Twice the width and height by linear interpolation";
        "halve": Halve, "Half the width and height: every second pixel";
        "mean": HalveMean, "Half the width and height: the means of 2×2 pixels";
    }
}

impl Scaling {
    /// The size of the result. It saturates at sizes for which no memory can be allocated.
    pub fn resized(self, size: Size) -> Size {
        match self {
            Self::Double => Size::new(size.width.saturating_mul(2), size.height.saturating_mul(2)),
            Self::Halve | Self::HalveMean => Size::new(size.width.div_ceil(2), size.height.div_ceil(2)),
        }
    }

    /// The name of the stage.
    fn stage(self) -> &'static str {
        if self == Self::Double { "double" } else { "halve" }
    }
}

/// `view` at twice or half its size.
///
/// # Errors
/// Never; the signature is that of every filter.
pub fn resample<T: Pixel>(view: ImageView<'_, T>, scaling: Scaling, cpu: &Cpu) -> Result<Image<T>> {
    let mut out = Image::filled(scaling.resized(view.size()), view.channels(), T::default());
    resample_into(view, scaling, cpu, out.view_mut())?;
    Ok(out)
}

/// [`resample`] into the caller's memory.
///
/// # Errors
/// [`Error::Mismatch`](crate::Error::Mismatch) for an output of another shape.
pub fn resample_into<T: Pixel>(
    view: ImageView<'_, T>,
    scaling: Scaling,
    cpu: &Cpu,
    out: ImageViewMut<'_, T>,
) -> Result<()> {
    let (channels, last) = (view.channels(), view.size().height.saturating_sub(1));
    out.require_shape("the output", scaling.resized(view.size()), channels)?;
    let _stage = cpu.stage(scaling.stage());
    cpu.for_bands(out, BAND, |first, out| {
        for i in 0..out.size().height {
            let (y, out) = (first + i, out.row_mut(i));
            let row = |y: usize| view.row(y.min(last));
            match scaling {
                Scaling::Double => {
                    let (upper, lower) = (row(y / 2), row(y / 2 + y % 2));
                    dispatch!(cpu.level(), simd => spread(simd, channels, upper, lower, out));
                }
                Scaling::Halve => {
                    dispatch!(cpu.level(), simd => every_second(simd, row(2 * y), channels, out));
                }
                Scaling::HalveMean => {
                    let (upper, lower) = (row(2 * y), row(2 * y + 1));
                    dispatch!(cpu.level(), simd => pairs(simd, channels, upper, lower, out));
                }
            }
        }
    })
}

/// A row of twice the length, from the mean of two rows; `upper` may be `lower`.
#[inline(always)]
fn spread<S: Simd, T: Pixel>(_: S, channels: usize, upper: &[T], lower: &[T], out: &mut [T]) {
    match channels {
        1 => spread_pixels(1, upper, lower, out),
        2 => spread_pixels(2, upper, lower, out),
        3 => spread_pixels(3, upper, lower, out),
        4 => spread_pixels(4, upper, lower, out),
        n => spread_pixels(n, upper, lower, out),
    }
}

/// [`spread`] of pixels of `n` channels. With a constant `n` the compiler drops bounds checks and vectorises the loop.
#[inline(always)]
fn spread_pixels<T: Pixel>(n: usize, upper: &[T], lower: &[T], out: &mut [T]) {
    let next = upper[n..].chunks_exact(n).zip(lower[n..].chunks_exact(n));
    let columns = upper.chunks_exact(n).zip(lower.chunks_exact(n)).zip(next);
    for (pair, ((a, b), (next_a, next_b))) in out.chunks_exact_mut(2 * n).zip(columns) {
        let (here, between) = pair.split_at_mut(n);
        for c in 0..n {
            here[c] = T::mean_of_two(a[c], b[c]);
            between[c] = T::mean_of_four([a[c], b[c]], [next_a[c], next_b[c]]);
        }
    }
    let last = upper.len() - n;
    for (c, (&a, &b)) in upper[last..].iter().zip(&lower[last..]).enumerate() {
        let end = T::mean_of_two(a, b);
        (out[2 * last + c], out[2 * last + n + c]) = (end, end);
    }
}

#[inline(always)]
fn every_second<S: Simd, T: Pixel>(_: S, row: &[T], channels: usize, out: &mut [T]) {
    if channels == 1 {
        return out.iter_mut().zip(row.iter().step_by(2)).for_each(|(o, &v)| *o = v);
    }
    let pixels = out.chunks_exact_mut(channels).zip(row.chunks_exact(channels).step_by(2));
    pixels.for_each(|(o, v)| o.copy_from_slice(v));
}

/// A row of half the length from two rows, of which `upper` may be `lower`; channels as in [`spread`].
#[inline(always)]
fn pairs<S: Simd, T: Pixel>(_: S, channels: usize, upper: &[T], lower: &[T], out: &mut [T]) {
    match channels {
        1 => pairs_of_pixels(1, upper, lower, out),
        2 => pairs_of_pixels(2, upper, lower, out),
        3 => pairs_of_pixels(3, upper, lower, out),
        4 => pairs_of_pixels(4, upper, lower, out),
        n => pairs_of_pixels(n, upper, lower, out),
    }
}

#[inline(always)]
fn pairs_of_pixels<T: Pixel>(n: usize, upper: &[T], lower: &[T], out: &mut [T]) {
    let columns = upper.chunks_exact(2 * n).zip(lower.chunks_exact(2 * n));
    for (out, (a, b)) in out.chunks_exact_mut(n).zip(columns) {
        for c in 0..n {
            out[c] = T::mean_of_four([a[c], b[c]], [a[n + c], b[n + c]]);
        }
    }
    let last = upper.len() / (2 * n) * n;
    let ends = upper[2 * last..].iter().zip(&lower[2 * last..]);
    out[last..].iter_mut().zip(ends).for_each(|(o, (&a, &b))| *o = T::mean_of_two(a, b));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::testing::{cpus, sizes, strided};
    use crate::image::testing::assert_same;

    fn twins<T: Pixel>() {
        for (n, (size, channels)) in sizes().into_iter().enumerate() {
            let (buffer, stride) = strided::<T>(size, channels, n as u32);
            let view = ImageView::new(&buffer, size, channels, stride).unwrap();
            let at = |x: usize, y: usize, c: usize| {
                view.row(y.min(size.height - 1))[x.min(size.width - 1) * channels + c]
            };
            // The mean over (x, y), (x1, y), (x, y1), (x1, y1) in the stated order.
            let mean = |x: usize, x1: usize, y: usize, y1: usize, c: usize| {
                let column = |x| 0.5 * (at(x, y, c).to_f32() + at(x, y1, c).to_f32());
                T::from_f32(if x == x1 { column(x) } else { 0.5 * (column(x) + column(x1)) })
            };
            let (large, small) = (Scaling::Double.resized(size), Scaling::Halve.resized(size));
            let twice = image(large, channels, |x, y, c| mean(x / 2, x / 2 + x % 2, y / 2, y / 2 + y % 2, c));
            let every = image(small, channels, |x, y, c| at(2 * x, 2 * y, c));
            let means = image(small, channels, |x, y, c| mean(2 * x, 2 * x + 1, 2 * y, 2 * y + 1, c));
            for cpu in cpus() {
                let what = format_args!("{size} x {channels}");
                for (scaling, expected) in
                    [(Scaling::Double, &twice), (Scaling::Halve, &every), (Scaling::HalveMean, &means)]
                {
                    let found = resample(view, scaling, &cpu).unwrap();
                    assert_same(&found, expected, format_args!("{what}, {scaling}"));
                }
            }
        }
    }

    fn image<T: Pixel>(size: Size, channels: usize, f: impl Fn(usize, usize, usize) -> T) -> Image<T> {
        let f = &f;
        let row = |y| (0..size.width).flat_map(move |x| (0..channels).map(move |c| f(x, y, c)));
        Image::from_vec((0..size.height).flat_map(row).collect(), size, channels).unwrap()
    }

    #[test]
    fn every_form_equals_the_definition() {
        twins::<u8>();
        twins::<u16>();
        twins::<f32>();
    }

    #[test]
    fn halving_undoes_doubling() {
        let image = Image::from_fn(Size::new(7, 5), |x, y| (x * 31 + y * 7) as u8);
        let cpu = Cpu::sequential();
        let twice = resample(image.view(), Scaling::Double, &cpu).unwrap();
        assert_eq!(resample(twice.view(), Scaling::Halve, &cpu).unwrap(), image, "every second");
        let empty = resample(Image::<u8>::default().view(), Scaling::Double, &cpu).unwrap();
        assert_eq!(empty.size(), Size::default(), "nothing doubled");
    }
}
