// Keys by which tensor cores' products are compared (nearest.cu, nearest_wgmma.cu).
//
// Tensor cores deliver products faster than lanes compare them. A key is therefore one integer, |b|^2 - BIAS - 2ab, with a
// number in the low bits that tells a lane's targets apart. Values are packed less 128, which changes no distance: a length
// and a product of d values are then at most 2^14 d = BIAS, and a key at most 2^15 d either way. That fits 24 bits, which
// leaves 8 for the number: after a turn of 256 targets of a lane, 1024 in all, it begins anew.
//
// Four lanes, t = 0 to 3, see different targets of the same query: of every 8 targets those at 2t and 2t + 1.

// Targets in a turn, and the key of no target: above all keys, and above all distances when shifted.
#define TURN (4 << SHIFT)
#define NO_KEY 0x7fffffff

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FUNCTION u32 local_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// The key of a product and a norm with the target's number below it: a multiply-add leaves the units for minima free.
FUNCTION i32 key_of(i32 product, i32 norm) {
    i32 key;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(key) : "r"(product), "n"(-(2 << SHIFT)), "r"(norm));
    return key;
}

// The two smallest keys of a turn that begins at this target. The distances lack the query's own length.
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

// Stores the best of a query of the group, with the query's own length in its norm.
FUNCTION void store_query(u32 *found, u32 query, Best best, u32 norm) {
    i32 length = (i32)norm >> SHIFT;
    best.first = best.index == NONE ? FAR : best.first + length + 2 * BIAS;
    best.second = best.second == NO_KEY >> SHIFT ? FAR : best.second + length + 2 * BIAS;
    best_store(found + 3 * ((u64)blockIdx.x * BLOCK + query), best);
}
#endif
