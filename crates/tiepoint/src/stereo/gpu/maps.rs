//! The maps of pairs in memory of any kind.

use crate::{
    Result,
    image::{Image, gpu::GpuStack},
    stereo::{Reason, StereoResult},
};

/// The maps of a pair, or of several: `F` holds disparities or confidence, `R` reasons.
#[derive(Clone, Debug)]
pub(in crate::stereo) struct Maps<F, R> {
    pub(in crate::stereo) disparity: F,
    pub(in crate::stereo) right: Option<F>,
    pub(in crate::stereo) confidence: Option<F>,
    pub(in crate::stereo) reasons: Option<R>,
}

/// Maps that a device works on; reasons are numbers of [`Reason`]s.
pub(in crate::stereo) type GpuMaps = Maps<GpuStack<f32>, GpuStack<u8>>;

impl<F, R> Maps<F, R> {
    /// The same maps in other memory.
    pub(super) fn try_map<G, S>(
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

    /// As [`floats`](Self::floats).
    pub(super) fn floats_mut(&mut self) -> impl Iterator<Item = &mut F> {
        [Some(&mut self.disparity), self.right.as_mut(), self.confidence.as_mut()].into_iter().flatten()
    }
}

impl From<Maps<Image<f32>, Image<Reason>>> for StereoResult {
    fn from(Maps { disparity, right, confidence, reasons }: Maps<Image<f32>, Image<Reason>>) -> Self {
        Self { disparity, right, confidence, reasons }
    }
}
