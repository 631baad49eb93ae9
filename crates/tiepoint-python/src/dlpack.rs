//! DLPack: tensors in capsules, between Python libraries of one process (dmlc/dlpack, version 1.1, and 0.8 before it).
//!
//! A capsule holds a structure with a shape, strides, an address and a function that frees everything. The consumer of
//! the capsule renames it, and calls that function once, on any thread. Capsules of other libraries are checked field
//! by field, and the device is asked whether there is memory at the address ([`Gpu::foreign`]).
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

/// The version of these structures.
pub(crate) const VERSION: [u32; 2] = [1, 1];
/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
const COPIED: u64 = 2;

/// The most dimensions of a tensor, as in other libraries.
const MOST_DIMENSIONS: i32 = 64;

/// A type of number (`kDLInt`, `kDLUInt`, `kDLFloat`, `kDLBool`, …) and its bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

impl DataType {
    pub(crate) const I8: Self = Self { code: 0, bits: 8, lanes: 1 };
    pub(crate) const I64: Self = Self { code: 0, bits: 64, lanes: 1 };
    pub(crate) const U8: Self = Self { code: 1, bits: 8, lanes: 1 };
    pub(crate) const U16: Self = Self { code: 1, bits: 16, lanes: 1 };
    pub(crate) const F32: Self = Self { code: 2, bits: 32, lanes: 1 };
    pub(crate) const BOOL: Self = Self { code: 6, bits: 8, lanes: 1 };
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct DlTensor {
    data: *mut c_void,
    pub(crate) device: Device,
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
    deleter: Option<Deleter<Self>>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: Option<Deleter<Self>>,
    flags: u64,
    tensor: DlTensor,
}

/// The function that frees a tensor.
type Deleter<M> = unsafe extern "C" fn(*mut M);

/// The structure in a capsule: that of version 1, or the one before it.
trait Structure: Sized {
    /// The names of capsules before and after they are consumed.
    const NAMES: [&CStr; 2];

    /// Without a manager. If `copied`, the memory is the consumer's alone.
    fn of(tensor: DlTensor, deleter: Deleter<Self>, copied: bool) -> Self;
    fn tensor(&mut self) -> &mut DlTensor;
    fn manager(&mut self) -> &mut *mut c_void;
    fn deleter(&self) -> Option<Deleter<Self>>;
    /// The version, if its major number is not ours. Every version of the structure begins with it.
    fn other_version(&self) -> Option<[u32; 2]>;
}

impl Structure for Managed {
    const NAMES: [&CStr; 2] = [c"dltensor", c"used_dltensor"];

    fn of(tensor: DlTensor, deleter: Deleter<Self>, _copied: bool) -> Self {
        Self { tensor, manager: ptr::null_mut(), deleter: Some(deleter) }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn manager(&mut self) -> &mut *mut c_void {
        &mut self.manager
    }
    fn deleter(&self) -> Option<Deleter<Self>> {
        self.deleter
    }
    fn other_version(&self) -> Option<[u32; 2]> {
        None
    }
}

impl Structure for ManagedVersioned {
    const NAMES: [&CStr; 2] = [c"dltensor_versioned", c"used_dltensor_versioned"];

