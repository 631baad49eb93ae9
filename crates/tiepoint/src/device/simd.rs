//! The SIMD levels for which code is compiled, and [`dispatch!`], which runs an operation at one of them.
//!
//! On x86-64 there are three: SSE2, AVX2 and AVX-512. A machine between two of them uses the lower one;
//! `fearless_simd`'s SSE4.2 level is left out, because only machines before 2013 would use it. Other architectures have
//! one level, the baseline (NEON on AArch64). [`Cpu::levels`](super::Cpu::levels) lists the levels that are compiled
//! and present, and the tests run at each.

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Avx2, Avx512, Sse2};

/// The SIMD levels to which a [`Cpu`](super::Cpu) can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimdLevel {
    /// The instructions that every CPU of this architecture has (SSE2 on x86-64, NEON on AArch64).
    Baseline,
    /// x86-64-v3: AVX2 and FMA.
    Avx2,
    /// The AVX-512 set of Ice Lake, VNNI included.
    Avx512,
    /// The best level that this machine has.
    Best,
}

/// A level that this machine has, with `fearless_simd`'s proof of it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    Sse2(Sse2),
    Avx2(Avx2),
    Avx512(Avx512),
}

/// The one level of this architecture, with fearless_simd's proof of it.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Level {
    Native(fearless_simd::Level),
}

#[cfg(target_arch = "x86_64")]
impl Level {
    /// The level asked for, or `None` if this machine lacks it.
    pub(super) fn of(level: SimdLevel) -> Option<Self> {
        let present = fearless_simd::Level::new();
        match level {
            SimdLevel::Baseline => present.as_sse2().map(Self::Sse2),
            SimdLevel::Avx2 => present.as_avx2().map(Self::Avx2),
            SimdLevel::Avx512 => present.as_avx512().map(Self::Avx512),
            SimdLevel::Best => {
                [SimdLevel::Avx512, SimdLevel::Avx2, SimdLevel::Baseline].into_iter().find_map(Self::of)
            }
        }
    }

    pub(super) fn best() -> Self {
        Self::of(SimdLevel::Best).unwrap_or_else(|| unreachable!("SSE2 is part of x86-64"))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sse2(_) => "sse2",
            Self::Avx2(_) => "avx2",
            Self::Avx512(_) => "avx512",
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Level {
    pub(super) fn of(level: SimdLevel) -> Option<Self> {
        match level {
            SimdLevel::Baseline | SimdLevel::Best => Some(Self::best()),
            SimdLevel::Avx2 | SimdLevel::Avx512 => None,
        }
    }

    pub(super) fn best() -> Self {
        Self::Native(fearless_simd::Level::baseline())
    }

    pub(super) fn name(self) -> &'static str {
        if cfg!(target_arch = "aarch64") { "neon" } else { "baseline" }
    }
}

/// Runs an operation at a [`Level`]: `dispatch!(level, simd => kernel(simd, input, output))`.
///
/// The operation is compiled once for every level, with the instructions of that level, so it should be one
/// call of a function generic over `S: Simd`.
#[cfg(target_arch = "x86_64")]
macro_rules! dispatch {
    ($level:expr, $simd:ident => $operation:expr) => {{
        use fearless_simd::Simd as _;
        use $crate::device::Level;
        match $level {
            Level::Sse2($simd) => $simd.vectorize(
                #[inline(always)]
                || $operation,
            ),
            Level::Avx2($simd) => $simd.vectorize(
                #[inline(always)]
                || $operation,
            ),
            Level::Avx512($simd) => $simd.vectorize(
                #[inline(always)]
                || $operation,
            ),
        }
    }};
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! dispatch {
    ($level:expr, $simd:ident => $operation:expr) => {{
        let $crate::device::Level::Native(level) = $level;
        fearless_simd::dispatch!(level, $simd => $operation)
    }};
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use crate::device::{Cpu, SimdLevel};
    use fearless_simd::{Simd, prelude::*};

    #[inline(always)]
    fn vector_bytes<S: Simd>(_: S) -> usize {
        S::u8s::LEN
    }

    #[test]
    fn every_level_that_is_compiled_is_listed() {
        let levels = Cpu::levels();
        assert_eq!(levels[0], SimdLevel::Baseline, "lowest first");
        let bytes = |level| {
            let cpu = Cpu::sequential().at_level(level).unwrap();
            dispatch!(cpu.level(), simd => vector_bytes(simd))
        };
        for &level in &levels {
            let expected = match level {
                SimdLevel::Baseline => 16,
                SimdLevel::Avx2 => 32,
                SimdLevel::Avx512 => 64,
                SimdLevel::Best => panic!("a name for another level"),
            };
            assert_eq!(bytes(level), expected, "{level:?}");
        }
        assert_eq!(bytes(levels[levels.len() - 1]), bytes(SimdLevel::Best), "the last is the best");
    }
}
