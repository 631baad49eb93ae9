//! The memory of the sums, the only memory here whose size is that of the image times the number of disparities.
//!
//! It is anonymous mapped memory, in huge pages if the system has them: the first use of a quarter of a gigabyte in
//! pages of 4 KB takes a third of the time of the computation. Huge pages must be cleared, too, and in a virtual
//! machine the host must find them first, which may take longer than the computation. The first call therefore takes
//! little memory; later calls, which reuse it, take all that they may.

use super::recurrence::Value;
use crate::error::Shortage;
use crate::{Error, Result};
use memmap2::MmapMut;

/// Memory for the sums that is kept from pair to pair.
#[derive(Debug, Default)]
pub(in crate::stereo) struct Workspace {
    bytes: Option<MmapMut>,
    /// Whether an earlier call has used it.
    pub(in crate::stereo) is_kept: bool,
}

/// Prefetches values that are read or written soon. It changes speed only.
#[inline(always)]
pub(super) fn fetch<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(64 / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        #[expect(unsafe_code, reason = "an intrinsic")]
        // SAFETY: a prefetch is a hint. It reads nothing and cannot fault, whatever the address.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

impl Workspace {
    /// At least `len` sums with undefined values.
    pub(super) fn sums<A: Value>(&mut self, len: usize) -> Result<&mut [A]> {
        let needed = len.saturating_mul(size_of::<A>());
        if self.bytes.as_ref().is_none_or(|map| map.len() < needed) {
            self.bytes = None;
            let refused = |_| Error::Memory {
                what: "the sums of semi-global matching",
                needed: needed as u64,
                shortage: Shortage::Host,
            };
            let map = MmapMut::map_anon(needed.max(1)).map_err(refused)?;
            // It only changes speed: if the system refuses, pages stay small.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            self.bytes = Some(map);
        }
        #[expect(unsafe_code, reason = "bytes as numbers")]
        // SAFETY: a value is a `u8` or `u16`, which may have any bits.
        let (_, sums, _) = unsafe { self.bytes.as_deref_mut().unwrap_or_default().align_to_mut() };
        Ok(sums)
    }
}
