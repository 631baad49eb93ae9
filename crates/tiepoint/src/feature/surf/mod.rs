//! SURF: blobs by a box-filter Hessian, described by sums of Haar wavelets.
//!
//! **The method.** An [integral image](integral) gives the sum of any upright rectangle by four reads. Three
//! patterns of rectangles imitate the second derivatives of a Gaussian, and the determinant of that Hessian
//! is large on blobs ([`response`]). Instead of shrinking the image the patterns grow: filters of 9, 15, 21
//! and 27 pixels make the first octave, each further octave doubles the growth and the sampling step
//! ([`plan`]). Places stronger than all 26 neighbours in space and scale are kept ([`extrema`]) and moved to
//! the top of a quadratic ([`refine`]). The direction of a keypoint is that of the longest sum of Haar
//! wavelets in a window of 60° ([`orient`]); its descriptor holds, for 4×4 cells of a turned square, the sums
//! of the wavelets and of their magnitudes ([`describe`]).
//!
//! Sources: H. Bay, A. Ess, T. Tuytelaars, L. Van Gool, *Speeded-Up Robust Features*, CVIU 110, 2008;
//! M. Agrawal, K. Konolige, M. Blas, *Center Surround Extremas*, ECCV 2008, for the descriptor of OpenSURF.
//!
//! **Streaming.** The image is read once, 64 rows at a time. Only those rows of the integral image and of every
//! response layer are kept that are still needed, and a keypoint is described as soon as the rows below it have been
//! read ([`stream`]). Memory grows with the width of the image, not its area.
//!
//! **GPU.** [`GpuSurf`] holds the whole image in the device's memory; every stage has the bits of the CPU.
//!
//! **Numbers.** Pixels are integers (8-bit 0 to 255, others 0 to 65535), so that box sums and wavelets are
//! exact. From there on every stage states the order of its f32 operations; sums over the samples of an
//! orientation are taken in integers, those of a descriptor cell row by row. The result is the same for
//! every thread count and SIMD level.
//!
//! **Verified** against the scalar reference, which follows the formulas one by one (equal in every bit), and with
//! [`SurfPreset::OpenCv`] against keypoints of OpenCV 2.4 (`docs/notebook/features.md`).
//!
//! **Conventions of the output.** `scale` is σ = 1.2/9 · filter size in pixels. `response` is the
//! determinant at the sampled maximum. `sign` is +1 for bright on dark, where the trace of the Hessian is
//! negative. `octave` and `layer` name the filter, both from 0. In a descriptor x points along the
//! keypoint's direction and y a quarter turn towards the image's +y.

#[cfg(test)]
mod accuracy_tests;
mod describe;
mod extrema;
pub(crate) mod gpu;
mod integral;
mod options;
mod orient;
mod plan;
#[cfg(test)]
mod reference;
mod refine;
mod response;
mod stream;
#[cfg(test)]
mod tests;

pub use gpu::GpuSurf;
pub use options::{SurfOptions, SurfPreset};

use super::Features;
use crate::device::{Cpu, Scratch};
use crate::image::{ImageView, Pixel, Size, check_mask};
use crate::{Error, Result};

/// A SURF detector that keeps its tables and buffers from image to image; buffers are allocated anew only when the size
/// or the pixel type changes. Threads may share it.
#[derive(Debug)]
pub struct Surf {
    tables: stream::Tables,
    narrow: Scratch<stream::Buffers<u32>>,
    wide: Scratch<stream::Buffers<u64>>,
}

impl Surf {
    /// A detector with these options.
    ///
    /// # Errors
    /// [`Error::Option`] as [`SurfOptions::check`].
    pub fn new(options: SurfOptions) -> Result<Self> {
        options.check()?;
        let tables = stream::Tables::new(options);
        Ok(Self { tables, narrow: Scratch::default(), wide: Scratch::default() })
    }

    /// The options it was made with.
    pub fn options(&self) -> &SurfOptions {
        &self.tables.options
    }

    /// The features of a grey image. A keypoint is left out where the mask is 0 at its nearest pixel.
    ///
    /// # Errors
    /// [`Error::Image`] when the image is empty, has several channels or a side above 2²⁴;
    /// [`Error::Mismatch`] when the mask's size is not the image's.
    pub fn detect<T: Pixel>(
        &self,
        view: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
        cpu: &Cpu,
    ) -> Result<Features> {
        view.require_grey()?;
        let size = view.size();
        check_size(size)?;
        check_mask(mask, size)?;
        // Sums of 8-bit pixels may wrap around in 32 bits; their differences are right all the same.
        let tables = &self.tables;
        let cpu = &cpu.for_pixels(size.area()).begin_task("SURF", size.height);
        let features = cpu.run(|| match T::WHITE {
            255.0 => self
                .narrow
                .with(|| Ok(stream::Buffers::default()), |buffers| buffers.detect(tables, view, mask, cpu)),
            _ => self
                .wide
                .with(|| Ok(stream::Buffers::default()), |buffers| buffers.detect(tables, view, mask, cpu)),
        })?;
        let _stage = cpu.stage("order");
        Ok(tables.options.selection.of(&features, cpu))
    }
}

/// The features of a grey image; use [`Surf`] to keep its buffers for further images.
///
/// # Errors
/// [`Error::Option`] for options out of range, and as [`Surf::detect`].
pub fn detect<T: Pixel>(
    view: ImageView<'_, T>,
    options: &SurfOptions,
    mask: Option<ImageView<'_, u8>>,
    cpu: &Cpu,
) -> Result<Features> {
    Surf::new(*options)?.detect(view, mask, cpu)
}

/// Fails for images so large that f32 cannot distinguish the positions of their pixels.
fn check_size(size: Size) -> Result<()> {
    match size.width.max(size.height) <= 1 << 24 {
        true => Ok(()),
        false => Err(Error::Image(format!("{size}: SURF takes sides up to 16777216 pixels; cut it"))),
    }
}
