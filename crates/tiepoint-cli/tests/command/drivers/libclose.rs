//! A stand-in for `close` of the C library: as a network file system may, it reports a full disk only on closing, for
//! files whose names contain the value of `NO_ROOM`. It is loaded before the C library; tests compile it on its own.

use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

/// `EDQUOT` of Linux.
const QUOTA_EXCEEDED: c_int = 122;

#[unsafe(no_mangle)]
extern "C" fn close(file: c_int) -> c_int {
    const NEXT: *mut c_void = -1_isize as *mut c_void;
    let real: extern "C" fn(c_int) -> c_int =
        unsafe { std::mem::transmute(dlsym(NEXT, c"close".as_ptr())) };
    let path = std::fs::read_link(format!("/proc/self/fd/{file}")).unwrap_or_default();
    let closed = real(file);
    match std::env::var("NO_ROOM") {
        Ok(name) if path.to_string_lossy().contains(&name) => {
            unsafe { *__errno_location() = QUOTA_EXCEEDED };
            -1
        }
        _ => closed,
    }
}
