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

#define KERNEL(width, height) __kernel __attribute__((reqd_work_group_size(width, height, 1))) void
#define KERNEL_RESIDENT(width, height, groups) KERNEL(width, height)
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

#define ATOMIC_ADD(pointer, value) atomic_add(pointer, value)
#define ATOMIC_MAX(pointer, value) atomic_max(pointer, value)
#define ATOMIC_OR(pointer, value) atomic_or(pointer, value)
#define ATOMIC_EXCHANGE(pointer, value) atomic_xchg(pointer, value)
