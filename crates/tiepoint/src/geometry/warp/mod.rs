//! Warping: an image resampled through a homography, or any other map (rectification with its lens).
//!
//! For each output pixel (x, y) the map gives the place (u, v) in the input, pixel centres at integers. For a
//! homography u = (h₀₀ x + (h₀₁ y + h₀₂)) / w, v and w likewise, in f64, in this order, without fusing. Places inside the
//! input's area, −½ ≤ u < width − ½ and likewise v, are interpolated; taps beyond the edge repeat the edge
//! pixel. All others, and those beyond the horizon, take the fill value.
//!
//! **Interpolation** is separable. Bilinear: the fractions of u and v as f32. Bicubic: Keys (1981) with
//! a = −½, 4 taps. Lanczos: 3 lobes, 6 taps scaled to sum 1. The weights of the last two come from a table
//! over 1/1024 pixel. Along a row s = w₀ p₀, then s = fma(wᵢ, pᵢ, s); the rows' sums are added in the same way,
//! top to bottom, in f32. Integers round to nearest even and saturate. A whole-pixel place gives its pixel as
//! it is. There is no low-pass: shrink through a pyramid first where the map shrinks more than about twice.

mod gpu;
mod kernel;

pub use gpu::GpuWarp;

use super::Homography;
use crate::device::Cpu;
use crate::image::{Image, ImageView, Pixel, Size};
use crate::{Error, Result};
use fearless_simd::{Level, Simd, dispatch};
use fearless_simd_macros::simd;
use kernel::Weights;

/// How values between pixels are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// From 2×2 pixels; never leaves their range.
    #[default]
    Bilinear,
    /// From 4×4 pixels, sharper; overshoots a little at edges.
    Bicubic,
    /// From 6×6 pixels, sharpest.
    Lanczos3,
}

impl Interpolation {
    /// Pixels in each direction that make a value.
    pub const fn taps(self) -> usize {
        match self {
            Self::Bilinear => 2,
            Self::Bicubic => 4,
            Self::Lanczos3 => 6,
        }
    }
}

/// Rows that one task computes.
const ROWS: usize = 16;

/// Output pixels at most: what fits a length.
fn check_size(size: Size, channels: usize) -> Result<()> {
    let values = size.width.checked_mul(size.height).and_then(|n| n.checked_mul(channels));
    match values {
        Some(n) if n <= isize::MAX as usize / 4 => Ok(()),
        _ => Err(Error::Image(format!("an output of {size} with {channels} channels is too large"))),
    }
}

/// The output of `size` whose pixel (x, y) shows the input at `map`(x, y). The map goes **from the output to
/// the input**: to bring image B onto image A give the model from A to B. Places without input get `fill` in
/// all channels.
///
/// # Errors
/// [`Error::Image`] when the input is empty, or the output too large to be held.
pub fn warp<T: Pixel>(
    input: ImageView<'_, T>,
    map: &Homography,
    size: Size,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
) -> Result<Image<T>> {
    warp_by(input, map, size, interpolation, fill, cpu)
}

/// [`warp()`] by any map.
pub(crate) fn warp_by<T: Pixel>(
    input: ImageView<'_, T>,
    map: &impl Map,
    size: Size,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
) -> Result<Image<T>> {
    check_size(size, input.channels())?;
    if input.size().is_empty() {
        return Err(Error::Image(format!("the image to warp is empty ({})", input.size())));
    }
    let _stage = cpu.stage("warp");
    let cpu = &cpu.work("warp", size.height);
    let weights = Weights::new(interpolation);
    let mut output = Image::filled(size, input.channels(), fill);
    let row = output.row_len();
    cpu.for_chunks(output.data_mut(), row * ROWS, |i, rows| {
        let mut places = Places::new(map, size.width, input.size());
        for (j, out) in rows.chunks_mut(row.max(1)).enumerate() {
            places.compute(i * ROWS + j, cpu);
            dispatch!(cpu.level(), simd => match interpolation {
                Interpolation::Bilinear => resample::<_, T, 2>(simd, input, [&places.u, &places.v], &weights, out),
                Interpolation::Bicubic => resample::<_, T, 4>(simd, input, [&places.u, &places.v], &weights, out),
                Interpolation::Lanczos3 => resample::<_, T, 6>(simd, input, [&places.u, &places.v], &weights, out),
            });
        }
        cpu.advance(ROWS);
    });
    Ok(output)
}

/// Where [`warp()`] finds input: 255 on output pixels that it interpolates, 0 on those that it fills.
///
/// # Errors
/// [`Error::Image`] when the output is too large to be held.
pub fn coverage(input: Size, map: &Homography, size: Size, cpu: &Cpu) -> Result<Image<u8>> {
    coverage_by(input, map, size, cpu)
}

/// [`coverage`] by any map.
pub(crate) fn coverage_by(input: Size, map: &impl Map, size: Size, cpu: &Cpu) -> Result<Image<u8>> {
    check_size(size, 1)?;
    let mut output = Image::new(size);
    cpu.for_chunks(output.data_mut(), size.width * ROWS, |i, rows| {
        let mut places = Places::new(map, size.width, input);
        for (j, out) in rows.chunks_mut(size.width.max(1)).enumerate() {
            places.compute(i * ROWS + j, cpu);
            for (out, (&u, &v)) in out.iter_mut().zip(places.u.iter().zip(&places.v)) {
                *out = if u > OUTSIDE && v > OUTSIDE { 255 } else { 0 };
            }
        }
    });
    Ok(output)
}