    fn of(tensor: DlTensor, deleter: Deleter<Self>, copied: bool) -> Self {
        let flags = if copied { COPIED } else { READ_ONLY };
        Self { version: VERSION, manager: ptr::null_mut(), deleter: Some(deleter), flags, tensor }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn manager(&mut self) -> &mut *mut c_void {
        &mut self.manager
    }
    fn deleter(&self) -> Option<Deleter<Self>> {
        self.deleter
    }
    fn other_version(&self) -> Option<[u32; 2]> {
        (self.version[0] != VERSION[0]).then_some(self.version)
    }
}

/// A tensor that was taken out of its capsule; dropping it calls the producer's deleter.
pub(crate) struct Taken {
    structure: *mut c_void,
    give_back: unsafe fn(*mut c_void),
}

// SAFETY: only the deleter is called, which DLPack allows on any thread.
unsafe impl Send for Taken {}
// SAFETY: as above; nothing is done by reference.
unsafe impl Sync for Taken {}

impl Drop for Taken {
    fn drop(&mut self) {
        // SAFETY: reads a flag. Deleters may take the interpreter's lock, which hangs after the interpreter has ended;
        // the tensor is then left to the end of the process.
        if unsafe { ffi::Py_IsInitialized() } != 0 {
            // SAFETY: the structure was taken once, and is given back once.
            unsafe { (self.give_back)(self.structure) }
        }
    }
}

/// # Safety
/// The pointer must be to a structure of this kind that has not been given back.
unsafe fn give_back<M: Structure>(structure: *mut c_void) {
    let structure = structure.cast::<M>();
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(delete) = (*structure).deleter() {
            delete(structure);
        }
    }
}

/// The contents of a capsule, checked as far as possible without the device.
pub(crate) struct Imported {
    pub(crate) address: u64,
    /// The kind of device, such as `kDLCUDA`, and its number.
    pub(crate) device: (i64, i64),
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    pub(crate) strides: Vec<i64>,
    pub(crate) owner: Taken,
}

fn refused(what: &str, why: &str) -> PyErr {
    PyBufferError::new_err(format!("{what}: {why}"))
}

/// Takes the tensor out of a capsule; `what` names it in errors.
pub(crate) fn take(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Imported> {
    let is = |name: &CStr| has_name(capsule.as_ptr(), name);
    let used = [ManagedVersioned::NAMES[1], Managed::NAMES[1]];
    if is(ManagedVersioned::NAMES[0]) {
        take_structure::<ManagedVersioned>(capsule, what)
    } else if is(Managed::NAMES[0]) {
        take_structure::<Managed>(capsule, what)
    } else if used.into_iter().any(is) {
        Err(refused(what, "its DLPack capsule was used before; each serves once"))
    } else {
        Err(refused(what, "__dlpack__ gave no DLPack capsule"))
    }
}

/// Takes a tensor that a producer passed without a capsule.
///
/// # Safety
/// The pointer must be to a `DLManagedTensorVersioned` that has no other owner.
pub(crate) unsafe fn take_versioned(structure: *mut c_void, what: &str) -> PyResult<Imported> {
    // SAFETY: the caller's promise.
    let managed = unsafe { &mut *structure.cast::<ManagedVersioned>() };
    let owner = Taken { structure, give_back: give_back::<ManagedVersioned> };
    match managed.other_version() {
        Some(version) => Err(other_version(version, what)),
        None => checked(*managed.tensor(), owner, what),
    }
}

fn other_version([major, minor]: [u32; 2], what: &str) -> PyErr {
    refused(what, &format!("its DLPack tensor is of version {major}.{minor}: expected {}", VERSION[0]))
}

pub(crate) fn has_name(object: *mut ffi::PyObject, name: &CStr) -> bool {
    // SAFETY: any object may be asked; no exception is raised.
    unsafe { ffi::PyCapsule_IsValid(object, name.as_ptr()) == 1 }
}

/// Takes the tensor out of a capsule that has this structure's name.
fn take_structure<M: Structure>(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Imported> {
    let [name, used] = M::NAMES;
    // SAFETY: a capsule of this name, whose pointer is not null.
    let structure = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) };
    // SAFETY: the name tells the structure.
    let managed = unsafe { &mut *structure.cast::<M>() };
    if let Some(version) = managed.other_version() {
        return Err(other_version(version, what));
    }
    // SAFETY: a valid capsule, and a name that lives for ever. From here on the tensor is ours.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    checked(*managed.tensor(), Taken { structure, give_back: give_back::<M> }, what)
}

/// Checks a tensor, which is a copy of the structure's. `owner` frees that structure; it is dropped if the tensor is
/// refused.
fn checked(tensor: DlTensor, owner: Taken, what: &str) -> PyResult<Imported> {
    let wrong = |why: &str| Err(refused(what, why));
    let DlTensor { data, device, ndim, dtype, shape, strides, byte_offset } = &tensor;
    if !(0..=MOST_DIMENSIONS).contains(ndim) {
        return wrong(&format!("its DLPack capsule has {ndim} dimensions: expected 0 to {MOST_DIMENSIONS}"));
    }
    let n = ndim.unsigned_abs() as usize;
    if n > 0 && shape.is_null() {
        return wrong("its DLPack capsule has no shape");
    }
    // SAFETY: as many numbers as there are dimensions, whose count was checked; the pointer is not null.
    let sides = if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(*shape, n) } };
    if dtype.lanes != 1 || dtype.bits == 0 || !dtype.bits.is_multiple_of(8) {
        return wrong(&format!(
            "its DLPack capsule holds numbers of {} bits in {} lanes: expected whole bytes in one lane",
            dtype.bits, dtype.lanes
        ));
    }
    let shape = shape_of(sides, usize::from(dtype.bits / 8));
    let shape = shape.map_err(|why| refused(what, &format!("its DLPack capsule {why}")))?;
    let strides = if n == 0 {
        Vec::new()
    } else if strides.is_null() {
        compact(&shape)
    } else {
        // SAFETY: as the shape.
        unsafe { std::slice::from_raw_parts(*strides, n) }.to_vec()
    };
    if data.is_null() && !shape.contains(&0) {
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

impl DlTensor {
    /// An empty description, to be filled in by a producer.
    pub(crate) const fn empty() -> Self {
        Self {
            data: ptr::null_mut(),
            device: Device { kind: 0, id: 0 },
            ndim: 0,
            dtype: DataType::U8,
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        }
    }
}

/// The shape of an array with these sides, whose numbers have so many bytes; the error says what is wrong with it.
pub(crate) fn shape_of(sides: &[i64], bytes: usize) -> Result<Vec<usize>, String> {
    let shape: Option<Vec<usize>> = sides.iter().map(|&side| usize::try_from(side).ok()).collect();
    let shape = shape.ok_or_else(|| format!("has the shape {sides:?}: negative sides mean nothing"))?;
    let all = shape.iter().try_fold(bytes, |all, &side| all.checked_mul(side));
    match all.is_some_and(|all| isize::try_from(all).is_ok()) {
        true => Ok(shape),
        false => Err(format!("has the shape {shape:?}, which exceeds memory")),
    }
}

/// The strides of an array without gaps, row by row.
pub(crate) fn compact(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        // The area fits; if a side is 0, strides do not matter.
        strides[i - 1] = i64::saturating_mul(strides[i], shape[i].max(1) as i64);
    }
    strides
}

pub(crate) struct Exported {
    pub(crate) address: u64,
    /// The number of the CUDA device.
    pub(crate) device: i32,
    pub(crate) dtype: DataType,
    pub(crate) shape: Vec<usize>,
    /// The memory is the consumer's alone.
    pub(crate) copied: bool,
    /// Keeps the memory. It contains no Python objects, because consumers drop it on any thread, even after the
    /// interpreter has ended.
    pub(crate) owner: Box<dyn Any + Send>,
}

/// The memory behind an exported capsule: the structure, and the data that it points to.
struct Kept<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _owner: Box<dyn Any + Send>,
}

