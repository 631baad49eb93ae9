//! Warping: an image resampled through a homography, or any other map (rectification with its lens).
//!
//! For each output pixel (x, y) the map gives the place (u, v) in the input, pixel centres at integers. For a
//! homography u = (h₀₀ x + (h₀₁ y + h₀₂)) / w, v and w likewise, in f64, in this order, without fusing.
//! Places inside the input's area, −½ ≤ u < width − ½ and likewise v, are interpolated; taps beyond the edge
//! repeat the edge pixel. All others, and those beyond the horizon if it is known ([`Homography`]), take the fill value.
//!
//! **Interpolation.** Nearest: the pixel (⌊u + ½⌋, ⌊v + ½⌋), unchanged. The others are separable. Bilinear: the fractions of u and v as f32. Bicubic: Keys (1981) with a =
//! −½, 4 taps. Lanczos: 3 lobes, 6 taps scaled to sum 1. The weights of the last two come from a table over
//! 1/1024 pixel. Along a row s = w₀ p₀, then s = fma(wᵢ, pᵢ, s); the rows' sums are added in the same way,
//! top to bottom, in f32. Integers round to nearest even and saturate. A place at whole coordinates gives its pixel
//! unchanged, unless a pixel among its taps is NaN or infinite: it is taken, too, with the weight 0, so that the result
//! is NaN ([`FileImage::resampled`](crate::image::FileImage::resampled) says which pixels then hold data). There is no low-pass filter: if the map shrinks more than about twice, shrink the image by a pyramid
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
use crate::image::gpu::{GpuImage, GpuPixel};
use crate::image::{Image, ImageView, ImageViewMut, Made, MadeMask, Pixel, Pixels, Size};
use crate::options::{OrInfinite, named, options};
use crate::{Error, Result, by_pixel};
use kernel::Weights;
use places::bounds;
use resample::Resampler;

named! {
    /// How values between pixels are made.
    pub enum Interpolation as "interpolation" {
        /// No value is mixed with others: for classes, labels and masks.
        "nearest": Nearest, "The nearest pixel's value";
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
            Self::Nearest => 1,
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
/// give the homography from A to B. Places without input get the fill value. It is made on the processor's GPU if
/// that supports it.
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
    warp_map(input, input_from_output, size, options, processor)
}

/// [`warp()`] by any map.
fn warp_map<T: GpuPixel, M: Map + GpuMap>(
    input: ImageView<'_, T>,
    map: &M,
    size: Size,
    options: &WarpOptions,
    processor: &Processor,
) -> Result<Image<T>> {
    check_input(input.size())?;
    options.check_fill::<T>()?;
    let on_cpu = |cpu: &Cpu| warp_by(input, map, size, options, cpu);
    if size.is_empty() {
        return on_cpu(&processor.cpu);
    }
    let on_gpu = |gpu: &Gpu| {
        let there = GpuImage::upload_by(gpu, input, &processor.cpu)?;
        warp_there(&there, map, size, options)?.download_by(&processor.cpu)
    };
    processor.gpu_or_cpu("warping", on_gpu, on_cpu)
}

fn warp_there<T: GpuPixel, M: GpuMap>(
    input: &GpuImage<T>,
    map: &M,
    size: Size,
    options: &WarpOptions,
) -> Result<GpuImage<T>> {
    let plan = GpuWarp::new(input.gpu(), options.interpolation, input.channels())?;
    plan.warp(input, map, size, options.fill_as()?)
}

/// [`warp()`] of an image of any type by any map. One on a device is warped there, and the host does not wait.
pub(crate) fn warp_pixels<M: Map + GpuMap>(
    input: &Pixels<'_>,
    map: &M,
    size: Size,
    options: &WarpOptions,
    processor: &Processor,
) -> Result<Made> {
    check_input(input.size())?;
    Ok(match input {
        Pixels::Host(view) => {
            Made::Host(by_pixel!(map *view, view => warp_map(view, map, size, options, processor)?))
        }
        Pixels::Device(image) => {
            Made::Device(by_pixel!(map image, image => warp_there(image, map, size, options)?))
        }
    })
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
fn coverage<M: Map + GpuMap>(input: Size, map: &M, size: Size, processor: &Processor) -> Result<Image<u8>> {
    check_input(input)?;
    let on_cpu = |cpu: &Cpu| coverage_by(input, map, size, cpu);
    if size.is_empty() {
        return on_cpu(&processor.cpu);
    }
    let on_gpu = |gpu: &Gpu| coverage_there(gpu, input, map, size)?.download_by(&processor.cpu);
    processor.gpu_or_cpu("warping", on_gpu, on_cpu)
}

fn coverage_there<M: GpuMap>(gpu: &Gpu, input: Size, map: &M, size: Size) -> Result<GpuImage<u8>> {
    GpuWarp::<u8, M>::new(gpu, Interpolation::Bilinear, 1)?.coverage(input, map, size)
}

/// Where [`warp_pixels`] finds input, in the memory in which it leaves its result.
pub(crate) fn coverage_pixels<M: Map + GpuMap>(
    input: &Pixels<'_>,
    map: &M,
    size: Size,
    processor: &Processor,
) -> Result<MadeMask> {
    match input {
        Pixels::Host(view) => coverage(view.size(), map, size, processor).map(MadeMask::Host),
        Pixels::Device(image) => {
            check_input(image.size())?;
            coverage_there(image.gpu(), image.size(), map, size).map(MadeMask::Device)
        }
    }
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
        input_from_output.part(0, y as f64, &mut us, &mut vs, cpu.level());
        for (out, (&u, &v)) in out.iter_mut().zip(us.iter().zip(&vs)) {
            let inside = (u >= -0.5) & (v >= -0.5) & (u < right) & (v < bottom);
            *out = if inside { 255 } else { 0 };
        }
    })?;
    Ok(output)
}

#[cfg(test)]
mod tests;
