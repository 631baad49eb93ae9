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
mod places;
mod resample;

pub use gpu::GpuWarp;
pub(crate) use places::Map;

use super::Homography;
use crate::device::Cpu;
use crate::image::{Image, ImageView, ImageViewMut, Pixel, Size};
use crate::options::named;
use crate::{Error, Result};
use kernel::Weights;
use places::bounds;
use resample::Resampler;

/// How values between pixels are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// From 2×2 pixels; never leaves their range.
    Bilinear,
    /// From 4×4 pixels, sharper; overshoots a little at edges. The default, of the library and of the command:
    /// bilinear half way between pixels is their mean, and a warped image is blurred unevenly.
    #[default]
    Bicubic,
    /// From 6×6 pixels, sharpest.
    Lanczos3,
}

named!(Interpolation as "interpolation" {
    "bilinear": Self::Bilinear, "From 2×2 pixels";
    "bicubic": Self::Bicubic, "From 4×4 pixels";
    "lanczos": Self::Lanczos3, "From 6×6 pixels";
});

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

/// Longest side of an input: places are kept in 32 bits.
const LONGEST: usize = i32::MAX as usize / 2;

/// Output pixels at most: what fits a length.
fn check_size(size: Size, channels: usize) -> Result<()> {
    let values = size.width.checked_mul(size.height).and_then(|n| n.checked_mul(channels));
    match values {
        Some(n) if n <= isize::MAX as usize / 4 => Ok(()),
        _ => Err(Error::Image(format!("an output of {size} with {channels} channels is too large"))),
    }
}

/// The output of `size` whose pixel (x, y) shows the input at `input_from_output`(x, y). To bring image B onto image A
/// give B from A. Places without input get `fill` in all channels.
///
/// # Errors
/// [`Error::Image`] when the input is empty, or the output too large to be held.
pub fn warp<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &Homography,
    size: Size,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
) -> Result<Image<T>> {
    warp_by(input, input_from_output, size, interpolation, fill, cpu)
}

/// [`warp()`] into memory of the caller's: an image of the output's size and the input's channels.
///
/// # Errors
/// As [`warp()`], and [`Error::Mismatch`] for an output of other channels.
pub fn warp_into<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &Homography,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
    output: ImageViewMut<'_, T>,
) -> Result<()> {
    warp_by_into(input, input_from_output, interpolation, fill, cpu, output)
}

/// [`warp()`] by any map.
pub(crate) fn warp_by<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &impl Map,
    size: Size,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
) -> Result<Image<T>> {
    check_size(size, input.channels())?;
    let mut output = Image::filled(size, input.channels(), T::default());
    warp_by_into(input, input_from_output, interpolation, fill, cpu, output.view_mut())?;
    Ok(output)
}

fn warp_by_into<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &impl Map,
    interpolation: Interpolation,
    fill: T,
    cpu: &Cpu,
    output: ImageViewMut<'_, T>,
) -> Result<()> {
    output.require_shape("the output", output.size(), input.channels())?;
    if input.size().is_empty() {
        return Err(Error::Image(format!("the image to warp is empty ({})", input.size())));
    }
    if input.size().width.max(input.size().height) > LONGEST {
        return Err(Error::Image(format!("an image of {} is too long to warp", input.size())));
    }
    let _stage = cpu.stage("warp");
    let cpu = &cpu.begin_task("warp", output.size().height);
    let weights = Weights::new(interpolation);
    cpu.for_bands(output, ROWS, |first, band| {
        Resampler::new(input, &weights, fill).run(input_from_output, first, band, cpu.level());
        cpu.advance(ROWS);
    });
    Ok(())
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
    let [right, bottom] = bounds(input);
    cpu.for_chunks(output.data_mut(), size.width, |y, out| {
        let (mut us, mut vs) = (vec![0.0; size.width], vec![0.0; size.width]);
        map.row(y as f64, &mut us, &mut vs, cpu.level());
        for (out, (&u, &v)) in out.iter_mut().zip(us.iter().zip(&vs)) {
            let inside = (u >= -0.5) & (v >= -0.5) & (u < right) & (v < bottom);
            *out = if inside { 255 } else { 0 };
        }
    });
    Ok(output)
}

#[cfg(test)]
mod tests;
