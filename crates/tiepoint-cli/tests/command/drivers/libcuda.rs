//! A stand-in for NVIDIA's driver, with one card that computes nothing. Tests compile it on its own.
//!
//! Every function answers with success, or with the code that the variable `STAND_IN` names:
//! `cuInit=803 cuGraphLaunch=719`. It may also name the `version` of the driver, the `count` of cards, their
//! `capability`, `room`: the bytes of the largest allocation that succeeds, and `slow`: the milliseconds that `cuInit` takes.
//! Like the real one, it has an exit handler that fails while `cuInit` runs.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

include!("told.rs");

/// A handle that is not null, and stands for nothing.
const HANDLE: usize = 64;

/// Functions that write one value to where their first argument points.
macro_rules! writes {
    ($($name:ident: $kind:ty = $value:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(to: *mut $kind) -> u32 {
            let answer = told(stringify!($name), 0);
            if answer == 0 {
                unsafe { *to = $value };
            }
            answer
        }
    )* };
}

writes! {
    cuDriverGetVersion: c_int = told("version", 13_000) as c_int;
    cuDeviceGetCount: c_int = told("count", 1) as c_int;
    cuDeviceGet: c_int = 0;
    cuDeviceTotalMem_v2: usize = 1 << 34;
    cuDevicePrimaryCtxRetain: usize = HANDLE;
    cuStreamCreate: usize = HANDLE;
    cuStreamCreateWithPriority: usize = HANDLE;
    cuEventCreate: usize = HANDLE;
    cuEventElapsedTime_v2: f32 = 1.0;
    cuModuleLoadData: usize = HANDLE;
    cuModuleGetFunction: usize = HANDLE;
    cuFuncGetAttribute: c_int = 1024;
    cuGraphInstantiateWithFlags: usize = HANDLE;
}

answers! {
    cuDevicePrimaryCtxRelease_v2 cuCtxSetCurrent cuStreamDestroy_v2 cuStreamBeginCapture_v2 cuStreamSynchronize
    cuStreamWaitEvent cuEventRecord cuEventSynchronize cuEventDestroy_v2 cuModuleUnload cuLaunchKernel cuMemFree_v2
    cuMemFreeHost cuMemcpyDtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2 cuMemsetD8Async cuGraphDestroy
    cuGraphExecDestroy cuGraphLaunch cuCtxRecordEvent cuEventQuery cuMemcpy2DAsync_v2 cuPointerGetAttributes
    cuStreamIsCapturing cuFuncSetAttribute cuCtxGetStreamPriorityRange
}

static STARTING: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    safe fn atexit(handler: extern "C" fn()) -> c_int;
}

extern "C" fn at_exit() {
    if STARTING.load(Ordering::SeqCst) {
        std::process::abort();
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuInit(_: u32) -> u32 {
    if !STARTING.swap(true, Ordering::SeqCst) {
        atexit(at_exit);
    }
    std::thread::sleep(std::time::Duration::from_millis(told("slow", 0)));
    STARTING.store(false, Ordering::SeqCst);
    told("cuInit", 0)
}

#[unsafe(no_mangle)]
extern "C" fn cuGetErrorString(_: u32, _: *mut *const c_char) -> u32 {
    told("cuGetErrorString", 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(to: *mut c_char, len: c_int, _: c_int) -> u32 {
    let name: &CStr = c"Stand-in";
    assert!(name.count_bytes() < len as usize, "room for the name");
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), to, name.count_bytes() + 1) };
    told("cuDeviceGetName", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(to: *mut c_int, which: u32, _: c_int) -> u32 {
    let capability = told("capability", 90);
    let value = match which {
        75 => capability / 10,
        76 => capability % 10,
        _ => 1024,
    };
    unsafe { *to = value as c_int };
    told("cuDeviceGetAttribute", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> u32 {
    unsafe { *to = 1 << 20 };
    if bytes > told("room", u32::MAX) as usize { 2 } else { 0 }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    unsafe { (*free, *total) = (4096, 1 << 34) };
    told("cuMemGetInfo_v2", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemHostAlloc(to: *mut *mut c_void, bytes: usize, _: u32) -> u32 {
    unsafe { *to = vec![0_u64; bytes.div_ceil(8)].leak().as_mut_ptr().cast() };
    told("cuMemHostAlloc", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(_: usize, graph: *mut usize) -> u32 {
    unsafe { *graph = HANDLE };
    told("cuStreamEndCapture", 0)
}
