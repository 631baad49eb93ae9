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
//! **Streaming.** The image is read once, 64 rows at a time. Of the integral image and of every response
//! layer only the rows still needed are kept, and a keypoint is described as soon as the rows below it are
//! there ([`stream`]). Memory follows the width of the image and not its area.
//!
//! **GPU.** [`GpuSurf`] holds the whole image in the device's memory; stage by stage it has the bits of the CPU.
//!
//! **Numbers.** Pixels are integers (8-bit 0 to 255, others 0 to 65535), so that box sums and wavelets are
//! exact. From there on every stage states the order of its f32 operations; sums over the samples of an
//! orientation are taken in integers, those of a descriptor cell row by row. The result is the same for
//! every thread count and SIMD level.
//!
//! **Verified** against the scalar reference, which follows the formulas one by one (equal in every bit), and
//! with [`Convention::OpenCv`] against keypoints of OpenCV 2.4 on a 384×288 photo (threshold 100, 2 searched
//! layers): 97 % of its 745 points lie within 1.5 px of one of ours, the median distance is 0.05 px, filter
//! size and response agree in the median to 0.1 %, the angle to 0.4°.
//!
//! **Conventions of the output.** `scale` is σ = 1.2/9 · filter size in pixels. `response` is the
//! determinant at the sampled maximum. `sign` is +1 for bright on dark, where the trace of the Hessian is
//! negative. `octave` and `layer` name the filter, both from 0. Of the values of a descriptor x points along
//! the keypoint's direction and y a quarter turn towards the image's +y.

#[cfg(test)]
mod accuracy;
mod describe;
mod extrema;
pub(crate) mod gpu;
mod integral;
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

use super::{Features, select::Selection};
use crate::{
    Error, Result,
    device::Cpu,
    image::{ImageView, Pixel},
};

/// Whose conventions are followed where SURFs differ.
///
/// Common to all: extrema are searched where the largest filter of the 3×3×3 neighbourhood lies inside the
/// image, and a wavelet that leaves the image counts as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// Bay et al. 2008. Filters 9, 15, 21, 27; 15, 27, 39, 51; …, those of equal size computed once; Dxy
    /// weighted by 0.9. Orientation: 113 wavelets of side 4s within 6s, Gaussian of 2s. Descriptor: a square
    /// of 20s, cells of 5×5 wavelets of side 2s, Gaussian of 3.3s; per cell Σdx, Σ|dx|, Σdy, Σ|dy|, cells row
    /// by row.
    #[default]
    Paper,
    /// OpenSURF. Filters as in the paper. Orientation: 109 wavelets on whole pixels round(s) apart, Gaussian
    /// of 2.5s. Descriptor: the square of 24s of Agrawal et al., cells of 9×9 wavelets that overlap by 4,
    /// Gaussian of 2.5s in a cell and of 1.5 cells over them; cells column by column.
    OpenSurf,
    /// OpenCV. Filters (9 + 6·layer)·2^octave with rounded corners, every box divided by its own area (which
    /// weighs Dxy 2.78 times as much in the square), grey values from 0 to 255; offsets up to 1 are accepted
    /// and the filter size is rounded to an integer. Orientation as in the paper with a Gaussian of 2.5s and
    /// windows every 5°; upright means 3π/2. Descriptor: the paper's square; its 2×2 differences of area
    /// means are the wavelets of side 2s; per cell Σdx, Σdy, Σ|dx|, Σ|dy|. OpenCV itself resamples to 8 bits,
    /// so that its values agree closely and not exactly.
    OpenCv,
}

/// Options of the SURF detector and descriptor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SurfOptions {
    /// Whose conventions are followed. Default: the paper's.
    pub convention: Convention,
    /// Least determinant of the Hessian, of an image from 0 to 1; with [`Convention::OpenCv`] of one from 0
    /// to 255 by its filters (OpenCV's `hessianThreshold`). Default 0.0004 (OpenSURF); `opencv`: 100.
    pub threshold: f32,
    /// Octaves, 1 to 6. Default 4 (Bay et al.); `opensurf`: 5.
    pub octaves: usize,
    /// Filter sizes per octave, 3 to 8; maxima are searched in all but the first and the last. Default 4 (Bay
    /// et al.). OpenCV's `nOctaveLayers` counts the searched ones: `opencv` has 5, for its 3.
    pub intervals: usize,
    /// Pixels from sample to sample in the first octave, 1, 2 or 4; doubles with every octave. Default 1 (Bay
    /// et al.); `opensurf`: 2, for which the paper speaks of its fast variant.
    pub step: usize,
    /// Leave out the orientation: for pictures that are not turned against each other. Default off.
    pub upright: bool,
    /// Descriptors of 128 values: the sums split by the sign of the other derivative. Default off.
    pub extended: bool,
    /// Compute descriptors. Default on. Without them the orientation is still found.
    pub descriptors: bool,
    /// Which features to keep. Default all.
    pub selection: Selection,
}

