// The dialect, for CUDA C++ (NVRTC). Its twin is opencl.h.
#define CUDA 1
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
// Two or four numbers side by side, aligned to their size: .x .y .z .w.
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
typedef ulonglong2 u64x2;
#define U32X4(a, b, c, d) make_uint4(a, b, c, d)
#define U64X2(a, b) make_ulonglong2(a, b)

#define KERNEL_OF(width, height) extern "C" __global__ void __launch_bounds__((width) * (height))
#define KERNEL_RESIDENT(width, height, groups) \
    extern "C" __global__ void __launch_bounds__((width) * (height), groups)
// The head of a declared kernel.
#define KERNEL(name) KERNEL_##name
#define FUNCTION static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_POINTER
#define CONSTANT static __constant__
#define CONSTANT_POINTER
#define RESTRICT __restrict__
#define UNROLL _Pragma("unroll")

#define LANE_X ((i32)threadIdx.x)
#define LANE_Y ((i32)threadIdx.y)
#define GROUP_X ((i32)blockIdx.x)
#define GROUP_Y ((i32)blockIdx.y)
#define GROUP_Z ((i32)blockIdx.z)
#define GROUPS_X ((i32)gridDim.x)
#define GROUPS_Y ((i32)gridDim.y)
#define BARRIER() __syncthreads()
#define FENCE() __threadfence()

#define FMA(a, b, c) __fmaf_rn(a, b, c)
#define SQRT(a) __fsqrt_rn(a)
#define ABS(a) fabsf(a)
#define FLOOR(a) floorf(a)
#define ROUND_EVEN(a) rintf(a)
#define MIN_F(a, b) fminf(a, b)
#define MAX_F(a, b) fmaxf(a, b)
#define MIN_I(a, b) min((i32)(a), (i32)(b))
#define MAX_I(a, b) max((i32)(a), (i32)(b))
#define BITS_OF(f) __float_as_uint(f)
#define FLOAT_OF(bits) __uint_as_float(bits)
#define BITS_OF_F64(f) ((u64)__double_as_longlong(f))
#define F64_OF(bits) __longlong_as_double((i64)(bits))
// Whether a number is neither infinite nor NaN.
#define IS_FINITE(f) ((BITS_OF(f) & 0x7f800000u) != 0x7f800000u)
#define IS_FINITE_F64(f) ((BITS_OF_F64(f) & 0x7ff0000000000000ul) != 0x7ff0000000000000ul)

// Sum of `c` and the four products of the bytes of `a` and `b`.
#if __CUDA_ARCH__ >= 610
#define DOT4(a, b, c) __dp4a((u32)(a), (u32)(b), (u32)(c))
#endif

#define ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define ATOMIC_MAX(pointer, value) atomicMax(pointer, value)
#define ATOMIC_OR(pointer, value) atomicOr(pointer, value)
#define ATOMIC_EXCHANGE(pointer, value) atomicExch(pointer, value)
#define ATOMIC_MIN(pointer, value) atomicMin(pointer, value)

// Exchange between the lanes of a warp, 32 neighbours in the first dimension of the group, which must all take part.
// In each run of `lanes` neighbours the first gets its own number from SHUFFLE_UP, the last from SHUFFLE_DOWN.
#define SHUFFLE_UP(value, lanes) __shfl_up_sync(~0u, value, 1, lanes)
#define SHUFFLE_DOWN(value, lanes) __shfl_down_sync(~0u, value, 1, lanes)
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(~0u, value, mask)
// Four of the bytes of `a` (numbers 0 to 3) and `b` (4 to 7), whose numbers are the digits of `selector`, lowest first.
#define BYTE_PERM(a, b, selector) __byte_perm(a, b, selector)
#define WARP_SYNC() __syncwarp()
// COPY_ASYNC starts a copy of a word from global to local memory, which runs beside the following instructions
// (cp.async). The copies of a lane have arrived after its COPY_WAIT_ALL. COPY_COMMIT ends a batch of them; after
// COPY_WAIT(n) all batches except the last n have arrived.
#if __CUDA_ARCH__ >= 800
#define COPY_ASYNC(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COPY_WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory")
#else
#define COPY_ASYNC(to, from) (*(to) = *(from))
#define COPY_WAIT_ALL()
#define COPY_COMMIT()
#define COPY_WAIT(n)
#endif

// Minima of the halves of two or three words; each half is a number below 2^15.
#define PAIR_MIN(a, b) __vminu2(a, b)
#if __CUDA_ARCH__ >= 900
#define PAIR_MIN3(a, b, c) __vimin3_u16x2(a, b, c)
#else
#define PAIR_MIN3(a, b, c) __vminu2(__vminu2(a, b), c)
#endif
// `low` and `high`, numbers of 16 bits, as one word, by one instruction.
FUNCTION __attribute__((unused)) u32 PAIR_OF(u32 low, u32 high) {
    u32 pair;
    asm("mad.lo.u32 %0, %1, 65536, %2;" : "=r"(pair) : "r"(high), "r"(low));
    return pair;
}
// The lower, or the higher, numbers of two words.
#define PAIR_LOWS(a, b) __byte_perm(a, b, 0x5410)
#define PAIR_HIGHS(a, b) __byte_perm(a, b, 0x7632)
// The lower number of `low` and the higher one of `high`.
#define PAIR_ENDS(low, high) __byte_perm(low, high, 0x7610)
// The higher number of `low` and the lower one of `high`.
#define PAIR_BETWEEN(low, high) __byte_perm(low, high, 0x5432)
// The two lower bytes of a word as two numbers of 16 bits.
#define BYTES_WIDENED(a) __byte_perm(a, 0u, 0x4140)
// The bytes of a word in the opposite order.
#define BYTES_REVERSED(a) __byte_perm(a, 0u, 0x0123)
#define POPCOUNT(bits) __popc(bits)
