// Puts keypoints into their order by merging: runs of RUN are sorted in local memory, then WAYS runs at a time are
// merged, every keypoint finding its position by a search in each of the other runs. The keypoints stay where they are;
// what moves is a 64-bit number with what the keypoint is ranked by (RANK) above its index. Most comparisons need
// nothing else.

// Whether `a` comes before `b`; an index beyond the count comes last. Equal keypoints are equal in every word, so that
// the index, which depends on the order of threads, decides nothing that anyone sees.
FUNCTION i32 before(const GLOBAL Keypoint *keypoints, u32 count, u64 a, u64 b) {
    u32 i = (u32)a, j = (u32)b;
    if (a >> 32 != b >> 32 || i >= count || j >= count) return a < b;
    i32 c = keypoint_order(keypoints + i, keypoints + j);
    return c < 0 || (c == 0 && i < j);
}

// Sorts runs of RUN (bitonic), one group a run; the second dimension is the image.
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
        u32 key = at < count ? ~sortable(keypoints[at].RANK) : 0xffffffffu;
        run[i] = (u64)key << 32 | at;
    }
    for (u32 size = 2; size <= RUN; size *= 2) {
        for (u32 step = size / 2; step > 0; step /= 2) {
            BARRIER();
            for (u32 pair = lane; pair < RUN / 2; pair += GROUP) {
                // As many pairs as `step`, then as many that are their partners.
                u32 low = (pair & ~(step - 1)) + pair;
                u64 a = run[low], b = run[low + step];
                // The lower of two keeps the earlier in an ascending part, the later in a descending one.
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
    // How many of each run come before; all searches go together, so that their reads do.
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
