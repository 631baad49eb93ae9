//! The maps of pairs in memory of any kind.

use super::{INVALID, Masks, Reason, fill};
use crate::Result;
use crate::device::Cpu;
use crate::image::gpu::{GpuImage, GpuStack};
use crate::image::{Image, Size, check_mask};

/// The maps of a pair, or of several: `F` holds disparities or confidence, `R` reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Maps<F, R> {
    /// Disparities of the left view in pixels, [`INVALID`](super::INVALID) where there is none.
    pub disparity: F,
    /// Disparities of the right view, if asked for: `right(x, y)` shows what `left(x + d, y)` shows.
    pub right: Option<F>,
    /// How distinct the best sum is, from 0 (not at all) to 1, if asked for; 0 where there is no disparity.
    pub confidence: Option<F>,
    /// Why pixels of the left view were made invalid, if asked for; filling leaves it as it is.
    pub reasons: Option<R>,
}

/// The result of dense stereo.
pub type StereoResult = Maps<Image<f32>, Image<Reason>>;

/// The result of dense stereo in a device's memory; reasons are numbers of [`Reason`]s. A clone is the same memory.
///
/// The maps are complete when the device's queue has finished the work of the call that returned them; later work in
/// the queue may read them at once.
pub type GpuStereoResult = Maps<GpuImage<f32>, GpuImage<u8>>;

/// Maps that a device works on; reasons are numbers of [`Reason`]s.
pub(super) type GpuMaps = Maps<GpuStack<f32>, GpuStack<u8>>;

impl StereoResult {
    /// Maps of a size: of the left view and, if wanted, of the right one and of confidence.
    pub(super) fn new(size: Size, right: bool, confidence: bool) -> Self {
        let map = |wanted: bool| wanted.then(|| Image::new(size));
        Self { disparity: Image::new(size), right: map(right), confidence: map(confidence), reasons: None }
    }

    /// Fills invalid pixels that hold data, as [`StereoOptions::fill`](super::StereoOptions::fill) does, in maps that were
    /// made without it, for instance after some disparities were dropped. `masks` are those of the pair. Occlusions are what
    /// `reasons` calls so; without reasons all invalid pixels count as occlusions.
    ///
    /// # Errors
    /// As [`fill()`](fill::fill); [`Error::Mismatch`](crate::Error::Mismatch) for a mask of another size.
    pub fn fill(&mut self, masks: Masks<'_>, cpu: &Cpu) -> Result<()> {
        let size = self.disparity.size();
        check_mask(masks.left, size)?;
        check_mask(masks.right, size)?;
        let occlusions = |reasons: &Image<Reason>| {
            Image::from_fn(reasons.size(), |x, y| reasons.row(y)[x] == Reason::Occluded)
        };
        let occluded = self.reasons.as_ref().map(occlusions);
        self.fill_by(occluded.as_ref(), masks, cpu)
    }

    /// [`fill`](Self::fill) with these occlusions of the left view.
    pub(super) fn fill_by(
        &mut self,
        occluded: Option<&Image<bool>>,
        masks: Masks<'_>,
        cpu: &Cpu,
    ) -> Result<()> {
        let left = (Some(&mut self.disparity), occluded.map(Image::view), masks.left);
        for (map, occluded, mask) in [left, (self.right.as_mut(), None, masks.right)] {
            let Some(map) = map else { continue };
            fill::fill(map.view_mut(), occluded, cpu)?;
            let Some(mask) = mask else { continue };
            for y in 0..mask.size().height {
                let unknown = map.row_mut(y).iter_mut().zip(mask.row(y)).filter(|(_, mask)| **mask == 0);
                unknown.for_each(|(d, _)| *d = INVALID);
            }
        }
        Ok(())
    }
}

impl<F, R> Maps<F, R> {
    /// The same maps in other memory.
    ///
    /// # Errors
    /// The first of `float` or `reasons`.
    pub fn try_map<G, S>(
        &self,
        float: impl Fn(&F) -> Result<G>,
        reasons: impl FnOnce(&R) -> Result<S>,
    ) -> Result<Maps<G, S>> {
        Ok(Maps {
            disparity: float(&self.disparity)?,
            right: self.right.as_ref().map(&float).transpose()?,
            confidence: self.confidence.as_ref().map(&float).transpose()?,
            reasons: self.reasons.as_ref().map(reasons).transpose()?,
        })
    }

    /// The maps of disparities and of confidence.
    pub(super) fn floats(&self) -> impl Iterator<Item = &F> {
        [Some(&self.disparity), self.right.as_ref(), self.confidence.as_ref()].into_iter().flatten()
    }

    pub(super) fn floats_mut(&mut self) -> impl Iterator<Item = &mut F> {
        [Some(&mut self.disparity), self.right.as_mut(), self.confidence.as_mut()].into_iter().flatten()
    }
}
