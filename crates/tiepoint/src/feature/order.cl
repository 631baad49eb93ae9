// The total order of keypoints, by merging: runs of GROUP are sorted in local memory, then pairs of runs are merged,
// every element finding its place by a search in the other run. Indices move, keypoints stay.

// Whether `a` comes before `b`; an index beyond the count comes last. Equal keypoints are equal in every word, so that
// the index, which depends on the order of threads, decides nothing that anyone sees.
FUNCTION i32 before(const GLOBAL Keypoint *keypoints, u32 count, u32 a, u32 b) {
    if (a >= count || b >= count) return a < b;
    i32 c = keypoint_order(keypoints + a, keypoints + b);
    return c < 0 || (c == 0 && a < b);
}

// Sorts runs of GROUP indices (bitonic), one group a run; the second dimension is the image.
KERNEL(GROUP, 1) sort_runs(GLOBAL u32 *RESTRICT indices, const GLOBAL Keypoint *RESTRICT keypoints,
                           const GLOBAL u32 *RESTRICT counts, u32 capacity) {
    LOCAL u32 run[GROUP];
    u32 count = counts[GROUP_Y] < capacity ? counts[GROUP_Y] : capacity;
    u32 first = (u32)GROUP_X * GROUP, lane = (u32)LANE_X;
    if (first >= count) return;
    keypoints += (u64)GROUP_Y * capacity;
    indices += (u64)GROUP_Y * capacity;
    run[lane] = first + lane;
    BARRIER();
    for (u32 size = 2; size <= GROUP; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            u32 other = lane ^ step;
            u32 a = run[lane], b = run[other];
            // The lower of two keeps the earlier in an ascending part, the later in a descending one.
            i32 keep_early = ((lane & size) == 0) == (lane < other);
            u32 kept = before(keypoints, count, a, b) == keep_early ? a : b;
            BARRIER();
            run[lane] = kept;
            BARRIER();
        }
    }
    if (first + lane < count) indices[first + lane] = run[lane];
}

// Merges pairs of sorted runs of `size` indices.
KERNEL(GROUP, 1) merge_runs(GLOBAL u32 *RESTRICT to, const GLOBAL u32 *RESTRICT from,
                            const GLOBAL Keypoint *RESTRICT keypoints, const GLOBAL u32 *RESTRICT counts,
                            u32 capacity, u32 size) {
    u32 count = counts[GROUP_Y] < capacity ? counts[GROUP_Y] : capacity;
    u32 i = (u32)GROUP_X * GROUP + (u32)LANE_X;
    if (i >= count) return;
    keypoints += (u64)GROUP_Y * capacity;
    to += (u64)GROUP_Y * capacity;
    from += (u64)GROUP_Y * capacity;
    u32 pair = i / (2 * size) * (2 * size);
    u32 in_second = i - pair >= size;
    u32 other = in_second ? pair : pair + size;
    u32 low = 0, high = other >= count ? 0 : (count - other < size ? count - other : size);
    u32 own = from[i];
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (before(keypoints, count, from[other + middle], own)) low = middle + 1;
        else high = middle;
    }
    u32 rank_in_own = i - (in_second ? pair + size : pair);
    to[pair + rank_in_own + low] = own;
}
