// Nearest neighbours and matches as arrays, with an array for each property.

// The neighbours of each feature of A, one feature for each lane: index −1 and infinite distances if there is none.
KERNEL(nearest_columns) {
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i >= args.capacity_a) return;
    Best best = best_none();
    if (i < regions_a[0] + regions_a[1]) best = best_load(nearest + 3 * (u64)i);
    const i32 exists = best.index != NONE;
    index[i] = exists ? (i64)best.index : (i64)-1;
    distance[i] = exists ? euclidean(best.first) : FLOAT_OF(0x7f800000u);
    second[i] = exists ? second_distance(best) : FLOAT_OF(0x7f800000u);
}

// 1 for each feature of A that has a match, else 0; one feature for each lane.
KERNEL(match_flags) {
    const Rule rule = args.rule;
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i >= args.capacity_a) return;
    u32 flag = 0;
    if (i < regions_a[0] + regions_a[1]) {
        Best best = best_load(nearest + 3 * (u64)i);
        flag = is_match(nearest, i, best, args.capacity_a, rule) ? 1 : 0;
    }
    flags[i] = flag;
}

// Writes the matches in the order of A: each group writes those of LANES features, after those of earlier groups.
KERNEL(match_columns) {
    // `sum`: matches of earlier runs; `ranks`: matches of this run up to each lane.
    LOCAL u32 sum, ranks[LANES];
    u32 lane = (u32)LANE_X, first = (u32)GROUP_X * LANES, i = first + lane;
    u32 flag = i < args.capacity_a ? flags[i] : 0, before = 0;
    if (lane == 0) sum = 0;
    ranks[lane] = flag;
    BARRIER();
    for (u32 j = lane; j < first; j += LANES) before += flags[j];
    ATOMIC_ADD(&sum, before);
    for (u32 step = 1; step < LANES; step *= 2) {
        u32 other = lane >= step ? ranks[lane - step] : 0;
        BARRIER();
        ranks[lane] += other;
        BARRIER();
    }
    u32 up_to = sum + ranks[lane];
    if (i + 1 == args.capacity_a) *count = up_to;
    if (flag != 0) {
        u32 slot = up_to - 1;
        Best best = best_load(nearest + 3 * (u64)i);
        f32 own = euclidean(best.first);
        pairs[2 * (u64)slot] = (i64)i;
        pairs[2 * (u64)slot + 1] = (i64)best.index;
        distance[slot] = own;
        ratio[slot] = ratio_of(own, second_distance(best));
    }
}
