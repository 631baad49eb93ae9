// The recurrence of mod.rs for a pixel, whose disparities are in LANES lanes, PER_LANE in each; shared by the paths
// along rows and those from row to row.
//
// Values are stored by place; each kernel states which disparity a place stands for. Word j of a lane holds its places
// j and j + PAIRS, so that the words before and after it hold the places beside these two.
//
// A path is kept either normalised, less its least value, or whole. Where a path begins P2 is 0, which bounds the
// values before it to 0 at every place: what is read from outside the image does not matter. At places beyond the last
// disparity the cost is args.far, the greatest path cost: it never lowers another, and sums of eight stay below 2^16.

#define PAIRS (PER_LANE / 2)
// Words of a path at a pixel.
#define PATH (PADDED / 2)
// Words that a lane loads or stores at once.
#define VECTOR (PAIRS % 4 == 0 ? 4 : 2)
// Pixels that a warp computes together.
#define PIXELS_OF_WARP (WARP / LANES)

#if WARP > 1
#define LANES_SYNC() WARP_SYNC()
#else
#define LANES_SYNC()
#endif

// Column x clamped to the image.
FUNCTION i32 held(i32 x, i32 width) { return MIN_I(MAX_I(x, 0), width - 1); }

#if PAIRS % 4 == 0
FUNCTION void load(u32 path[PAIRS], const LOCAL_POINTER u32 *from, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 4; j++) {
        const u32x4 four = ((const LOCAL_POINTER u32x4 *)from)[j * LANES + lane];
        path[4 * j] = four.x;
        path[4 * j + 1] = four.y;
        path[4 * j + 2] = four.z;
        path[4 * j + 3] = four.w;
    }
}

FUNCTION void store(LOCAL_POINTER u32 *to, const u32 path[PAIRS], i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 4; j++) {
        ((LOCAL_POINTER u32x4 *)to)[j * LANES + lane] =
            U32X4(path[4 * j], path[4 * j + 1], path[4 * j + 2], path[4 * j + 3]);
    }
}
#else
FUNCTION void load(u32 path[PAIRS], const LOCAL_POINTER u32 *from, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 2; j++) {
        const u64 two = ((const LOCAL_POINTER u64 *)from)[j * LANES + lane];
        path[2 * j] = (u32)two;
        path[2 * j + 1] = (u32)(two >> 32);
    }
}

FUNCTION void store(LOCAL_POINTER u32 *to, const u32 path[PAIRS], i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 2; j++) {
        ((LOCAL_POINTER u64 *)to)[j * LANES + lane] = (u64)path[2 * j + 1] << 32 | path[2 * j];
    }
}
#endif

// The words before a lane's first word and after its last: half of each comes from the neighbouring lane. Beside the
// pixel's first and last place the path cost of that place itself is used, which changes no minimum.
FUNCTION void look_beside(u32 beside[2], const u32 path[PAIRS], const u32 edges[2]) {
#if LANES > 1
    const u32 ends = PAIR_ENDS(path[0], path[PAIRS - 1]);
    beside[0] = BYTE_PERM(SHUFFLE_UP(ends, LANES), path[PAIRS - 1], edges[0]);
    beside[1] = BYTE_PERM(path[0], SHUFFLE_DOWN(ends, LANES), edges[1]);
#else
    beside[0] = PAIR_LOWS(path[0], path[PAIRS - 1]);
    beside[1] = PAIR_HIGHS(path[0], path[PAIRS - 1]);
#endif
}

// min(L(p - r, .) - min_k L(p - r, k), P2) of a path that is kept whole, with its least value and the words beside it.
FUNCTION void bound_whole(u32 path[PAIRS], u32 beside[2], u32 least, u32 p2) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] = PAIR_MIN(path[j] - least, p2);
    UNROLL
    for (i32 j = 0; j < 2; j++) beside[j] = PAIR_MIN(beside[j] - least, p2);
}

// The same of a path that is kept normalised; also finds the words beside it.
FUNCTION void bound(u32 path[PAIRS], u32 beside[2], u32 p2, const u32 edges[2]) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] = PAIR_MIN(path[j], p2);
    look_beside(beside, path, edges);
}

// L(p, .) from what `bound_whole` or `bound` leaves; adds it to `sums`. Returns the least value of this lane's places.
FUNCTION u32 extend(u32 path[PAIRS], const u32 beside[2], const u32 costs[PAIRS], u32 sums[PAIRS], u32 p1) {
    u32 below = beside[0], least = 0u;
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        const u32 here = path[j], above = j + 1 < PAIRS ? path[j + 1 < PAIRS ? j + 1 : j] : beside[1];
        const u32 best = PAIR_MIN3(below + p1, above + p1, here) + costs[j];
        least = j == 0 ? best : PAIR_MIN(least, best);
        sums[j] += best;
        path[j] = best;
        below = here;
    }
    return least;
}

// Reduces the least values of all paths over the lanes of a pixel: every lane gets them, in both halves of a word.
FUNCTION void spread_least(u32 least[PATHS]) {
    // Two paths in a word.
    u32 two[(PATHS + 1) / 2];
    UNROLL
    for (i32 k = 0; k < PATHS; k += 2) {
        const u32 next = least[k + 1 < PATHS ? k + 1 : k];
        two[k / 2] = PAIR_MIN(PAIR_LOWS(least[k], next), PAIR_HIGHS(least[k], next));
    }
#if LANES > 1
    UNROLL
    for (i32 mask = LANES / 2; mask > 0; mask /= 2) {
        UNROLL
        for (i32 k = 0; k < (PATHS + 1) / 2; k++) two[k] = PAIR_MIN(two[k], SHUFFLE_XOR(two[k], mask));
    }
#endif
    UNROLL
    for (i32 k = 0; k < PATHS; k += 2) {
        least[k] = PAIR_LOWS(two[k / 2], two[k / 2]);
        if (k + 1 < PATHS) least[k + 1 < PATHS ? k + 1 : k] = PAIR_HIGHS(two[k / 2], two[k / 2]);
    }
}