/// Where output pixels find their input.
pub(crate) trait Map: Sync {
    /// The places (u, v) of the pixels (0, y), (1, y), …; NaN where there is none.
    fn row(&self, y: f64, u: &mut [f64], v: &mut [f64], level: Level);
}

impl Map for Homography {
    fn row(&self, y: f64, u: &mut [f64], v: &mut [f64], level: Level) {
        dispatch!(level, simd => project(simd, self.matrix(), y, u, v));
    }
}

#[simd]
fn project<S: Simd>(_simd: S, m: [[f64; 3]; 3], y: f64, u: &mut [f64], v: &mut [f64]) {
    // Whether a negative denominator lies beyond the horizon; see [`Homography::apply`].
    let sided = m[2][2] == 1.0;
    let [a, b, c] = [m[0], m[1], m[2]].map(|r| r[1] * y + r[2]);
    let n = u.len();
    let v = &mut v[..n];
    for x in 0..n {
        let at = x as i32 as f64;
        let w = m[2][0] * at + c;
        let front = if sided { w } else { w.abs() };
        u[x] = if front > 1e-12 { (m[0][0] * at + a) / w } else { f64::NAN };
        v[x] = (m[1][0] * at + b) / w;
    }
}

/// A coordinate that no place inside has.
const OUTSIDE: f64 = -1.0;

/// Input places of a row of output pixels; both [`OUTSIDE`] where there is none.
struct Places<'a, M> {
    map: &'a M,
    bounds: [f64; 2],
    u: Vec<f64>,
    v: Vec<f64>,
}

impl<'a, M: Map> Places<'a, M> {
    fn new(map: &'a M, width: usize, input: Size) -> Self {
        let bounds = [input.width as f64 - 0.5, input.height as f64 - 0.5];
        Self { map, bounds, u: vec![0.0; width], v: vec![0.0; width] }
    }

    fn compute(&mut self, y: usize, cpu: &Cpu) {
        self.map.row(y as f64, &mut self.u, &mut self.v, cpu.level());
        dispatch!(cpu.level(), simd => bound(simd, self.bounds, &mut self.u, &mut self.v));
    }
}

#[simd]
fn bound<S: Simd>(_simd: S, bounds: [f64; 2], us: &mut [f64], vs: &mut [f64]) {
    let n = us.len();
    let vs = &mut vs[..n];
    for x in 0..n {
        let (u, v) = (us[x], vs[x]);
        // NaN fails every comparison.
        let inside = (u >= -0.5) & (v >= -0.5) & (u < bounds[0]) & (v < bounds[1]);
        us[x] = if inside { u } else { OUTSIDE };
        vs[x] = if inside { v } else { OUTSIDE };
    }
}

/// Fills one row of the output from its places.
#[simd]
fn resample<S: Simd, T: Pixel, const TAPS: usize>(
    _simd: S,
    input: ImageView<'_, T>,
    [us, vs]: [&[f64]; 2],
    weights: &Weights,
    out: &mut [T],
) {
    let channels = input.channels();
    let Size { width, height } = input.size();
    let before = TAPS as isize / 2 - 1;
    for (x, out) in out.chunks_exact_mut(channels).enumerate() {
        let (u, v) = (us[x], vs[x]);
        if u <= OUTSIDE {
            continue;
        }
        let (left, top) = (u.floor(), v.floor());
        let wx: [f32; TAPS] = weights.at((u - left) as f32);
        let wy: [f32; TAPS] = weights.at((v - top) as f32);
        let (x0, y0) = (left as isize - before, top as isize - before);
        let clamped = |i: isize, n: usize| i.clamp(0, n as isize - 1) as usize;
        let inner = x0 >= 0 && x0 as usize + TAPS <= width;
        let rows: [&[T]; TAPS] = std::array::from_fn(|j| input.row(clamped(y0 + j as isize, height)));
        for (c, out) in out.iter_mut().enumerate() {
            let mut sum = 0.0_f32;
            for j in 0..TAPS {
                let mut along = 0.0_f32;
                if inner {
                    let pixels = &rows[j][x0 as usize * channels..(x0 as usize + TAPS) * channels];
                    for (i, w) in wx.iter().enumerate() {
                        along = fused(*w, pixels[i * channels + c].to_f32(), along, i);
                    }
                } else {
                    for (i, w) in wx.iter().enumerate() {
                        let at = clamped(x0 + i as isize, width);
                        along = fused(*w, rows[j][at * channels + c].to_f32(), along, i);
                    }
                }
                sum = fused(wy[j], along, sum, j);
            }
            *out = T::from_f32(sum);
        }
    }
}

/// The next partial sum; the first term is a plain product.
#[inline(always)]
fn fused(w: f32, p: f32, sum: f32, i: usize) -> f32 {
    if i == 0 { w * p } else { w.mul_add(p, sum) }
}

#[cfg(test)]
mod tests;
