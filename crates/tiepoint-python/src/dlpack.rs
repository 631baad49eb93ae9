//! DLPack: tensors in capsules, between Python libraries of one process (dmlc/dlpack, version 1.1, and 0.8 before it).
//!
//! A capsule holds a structure with a shape, strides, an address and a function that gives it all back. Whoever takes the
//! capsule renames it, and calls that function once, on any thread. What a capsule of others says is checked field by
//! field before it is believed; whether memory lies at its address, the device is asked ([`Gpu::foreign`]).
//!
//! [`Gpu::foreign`]: tiepoint::device::gpu::Gpu::foreign

#![expect(unsafe_code, reason = "structures of other programs, behind pointers")]

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::any::Any;
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// `kDLCPU`.
pub(crate) const CPU: i64 = 1;
/// `kDLCUDA`.
pub(crate) const CUDA: i64 = 2;

/// The version whose structures these are.
const VERSION: [u32; 2] = [1, 1];
/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const COPIED: u64 = 2;

/// Names of capsules that nobody has taken, and of those that someone has.
const NAMES: [[&CStr; 2]; 2] =
    [[c"dltensor", c"used_dltensor"], [c"dltensor_versioned", c"used_dltensor_versioned"]];

/// Dimensions that a tensor has at most, as anywhere else.
const MOST_DIMENSIONS: i32 = 64;

/// A type of number: `kDLInt`, `kDLUInt`, `kDLFloat`, `kDLBool`, …, and its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

impl DataType {
    pub(crate) const I8: Self = Self { code: 0, bits: 8, lanes: 1 };
    pub(crate) const U8: Self = Self { code: 1, bits: 8, lanes: 1 };
    pub(crate) const U16: Self = Self { code: 1, bits: 16, lanes: 1 };
    pub(crate) const F32: Self = Self { code: 2, bits: 32, lanes: 1 };
    pub(crate) const BOOL: Self = Self { code: 6, bits: 8, lanes: 1 };
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    id: i32,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, before version 1.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor that was taken out of its capsule; dropping it gives it back.
pub(crate) enum Taken {
    Legacy(*mut c_void),
    Versioned(*mut c_void),
}

// SAFETY: only the deleter is called, which DLPack allows on any thread.
unsafe impl Send for Taken {}
// SAFETY: as above; nothing is done by reference.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: asks for a flag. Deleters may take the interpreter's lock, which hangs once that has ended; what is left
        // then ends with the process.
        if unsafe { ffi::Py_IsInitialized() } == 0 {
            return;
        }
        // SAFETY: the structure was taken once, and is given back once.
        unsafe {
            match self {
                Self::Legacy(managed) => {
                    let managed = managed.cast::<Managed>();
                    if let Some(delete) = (*managed).deleter {
                        delete(managed);
                    }
                }
                Self::Versioned(managed) => {
                    let managed = managed.cast::<ManagedVersioned>();
                    if let Some(delete) = (*managed).deleter {
                        delete(managed);
                    }
                }
            }
        }
    }
}

/// What a capsule holds, checked as far as that is possible without the device.
pub(crate) struct Imported {
    pub(crate) address: u64,
    /// `kDLCUDA` and its like, and which one.
    pub(crate) device: (i64, i64),
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// In numbers.
    pub(crate) strides: Vec<i64>,
    pub(crate) owner: Taken,
}

fn refused(what: &str, why: &str) -> PyErr {
    PyBufferError::new_err(format!("{what}: {why}"))
}

