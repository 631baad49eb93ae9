// Sorts keypoints by merging: runs of RUN are sorted in local memory, then WAYS runs at a time are merged, where every
// keypoint finds its position by a search in each of the other runs. The keypoints themselves are not moved, only
// 64-bit numbers with the keypoint's rank (RANK_KEY) above its index. Most comparisons need nothing else.

// Whether `a` comes before `b`; an index beyond the count comes last. Equal keypoints are equal in every word, so the
// index, which depends on the order of threads, does not change the result.
FUNCTION i32 before(const GLOBAL Keypoint *keypoints, u32 count, u64 a, u64 b) {
    u32 i = (u32)a, j = (u32)b;
    if (a >> 32 != b >> 32 || i >= count || j >= count) return a < b;
    i32 c = keypoint_order(keypoints + i, keypoints + j);
    return c < 0 || (c == 0 && i < j);
}

// Sorts runs of RUN (bitonic), one group for each run; the second dimension is the image.
KERNEL(sort_runs) {
    const u32 capacity = args.capacity;
    LOCAL u64 run[RUN];
    u32 count = counts[GROUP_Y] < capacity ? counts[GROUP_Y] : capacity;
    u32 first = (u32)GROUP_X * RUN, lane = (u32)LANE_X;
    if (first >= count) return;
    keypoints += (u64)GROUP_Y * capacity;
    order += (u64)GROUP_Y * capacity;
    for (u32 i = lane; i < RUN; i += GROUP) {
        u32 at = first + i;
        u32 key = at < count ? ~RANK_KEY(keypoints[at]) : 0xffffffffu;
        run[i] = (u64)key << 32 | at;
    }
    for (u32 size = 2; size <= RUN; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            BARRIER();
            for (u32 pair = lane; pair < RUN / 2; pair += GROUP) {
                // In each block of 2 * step keypoints, the first half are the lower ones of the pairs, the second
                // half the upper ones.
                u32 low = (pair & ~(step - 1)) + pair;
                u64 a = run[low], b = run[low + step];
                // In an ascending part the lower index gets the earlier of the two, in a descending part the later.
                if (before(keypoints, count, b, a) == ((low & size) == 0)) {
                    run[low] = b;
                    run[low + step] = a;
                }
            }
        }
    }
    BARRIER();
    for (u32 i = lane; i < RUN && first + i < count; i += GROUP) order[first + i] = run[i];
}

// Merges WAYS sorted runs of `size`, a power of two.
KERNEL(merge_runs) {
    const u32 capacity = args.capacity, size = args.size;
    u32 count = counts[GROUP_Y] < capacity ? counts[GROUP_Y] : capacity;
    u32 i = (u32)GROUP_X * GROUP + (u32)LANE_X;
    if (i >= count) return;
    keypoints += (u64)GROUP_Y * capacity;
    to += (u64)GROUP_Y * capacity;
    from += (u64)GROUP_Y * capacity;
    u64 own = from[i];
    u32 first = i / (WAYS * size) * (WAYS * size), of_own = (i - first) / size;
    // How many keypoints of each run come before this one. The searches advance together, so that their reads
    // overlap.
    u32 places[WAYS];
    UNROLL
    for (u32 r = 0; r < WAYS; r++) places[r] = r == of_own ? i - first - r * size : 0;
    for (u32 step = size; step > 0; step /= 2) {
        u64 probed[WAYS];
        UNROLL
        for (u32 r = 0; r < WAYS; r++) {
            u32 place = places[r] + step, at = first + r * size + place - 1;
            probed[r] = r != of_own && place <= size && at < count ? from[at] : ~(u64)0;
        }
        UNROLL
        for (u32 r = 0; r < WAYS; r++) places[r] += before(keypoints, count, probed[r], own) ? step : 0;
    }
    u32 place = first;
    UNROLL
    for (u32 r = 0; r < WAYS; r++) place += places[r];
    to[place] = own;
}

#if LEVEL_SLOTS > 0
// A level's place in a table: 32 octaves from -1 on, of 16 layers.
FUNCTION u32 slot_of(const GLOBAL Keypoint *k) {
    return ((k->octave_layer >> 8) - 127u) * 16u + (k->octave_layer & 15u);
}

// Whether two keypoints differ only in their direction.
FUNCTION i32 is_same_position(const GLOBAL Keypoint *a, const GLOBAL Keypoint *b) {
    return BITS_OF(a->x) == BITS_OF(b->x) && BITS_OF(a->y) == BITS_OF(b->y) && BITS_OF(a->scale) == BITS_OF(b->scale)
        && BITS_OF(a->response) == BITS_OF(b->response) && a->octave_layer == b->octave_layer;
}

// Adds the keypoints and the positions of every level to those in `levels`. In their order keypoints of one position
// follow each other.
KERNEL(count_levels) {
    const u32 capacity = args.capacity;
    LOCAL u32 sums[2 * LEVEL_SLOTS];
    u32 count = counts[GROUP_Y] < capacity ? counts[GROUP_Y] : capacity;
    u32 lane = (u32)LANE_X, i = (u32)GROUP_X * GROUP + lane;
    if (i - lane >= count) return;
    keypoints += (u64)GROUP_Y * capacity;
    order += (u64)GROUP_Y * capacity;
    levels += (u64)GROUP_Y * 2 * LEVEL_SLOTS;
    for (u32 s = lane; s < 2 * LEVEL_SLOTS; s += GROUP) sums[s] = 0;
    BARRIER();
    if (i < count) {
        const GLOBAL Keypoint *own = keypoints + (u32)order[i];
        u32 slot = slot_of(own);
        ATOMIC_ADD(sums + slot, 1u);
        if (i == 0 || !is_same_position(own, keypoints + (u32)order[i - 1])) ATOMIC_ADD(sums + LEVEL_SLOTS + slot, 1u);
    }
    BARRIER();
    for (u32 s = lane; s < 2 * LEVEL_SLOTS; s += GROUP) {
        if (sums[s] > 0) ATOMIC_ADD(levels + s, sums[s]);
    }
}

// Reduces the count of every image (the second dimension) to the keypoints of the coarsest levels that have the wanted
// number of positions. A count beyond the capacity is left unchanged, so that the host makes room.
KERNEL(keep_levels) {
    u32 count = counts[GROUP_Y], positions = 0, kept = 0;
    if (LANE_X > 0 || count == 0 || count > args.capacity) return;
    levels += (u64)GROUP_Y * 2 * LEVEL_SLOTS;
    u32 coarsest = (u32)order[(u64)GROUP_Y * args.capacity];
    u32 slot = slot_of(keypoints + (u64)GROUP_Y * args.capacity + coarsest) + 1;
    for (; slot > 0 && positions < args.positions; slot--) {
        kept += levels[slot - 1];
        positions += levels[LEVEL_SLOTS + slot - 1];
    }
    counts[GROUP_Y] = kept;
}
#endif