impl Default for SurfOptions {
    fn default() -> Self {
        Self::paper()
    }
}

impl SurfOptions {
    /// Bay et al. 2008, sampled at every pixel.
    pub const fn paper() -> Self {
        Self {
            convention: Convention::Paper,
            threshold: 4e-4,
            octaves: 4,
            intervals: 4,
            step: 1,
            upright: false,
            extended: false,
            descriptors: true,
            selection: Selection::All,
        }
    }

    /// OpenSURF's defaults.
    pub const fn opensurf() -> Self {
        Self { convention: Convention::OpenSurf, octaves: 5, step: 2, ..Self::paper() }
    }

    /// OpenCV's defaults.
    pub const fn opencv() -> Self {
        Self { convention: Convention::OpenCv, threshold: 100.0, intervals: 5, ..Self::paper() }
    }

    /// Values per descriptor; 0 when none are asked for.
    pub const fn dimension(&self) -> usize {
        match (self.descriptors, self.extended) {
            (false, _) => 0,
            (true, false) => 64,
            (true, true) => 128,
        }
    }

    /// Fails when an option is out of its range.
    ///
    /// # Errors
    /// [`Error::Option`] naming the option.
    pub fn check(&self) -> Result<()> {
        if !(self.threshold >= 0.0 && self.threshold.is_finite()) {
            return Err(Error::option("threshold", self.threshold, "a finite number, 0 or more"));
        }
        if !(1..=6).contains(&self.octaves) {
            return Err(Error::option("octaves", self.octaves, "1 to 6"));
        }
        if !(3..=8).contains(&self.intervals) {
            return Err(Error::option("intervals", self.intervals, "3 to 8"));
        }
        if ![1, 2, 4].contains(&self.step) {
            return Err(Error::option("step", self.step, "1, 2 or 4"));
        }
        Ok(())
    }
}

/// A SURF detector whose tables and buffers are kept from image to image, and made anew only when the size or
/// the kind of the image changes.
#[derive(Debug)]
pub struct Surf {
    options: SurfOptions,
    tables: stream::Tables,
    narrow: stream::Buffers<u32>,
    wide: stream::Buffers<u64>,
}

impl Surf {
    /// A detector with these options.
    ///
    /// # Errors
    /// [`Error::Option`] as [`SurfOptions::check`].
    pub fn new(options: SurfOptions) -> Result<Self> {
        options.check()?;
        Ok(Self {
            options,
            tables: stream::Tables::new(&options),
            narrow: stream::Buffers::default(),
            wide: stream::Buffers::default(),
        })
    }

    /// The options it was made with.
    pub fn options(&self) -> &SurfOptions {
        &self.options
    }

    /// The features of a grey image. A keypoint is left out where the mask is 0 at its nearest pixel.
    ///
    /// # Errors
    /// [`Error::Image`] when the image is empty, has several channels or a side above 2²⁴;
    /// [`Error::Mismatch`] when the mask's size is not the image's.
    pub fn detect<T: Pixel>(
        &mut self,
        view: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
        cpu: &Cpu,
    ) -> Result<Features> {
        view.require_grey()?;
        let size = view.size();
        if size.width.max(size.height) > 1 << 24 {
            return Err(Error::Image(format!("{size}: SURF takes sides up to 16777216 pixels; cut it")));
        }
        if let Some(mask) = mask {
            mask.require_grey()?;
            if mask.size() != size {
                return Err(Error::Mismatch(format!(
                    "the mask has {} pixels, the image {size}: expected equal sizes",
                    mask.size()
                )));
            }
        }
        // A sum of 8-bit pixels may wrap around in 32 bits; differences come out right all the same.
        let (tables, options) = (&self.tables, &self.options);
        let (narrow, wide) = (&mut self.narrow, &mut self.wide);
        let cpu = &cpu.begin_task("SURF", size.height);
        let features = cpu.run(|| match T::WHITE {
            255.0 => narrow.detect(tables, options, view, mask, cpu),
            _ => wide.detect(tables, options, view, mask, cpu),
        });
        let _stage = cpu.stage("order");
        Ok(self.options.selection.apply(&features, cpu))
    }
}

/// The features of a grey image; [`Surf`] is the form that keeps its buffers.
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
