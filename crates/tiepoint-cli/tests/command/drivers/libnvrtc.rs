//! A stand-in for NVRTC that compiles nothing. Tests compile it on its own; `STAND_IN` sets its answers (`libcuda.rs`).

use std::ffi::{c_char, c_int};

include!("told.rs");

const ARCHITECTURES: [c_int; 3] = [75, 80, 90];
const LOG: &[u8] = b"the stand-in does not like this\0";

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    unsafe { (*major, *minor) = (12, 9) };
    told("nvrtcVersion", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetNumSupportedArchs(number: *mut c_int) -> u32 {
    unsafe { *number = ARCHITECTURES.len() as c_int };
    told("nvrtcGetNumSupportedArchs", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetSupportedArchs(to: *mut c_int) -> u32 {
    unsafe { std::ptr::copy_nonoverlapping(ARCHITECTURES.as_ptr(), to, ARCHITECTURES.len()) };
    told("nvrtcGetSupportedArchs", 0)
}

answers! {
    nvrtcCreateProgram nvrtcCompileProgram nvrtcGetCUBIN nvrtcGetPTX nvrtcGetPTXSize nvrtcDestroyProgram
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetCUBINSize(_: usize, bytes: *mut usize) -> u32 {
    unsafe { *bytes = 8 };
    told("nvrtcGetCUBINSize", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLogSize(_: usize, bytes: *mut usize) -> u32 {
    unsafe { *bytes = LOG.len() };
    told("nvrtcGetProgramLogSize", 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvrtcGetProgramLog(_: usize, to: *mut c_char) -> u32 {
    unsafe { std::ptr::copy_nonoverlapping(LOG.as_ptr().cast(), to, LOG.len()) };
    told("nvrtcGetProgramLog", 0)
}
