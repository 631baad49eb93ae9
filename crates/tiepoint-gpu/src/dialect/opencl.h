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
// Registers are not limited: the compiler's option for it has no effect.
#define KERNEL_RESIDENT(width, height, groups) KERNEL_OF(width, height)
// The head of a declared kernel.
#define KERNEL(name) KERNEL_##name
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
#ifdef cl_nv_pragma_unroll
// Visible to other groups, too.
#define FENCE() asm volatile("membar.gl;" ::: "memory")
#else
#define FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

#ifdef FMA_IN_INTEGERS
// a * b + c rounded once, for devices that have no such instruction.
FUNCTION f32 fma_in_integers(f32 a, f32 b, f32 c) {
    // If a number is 0, infinite or NaN, nothing is rounded twice.
    const f32 product = a * b;
    const u32 ab = (as_uint(a) ^ as_uint(b)) & 0x80000000u;
    const u32 a_bits = as_uint(a) & 0x7fffffffu, b_bits = as_uint(b) & 0x7fffffffu, c_bits = as_uint(c) & 0x7fffffffu;
    if (a_bits == 0u || b_bits == 0u || a_bits >= 0x7f800000u || b_bits >= 0x7f800000u) return product + c;
    if (c_bits >= 0x7f800000u) return c;
    if (c_bits == 0u) return product;

    // Whole numbers of 24 bits and the exponents of their last bits, denormals shifted up.
    i32 a_exponent = max((i32)(a_bits >> 23), 1) - 150, b_exponent = max((i32)(b_bits >> 23), 1) - 150;
    i32 c_exponent = max((i32)(c_bits >> 23), 1) - 150;
    u32 a_digits = (a_bits & 0x7fffffu) | (a_bits >> 23 ? 0x800000u : 0u);
    u32 b_digits = (b_bits & 0x7fffffu) | (b_bits >> 23 ? 0x800000u : 0u);
    u32 c_digits = (c_bits & 0x7fffffu) | (c_bits >> 23 ? 0x800000u : 0u);
    const i32 a_up = (i32)clz(a_digits) - 8, b_up = (i32)clz(b_digits) - 8, c_up = (i32)clz(c_digits) - 8;
    // The product lies in 2^60 .. 2^62, the summand in 2^61 .. 2^62.
    u64 p = ((u64)(a_digits << a_up) * (u64)(b_digits << b_up)) << 14, s = (u64)(c_digits << c_up) << 38;
    i32 exponent = a_exponent - a_up + b_exponent - b_up - 14;
    const i32 apart = exponent - (c_exponent - c_up - 38);

    // Aligned to one exponent. The last bit stands for all bits that are shifted out; if there are any, at most one bit
    // cancels.
    if (apart > 0) {
        s = apart > 63 ? 1ul : (s >> apart) | (u64)((s & ((1ul << apart) - 1ul)) != 0ul);
    } else if (apart < 0) {
        p = apart < -63 ? 1ul : (p >> -apart) | (u64)((p & ((1ul << -apart) - 1ul)) != 0ul);
        exponent -= apart;
    }
    u32 sign = ab;
    u64 sum = p + s;
    if (ab != (as_uint(c) & 0x80000000u)) {
        if (p == s) return 0.0f;
        sum = p > s ? p - s : s - p;
        sign = p > s ? ab : ab ^ 0x80000000u;
    }

    // 24 bits are kept, fewer of a denormal number.
    const i32 top = 63 - (i32)clz(sum);
    const i32 drop = max(top - 23, -149 - exponent);
    if (drop > top + 1) return as_float(sign);
    u64 digits = drop < 0 ? sum << -drop : sum;
    if (drop > 0) {
        const u64 rest = sum & ((1ul << drop) - 1ul), middle = 1ul << (drop - 1);
        digits = sum >> drop;
        digits += (u64)(rest > middle || (rest == middle && (digits & 1ul) != 0ul));
    }
    exponent += drop;
    // The digits' leading bit adds the 1 that is missing in the exponent's field.
    return as_float(sign | (exponent > 104 ? 0x7f800000u : ((u32)(exponent + 149) << 23) + (u32)digits));
}
#define FMA(a, b, c) fma_in_integers(a, b, c)
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
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
#define BITS_OF_F64(f) as_ulong(f)
#define F64_OF(bits) as_double(bits)
// Whether a number is neither infinite nor NaN.
#define IS_FINITE(f) ((BITS_OF(f) & 0x7f800000u) != 0x7f800000u)
#define IS_FINITE_F64(f) ((BITS_OF_F64(f) & 0x7ff0000000000000ul) != 0x7ff0000000000000ul)

