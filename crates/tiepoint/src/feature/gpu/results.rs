//! Copying features from a device's lists to the host's memory.

use super::{GpuDescriptors, GpuFeatures, GpuKeypoints};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::select::Selection;
use crate::feature::{Features, WORDS, by_value};
use crate::image::Size;
use std::mem::discriminant;
use std::sync::Mutex;
use tiepoint_gpu::{Element, lock};

/// The results of a search of some images of one size, in the device's memory.
#[derive(Clone, Debug)]
pub struct Lists<'d> {
    /// In their total order.
    pub(crate) found: &'d GpuKeypoints,
    pub(crate) descriptors: &'d GpuDescriptors,
    pub(crate) dimension: usize,
    pub(crate) selection: Selection,
    pub(crate) size: Size,
}

impl Lists<'_> {
    pub(crate) fn images(&self) -> usize {
        self.found.counts.len()
    }

    pub(crate) fn none(&self) -> Features {
        let descriptors = by_value!(map self.descriptors, _all => Vec::new());
        Features { keypoints: Vec::new(), descriptors, dimension: self.dimension, image: self.size }
    }

    /// A copy of the selected features of an image, of which `found` were found. If the host does not know that number,
    /// the copy contains all that there is room for.
    pub(super) fn copy(&self, image: usize, found: Option<usize>) -> Result<GpuFeatures> {
        let GpuKeypoints { keypoints, counts, capacity } = self.found;
        let (gpu, mut commands) = (keypoints.gpu(), Commands::new());
        let most = self.selection.early_limit();
        let (first, capacity) = (image * capacity, found.unwrap_or(*capacity).min(most));
        let count = match found {
            Some(found) if found > most => gpu.upload(&[most as u32])?,
            _ => part_of(counts, image, 1, &mut commands)?,
        };
        let keypoints = part_of(keypoints, first * WORDS, capacity * WORDS, &mut commands)?;
        let (first, values) = (first * self.dimension, capacity * self.dimension);
        let descriptors = by_value!(map self.descriptors, all => part_of(all, first, values, &mut commands)?);
        gpu.run(&commands)?;
        let (dimension, image) = (self.dimension, self.size);
        Ok(GpuFeatures { count, keypoints, descriptors, dimension, image, signed: true })
    }
}

/// A buffer that will hold some numbers of another.
fn part_of<T: Element>(
    all: &Buffer<T>,
    first: usize,
    len: usize,
    commands: &mut Commands,
) -> Result<Buffer<T>> {
    let part = all.gpu().buffer(len)?;
    commands.copy((all, first), (&part, 0), len)?;
    Ok(part)
}

/// Features that are no longer needed, whose memory the next ones take.
#[derive(Debug, Default)]
pub(crate) struct Recycled(Mutex<Vec<Features>>);

impl Recycled {
    /// The most images whose features are kept.
    const MOST: usize = 64;

    pub(crate) fn put(&self, features: impl IntoIterator<Item = Features>) {
        let mut kept = lock(&self.0);
        kept.extend(features);
        kept.truncate(Self::MOST);
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Features for `n` images, to be overwritten: recycled ones whose descriptors are of the kind of `none`, then
    /// copies of `none`.
    pub(super) fn take(&self, n: usize, none: &Features) -> Vec<Features> {
        let mut kept = lock(&self.0);
        kept.retain(|f| discriminant(&f.descriptors) == discriminant(&none.descriptors));
        let first = kept.len().saturating_sub(n);
        let mut taken = kept.split_off(first);
        drop(kept);
        taken.resize(n, none.clone());
        taken
    }
}
