// Which feature every row of regions.h is, before a search, and whose nearest neighbours were found, after it.

// Counts the bright features of every run of LANES; one side in GROUP_Y 0, the other in 1.
KERNEL(count_bright) {
    LOCAL u32 sum;
    const GLOBAL Keypoint *keypoints = GROUP_Y == 0 ? keypoints_a : keypoints_b;
    u32 count = GROUP_Y == 0 ? at_most(*count_a, args.cut.capacity_a) : at_most(*count_b, args.cut.capacity_b);
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (LANE_X == 0) sum = 0;
    BARRIER();
    if (i < count && keypoints[i].sign >= 0) ATOMIC_ADD(&sum, 1u);
    BARRIER();
    if (LANE_X == 0) bright[GROUP_Y * GROUPS_X + GROUP_X] = sum;
}

// Writes which feature every packed row is, and the counts of the regions. Features keep their order.
KERNEL(order_rows) {
    const u32 span = args.cut.span, by_sign = args.by_sign;
    // Bright features before this run, and all of them; then the bright ones up to each lane.
    LOCAL u32 sums[2], ranks[LANES];
    const GLOBAL Keypoint *keypoints = GROUP_Y == 0 ? keypoints_a : keypoints_b;
    u32 count = GROUP_Y == 0 ? at_most(*count_a, args.cut.capacity_a) : at_most(*count_b, args.cut.capacity_b);
    u32 run = (u32)GROUP_X, lane = (u32)LANE_X, first = run * LANES, i = first + lane;
    if (first >= count && run > 0) return;
    u32 is_bright = i < count && (by_sign == 0 || keypoints[i].sign >= 0);
    if (lane < 2) sums[lane] = by_sign != 0 ? 0 : (lane == 0 ? first : count);
    ranks[lane] = is_bright;
    BARRIER();
    if (by_sign != 0) {
        u32 before = 0, all = 0;
        for (u32 r = lane; r < divided(count, LANES); r += LANES) {
            u32 found = bright[GROUP_Y * GROUPS_X + (i32)r];
            before += r < run ? found : 0;
            all += found;
        }
        ATOMIC_ADD(&sums[0], before);
        ATOMIC_ADD(&sums[1], all);
    }
    for (u32 step = 1; step < LANES; step *= 2) {
        u32 other = lane >= step ? ranks[lane - step] : 0;
        BARRIER();
        ranks[lane] += other;
        BARRIER();
    }
    u32 rank = sums[0] + ranks[lane] - is_bright;
    u32 row = is_bright ? rank : divided(sums[1], BLOCK) * BLOCK + i - rank;
    if (i < count) order[(u32)GROUP_Y * span + row] = i;
    if (run == 0 && lane < 2) regions[2 * (u32)GROUP_Y + lane] = lane == 0 ? sums[1] : count - sums[1];
}

// Merges what the groups found, one lane a query, and gives the features their own indices again.
KERNEL(merge_found) {
    const u32 span = args.cut.span, parts = args.cut.parts;
    u32 splits = splits_of(regions, parts), block = (u32)GROUP_X, lane = (u32)LANE_X, row;
    u32 region = region_of(regions, block, &row);
    if (region >= 4 || row + lane >= regions[region]) return;
    Best best = best_none();
    for (u32 split = 0; split < splits; split++) {
        u64 at = ((u64)block * splits + split) * BLOCK + lane;
        best = best_of(best, best_load(found + 3 * at));
    }
    if (best.index != NONE) best.index = order[region_start(regions, region ^ 2, span) + best.index];
    u32 feature = order[region_start(regions, region, span) + row + lane];
    best_store(nearest + 3 * (u64)(region >= 2 ? args.cut.capacity_a + feature : feature), best);
}
