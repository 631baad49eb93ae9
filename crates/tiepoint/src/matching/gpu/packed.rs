//! Features packed once for many searches.

use super::regions::SearchKind;
use super::{GpuMatcher, rows};
use crate::Result;
use crate::device::gpu::{Buffer, Commands};
use crate::feature::Features;
use crate::feature::gpu::GpuFeatures;
use crate::feature::gpu::sending::Sending;
use crate::matching::nearest::gpu::Packed;
use crate::matching::{MatchOptions, nearest};

/// Features for [`GpuMatcher::match_batch`]: descriptors in a device's memory, packed in the order of a search. All
/// pairs with these features share them. A clone is the same memory.
#[derive(Clone, Debug)]
pub struct GpuPacked {
    pub(super) kind: SearchKind,
    /// Whether bright and dark features are packed separately.
    pub(crate) by_sign: bool,
    pub(super) capacity: usize,
    pub(super) count: Buffer<u32>,
    /// None if there is no room for any feature.
    pub(super) packed: Option<Packed>,
}

impl GpuPacked {
    /// The bytes of device memory that it takes.
    pub fn bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, Packed::bytes) + Buffer::<u32>::taken(1)
    }
}

impl GpuMatcher {
    /// Packs features for batches, by sign if the options ask for `same_sign` and all signs are known. The features
    /// themselves are not needed afterwards.
    ///
    /// # Errors
    /// As [`super::super::match_features`] for one side, and [`crate::Error::Memory`] when the device's memory is
    /// too small.
    pub fn pack(&self, features: &GpuFeatures, options: &MatchOptions) -> Result<GpuPacked> {
        let (kind, capacity, by_sign) =
            (self.kind_of(features, false), features.capacity(), options.same_sign && features.signed);
        let packed = match capacity {
            0 => None,
            _ => {
                super::check(features)?;
                let mut commands = Commands::new();
                let rows = rows::order(&mut commands, &self.rows(kind)?, features, kind, by_sign)?;
                let program = &self.search(kind)?;
                let packed = nearest::gpu::pack(&mut commands, program, &features.descriptors, rows)?;
                self.gpu.run(&commands)?;
                Some(packed)
            }
        };
        Ok(GpuPacked { kind, by_sign, capacity, count: features.count.clone(), packed })
    }

    /// As [`pack`](Self::pack), for features in the host's memory. Copying and packing are queued on the device; the
    /// host does not wait.
    ///
    /// # Errors
    /// As [`pack`](Self::pack).
    pub fn send(&self, features: &Features, options: &MatchOptions) -> Result<GpuPacked> {
        let on_device = self.sendings.with(|| Sending::new(&self.gpu), |sending| sending.send(features))?;
        self.pack(&on_device, options)
    }
}
