//! The language of the kernels: the part of C that CUDA C++ and OpenCL C 1.2 share, under macros for the rest.
//!
//! A kernel is written once; its parameters are those that [`crate::kernel!`] declares in Rust, the values in `args`,
//! whose arrays take constant indices only (Mesa 22.3 ends the program at one that differs from lane to lane):
//!
//! ```c
//! KERNEL(add) {
//!     i32 x = GROUP_X * 32 + LANE_X, y = GROUP_Y * 8 + LANE_Y;
//!     u64 at = (u64)y * args.width + x;
//!     if (x < args.width && y < args.height) out[at] = FMA(a[at], 2.0f, 1.0f);
//! }
//! ```
//!
//! Numbers are `u8` to `u64`, `i8` to `i64`, `f32` and, where the device has it, `f64`. `UNROLL` before a loop with
//! constant bounds unrolls it, so that arrays indexed in it lie in registers (not on a CPU).
//!
//! `FUNCTION` opens a function that kernels call; its pointers are `GLOBAL`, `LOCAL_POINTER` or `CONSTANT_POINTER`.
//! `LOCAL f32 tile[64]` inside a kernel is memory of the work group, `BARRIER()` must be reached by all of it. The
//! `ATOMIC` operations take buffers that are declared `write`. A loop with barriers that is
//! followed by other code must be a `do` loop, so that every group that reaches it enters it; a group with no work
//! returns before. PoCL 5.0 compiles kernels that break this rule differently each time, sometimes wrongly: variables
//! of a lane then get the values of the group's last lane (`docs/notebook/gpu.md`).
//! `u8x4`, `u16x4`, `i16x4`, `i32x4`, `u32x4`, `f32x4`, and `u8x2`, `u16x2`, `i32x2`, `f32x2`, `u64x2` have members x,
//! y (z, w), for accesses of up to 16 bytes at aligned places; `U32X4(a, b, c, d)` and `U64X2(a, b)` make them.
//!
//! **Arithmetic.** `+ - * /` and `SQRT` are the correctly rounded ones of IEEE 754, never fused; `FMA` is fused.
//! Denormals are kept. So a kernel has the bits of Rust's `+ - * /`, `sqrt` and `mul_add`; a test checks this on every
//! device. `IS_FINITE` and, of an `f64`, `IS_FINITE_F64` are false of infinities and NaN. Library functions (`exp`,
//! `atan2`, …) differ from device to device and are not used.

pub(crate) const CUDA: &str = include_str!("cuda.h");
pub(crate) const OPENCL: &str = include_str!("opencl.h");
