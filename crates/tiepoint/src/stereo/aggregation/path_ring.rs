//! A ring buffer for the path costs L of the rows of a band.
//!
//! Each row stays the same number of columns behind the one above, so the pixel from which a path comes was written a
//! fixed number of steps earlier, its *age*, which is the same for all rows. The ring keeps the pixels of the latest
//! steps. A *pixel* holds the costs of every path for all disparities, one path after the other, with a pad on either
//! side that holds [`Sum::NONE`](super::recurrence::Sum), for disparities that do not exist. Pixels beyond the ends of
//! a row are zero: paths that begin at the border of the image continue from them, which gives L = C.

use super::Directions;
use super::recurrence::Value;

/// Elements before the first disparity of a path and after the last: a cache line of bytes, so that paths are aligned.
pub(super) const PAD: usize = 64;

/// The layout of the pixels of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shape {
    padded: usize,
    paths: usize,
    /// The number of rows, including those above the band, which come first.
    rows: usize,
    /// The number of steps that are kept, a power of two.
    steps: usize,
}

impl Shape {
    /// The distance from one path of a pixel to the next, in elements.
    #[inline(always)]
    const fn stride(self) -> usize {
        PAD + self.padded
    }

    /// The distance from one pixel to that of the next row, in elements.
    #[inline(always)]
    const fn pixel(self) -> usize {
        self.paths * self.stride() + PAD
    }

    /// The pixel of row `r` at step `t`.
    #[inline(always)]
    const fn index(self, t: usize, r: usize) -> usize {
        (t & (self.steps - 1)) * self.rows + r
    }
}

/// The pixels of a band.
#[derive(Debug, Default)]
pub(super) struct PathRing<T> {
    shape: Shape,
    values: Vec<T>,
    /// The least cost of every path of every pixel.
    least: Vec<T>,
}

/// `len` elements of a buffer, which grows if necessary, from the beginning of a cache line on.
pub(super) fn aligned<T: Value>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len + PAD {
        buffer.resize(len + PAD, T::default());
    }
    let start = line_start(buffer);
    &mut buffer[start..start + len]
}

/// Where the first cache line of a buffer begins.
pub(super) fn line_start<T>(buffer: &[T]) -> usize {
    let start = buffer.as_ptr().align_offset(64);
    if start < PAD { start } else { 0 }
}

/// The pixels of a band, borrowed while it is aggregated.
pub(super) struct Steps<'a, T, const N: usize> {
    shape: Shape,
    values: &'a mut [T],
    least: &'a mut [[T; N]],
}

