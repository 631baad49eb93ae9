//! Integral images: the sum over any upright box from four values (Crow 1984).
//!
//! ```text
//! I(x, y) = Σ in(i, j) over 0 ≤ i < x, 0 ≤ j < y        box = I(x₁, y₁) − I(x₀, y₁) − I(x₁, y₀) + I(x₀, y₀)
//! ```
//!
//! Sums are of [`Pixel::level`]: grey levels of integer images, 0 to 65535 for f32 between 0 and 1. They are
//! integers, and exact in any order. In `u32` they wrap at 2³²; the sum of a box is still right if it is
//! below 2³²: up to 4 104 × 4 104 pixels of 8 bits, 256 × 256 of 16 bits and f32. In `u64` nothing wraps.
//!
//! **Threads.** Column sums of each band of rows give the row of I above every band; then the bands are
//! independent.
//!
//! **GPU.** [`GpuIntegrator`] sums batches of images in one pass, into a [`GpuIntegral`].

pub(crate) mod gpu;

pub use gpu::{GpuIntegral, GpuIntegrator, GpuSum};

use super::border::BAND;
use crate::device::{Cpu, dispatch};
use crate::image::{ImageView, Pixel, Size};
use crate::{Error, Result};
use fearless_simd::{Simd, prelude::*};

/// Lanes of the longest vector.
const MOST_LANES: usize = 16;

mod sealed {
    /// Gives a slice its own type back, for code with a faster form for one type.
    pub trait Sealed: Sized {
        fn u32s(_: &[Self]) -> Option<&[u32]> {
            None
        }
        fn u32s_mut(_: &mut [Self]) -> Option<&mut [u32]> {
            None
        }
    }
    impl Sealed for u32 {
        fn u32s(values: &[Self]) -> Option<&[u32]> {
            Some(values)
        }
        fn u32s_mut(values: &mut [Self]) -> Option<&mut [u32]> {
            Some(values)
        }
    }
    impl Sealed for u64 {}
}

/// The type of sums: `u32` (half the memory, wraps) or `u64`.
pub trait Sum: Copy + Default + PartialEq + Send + Sync + std::fmt::Debug + sealed::Sealed + 'static {
    /// A level as a sum.
    fn new(level: u32) -> Self;
    /// The sum of both, modulo the type's range.
    fn plus(self, other: Self) -> Self;
    /// The difference, modulo the type's range.
    fn minus(self, other: Self) -> Self;
}

