//! Whether the SIMD code of an optimised program is compiled with its instruction sets.
//!
//! An operation of `fearless_simd` becomes one instruction where it is inlined into code of its instruction set, and a
//! call where that code was outlined without: a closure that is not `#[inline(always)]`, or a generic function called
//! outside `dispatch!`. Results stay the same and no test notices, but a loop of such calls takes tens of times as
//! long (`docs/notebook/matching.md`).

use crate::{Result, told};
use std::path::Path;
use std::process::Command;

/// Fails if operations are functions in `program`; the error names them and says what to do.
pub(crate) fn check(program: &Path) -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("instruction sets: not checked, which is done on x86-64 Linux");
        return Ok(());
    }
    let symbols = told(Command::new("nm").args(["--demangle", "--defined-only"]).arg(program));
    let symbols = symbols.map_err(|e| format!("nm, of binutils, lists what a program holds: {e}"))?;
    if !symbols.contains("vectorize_avx2") {
        return Err(format!("{} holds no SIMD code that nm could show: was it stripped?", program.display()));
    }
    let outlined: Vec<_> = symbols.lines().filter(|line| is_operation(line)).collect();
    if outlined.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} calls SIMD operations as functions, from code compiled without their instruction set:\n{}\n\
         Find the callers (objdump --disassemble --demangle) and make their closures and functions #[inline(always)], \
         or call them through dispatch!.",
        program.display(),
        outlined.join("\n")
    ))
}

/// Whether a symbol is a function for one operation of a SIMD level or one instruction that not every x86-64 CPU has.
fn is_operation(symbol: &str) -> bool {
    (symbol.contains("simd_trait::Simd>::") && symbol.contains("::kernel::"))
        || symbol.contains("core_arch::x86::avx")
}

#[cfg(test)]
mod tests {
    use super::is_operation;

    #[test]
    fn operations_are_distinguished_from_kernels() {
        let outlined = "t <fearless_simd::generated::avx512::Avx512 as fearless_simd::generated::simd_trait::Simd>::\
                        mul_add_f32x16::kernel::__fearless_simd_kernel";
        assert!(is_operation(outlined));
        assert!(is_operation("t core::core_arch::x86::avx512f::_mm512_add_ps"));
        let level = "t <fearless_simd::generated::avx2::Avx2 as fearless_simd::generated::simd_trait::Simd>::\
                     vectorize::vectorize_avx2";
        for whole in [
            level,
            "t tiepoint::matching::product::quads_avx512::__fearless_simd_kernel",
            "t core::core_arch::x86::sse2::_mm_movemask_epi8",
        ] {
            assert!(!is_operation(whole), "{whole}");
        }
    }
}
