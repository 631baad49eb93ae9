//! The response of the box-filter Hessian.
//!
//! det = Dxx·Dyy − (0.9·Dxy)², Bay et al. 2008, equation 3. The box sums are exact integers; then, in f32,
//! dxx = xx · norm, dyy = yy · norm, dxy = xy · `norm_xy`, each rounded once, and det = fma(dxx, dyy, −(dxy ·
//! dxy)). The norms are those of [`Filter`] divided by white (255 or 65535). A response is max(det, 0) with
//! a sign: plus where the trace xx + yy is negative (bright on dark), else minus.
//!
//! The fast form takes vertical differences of integral rows first, over a tile of columns, and combines
//! them horizontally: 20 reads a response instead of 32. Responses are independent of each other, so
//! neither tiles nor the rows of a job matter.

pub(super) mod gpu;

use crate::device::dispatch;
use crate::feature::surf::integral::{Integral, Total};
use crate::feature::surf::plan::Filter;
use fearless_simd::Simd;
use fearless_simd_macros::simd;
use std::ops::Range;

/// Pixels of a tile: three arrays of this length plus a filter's width stay in the first-level cache.
const TILE: usize = 1024;

/// Consecutive rows of one layer that are to be computed.
pub(super) struct ResponseRows<'a> {
    pub filter: &'a Filter,
    pub step: usize,
    /// Sample rows, inside the filter's range.
    pub rows: Range<usize>,
    pub out: &'a mut [f32],
    /// Responses from row to row.
    pub stride: usize,
}

impl ResponseRows<'_> {
    /// Computes the rows at every column where the filter lies inside the image; other columns keep their
    /// values.
    pub(super) fn run<A: Total>(&mut self, integral: &Integral<A>, white: f32, level: crate::device::Level) {
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
                let samples = TileRow { row, first, step: self.step };
                tile_row(simd, integral, self.filter, samples, norms, &mut buffers, out);
            }
            first += n;
        }
    }
}

/// Where a run of samples begins.
#[derive(Clone, Copy)]
struct TileRow {
    row: usize,
    first: usize,
    step: usize,
}

#[simd]
fn tile_row<S: Simd, A: Total>(
    _: S,
    integral: &Integral<A>,
    filter: &Filter,
    samples: TileRow,
    norms: [f32; 2],
    buffers: &mut [Vec<A>; 3],
    out: &mut [f32],
) {
    let x = (samples.first * samples.step) as isize;
    let start = (x + filter.outer[0]) as usize;
    let len = (out.len() - 1) * samples.step + filter.size + 1;
    let row = |offset: isize| {
        let y = (samples.row * samples.step) as isize + offset;
        &integral.row(y as usize)[start..start + len]
    };
    let [xx, yy, xy] = buffers;
    let (xx, yy, xy) = (&mut xx[..], &mut yy[..], &mut xy[..]);
    let [top, bottom] = filter.across;
    for (xx, (top, bottom)) in xx.iter_mut().zip(row(top).iter().zip(row(bottom))) {
        *xx = bottom.minus(*top);
    }
    let ([a, d], [b, c]) = (filter.outer, filter.inner);
    let rows = row(a).iter().zip(row(b)).zip(row(c).iter().zip(row(d)));
    for (yy, ((a, b), (c, d))) in yy.iter_mut().zip(rows) {
        *yy = d.minus(*a).minus(c.minus(*b).thrice());
    }
    let [a, b, c, d] = filter.diagonal;
    let rows = row(a).iter().zip(row(b)).zip(row(c).iter().zip(row(d)));
    for (xy, ((a, b), (c, d))) in xy.iter_mut().zip(rows) {
        *xy = d.minus(*c).minus(b.minus(*a));
    }
    let differences = Differences { xx, yy, xy, filter, norms };
    match samples.step {
        1 => differences.combine::<1>(out),
        2 => differences.combine::<2>(out),
        4 => differences.combine::<4>(out),
        8 => differences.combine::<8>(out),
        step => {
            for (k, out) in out.iter_mut().enumerate() {
                // Every sample is a run of its own here.
                let from = k * step;
                let (xx, yy, xy) = (&xx[from..], &yy[from..], &xy[from..]);
                Differences { xx, yy, xy, filter, norms }.combine::<1>(std::slice::from_mut(out));
            }
        }
    }
}

/// The vertical differences of a row of a tile, from the first column that its first sample needs.
struct Differences<'a, A> {
    xx: &'a [A],
    yy: &'a [A],
    xy: &'a [A],
    filter: &'a Filter,
    norms: [f32; 2],
}

impl<A: Total> Differences<'_, A> {
    #[inline(always)]
    fn combine<const STEP: usize>(&self, out: &mut [f32]) {
        let n = out.len();
        let Filter { outer, inner, across, diagonal, .. } = *self.filter;
        let at = |offset: isize| (offset - outer[0]) as usize;
        let (x0, x1) = (samples(self.xx, at(outer[0]), n), samples(self.xx, at(inner[0]), n));
        let (x2, x3) = (samples(self.xx, at(inner[1]), n), samples(self.xx, at(outer[1]), n));
        let (y0, y1) = (samples(self.yy, at(across[0]), n), samples(self.yy, at(across[1]), n));
        let (d0, d1) = (samples(self.xy, at(diagonal[0]), n), samples(self.xy, at(diagonal[1]), n));
        let (d2, d3) = (samples(self.xy, at(diagonal[2]), n), samples(self.xy, at(diagonal[3]), n));
        for (k, out) in out.iter_mut().enumerate() {
            let first = |s: Runs<'_, A, STEP>| s[k][0];
            let xx = first(x3).minus(first(x0)).minus(first(x2).minus(first(x1)).thrice());
            let yy = first(y1).minus(first(y0));
            let xy = first(d3).minus(first(d2)).minus(first(d1).minus(first(d0)));
            *out = response(xx, yy, xy, self.norms);
        }
    }
}

/// Runs of `STEP` entries, of which the first is a sample's.
type Runs<'a, A, const STEP: usize> = &'a [[A; STEP]];

#[inline(always)]
fn samples<A, const STEP: usize>(differences: &[A], at: usize, n: usize) -> Runs<'_, A, STEP> {
    &differences[at..].as_chunks::<STEP>().0[..n]
}

#[inline(always)]
fn response<A: Total>(xx: A, yy: A, xy: A, [norm, norm_xy]: [f32; 2]) -> f32 {
    let dxx = xx.signed_f32() * norm;
    let dyy = yy.signed_f32() * norm;
    let dxy = xy.signed_f32() * norm_xy;
    let det = dxx.mul_add(dyy, -(dxy * dxy));
    let magnitude = if det > 0.0 { det } else { 0.0 };
    if xx.plus(yy).signed() < 0 { magnitude } else { -magnitude }
}