macro_rules! sum {
    ($($t:ty)*) => {$(
        impl Sum for $t {
            #[inline(always)]
            fn new(level: u32) -> Self {
                Self::from(level)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    )*};
}
sum!(u32 u64);

/// The integral of an image; one column and one row longer, beginning with zeros.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Integral<A> {
    values: Vec<A>,
    size: Size,
}

impl<A: Sum> Integral<A> {
    /// The integral of a one-channel image.
    ///
    /// # Errors
    /// [`Error::Image`] for more than one channel.
    pub fn new<T: Pixel>(view: ImageView<'_, T>, cpu: &Cpu) -> Result<Self> {
        let mut integral = Self { values: Vec::new(), size: Size::default() };
        integral.compute(view, cpu)?;
        Ok(integral)
    }

    /// Replaces this integral by that of another image, keeping the memory.
    ///
    /// # Errors
    /// As [`Integral::new`].
    pub fn compute<T: Pixel>(&mut self, view: ImageView<'_, T>, cpu: &Cpu) -> Result<()> {
        if view.channels() != 1 {
            return Err(Error::Image(format!(
                "expected one channel, found {}; make it grey first",
                view.channels()
            )));
        }
        let _stage = cpu.stage("integral");
        let Size { width, height } = view.size();
        let stride = width + 1;
        self.size = view.size();
        self.values.resize(stride * (height + 1), A::default());
        self.values[..stride].fill(A::default());
        // Rows of a band. One thread has one band, so that it reads the image only once.
        let rows = if cpu.threads() == 1 { height.max(1) } else { BAND * 4 };
        let bases = bases::<T, A>(view, rows, cpu);
        cpu.for_chunks(&mut self.values[stride..], stride * rows, |band, out| {
            dispatch!(cpu.level(), simd => accumulate(simd, view, band * rows, &bases[band], out));
        });
        Ok(())
    }

    /// Width and height of the image.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Row `y` of I, 0 to the height: one value more than the width.
    pub fn row(&self, y: usize) -> &[A] {
        let stride = self.size.width + 1;
        &self.values[y * stride..(y + 1) * stride]
    }
}

/// For every band the row of I at its top: the column sums of all rows above, summed along the row.
fn bases<T: Pixel, A: Sum>(view: ImageView<'_, T>, rows: usize, cpu: &Cpu) -> Vec<Vec<A>> {
    let Size { width, height } = view.size();
    let bands = height.div_ceil(rows);
    // The last band's sums are not needed.
    let columns = cpu.map(bands.saturating_sub(1), |band| {
        let mut sums = vec![A::default(); width];
        for y in band * rows..(band + 1) * rows {
            dispatch!(cpu.level(), simd => add_levels(simd, view.row(y), &mut sums));
        }
        sums
    });
    let mut bases = vec![vec![A::default(); width + 1]];
    for sums in columns {
        let above = &bases[bases.len() - 1];
        let mut along = A::default();
        let mut base = vec![along; width + 1];
        for ((base, &above), sum) in base[1..].iter_mut().zip(&above[1..]).zip(sums) {
            along = along.plus(sum);
            *base = above.plus(along);
        }
        bases.push(base);
    }
    bases
}

#[inline(always)]
fn add_levels<S: Simd, T: Pixel, A: Sum>(_: S, row: &[T], sums: &mut [A]) {
    sums.iter_mut().zip(row).for_each(|(s, v)| *s = s.plus(A::new(v.level())));
}

/// The rows of one band; `base` is the row above the first.
#[inline(always)]
fn accumulate<S: Simd, T: Pixel, A: Sum>(
    simd: S,
    view: ImageView<'_, T>,
    first: usize,
    base: &[A],
    out: &mut [A],
) {
    let stride = base.len();
    for i in 0..out.len() / stride {
        let (done, rest) = out.split_at_mut(i * stride);
        let above = if i == 0 { base } else { &done[(i - 1) * stride..] };
        let (row, above, out) = (view.row(first + i), &above[..stride], &mut rest[..stride]);
        match (A::u32s(above), A::u32s_mut(out)) {
            (Some(above), Some(out)) => accumulate_vectors(simd, row, above, out),
            _ => accumulate_values(row, A::default(), above, out),
        }
    }
}

/// One row of I, one value longer than `row`, from the one above it; `sum` is that of the row's pixels to the left.
#[inline(always)]
fn accumulate_values<T: Pixel, A: Sum>(row: &[T], mut sum: A, above: &[A], out: &mut [A]) {
    out[0] = above[0].plus(sum);
    for ((o, &above), v) in out[1..].iter_mut().zip(&above[1..]).zip(row) {
        sum = sum.plus(A::new(v.level()));
        *o = above.plus(sum);
    }
}

/// [`accumulate_values`] vector by vector: the sums within a vector, to which the sum of all earlier pixels is added.
#[inline(always)]
fn accumulate_vectors<S: Simd, T: Pixel>(simd: S, row: &[T], above: &[u32], out: &mut [u32]) {
    let lanes = S::u32s::LEN;
    let last = S::u8s::from_fn(simd, |i| (4 * (lanes - 1) + i % 4) as u8);
    let mut before = S::u32s::splat(simd, 0);
    out[0] = above[0];
    let vectors = row.chunks_exact(lanes).zip(above[1..].chunks_exact(lanes));
    for ((row, above), out) in vectors.zip(out[1..].chunks_exact_mut(lanes)) {
        let mut levels = [0; MOST_LANES];
        levels.iter_mut().zip(row).for_each(|(l, v)| *l = v.level());
        let mut sums = S::u32s::from_slice(simd, &levels[..lanes]);
        sums += sums.shift_elements_right::<1>(0);
        sums += sums.shift_elements_right::<2>(0);
        if lanes > 4 {
            sums += sums.shift_elements_right::<4>(0);
        }
        if lanes > 8 {
            sums += sums.shift_elements_right::<8>(0);
        }
        (before + sums + S::u32s::from_slice(simd, above)).store_slice(out);
        before += sums.swizzle_dyn(last);
    }
    let done = row.len() - row.len() % lanes;
    accumulate_values(&row[done..], before.as_slice()[0], &above[done..], &mut out[done..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::testing::{cpus, noise, sizes, strided};
    use crate::image::Image;

    fn twins<T: Pixel>() {
        for (n, (size, _)) in sizes().into_iter().chain([(Size::new(9, 600), 1)]).enumerate() {
            let (buffer, stride) = strided::<T>(size, 1, n as u32);
            let view = ImageView::new(&buffer, size, 1, stride).unwrap();
            let sum = |x: usize, y: usize| -> u64 {
                (0..y).flat_map(|j| &view.row(j)[..x]).map(|v| u64::from(v.level())).sum()
            };
            for cpu in cpus() {
                let wide = Integral::<u64>::new(view, &cpu).unwrap();
                let narrow = Integral::<u32>::new(view, &cpu).unwrap();
                for y in (0..=size.height).step_by(1 + size.height / 7) {
                    for x in 0..=size.width {
                        assert_eq!(wide.row(y)[x], sum(x, y), "{size} at ({x}, {y})");
                        assert_eq!(narrow.row(y)[x], sum(x, y) as u32, "{size} at ({x}, {y})");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_equal_the_definition() {
        twins::<u8>();
        twins::<u16>();
        twins::<f32>();
    }

    #[test]
    fn sums_above_two_to_the_32_wrap_in_32_bits() {
        // 300 · 400 pixels of 65535 sum to 7.9·10⁹.
        let image = Image::filled(Size::new(400, 300), 1, u16::MAX);
        for cpu in cpus() {
            let wide = Integral::<u64>::new(image.view(), &cpu).unwrap();
            assert_eq!(wide.row(300)[400], 400 * 300 * 65535, "all");
            let narrow = Integral::<u32>::new(image.view(), &cpu).unwrap();
            assert!(narrow.values.iter().zip(&wide.values).all(|(n, w)| *n == *w as u32), "wrapped");
        }
    }

    #[test]
    fn memory_is_used_again_for_other_sizes() {
        let cpu = Cpu::sequential();
        let mut integral = Integral::<u32>::default();
        for size in [Size::new(9, 5), Size::new(0, 0), Size::new(0, 4), Size::new(3, 8)] {
            let image = Image::from_vec(noise::<u8>(size.area(), 1, 255.0), size, 1).unwrap();
            integral.compute(image.view(), &cpu).unwrap();
            assert_eq!(integral, Integral::new(image.view(), &cpu).unwrap(), "{size}");
        }
        let colour = Image::<u8>::filled(Size::new(2, 2), 3, 0);
        assert!(integral.compute(colour.view(), &cpu).is_err(), "three channels");
    }
}
