//! SIFT: distinctive image features from scale-invariant keypoints.
//!
//! # Method
//! D. Lowe, *Distinctive Image Features from Scale-Invariant Keypoints*, IJCV 60(2), 2004; section numbers
//! below are that paper's.
//!
//! 1. [`scale_space`] (§3): the image, doubled by linear interpolation, is blurred to σ = 1.6 and then level
//!    by level by a factor of 2^(1/levels); after each octave every second pixel is kept. Neighbouring levels
//!    are subtracted: differences of Gaussians, DoG.
//! 2. [`extrema`] (§3.1): pixels above or below all 26 neighbours in position and scale.
//! 3. [`refine`] (§4, after Brown & Lowe 2002): a quadratic through the neighbours gives the position to a
//!    fraction of a pixel; weak points and points on edges are dropped.
//! 4. [`orient`] (§5): every peak of the histogram of gradient directions within 80 % of the highest gives a
//!    keypoint.
//! 5. [`describe`] (§6): 4×4 histograms of 8 directions, normalised, clipped at 0.2, normalised.
//!
//! Steps 4 and 5 take their gradients from [`window`].
//!
//! [`GpuSift`] does the same on a GPU.
//!
//! Wide changes of viewpoint are left to [simulated views](super::views): iterating on second moments for the affine
//! shape finds fewer matches in more time (`docs/notebook/features.md`).
//!
//! # Memory
//! The octaves are streamed in bands of rows. Memory holds only those rows of each level that a later stage still
//! needs, a few hundred. It grows with the width of the image, not its area, and the result does not depend on the
//! height of the bands.
//!
//! # Conventions
//! Doubling maps pixel x to 2x, so positions carry no offset (OpenCV's default is off by +0.25 px, its
//! `enable_precise_upscale` is not). The order of the descriptor's values is Lowe's, OpenCV's and COLMAP's
//! (see [`describe`]).

mod describe;
mod extrema;
mod given;
pub(crate) mod gpu;
mod options;
mod orient;
#[cfg(test)]
mod reference;
mod refine;
mod scale_space;
#[cfg(test)]
mod tests;
mod window;

pub use gpu::GpuSift;
pub use options::{SiftOptions, SiftPreset};

use super::{Descriptors, Features};
use crate::Result;
use crate::device::{Cpu, Scratch};
use crate::image::{ImageView, Pixel, Size, check_mask};
use refine::Point;
use scale_space::{Octave, Pyramid, Ready};
use std::ops::Range;

/// Values in a SIFT descriptor: 4×4 cells of 8 directions.
pub const DIMENSION: usize = 128;

/// Finds SIFT features in a grey image; see [`Sift`] to keep the memory for further images.
///
/// # Errors
/// As [`Sift::detect`].
pub fn detect<T: Pixel>(
    image: ImageView<'_, T>,
    options: &SiftOptions,
    mask: Option<ImageView<'_, u8>>,
    cpu: &Cpu,
) -> Result<Features> {
    Sift::new(*options)?.detect(image, mask, cpu)
}

/// A SIFT detector that keeps its memory between images. Threads may share it.
#[derive(Debug)]
pub struct Sift {
    options: SiftOptions,
    pyramids: Scratch<Option<Pyramid>>,
}

impl Sift {
    /// A detector with these options.
    ///
    /// # Errors
    /// [`Error::Option`](crate::Error::Option) when an option is out of range.
    pub fn new(options: SiftOptions) -> Result<Self> {
        options.check()?;
        Ok(Self { options, pyramids: Scratch::default() })
    }

    /// The options.
    pub fn options(&self) -> &SiftOptions {
        &self.options
    }

    /// Finds the features of one grey image. If `mask` is given, keypoints on pixels whose mask is 0 are left out. f32
    /// images are on the scale 0 to 1; values beyond are clamped, and NaN counts as 0.
    ///
    /// # Errors
    /// [`Error::Image`](crate::Error::Image) when the image is empty or has several channels,
    /// [`Error::Mismatch`](crate::Error::Mismatch) when the mask has
    /// another size.
    pub fn detect<T: Pixel>(
        &self,
        image: ImageView<'_, T>,
        mask: Option<ImageView<'_, u8>>,
        cpu: &Cpu,
    ) -> Result<Features> {
        image.require_grey()?;
        let size = image.size();
        check_mask(mask, size)?;
        self.pyramids.with(
            || Ok(None),
            |kept| {
                if kept.as_ref().is_none_or(|pyramid| pyramid.input != size) {
                    *kept = None;
                }
                let pyramid = kept.get_or_insert_with(|| Pyramid::new(size, &self.options));
                let mut search = Search::new(size, &self.options, mask);
                let cpu = &cpu.for_pixels(size.area()).begin_task("SIFT", pyramid.rows());
                cpu.run(|| pyramid.run(image, cpu, |octave, ready| search.advance(octave, ready, cpu)))?;
                Ok(search.take_sorted(cpu))
            },
        )
    }
}

