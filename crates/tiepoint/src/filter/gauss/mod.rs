//! Gaussian smoothing with a separable kernel.
//!
//! ```text
//! out(x, y) = Σᵢ wᵢ Σⱼ wⱼ in(x + i, y + j),   wₖ ∝ exp(−k²/2σ²) or a power of two,   Σ wₖ = 1
//! ```
//!
//! The vertical sum comes first, then the horizontal one; the border rule of the columns applies to rows of
//! vertical sums, which is the same as padding the image.
//!
//! **Numbers.** f32 and 16-bit: the order of `rows`, with one rounding to nearest even at the end for 16-bit.
//! 8-bit with up to [`FIXED_SIZE`] taps: taps in units of 1/256, integer sums without rounding, one rounding at
//! the end (`bytes`); within 4 grey levels of the real-valued result (3.4 for noise of black and white). 8-bit with
//! more taps: as 16-bit. A NaN spreads over its window.
//!
//! **Speed.** The f32 form is limited by memory: one read and one write of the image. For each pair of taps the 8-bit
//! form takes two loads, a widening and a multiplication in the vertical pass, and a load and a paired product in the
//! horizontal one. The sums between the passes are one row, and stay in the first-level cache.
//!
//! Source of [`Taps::PowerOfTwo`]: M. Schösau, Bachelor's thesis, Hochschule Mittweida 2019 (filters of 3, 5,
//! 9 and 15 taps; three border policies).

mod bytes;
pub(crate) mod gpu;
pub(crate) mod rows;
mod taps;

pub use taps::{MAX_SIZE, Taps};

use super::separable::separable;
use crate::Result;
use crate::device::Cpu;
use crate::image::{Border, Image, ImageView, ImageViewMut, Pixel};
use crate::options::options;

/// The most taps with which 8-bit images are filtered in integers.
pub const FIXED_SIZE: usize = 31;

options! {
    /// How to smooth.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct GaussOptions {
        /// What lies beyond the edge.
        border / with_border: Border = Border::Clamp;
    }
    besides {
        /// The weights; σ = 1.6 by default.
        taps / with_taps: Taps = Taps::default();
    }
    check this {
        this.taps.check()
    }
}

impl GaussOptions {
    /// Smoothing by σ pixels.
    pub fn sigma(sigma: f64) -> Self {
        Self { taps: Taps::Sigma(sigma), ..Self::default() }
    }

    /// Smoothing by an odd number of taps.
    pub fn size(size: usize) -> Self {
        Self { taps: Taps::Size(size), ..Self::default() }
    }
}

/// `view` smoothed, each channel separately.
///
/// # Errors
/// [`Error::Option`](crate::Error::Option) for options out of range.
pub fn gauss<T: Pixel>(view: ImageView<'_, T>, options: &GaussOptions, cpu: &Cpu) -> Result<Image<T>> {
    let mut out = Image::filled(view.size(), view.channels(), T::default());
    gauss_into(view, options, cpu, out.view_mut())?;
    Ok(out)
}

/// [`gauss`] into the caller's memory: an image of the shape of `view`.
///
/// # Errors
/// As [`gauss`], and [`Error::Mismatch`](crate::Error::Mismatch) for an output of another shape.
pub fn gauss_into<T: Pixel>(
    view: ImageView<'_, T>,
    options: &GaussOptions,
    cpu: &Cpu,
    out: ImageViewMut<'_, T>,
) -> Result<()> {
    options.check()?;
    out.require_shape("the output", view.size(), view.channels())?;
    let _stage = cpu.stage("gauss");
    let eight_bit = T::u8s(&[]).is_some();
    if eight_bit && options.taps.radius(true) <= FIXED_SIZE / 2 {
        separable(view, options.border, &bytes::Fixed::new(options.taps.to_q8()), cpu, out)
    } else {
        separable(view, options.border, &rows::Float(options.taps.to_f32(eight_bit)), cpu, out)
    }
}

#[cfg(test)]
mod tests;
