//! Warping: an image resampled through a homography, or any other map (rectification with its lens).
//!
//! For each output pixel (x, y) the map gives the place (u, v) in the input, pixel centres at integers. For a
//! homography u = (h₀₀ x + (h₀₁ y + h₀₂)) / w, v and w likewise, in f64, in this order, without fusing.
//! Places inside the input's area, −½ ≤ u < width − ½ and likewise v, are interpolated; taps beyond the edge
//! repeat the edge pixel. All others, and those beyond the horizon, take the fill value.
//!
//! **Interpolation** is separable. Bilinear: the fractions of u and v as f32. Bicubic: Keys (1981) with a =
//! −½, 4 taps. Lanczos: 3 lobes, 6 taps scaled to sum 1. The weights of the last two come from a table over
//! 1/1024 pixel. Along a row s = w₀ p₀, then s = fma(wᵢ, pᵢ, s); the rows' sums are added in the same way,
//! top to bottom, in f32. Integers round to nearest even and saturate. A place at whole coordinates gives its pixel
//! unchanged. There is no low-pass filter: if the map shrinks more than about twice, shrink the image by a pyramid
//! first.

pub(crate) mod gpu;
mod kernel;
mod places;
mod resample;

pub use gpu::GpuWarp;
#[cfg(test)]
pub(crate) use gpu::source as map_source;
pub(crate) use gpu::{GpuMap, NUMBERS};
pub(crate) use places::Map;

use super::Homography;
use crate::device::gpu::Gpu;
use crate::device::{Cpu, Processor};
use crate::image::gpu::{AnyGpuImage, GpuImage, GpuPixel};
use crate::image::{Image, ImageView, ImageViewMut, Pixel, Size};
use crate::options::{OrInfinite, named, options};
use crate::{Error, Result, by_pixel};
use kernel::Weights;
use places::bounds;
use resample::Resampler;

named! {
    /// How values between pixels are made.
    pub enum Interpolation as "interpolation" {
        /// Values never leave the range of those pixels.
        "bilinear": Bilinear, "From 2×2 pixels";
        /// Sharper; overshoots a little at edges. The default of the library and of the command, because bilinear
        /// interpolation blurs unevenly: half way between pixels it is their mean.
        #[default]
        "bicubic": Bicubic, "From 4×4 pixels";
        /// Sharpest.
        "lanczos": Lanczos3, "From 6×6 pixels";
    }
}

impl Interpolation {
    /// The number of pixels in each direction that a value is made from.
    pub const fn taps(self) -> usize {
        match self {
            Self::Bilinear => 2,
            Self::Bicubic => 4,
            Self::Lanczos3 => 6,
        }
    }
}

options! {
    /// How to warp.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct WarpOptions {
        /// How values between pixels are interpolated.
        interpolation / with_interpolation: Interpolation = Interpolation::Bicubic;
        /// The value of pixels without input, in all channels: a value of the image's pixel type.
        fill / with_fill: f32 = 0.0 => OrInfinite(..), unit "V";
    }
}

impl WarpOptions {
    /// Checks the fill value for images of one pixel type.
    ///
    /// # Errors
    /// [`Error::Option`] when this type cannot hold the fill value.
    pub fn check_fill<T: Pixel>(&self) -> Result<()> {
        self.fill_as::<T>().map(drop)
    }

    pub(crate) fn fill_as<T: Pixel>(&self) -> Result<T> {
        let fill = T::from_f32(self.fill);
        let kept = fill.to_f32() == self.fill || fill.to_f32().is_nan();
        kept.then_some(fill)
            .ok_or_else(|| Error::option("fill", self.fill, "a value of the image's pixel type"))
    }
}

const ROWS: usize = 16;

/// Longest side of an input: places are kept in 32 bits.
const LONGEST: usize = i32::MAX as usize / 2;

/// Fails for an input that has no pixels or is too long.
fn check_input(size: Size) -> Result<()> {
    if size.is_empty() {
        return Err(Error::Image(format!("the image to warp is empty ({size})")));
    }
    if size.width.max(size.height) > LONGEST {
        return Err(Error::Image(format!("an image of {size} is too long to warp")));
    }
    Ok(())
}

/// The output of `size` whose pixel (x, y) shows the input at `input_from_output`(x, y). To warp image B onto image A,
/// give the homography from A to B. Places without input get the fill value. It is made on the processor's GPU if it
/// has one that can.
///
/// # Errors
/// [`Error::Image`] when the input is empty, [`Error::Memory`] when the output is too large to be held, as
/// [`WarpOptions::check_fill`], and [`Error::Device`] when a GPU fails.
pub fn warp<T: GpuPixel>(
    input: ImageView<'_, T>,
    input_from_output: &Homography,
    size: Size,
    options: &WarpOptions,
    processor: &Processor,
) -> Result<Image<T>> {
    let fill = options.fill_as()?;
    check_input(input.size())?;
    let on_cpu = |cpu: &Cpu| warp_by(input, input_from_output, size, options, cpu);
    if size.is_empty() {
        return on_cpu(&processor.cpu);
    }
    let on_gpu = |gpu: &Gpu| {
        let plan = GpuWarp::new(gpu, options.interpolation, input.channels())?;
        let there = GpuImage::upload_by(gpu, input, &processor.cpu)?;
        plan.warp(&there, input_from_output, size, fill)?.download_by(&processor.cpu)
    };
    processor.gpu_or_cpu("warping", on_gpu, on_cpu)
}

