//! `fma` and `fmaf` for Windows with mingw-w64, whose C library rounds both twice. `mul_add` calls them where the
//! instruction is not compiled in; the linker takes these instead, which round once as IEEE 754 demands.

#![expect(unsafe_code, reason = "the names are those of the C library")]

#[unsafe(no_mangle)]
extern "C" fn fma(a: f64, b: f64, c: f64) -> f64 {
    libm::fma(a, b, c)
}

#[unsafe(no_mangle)]
extern "C" fn fmaf(a: f32, b: f32, c: f32) -> f32 {
    libm::fmaf(a, b, c)
}
