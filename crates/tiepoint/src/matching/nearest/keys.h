// Keys by which the products of tensor cores are compared (nearest.cu, nearest_wgmma.cu).
//
// Tensor cores compute products faster than lanes compare them. A key is therefore one integer, |b|^2 - BIAS - 2ab,
// with a number in the low bits that distinguishes a lane's targets. Values are packed less 128, which does not change
// distances: squared lengths and products of d values are then at most 2^14 d = BIAS in magnitude, and keys at most
// 2^15 d. These fit 24 bits, which leaves 8 for the number: after a turn of 256 targets of a lane (1024 in all) it
// restarts.
//
// Four lanes, t = 0 to 3, see different targets of the same query: of every 8 targets those at 2t and 2t + 1.

// Targets in a turn, and the key of no target: greater than all keys and, when shifted, than all distances.
#define TURN (4 << SHIFT)
#define NO_KEY 0x7fffffff

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FUNCTION u32 local_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// The key of a product and a norm, which has the target's number in its low bits; a multiply-add keeps minima units
// free.
FUNCTION i32 key_of(i32 product, i32 norm) {
    i32 key;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(key) : "r"(product), "n"(-(2 << SHIFT)), "r"(norm));
    return key;
}

// The best of a turn that begins at target `turn`, from its two smallest keys; without the query's own squared length.
FUNCTION Best best_of_turn(i32 near, i32 next, u32 turn, u32 t) {
    Best best;
    u32 number = (u32)near & ((1 << SHIFT) - 1);
    best.first = near >> SHIFT;
    best.second = next >> SHIFT;
    best.index = near == NO_KEY ? NONE : turn + (number >> 1) * 8 + 2 * t + (number & 1);
    return best;
}

// The best of the four lanes that have seen targets of the same query.
FUNCTION Best best_of_lanes(Best best) {
    UNROLL
    for (u32 other = 1; other < 4; other *= 2) {
        Best one;
        one.first = __shfl_xor_sync(0xffffffffu, best.first, other);
        one.second = __shfl_xor_sync(0xffffffffu, best.second, other);
        one.index = __shfl_xor_sync(0xffffffffu, best.index, other);
        best = best_of(best, one);
    }
    return best;
}

// Stores the best of a query of the group, after adding the query's own squared length, which is in its norm.
FUNCTION void store_query(u32 *found, u32 query, Best best, u32 norm) {
    i32 length = (i32)norm >> SHIFT;
    best.first = best.index == NONE ? FAR : best.first + length + 2 * BIAS;
    best.second = best.second == NO_KEY >> SHIFT ? FAR : best.second + length + 2 * BIAS;
    best_store(found + 3 * ((u64)blockIdx.x * BLOCK + query), best);
}
#endif