/// Takes the tensor out of a capsule; `what` names it in errors.
pub(crate) fn take(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Imported> {
    let is = |name: &CStr| {
        // SAFETY: any object may be asked; no exception is raised.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
    };
    let Some(versioned) = NAMES.iter().position(|[name, _]| is(name)) else {
        return Err(match NAMES.iter().any(|[_, used]| is(used)) {
            true => refused(what, "its DLPack capsule was used before; each serves once"),
            false => refused(what, "__dlpack__ gave no DLPack capsule"),
        });
    };
    let [name, used] = NAMES[versioned];
    // SAFETY: a capsule of this name, whose pointer is not null.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    if versioned == 1 {
        // SAFETY: the version comes first in every version.
        let [major, minor] = unsafe { (*pointer.cast::<ManagedVersioned>()).version };
        if major != VERSION[0] {
            return Err(refused(
                what,
                &format!("its DLPack capsule is of version {major}.{minor}: expected 1"),
            ));
        }
    }
    // SAFETY: a valid capsule, and a name that lives for ever. From here on the tensor is ours.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    // SAFETY: the name tells the structure.
    let (owner, tensor) = unsafe {
        match versioned {
            1 => (Taken::Versioned(pointer), &(*pointer.cast::<ManagedVersioned>()).tensor),
            _ => (Taken::Legacy(pointer), &(*pointer.cast::<Managed>()).tensor),
        }
    };
    checked(tensor, owner, what)
}

fn checked(tensor: &DlTensor, owner: Taken, what: &str) -> PyResult<Imported> {
    let wrong = |why: &str| Err(refused(what, why));
    let DlTensor { data, device, ndim, dtype, shape, strides, byte_offset } = tensor;
    if !(0..=MOST_DIMENSIONS).contains(ndim) {
        return wrong(&format!("its DLPack capsule has {ndim} dimensions: expected 0 to {MOST_DIMENSIONS}"));
    }
    let n = ndim.unsigned_abs() as usize;
    if n > 0 && shape.is_null() {
        return wrong("its DLPack capsule has no shape");
    }
    // SAFETY: as many numbers as there are dimensions, whose count was checked; the pointer is not null.
    let sides = if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(*shape, n) } };
    let shape: Option<Vec<usize>> = sides.iter().map(|&side| usize::try_from(side).ok()).collect();
    let Some(shape) = shape else {
        return wrong(&format!("its DLPack capsule has the shape {sides:?}: negative sides mean nothing"));
    };
    if dtype.lanes != 1 || dtype.bits == 0 || !dtype.bits.is_multiple_of(8) {
        return wrong(&format!(
            "its DLPack capsule holds numbers of {} bits in {} lanes: expected whole bytes in one lane",
            dtype.bits, dtype.lanes
        ));
    }
    let bytes = usize::from(dtype.bits / 8);
    let area = shape.iter().try_fold(1_usize, |area, &side| area.checked_mul(side));
    if area.and_then(|area| area.checked_mul(bytes)).is_none_or(|all| isize::try_from(all).is_err()) {
        return wrong(&format!("its DLPack capsule has the shape {shape:?}, which exceeds memory"));
    }
    let strides = if n == 0 {
        Vec::new()
    } else if strides.is_null() {
        compact(&shape)
    } else {
        // SAFETY: as the shape.
        unsafe { std::slice::from_raw_parts(*strides, n) }.to_vec()
    };
    if data.is_null() && area != Some(0) {
        return wrong("its DLPack capsule has no address");
    }
    let Some(address) = (*data as u64).checked_add(*byte_offset) else {
        return wrong(&format!(
            "its DLPack capsule begins {byte_offset} bytes behind its address: beyond all memory"
        ));
    };
    let device = (device.kind.into(), device.id.into());
    Ok(Imported { address, device, dtype: *dtype, shape, strides, owner })
}

/// The strides of numbers without gaps, row by row.
pub(crate) fn compact(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        // The area fits; where a side is 0 no stride matters.
        strides[i - 1] = i64::saturating_mul(strides[i], shape[i].max(1) as i64);
    }
    strides
}

/// A tensor for others.
pub(crate) struct Exported {
    pub(crate) address: u64,
    /// The number of the CUDA device.
    pub(crate) device: i32,
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// It is nobody else's.
    pub(crate) copied: bool,
    /// Keeps the memory. It holds nothing of Python's: others drop it on any thread, also after the interpreter's end.
    pub(crate) owner: Box<dyn Any + Send>,
}

/// What lies behind an exported capsule: the structure, and what it points to.
struct Kept<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _owner: Box<dyn Any + Send>,
}

