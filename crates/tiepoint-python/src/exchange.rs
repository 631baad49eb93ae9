//! DLPack's C interface (dmlc/dlpack, version 1.3): a table of functions in a capsule, which is the attribute
//! `__dlpack_c_exchange_api__` of a type of tensors. PyTorch has it from version 2.10 on.
//!
//! It does the same as `__dlpack__` without running Python code: PyTorch's own `__dlpack__` creates objects for streams
//! and events, which takes longer than all other work on a small image. The caller orders the streams.

#![expect(unsafe_code, reason = "functions of other programs, behind pointers")]

use crate::dlpack::{self, CUDA, DlTensor, Imported, VERSION};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

const NAME: &CStr = c"dlpack_exchange_api";

/// `DLPackExchangeAPI`.
#[repr(C)]
struct Table {
    version: [u32; 2],
    /// A table of an older version.
    older: *const Self,
    _allocate: *const c_void,
    take: Option<unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int>,
    _give: *const c_void,
    /// Fills in a description; not every producer has this function.
    describe: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int>,
}

#[derive(Clone, Copy)]
pub(crate) struct Exchange(&'static Table);

impl Exchange {
    /// The functions of the type of `object`, if it has any of a known version.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let py = object.py();
        let capsule = object.get_type().getattr_opt(intern!(py, "__dlpack_c_exchange_api__")).ok()??;
        if !dlpack::has_name(capsule.as_ptr(), NAME) {
            return None;
        }
        // SAFETY: a capsule of this name.
        let mut table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) } as *const Table;
        // SAFETY: a capsule of this name points to a table, which lives as long as the process; every version of it
        // begins with its version and a pointer to the table before it.
        while let Some(found) = unsafe { table.as_ref() } {
            if found.version[0] == VERSION[0] {
                return Some(Self(found));
            }
            table = found.older;
        }
        None
    }

    /// The kind and the number of the device on which the tensor lies; `None` if its producer does not report it.
    pub(crate) fn device(self, object: &Bound<'_, PyAny>) -> Option<(i64, i64)> {
        let mut told = DlTensor::empty();
        // SAFETY: the table belongs to the type of `object`, and `told` can be written to.
        let answer = unsafe { (self.0.describe?)(object.as_ptr().cast(), &raw mut told) };
        if answer == 0 {
            return Some((told.device.kind.into(), told.device.id.into()));
        }
        // The caller then calls `__dlpack_device__`, which gives the reason.
        drop(PyErr::take(object.py()));
        None
    }

    /// The tensor of a CUDA device, and its producer's current stream there; `None` if `__dlpack__` has to be called.
    pub(crate) fn take(self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<(Imported, u64)>> {
        let py = object.py();
        // PyTorch refuses these only in `__dlpack__`.
        if let Some(asked) = object.getattr_opt(intern!(py, "requires_grad"))?
            && asked.is_truthy()?
        {
            return Ok(None);
        }
        let (Some(take), Some(current_stream)) = (self.0.take, self.0.current_stream) else {
            return Ok(None);
        };
        let mut structure = ptr::null_mut();
        // SAFETY: the table belongs to the type of `object`, and `structure` can be written to.
        let answer = unsafe { take(object.as_ptr().cast(), &raw mut structure) };
        if answer != 0 || structure.is_null() {
            drop(PyErr::take(py));
            return Ok(None);
        }
        // SAFETY: it was just handed over.
        let imported = unsafe { dlpack::take_versioned(structure, what) }?;
        let (kind, id) = imported.device;
        let (CUDA, Ok(id)) = (kind, i32::try_from(id)) else { return Ok(None) };
        let mut stream = ptr::null_mut();
        // SAFETY: a device that the producer has named, and a place for the handle.
        if unsafe { current_stream(CUDA as c_int, id, &raw mut stream) } != 0 {
            return Err(PyErr::fetch(py));
        }
        // CUDA's default stream has two names.
        let stream = if stream.is_null() { 1 } else { stream as u64 };
        Ok(Some((imported, stream)))
    }
}