// Words of the sums of a lane's places, in their order, and word i of them.
#define SUM_WORDS (PER_LANE * SUM_BYTES / 4)
#if SUM_BYTES == 2
FUNCTION u32 sum_word(const u32 sums[PAIRS], i32 i) {
    return i < PAIRS / 2 ? PAIR_LOWS(sums[2 * i], sums[2 * i + 1]) : PAIR_HIGHS(sums[2 * i - PAIRS], sums[2 * i + 1 - PAIRS]);
}
#elif PAIRS == 2
FUNCTION u32 sum_word(const u32 sums[PAIRS], i32 i) { return sums[0] + sums[1] * 256u; }
#else
FUNCTION u32 sum_word(const u32 sums[PAIRS], i32 i) {
    const i32 j = i < PAIRS / 4 ? 4 * i : 4 * i - PAIRS;
    const u32 a = sums[j] + sums[j + 1] * 256u, b = sums[j + 2] + sums[j + 3] * 256u;
    return i < PAIRS / 4 ? PAIR_LOWS(a, b) : PAIR_HIGHS(a, b);
}
#endif

// The sums of a word in reverse order.
#if SUM_BYTES == 2
#define SUMS_REVERSED(word) PAIR_BETWEEN(word, word)
#else
#define SUMS_REVERSED(word) BYTES_REVERSED(word)
#endif

// Stores the sums of a lane's places by ascending disparities: with `backward` places descend, and are reversed.
FUNCTION void store_sums(GLOBAL u32 *to, const u32 sums[PAIRS], i32 backward) {
    u32 words[SUM_WORDS];
    UNROLL
    for (i32 i = 0; i < SUM_WORDS; i++) words[i] = sum_word(sums, i);
    if (backward) {
        UNROLL
        for (i32 i = 0; i < (SUM_WORDS + 1) / 2; i++) {
            const u32 word = words[i];
            words[i] = SUMS_REVERSED(words[SUM_WORDS - 1 - i]);
            words[SUM_WORDS - 1 - i] = SUMS_REVERSED(word);
        }
    }
#if SUM_WORDS % 4 == 0
    UNROLL
    for (i32 i = 0; i < SUM_WORDS; i += 4) {
        *(GLOBAL u32x4 *)(to + i) = U32X4(words[i], words[i + 1], words[i + 2], words[i + 3]);
    }
#elif SUM_WORDS % 2 == 0
    UNROLL
    for (i32 i = 0; i < SUM_WORDS; i += 2) *(GLOBAL u64 *)(to + i) = (u64)words[i + 1] << 32 | words[i];
#else
    to[0] = words[0];
#endif
}

#if VOLUME
// Words of the costs of a pixel in a volume: by ascending disparities, 16 bits each; the highest bit marks an unknown
// cost (volume.cl).
#define COST_WORDS (PADDED / 2)

// Loads the words of the costs of a lane's places, `from` being the words of its lowest disparity.
FUNCTION void load_costs(u32 words[PAIRS], const GLOBAL u32 *from) {
#if PAIRS % 4 == 0
    UNROLL
    for (i32 i = 0; i < PAIRS; i += 4) {
        const u32x4 four = *(const GLOBAL u32x4 *)(from + i);
        words[i] = four.x;
        words[i + 1] = four.y;
        words[i + 2] = four.z;
        words[i + 3] = four.w;
    }
#else
    UNROLL
    for (i32 i = 0; i < PAIRS; i += 2) {
        const u64 two = *(const GLOBAL u64 *)(from + i);
        words[i] = (u32)two;
        words[i + 1] = (u32)(two >> 32);
    }
#endif
}

// Converts loaded words of costs to words in the order of a path, without the bit that marks unknown costs.
FUNCTION void costs_of_words(u32 costs[PAIRS], const u32 words[PAIRS], i32 backward) {
    UNROLL
    for (i32 i = 0; i < PAIRS / 2; i++) {
        const u32 low = backward ? PAIR_BETWEEN(words[PAIRS - 1 - i], words[PAIRS - 1 - i]) : words[i];
        const u32 high = backward ? PAIR_BETWEEN(words[PAIRS / 2 - 1 - i], words[PAIRS / 2 - 1 - i]) : words[PAIRS / 2 + i];
        costs[2 * i] = PAIR_LOWS(low, high) & 0x7fff7fffu;
        costs[2 * i + 1] = PAIR_HIGHS(low, high) & 0x7fff7fffu;
    }
}
#else
// The cost of a left pixel and a right one.
FUNCTION u32 pixel_cost(const u32 left[PLANES], const u32 right[PLANES], u32 greatest, const GLOBAL u8 *table) {
#if MASKED
    if (left[WORDS] == 0u) return 0u;
    if (right[WORDS] == 0u) return greatest;
#endif
    return cost(left, right, table);
}
#endif

#if PARTIAL
// All bits set in the halves of words whose place is beyond the last disparity; with `backward` places descend.
FUNCTION void places_beyond(u32 beyond[PAIRS], i32 lane, i32 disparities, i32 backward) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        beyond[j] = 0u;
        UNROLL
        for (i32 upper = 0; upper < 2; upper++) {
            const i32 p = lane * PER_LANE + j + upper * PAIRS, d = backward ? PADDED - 1 - p : p;
            beyond[j] |= d < disparities ? 0u : 0xffffu << (16 * upper);
        }
    }
}
#endif
