//! A stand-in for the elementary functions of the C library: each result is a millionth off, and each call writes the
//! function's name to the file that `STAND_IN` names. It is loaded before the C library; tests compile it on its own.

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::mem::transmute;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The function of this name in the C library.
fn real(name: &CStr) -> *mut c_void {
    const NEXT: *mut c_void = -1_isize as *mut c_void;
    if let Some(path) = std::env::var_os("STAND_IN") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(&[name.to_bytes(), b"\n"].concat()).unwrap();
    }
    let found = unsafe { dlsym(NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "the C library has no {name:?}");
    found
}

macro_rules! off {
    ($number:ty: $($name:ident)*; $($of_two:ident)*; $both:ident) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(x: $number) -> $number {
            let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).unwrap();
            let real: extern "C" fn($number) -> $number = unsafe { transmute(real(name)) };
            real(x) * 1.000_001
        })*
        $(#[unsafe(no_mangle)]
        extern "C" fn $of_two(x: $number, y: $number) -> $number {
            let name = CStr::from_bytes_with_nul(concat!(stringify!($of_two), "\0").as_bytes()).unwrap();
            let real: extern "C" fn($number, $number) -> $number = unsafe { transmute(real(name)) };
            real(x, y) * 1.000_001
        })*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $both(x: $number, s: *mut $number, c: *mut $number) {
            let name = CStr::from_bytes_with_nul(concat!(stringify!($both), "\0").as_bytes()).unwrap();
            unsafe {
                let real: extern "C" fn($number, *mut $number, *mut $number) = transmute(real(name));
                real(x, s, c);
                (*s, *c) = (*s * 1.000_001, *c * 1.000_001);
            }
        }
    };
}

off! { f64: log log1p log2 log10 exp exp2 exp10 expm1 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh cbrt;
    pow atan2 hypot; sincos }
off! { f32: logf log1pf log2f log10f expf exp2f exp10f expm1f sinf cosf tanf asinf acosf atanf sinhf coshf tanhf asinhf
    acoshf atanhf cbrtf; powf atan2f hypotf; sincosf }
