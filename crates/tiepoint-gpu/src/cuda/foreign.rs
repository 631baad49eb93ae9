//! Memory and streams of other programs that use CUDA in this process.
#![expect(unsafe_code, reason = "a driver is foreign code")]

use super::library::call;
use super::{CudaMark, Stream};
use crate::driver::DriverMark;
use crate::{Error, Info, Result};
use cudarc::driver::sys::{self, CUpointer_attribute, CUresult, CUstreamCaptureStatus};
use std::ffi::c_void;
use std::sync::{Arc, PoisonError, RwLock};

/// Events that only order work cost less without a time.
pub(super) const UNTIMED: u32 = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;

/// Locked for reading while a graph is recorded. All opened devices of a card share its context, and so this lock.
pub(super) static RECORDING: RwLock<()> = RwLock::new(());

/// Makes work that is put into `to` from now on wait for the work that is in `from` now. The context is current.
pub(super) fn order(own: &Arc<Stream>, from: sys::CUstream, to: sys::CUstream) -> Result<()> {
    for stream in [from, to] {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the caller of the interface has promised that the stream exists; writes one value.
        unsafe { call!(cuStreamIsCapturing(stream, &raw mut status)) }?;
        if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Err(Error::Usage(
                "the stream records a CUDA graph, of which this work cannot be part: call before or after"
                    .into(),
            ));
        }
    }
    // A stream waits for what the event stood for when the wait was enqueued, so the event can be recorded again.
    let event = crate::lock(&own.order);
    // SAFETY: as above; the event was made with the stream, and the lock keeps other threads from recording it.
    unsafe {
        call!(cuEventRecord(*event, from))?;
        call!(cuStreamWaitEvent(to, *event, 0))
    }
}

/// The point after all work that has been put into any stream of the context.
pub(super) fn mark_everything(own: &Arc<Stream>) -> Result<Arc<DriverMark>> {
    own.enter()?;
    let mark = CudaMark::new(own, UNTIMED)?;
    // The event would invalidate a capture that is under way in the context.
    let _alone = RECORDING.write().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the event belongs to the context, which is current.
    unsafe { call!(cuCtxRecordEvent(own.context, mark.handle)) }?;
    Ok(Arc::new(mark))
}

/// Fails unless the first and the last byte lie in memory of the device.
pub(super) fn check(own: &Stream, info: &Info, address: u64, bytes: usize) -> Result<()> {
    own.enter()?;
    if bytes == 0 {
        return Ok(());
    }
    let last = address.checked_add(bytes as u64 - 1).filter(|_| address != 0);
    let last =
        last.ok_or_else(|| Error::Usage(format!("{bytes} bytes at {address:#x} are not in memory")))?;
    for byte in [address, last] {
        match device_of(byte)? {
            Some(device) if device == info.index => {}
            Some(device) => {
                return Err(Error::Usage(format!(
                    "the memory at {byte:#x} lies on cuda:{device}, not on {info}: move it there, or open that device"
                )));
            }
            None => {
                return Err(Error::Usage(format!(
                    "{bytes} bytes at {address:#x}: the byte at {byte:#x} is not in memory of {info}"
                )));
            }
        }
    }
    Ok(())
}

/// The number of the device that the address belongs to; `None` for host memory and for memory that is not allocated.
fn device_of(address: u64) -> Result<Option<u32>> {
    // The kind is an unsigned number, 0 where it is not known; 2 is the device's.
    let (mut kind, mut device) = (0_u32, -1_i32);
    let mut attributes = [
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut values: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut device).cast()];
    // SAFETY: two attributes of 32 bits each, and places for them. The driver answers for any address.
    let found =
        unsafe { sys::cuPointerGetAttributes(2, attributes.as_mut_ptr(), values.as_mut_ptr(), address) };
    if found == CUresult::CUDA_ERROR_INVALID_VALUE {
        return Ok(None);
    }
    super::library::check("cuPointerGetAttributes", found)?;
    let is_device = kind == sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
    Ok(u32::try_from(device).ok().filter(|_| is_device))
}