/// The pixels of a step, and for each direction the pixels whose paths they continue.
pub(super) struct Step<'a, T, const N: usize> {
    shape: Shape,
    /// Rows above the band, which come first.
    depth: usize,
    own: &'a mut [T],
    own_least: &'a mut [[T; N]],
    /// For each direction: the earlier pixels, from the band's first row and the pad before the direction's path on.
    before: [&'a [T]; N],
    before_least: [&'a [[T; N]]; N],
}

/// The paths of a pixel and those that they continue.
pub(super) struct PixelPaths<'a, T, const N: usize> {
    /// L(p − r, ·) for each direction r, with the pads.
    pub(super) before: [&'a [T]; N],
    /// Their minima.
    pub(super) before_least: [&'a [T; N]; N],
    /// L(p, ·) for one direction after the other: the first begins at [`PAD`], each further one `stride` later.
    pub(super) own: &'a mut [T],
    pub(super) stride: usize,
}

impl<T: Value> PathRing<T> {
    /// Makes room for a band of `rows` rows and `padded` disparities, with `none` in the pads; all pixels are zero.
    pub(super) fn prepare<D: Directions<N>, const N: usize>(
        &mut self,
        rows: usize,
        padded: usize,
        none: T,
    ) -> Steps<'_, T, N> {
        let shape = Shape { padded, paths: N, rows: rows + D::DEPTH, steps: D::STEPS_KEPT };
        let pixels = shape.steps * shape.rows;
        if shape != self.shape || self.values.first() != Some(&none) {
            let values = vec![none; pixels * shape.pixel() + PAD];
            *self = Self { shape, values, least: vec![T::default(); pixels * N] };
        }
        let values = aligned(&mut self.values, pixels * shape.pixel());
        let mut steps = Steps { shape, values, least: self.least.as_chunks_mut().0 };
        for t in 0..shape.steps {
            (0..shape.rows).for_each(|r| steps.clear(t, r));
        }
        steps
    }
}

impl<T: Value, const N: usize> Steps<'_, T, N> {
    /// Path `k` of the pixel of row `r` at step `t`, and its least cost. Row 0 is the first row above the band.
    #[inline(always)]
    pub(super) fn path(&mut self, t: usize, r: usize, k: usize) -> (&mut [T], &mut T) {
        let (shape, index) = (self.shape, self.shape.index(t, r));
        let at = index * shape.pixel() + k * shape.stride() + PAD;
        (&mut self.values[at..at + shape.padded], &mut self.least[index][k])
    }

    /// Sets a pixel to zero, so that paths begin there.
    pub(super) fn clear(&mut self, t: usize, r: usize) {
        for k in 0..N {
            let (path, least) = self.path(t, r, k);
            path.fill(T::default());
            *least = T::default();
        }
    }

    /// Step `t` with the steps before it, in a band of `count` rows.
    #[inline(always)]
    pub(super) fn step<D: Directions<N>>(&mut self, t: usize, count: usize) -> Step<'_, T, N> {
        let (shape, rows) = (self.shape, self.shape.rows);
        let now = shape.index(t, 0);
        let len = (count - 1) * shape.pixel() + shape.stride() + PAD;
        let (earlier, rest) = self.values.split_at_mut(now * shape.pixel());
        let (own, later) = rest.split_at_mut(rows * shape.pixel());
        let (earlier_least, rest) = self.least.split_at_mut(now);
        let (own_least, later_least) = rest.split_at_mut(rows);
        let (mut before, mut before_least): ([&[T]; N], [&[[T; N]]; N]) = ([&[]; N], [&[]; N]);
        for k in 0..N {
            let (dx, dy) = D::STEPS[k];
            let age = dx + (D::SKEW * dy) as isize;
            let first = shape.index(t.wrapping_add_signed(-age), D::DEPTH - dy);
            let (values, least, first) = if first < now {
                (&*earlier, &*earlier_least, first)
            } else {
                (&*later, &*later_least, first - now - rows)
            };
            // All have one length, so that each pixel needs only one comparison.
            before[k] = &values[first * shape.pixel() + k * shape.stride()..][..len];
            before_least[k] = &least[first..][..count];
        }
        Step { shape, depth: D::DEPTH, own, own_least, before, before_least }
    }
}

impl<T: Value, const N: usize> Step<'_, T, N> {
    /// The pixel of row `r` of the band. `padded` repeats the number of disparities, often as a constant.
    #[inline(always)]
    pub(super) fn row(&mut self, r: usize, padded: usize) -> PixelPaths<'_, T, N> {
        let (shape, own) = (Shape { padded, paths: N, ..self.shape }, r + self.depth);
        let at = r * shape.pixel();
        let (mut before, mut before_least): ([&[T]; N], _) = ([&[]; N], [&self.before_least[0][0]; N]);
        for k in 0..N {
            before[k] = &self.before[k][at..][..padded + 2 * PAD];
            before_least[k] = &self.before_least[k][r];
        }
        PixelPaths {
            before,
            before_least,
            own: &mut self.own[own * shape.pixel()..][..shape.pixel()],
            stride: shape.stride(),
        }
    }

    /// The place for the minima of the pixel of row `r` of the band.
    #[inline(always)]
    pub(super) fn least(&mut self, r: usize) -> &mut [T; N] {
        &mut self.own_least[r + self.depth]
    }
}