// Sum of `c` and the four products of the bytes of `a` and `b`.
FUNCTION u32 DOT4(u32 a, u32 b, u32 c) {
#ifdef cl_nv_pragma_unroll
    // NVIDIA has an instruction for it, but its OpenCL C has no name for it.
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
#define ATOMIC_MIN(pointer, value) atomic_min(pointer, value)

#ifdef NVIDIA_CAPABILITY
// Exchange between the lanes of a warp, 32 neighbours in the first dimension of the group, which must all take part.
// OpenCL C 1.2 has no name for it.
// In each run of `lanes` neighbours the first gets its own number from SHUFFLE_UP, the last from SHUFFLE_DOWN.
FUNCTION u32 SHUFFLE_UP(u32 value, u32 lanes) {
    u32 other;
    asm volatile("shfl.sync.up.b32 %0, %1, 1, %2, -1;" : "=r"(other) : "r"(value), "r"((32u - lanes) << 8));
    return other;
}
FUNCTION u32 SHUFFLE_DOWN(u32 value, u32 lanes) {
    u32 other;
    asm volatile("shfl.sync.down.b32 %0, %1, 1, %2, -1;" : "=r"(other) : "r"(value), "r"((32u - lanes) << 8 | 31u));
    return other;
}
FUNCTION u32 SHUFFLE_XOR(u32 value, u32 mask) {
    u32 other;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(other) : "r"(value), "r"(mask));
    return other;
}
// Four of the bytes of `a` (numbers 0 to 3) and `b` (4 to 7), whose numbers are the digits of `selector`, lowest first.
FUNCTION u32 BYTE_PERM(u32 a, u32 b, u32 selector) {
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
    return bytes;
}
#define WARP_SYNC() asm volatile("bar.warp.sync -1;" ::: "memory")
#endif

// COPY_ASYNC copies a word from global to local memory, beside the following instructions if a device can. The copies
// of a lane have arrived after its COPY_WAIT_ALL. COPY_COMMIT ends a batch of them; after COPY_WAIT(n) all batches
// except the last n have arrived.
#if defined(NVIDIA_CAPABILITY) && NVIDIA_CAPABILITY >= 80
#define COPY_ASYNC(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((u32)(size_t)(to)), "l"((u64)(from)) : "memory")
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
#if defined(NVIDIA_CAPABILITY) && NVIDIA_CAPABILITY >= 90
FUNCTION u32 PAIR_MIN(u32 a, u32 b) {
    u32 least;
    asm("min.u16x2 %0, %1, %2;" : "=r"(least) : "r"(a), "r"(b));
    return least;
}
#else
FUNCTION u32 PAIR_MIN(u32 a, u32 b) {
    // The highest bit of a half is set where a is not below b; then all of its bits.
    const u32 not_below = ((a | 0x80008000u) - b) & 0x80008000u;
    const u32 take_b = (not_below - (not_below >> 15)) | not_below;
    return (a & ~take_b) | (b & take_b);
}
#endif
#if defined(NVIDIA_CAPABILITY) && NVIDIA_CAPABILITY >= 90
FUNCTION u32 PAIR_MIN3(u32 a, u32 b, u32 c) {
    u32 least;
    asm("{.reg .b32 two; min.u16x2 two, %1, %2; min.u16x2 %0, two, %3;}" : "=r"(least) : "r"(a), "r"(b), "r"(c));
    return least;
}
#else
#define PAIR_MIN3(a, b, c) PAIR_MIN(PAIR_MIN(a, b), c)
#endif
// PAIR_OF: `low` and `high`, 16 bits each, in a word. PAIR_LOWS, PAIR_HIGHS: the lower or higher numbers of two words.
// PAIR_ENDS: the lower number of `low` and the higher one of `high`; PAIR_BETWEEN: the higher number of `low` and the
// lower one of `high`. BYTES_WIDENED: the two lower bytes of a word as two numbers of 16 bits. BYTES_REVERSED: the
// bytes of a word in the opposite order.
#ifdef NVIDIA_CAPABILITY
// One instruction each.
FUNCTION u32 PAIR_OF(u32 low, u32 high) {
    u32 pair;
    asm("mad.lo.u32 %0, %1, 65536, %2;" : "=r"(pair) : "r"(high), "r"(low));
    return pair;
}
#define PAIR_LOWS(a, b) BYTE_PERM(a, b, 0x5410u)
#define PAIR_HIGHS(a, b) BYTE_PERM(a, b, 0x7632u)
#define PAIR_ENDS(low, high) BYTE_PERM(low, high, 0x7610u)
#define PAIR_BETWEEN(low, high) BYTE_PERM(low, high, 0x5432u)
#define BYTES_WIDENED(a) BYTE_PERM(a, 0u, 0x4140u)
#define BYTES_REVERSED(a) BYTE_PERM(a, 0u, 0x0123u)
#else
#define PAIR_OF(low, high) ((low) | (high) << 16)
#define PAIR_LOWS(a, b) (((a) & 0xffffu) | (b) << 16)
#define PAIR_HIGHS(a, b) ((a) >> 16 | ((b) & 0xffff0000u))
#define PAIR_ENDS(low, high) (((low) & 0xffffu) | ((high) & 0xffff0000u))
#define PAIR_BETWEEN(low, high) ((low) >> 16 | (high) << 16)
#define BYTES_WIDENED(a) (((a) & 0xffu) | ((a) & 0xff00u) << 8)
#define BYTES_REVERSED(a) ((a) >> 24 | ((a) >> 8 & 0xff00u) | ((a) << 8 & 0xff0000u) | (a) << 24)
#endif
#define POPCOUNT(bits) popcount(bits)
