//! The response of the box-filter Hessian.
//!
//! det = Dxx·Dyy − (0.9·Dxy)², Bay et al. 2008, equation 3. The box sums are exact integers; then, in f32,
//! dxx = xx · norm, dyy = yy · norm, dxy = xy · norm_xy, each rounded once, and det = fma(dxx, dyy, −(dxy ·
//! dxy)). The norms are those of [`Filter`] divided by white (255 or 65535). A response is max(det, 0) with
//! a sign: plus where the trace xx + yy is negative (bright on dark), else minus.
//!
//! The fast form takes vertical differences of integral rows first, over a tile of columns, and combines
//! them horizontally: 20 reads a response in the place of 32. Responses are independent of each other, so
//! neither tiles nor the rows of a job matter.

use super::{
    integral::{Integral, Total},
    plan::Filter,
};
use fearless_simd::{Simd, dispatch};
use fearless_simd_macros::simd;
use std::ops::Range;

/// Pixels of a tile: three arrays of this length, and a filter's width more, stay in the first-level cache.
const TILE: usize = 1024;

/// Consecutive rows of one layer that are to be computed.
pub(super) struct Job<'a> {
    pub filter: &'a Filter,
    pub step: usize,
    /// Sample rows, inside the filter's range.
    pub rows: Range<usize>,
    /// Their responses.
    pub out: &'a mut [f32],
    /// Responses from row to row.
    pub stride: usize,
}

impl Job<'_> {
    /// Computes the rows, at every column where the filter lies inside the image; others keep what they hold.
    pub(super) fn run<A: Total>(&mut self, integral: &Integral<A>, white: f32, level: fearless_simd::Level) {
        let norms = [self.filter.norm / white, self.filter.norm_xy / white];
        dispatch!(level, simd => self.rows_at(simd, integral, norms));
    }

    #[inline(always)]
    fn rows_at<S: Simd, A: Total>(&mut self, simd: S, integral: &Integral<A>, norms: [f32; 2]) {
        let columns = self.filter.inside(self.step, integral.size().width);
        let mut buffers = [(); 3].map(|()| vec![A::default(); TILE + self.filter.size + self.step]);
        let tile = (TILE / self.step).max(1);
        let mut first = columns.start;
        while first < columns.end {
            let n = tile.min(columns.end - first);
            for (i, row) in self.rows.clone().enumerate() {
                let out = &mut self.out[i * self.stride + first..][..n];
                let place = Place { row, first, step: self.step };
                tile_row(simd, integral, self.filter, place, norms, &mut buffers, out);
            }
            first += n;
        }
    }
}

/// Where a run of samples begins.
#[derive(Clone, Copy)]
struct Place {
    row: usize,
    first: usize,
    step: usize,
}

/// One row of one tile.
#[simd]
fn tile_row<S: Simd, A: Total>(
    _: S,
    integral: &Integral<A>,
    filter: &Filter,
    place: Place,
    norms: [f32; 2],
    buffers: &mut [Vec<A>; 3],
    out: &mut [f32],
) {
    let x = (place.first * place.step) as isize;
    let start = (x + filter.outer[0]) as usize;
    let len = (out.len() - 1) * place.step + filter.size + 1;
    let row = |offset: isize| {
        let y = (place.row * place.step) as isize + offset;
        &integral.row(y as usize)[start..start + len]
    };
    let [xx, yy, xy] = buffers.each_mut().map(|b| &mut b[..len]);

    let [top, bottom] = filter.across.map(row);
    for i in 0..len {
        xx[i] = bottom[i].minus(top[i]);
    }
    let ([top, bottom], [inner_top, inner_bottom]) = (filter.outer.map(row), filter.inner.map(row));
    for i in 0..len {
        yy[i] = bottom[i].minus(top[i]).minus(inner_bottom[i].minus(inner_top[i]).thrice());
    }
    let [a, b, c, d] = filter.diagonal.map(row);
    for i in 0..len {
        xy[i] = d[i].minus(c[i]).minus(b[i].minus(a[i]));
    }

    let n = (out.len() - 1) * place.step + 1;
    let at = |v: isize| (v - filter.outer[0]) as usize;
    let (xx, yy, xy) = (&*xx, &*yy, &*xy);
    let columns = Columns {
        outer: filter.outer.map(|v| &xx[at(v)..][..n]),
        inner: filter.inner.map(|v| &xx[at(v)..][..n]),
        across: filter.across.map(|v| &yy[at(v)..][..n]),
        diagonal: filter.diagonal.map(|v| &xy[at(v)..][..n]),
        norms,
    };
    match place.step {
        1 => columns.combine::<1>(out),
        2 => columns.combine::<2>(out),
        4 => columns.combine::<4>(out),
        step => {
            for (k, out) in out.iter_mut().enumerate() {
                *out = columns.response(k * step);
            }
        }
    }
}

/// Vertical differences, cut so that sample k of a tile reads entry k · step of each.
struct Columns<'a, A> {
    outer: [&'a [A]; 2],
    inner: [&'a [A]; 2],
    across: [&'a [A]; 2],
    diagonal: [&'a [A]; 4],
    norms: [f32; 2],
}

impl<A: Total> Columns<'_, A> {
    #[inline(always)]
    fn combine<const STEP: usize>(&self, out: &mut [f32]) {
        for (k, out) in out.iter_mut().enumerate() {
            *out = self.response(k * STEP);
        }
    }

    #[inline(always)]
    fn response(&self, i: usize) -> f32 {
        let span = |s: &[&[A]; 2]| s[1][i].minus(s[0][i]);
        let xx = span(&self.outer).minus(span(&self.inner).thrice());
        let yy = span(&self.across);
        let [a, b, c, d] = self.diagonal;
        let xy = d[i].minus(c[i]).minus(b[i].minus(a[i]));
        let [norm, norm_xy] = self.norms;
        let dxx = xx.signed_f32() * norm;
        let dyy = yy.signed_f32() * norm;
        let dxy = xy.signed_f32() * norm_xy;
        let det = dxx.mul_add(dyy, -(dxy * dxy));
        let magnitude = if det > 0.0 { det } else { 0.0 };
        if xx.plus(yy).is_negative() { magnitude } else { -magnitude }
    }
}
