//! The SIMD levels that stereo is compiled for.

/// Runs an expression at a SIMD level. On x86-64 it is compiled for three levels: that between SSE2 and AVX2 would only
/// cost time to build.
macro_rules! at_level {
    ($level:expr, $simd:ident => $body:expr) => {{
        let level: fearless_simd::Level = $level;
        #[cfg(target_arch = "x86_64")]
        if let Some($simd) = level.as_avx512() {
            $body
        } else if let Some($simd) = level.as_avx2() {
            $body
        } else if let Some($simd) = level.as_sse2() {
            $body
        } else {
            unreachable!("x86-64 has SSE2")
        }
        #[cfg(not(target_arch = "x86_64"))]
        fearless_simd::dispatch!(level, $simd => $body)
    }};
}