/// The capsule of a tensor, `versioned` or of the form before version 1.
pub(crate) fn give(py: Python<'_>, exported: Exported, versioned: bool) -> PyResult<Bound<'_, PyAny>> {
    match versioned {
        true => give_structure::<ManagedVersioned>(py, exported),
        false => give_structure::<Managed>(py, exported),
    }
}

fn give_structure<M: Structure>(py: Python<'_>, exported: Exported) -> PyResult<Bound<'_, PyAny>> {
    let Exported { address, device, dtype, shape, copied, owner } = exported;
    let strides = compact(&shape);
    let shape: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
    let device = Device { kind: CUDA as i32, id: device };
    let (data, ndim) = (address as *mut c_void, shape.len() as i32);
    let tensor = DlTensor { data, device, ndim, dtype, ..DlTensor::empty() };
    let managed = M::of(tensor, delete::<M>, copied);
    let mut kept = Box::new(Kept { managed, shape, strides, _owner: owner });
    let (shape, strides) = (kept.shape.as_mut_ptr(), kept.strides.as_mut_ptr());
    (kept.managed.tensor().shape, kept.managed.tensor().strides) = (shape, strides);
    let kept = Box::into_raw(kept);
    // SAFETY: the box was just made, and lives until the deleter takes it back.
    let managed = unsafe {
        *(*kept).managed.manager() = kept.cast();
        &raw mut (*kept).managed
    };
    // SAFETY: a pointer that is not null, a name that lives for ever, and a destructor of this signature.
    let made = unsafe { ffi::PyCapsule_New(managed.cast(), M::NAMES[0].as_ptr(), Some(not_taken::<M>)) };
    if made.is_null() {
        // SAFETY: it has no other owner.
        unsafe { delete(managed) };
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a new reference.
    Ok(unsafe { Bound::from_owned_ptr(py, made) })
}

/// Frees the tensor of a capsule that was never consumed; a consumed one has another name.
unsafe extern "C" fn not_taken<M: Structure>(capsule: *mut ffi::PyObject) {
    let name = M::NAMES[0];
    if has_name(capsule, name) {
        // SAFETY: the capsule is ours, and its name tells which structure it holds.
        unsafe { delete(ffi::PyCapsule_GetPointer(capsule, name.as_ptr()).cast::<M>()) }
    }
}

/// The deleter: drops the memory behind a capsule. Nothing may unwind into the caller.
unsafe extern "C" fn delete<M: Structure>(managed: *mut M) {
    // SAFETY: `give_structure` made the box, which is the manager, and a deleter is called once.
    let kept = unsafe { Box::from_raw((*(*managed).manager()).cast::<Kept<M>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(kept)));
}

/// The stream that a consumer names: `None` is the default stream; −1 means that the consumer orders the work itself.
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
