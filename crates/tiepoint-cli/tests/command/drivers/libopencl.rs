//! A stand-in for OpenCL's loader, which knows one platform. Tests compile it on its own; `STAND_IN` sets its answers
//! as in `libcuda.rs`, with OpenCL's negative codes.

include!("told.rs");

/// Writes a count, and a handle if there is room for one.
unsafe fn list(to: *mut usize, count: *mut u32) {
    unsafe {
        if !to.is_null() {
            *to = 64;
        }
        if !count.is_null() {
            *count = 1;
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clGetPlatformIDs(_: u32, to: *mut usize, count: *mut u32) -> i32 {
    unsafe { list(to, count) };
    told("clGetPlatformIDs", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clGetDeviceIDs(_: usize, _: u64, _: u32, to: *mut usize, count: *mut u32) -> i32 {
    unsafe { list(to, count) };
    told("clGetDeviceIDs", 0)
}

#[unsafe(no_mangle)]
extern "C" fn clGetDeviceInfo() -> i32 {
    told("clGetDeviceInfo", -5)
}
