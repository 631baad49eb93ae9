// The dialect, for OpenCL C 1.2. Its twin is cuda.h.
#pragma OPENCL FP_CONTRACT OFF
#define OPENCL 1
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
typedef uchar2 u8x2;
typedef ushort2 u16x2;
typedef int2 i32x2;
typedef float2 f32x2;
typedef uchar4 u8x4;
typedef ushort4 u16x4;
typedef short4 i16x4;
typedef int4 i32x4;
typedef float4 f32x4;
typedef uint4 u32x4;
typedef ulong2 u64x2;
#define U32X4(a, b, c, d) ((uint4)(a, b, c, d))
#define U64X2(a, b) ((ulong2)(a, b))

#define KERNEL_OF(width, height) __kernel __attribute__((reqd_work_group_size(width, height, 1))) void
#define KERNEL_RESIDENT(width, height, groups) KERNEL_OF(width, height)
// Of a declared kernel, KERNEL(name); with its size, KERNEL(width, height).
#define KERNEL(...) KERNEL_PICK(__VA_ARGS__, KERNEL_OF, KERNEL_DECLARED, 0)(__VA_ARGS__)
#define KERNEL_PICK(a, b, pick, ...) pick
#define KERNEL_DECLARED(name) KERNEL_##name
#define FUNCTION static inline
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_POINTER __local
#define CONSTANT __constant
#define CONSTANT_POINTER __constant
#define RESTRICT restrict
#ifndef UNROLL
#define UNROLL _Pragma("unroll")
#endif

#define LANE_X ((i32)get_local_id(0))
#define LANE_Y ((i32)get_local_id(1))
#define GROUP_X ((i32)get_group_id(0))
#define GROUP_Y ((i32)get_group_id(1))
#define GROUP_Z ((i32)get_group_id(2))
#define GROUPS_X ((i32)get_num_groups(0))
#define GROUPS_Y ((i32)get_num_groups(1))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)

#define FMA(a, b, c) fma(a, b, c)
#define SQRT(a) sqrt(a)
#define ABS(a) fabs(a)
#define FLOOR(a) floor(a)
#define ROUND_EVEN(a) rint(a)
#define MIN_F(a, b) fmin(a, b)
#define MAX_F(a, b) fmax(a, b)
#define MIN_I(a, b) min((i32)(a), (i32)(b))
#define MAX_I(a, b) max((i32)(a), (i32)(b))
#define BITS_OF(f) as_uint(f)
#define FLOAT_OF(bits) as_float(bits)

// Sum of `c` and the four products of the bytes of `a` and `b`.
FUNCTION u32 DOT4(u32 a, u32 b, u32 c) {
#ifdef cl_nv_pragma_unroll
    // NVIDIA has an instruction for it, which its OpenCL C has no name for.
    u32 sum;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
    return sum;
#else
    return c + (a & 255) * (b & 255) + (a >> 8 & 255) * (b >> 8 & 255) + (a >> 16 & 255) * (b >> 16 & 255)
        + (a >> 24) * (b >> 24);
#endif
}

#define ATOMIC_ADD(pointer, value) atomic_add(pointer, value)
#define ATOMIC_MAX(pointer, value) atomic_max(pointer, value)
#define ATOMIC_OR(pointer, value) atomic_or(pointer, value)
#define ATOMIC_EXCHANGE(pointer, value) atomic_xchg(pointer, value)