/// [`warp()`] of an image in a device's memory, where the output stays. The host does not wait.
///
/// # Errors
/// As [`warp()`]; [`Error::Image`] for an output without pixels, and [`Error::is_device_limit`] where the device is too
/// small or lacks f64.
pub fn warp_on_device(
    input: &AnyGpuImage,
    input_from_output: &Homography,
    size: Size,
    options: &WarpOptions,
) -> Result<AnyGpuImage> {
    check_input(input.size())?;
    by_pixel!(input, input => {
        let plan = GpuWarp::new(input.gpu(), options.interpolation, input.channels())?;
        Ok(plan.warp(input, input_from_output, size, options.fill_as()?)?.into())
    })
}

/// [`coverage()`] in a device's memory. The host does not wait.
///
/// # Errors
/// As [`warp_on_device`].
pub fn coverage_on_device(
    gpu: &Gpu,
    input: Size,
    input_from_output: &Homography,
    size: Size,
) -> Result<GpuImage<u8>> {
    check_input(input)?;
    GpuWarp::<u8>::new(gpu, Interpolation::Bilinear, 1)?.coverage(input, input_from_output, size)
}

/// [`warp()`] on the CPU into the caller's memory: an image of the output's size and the input's channels.
///
/// # Errors
/// As [`warp()`], and [`Error::Mismatch`] for an output of other channels.
pub fn warp_into<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &Homography,
    options: &WarpOptions,
    cpu: &Cpu,
    output: ImageViewMut<'_, T>,
) -> Result<()> {
    warp_by_into(input, input_from_output, options, cpu, output)
}

/// [`warp()`] by any map, on the CPU.
pub(crate) fn warp_by<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &impl Map,
    size: Size,
    options: &WarpOptions,
    cpu: &Cpu,
) -> Result<Image<T>> {
    let mut output = Image::try_filled(size, input.channels(), T::default())?;
    warp_by_into(input, input_from_output, options, cpu, output.view_mut())?;
    Ok(output)
}

fn warp_by_into<T: Pixel>(
    input: ImageView<'_, T>,
    input_from_output: &impl Map,
    options: &WarpOptions,
    cpu: &Cpu,
    output: ImageViewMut<'_, T>,
) -> Result<()> {
    let fill = options.fill_as()?;
    output.require_shape("the output", output.size(), input.channels())?;
    check_input(input.size())?;
    let _stage = cpu.stage("warp");
    let cpu = &cpu.begin_task("warp", output.size().height);
    let weights = Weights::new(options.interpolation);
    cpu.for_bands(output, ROWS, |first, band| {
        Resampler::new(input, &weights, fill).run(input_from_output, first, band, cpu.level());
        cpu.advance(ROWS);
    })
}

/// Where [`warp()`] finds input: 255 on output pixels that it interpolates, 0 on those that it fills.
///
/// # Errors
/// [`Error::Image`] when the input is empty, [`Error::Memory`] when the output is too large to be held, and
/// [`Error::Device`] when a GPU fails.
pub fn coverage(
    input: Size,
    input_from_output: &Homography,
    size: Size,
    processor: &Processor,
) -> Result<Image<u8>> {
    check_input(input)?;
    let on_cpu = |cpu: &Cpu| coverage_by(input, input_from_output, size, cpu);
    if size.is_empty() {
        return on_cpu(&processor.cpu);
    }
    let on_gpu = |gpu: &Gpu| {
        let plan = GpuWarp::<u8>::new(gpu, Interpolation::Bilinear, 1)?;
        plan.coverage(input, input_from_output, size)?.download_by(&processor.cpu)
    };
    processor.gpu_or_cpu("warping", on_gpu, on_cpu)
}

/// [`coverage`] by any map, on the CPU.
pub(crate) fn coverage_by(
    input: Size,
    input_from_output: &impl Map,
    size: Size,
    cpu: &Cpu,
) -> Result<Image<u8>> {
    let mut output = Image::try_filled(size, 1, 0)?;
    let [right, bottom] = bounds(input);
    cpu.try_for_chunks(output.data_mut(), size.width, |y, out| {
        let (mut us, mut vs) = (vec![0.0; size.width], vec![0.0; size.width]);
        input_from_output.row(y as f64, &mut us, &mut vs, cpu.level());
        for (out, (&u, &v)) in out.iter_mut().zip(us.iter().zip(&vs)) {
            let inside = (u >= -0.5) & (v >= -0.5) & (u < right) & (v < bottom);
            *out = if inside { 255 } else { 0 };
        }
    })?;
    Ok(output)
}

#[cfg(test)]
mod tests;