/// The capsule of a tensor: of version 1, or as before it.
pub(crate) fn give(py: Python<'_>, tensor: Exported, versioned: bool) -> PyResult<Bound<'_, PyAny>> {
    let Exported { address, device, dtype, shape, copied, owner } = tensor;
    let strides = compact(&shape);
    let shape: Vec<i64> = shape.into_iter().map(|side| side as i64).collect();
    let described = |shape: &mut Vec<i64>, strides: &mut Vec<i64>| DlTensor {
        data: address as *mut c_void,
        device: Device { kind: CUDA as i32, id: device },
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let none = || DlTensor {
        data: ptr::null_mut(),
        device: Device { kind: 0, id: 0 },
        ndim: 0,
        dtype,
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    if versioned {
        let flags = if copied { COPIED } else { READ_ONLY };
        let (manager, deleter) = (ptr::null_mut(), Some(delete_versioned as _));
        let managed = ManagedVersioned { version: VERSION, manager, deleter, flags, tensor: none() };
        let mut kept = Box::new(Kept { managed, shape, strides, _owner: owner });
        kept.managed.tensor = described(&mut kept.shape, &mut kept.strides);
        let kept = Box::into_raw(kept);
        // SAFETY: the box was just made, and lives until the deleter takes it back.
        let managed = unsafe {
            (*kept).managed.manager = kept.cast();
            &raw mut (*kept).managed
        };
        // SAFETY: the structure that the name promises.
        unsafe { capsule(py, managed.cast(), 1, || delete_versioned(managed)) }
    } else {
        let managed = Managed { tensor: none(), manager: ptr::null_mut(), deleter: Some(delete_legacy) };
        let mut kept = Box::new(Kept { managed, shape, strides, _owner: owner });
        kept.managed.tensor = described(&mut kept.shape, &mut kept.strides);
        let kept = Box::into_raw(kept);
        // SAFETY: as above.
        let managed = unsafe {
            (*kept).managed.manager = kept.cast();
            &raw mut (*kept).managed
        };
        // SAFETY: as above.
        unsafe { capsule(py, managed.cast(), 0, || delete_legacy(managed)) }
    }
}

/// A capsule of the version's name.
///
/// # Safety
/// The pointer must be to the structure of that name.
unsafe fn capsule(
    py: Python<'_>,
    pointer: *mut c_void,
    versioned: usize,
    give_back: impl FnOnce(),
) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a pointer that is not null, a name that lives for ever, and a destructor of this signature.
    let made = unsafe { ffi::PyCapsule_New(pointer, NAMES[versioned][0].as_ptr(), Some(not_taken)) };
    if made.is_null() {
        give_back();
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, made) })
}

/// Gives back the tensor of a capsule that nobody took.
unsafe extern "C" fn not_taken(capsule: *mut ffi::PyObject) {
    for (versioned, [name, _]) in NAMES.iter().enumerate() {
        // SAFETY: a capsule of ours, whose name tells the structure; once it has been taken it has another name.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
                let pointer = ffi::PyCapsule_GetPointer(capsule, name.as_ptr());
                match versioned {
                    1 => delete_versioned(pointer.cast()),
                    _ => delete_legacy(pointer.cast()),
                }
            }
        }
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: made by `give`, whose manager is the box.
    unsafe { release::<ManagedVersioned>((*managed).manager) }
}

unsafe extern "C" fn delete_legacy(managed: *mut Managed) {
    // SAFETY: as above.
    unsafe { release::<Managed>((*managed).manager) }
}

/// Drops what lies behind a capsule. Nothing may unwind into the caller.
unsafe fn release<M>(manager: *mut c_void) {
    // SAFETY: `give` made the box, and a deleter is called once.
    let kept = unsafe { Box::from_raw(manager.cast::<Kept<M>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(kept)));
}

/// The stream that a consumer names: `None` is the default stream, −1 says that it orders the work itself.
pub(crate) fn consumer_stream(stream: Option<i64>) -> PyResult<Option<u64>> {
    match stream {
        None => Ok(Some(1)),
        Some(-1) => Ok(None),
        Some(0) => Err(PyValueError::new_err(
            "stream 0 may mean two streams: 1 is CUDA's default stream, 2 the thread's own",
        )),
        Some(handle) => u64::try_from(handle).map(Some).map_err(|_| {
            PyValueError::new_err(format!("stream {handle} is none: expected -1, 1, 2 or a handle"))
        }),
    }
}