/// A search of one image, and what it has found so far.
struct Search<'m> {
    options: SiftOptions,
    mask: Option<ImageView<'m, u8>>,
    found: Features,
    /// For each octave, the points around which rows are still missing.
    waiting: Vec<Vec<Point>>,
    /// Points ranked below this value can no longer be among those selected.
    floor: f32,
    /// From this many features on, [`prune`](Self::prune) drops those that can no longer be selected.
    most: usize,
}

impl<'m> Search<'m> {
    fn new(size: Size, options: &SiftOptions, mask: Option<ImageView<'m, u8>>) -> Self {
        let found = nothing(options, size);
        let (floor, most) = (f32::NEG_INFINITY, options.selection.pays_from());
        Self { options: *options, mask, found, waiting: Vec::new(), floor, most }
    }

    /// Finds the extrema in the rows of an octave that are ready, and refines, orients and describes those for which
    /// all rows are in memory.
    fn advance(&mut self, octave: &Octave, ready: &Ready, cpu: &Cpu) -> Result<()> {
        const ROWS: usize = 8;
        let index = usize::from(octave.number.abs_diff(self.options.first_octave));
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, Vec::new);
        }
        let found = {
            let _stage = cpu.stage("extrema, refine");
            cpu.map(ready.search.len().div_ceil(ROWS), |task| {
                let first = ready.search.start + task * ROWS;
                self.points(octave, first..ready.search.end.min(first + ROWS), cpu)
            })
        };
        let waiting = &mut self.waiting[index];
        waiting.extend(found.into_iter().flatten());
        let points: Vec<Point> = waiting.extract_if(.., |p| p.y < ready.describe as f32).collect();
        if points.is_empty() {
            return Ok(());
        }
        const BATCH: usize = 16;
        let described = {
            let _stage = cpu.stage("orient, describe");
            cpu.try_map(points.len().div_ceil(BATCH), |i| {
                let batch = &points[i * BATCH..points.len().min((i + 1) * BATCH)];
                let found = nothing(&self.options, self.found.image);
                Ok(describe::orient_and_describe(octave, batch, &self.options, found, cpu))
            })?
        };
        described.iter().try_for_each(|more| self.found.append(more))?;
        self.prune(cpu);
        Ok(())
    }

    fn points(&self, octave: &Octave, rows: Range<usize>, cpu: &Cpu) -> Vec<Point> {
        let rank = self.options.selection.rank().value;
        let candidates = extrema::find(octave, rows, &self.options, cpu).into_iter();
        let points = candidates.filter_map(|c| refine::refine(octave, c, &self.options));
        points.filter(|p| rank(&p.keypoint) >= self.floor && p.keypoint.is_shown(self.mask)).collect()
    }

    /// Drops features that can no longer be selected, once there are twice as many as can be selected.
    fn prune(&mut self, cpu: &Cpu) {
        if self.found.len() < self.most {
            return;
        }
        let (kept, selection) = (self.take_sorted(cpu), self.options.selection);
        self.most = selection.pays_from().max(kept.len().saturating_mul(2));
        self.floor = kept.keypoints.last().map_or(f32::NEG_INFINITY, selection.rank().value);
        self.found = kept;
    }

    /// All features so far in their total order, selected.
    fn take_sorted(&mut self, cpu: &Cpu) -> Features {
        let _stage = cpu.stage("order, select");
        let nothing = nothing(&self.options, self.found.image);
        self.options.selection.of(&std::mem::replace(&mut self.found, nothing), cpu)
    }
}

/// The features of an image of this size in which nothing is found.
fn nothing(options: &SiftOptions, image: Size) -> Features {
    let descriptors = Descriptors::none(options.descriptors);
    Features { keypoints: Vec::new(), descriptors, dimension: options.dimension(), image }
}
