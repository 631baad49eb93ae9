// The order of the rows of regions.h before a search, and the merging of results after it.

// Counts the bright features of every run of LANES.
KERNEL(count_bright) {
    LOCAL u32 sum;
    u32 features = at_most(*count, args.side.capacity), i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (LANE_X == 0) sum = 0;
    BARRIER();
    if (i < features && keypoints[i].sign >= 0) ATOMIC_ADD(&sum, 1u);
    BARRIER();
    if (LANE_X == 0) bright[GROUP_X] = sum;
}

// Writes the index of each packed row's feature, and the counts of the regions. Features keep their order.
KERNEL(order_rows) {
    const u32 by_sign = args.by_sign;
    // `sums`: bright features before this run, and all of them; `ranks`: bright ones of this run up to each lane.
    LOCAL u32 sums[2], ranks[LANES];
    u32 features = at_most(*count, args.side.capacity);
    u32 run = (u32)GROUP_X, lane = (u32)LANE_X, first = run * LANES, i = first + lane;
    if (first >= features && run > 0) return;
    u32 is_bright = i < features && (by_sign == 0 || keypoints[i].sign >= 0);
    if (lane < 2) sums[lane] = by_sign != 0 ? 0 : (lane == 0 ? first : features);
    ranks[lane] = is_bright;
    BARRIER();
    if (by_sign != 0) {
        u32 before = 0, all = 0;
        for (u32 r = lane; r < divided(features, LANES); r += LANES) {
            u32 found = bright[r];
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
    if (i < features) order[row] = i;
    if (run == 0 && lane < 2) regions[lane] = lane == 0 ? sums[1] : features - sums[1];
}

// Merges the results of the groups, with one lane for each query, and restores the features' own indices.
KERNEL(merge_found) {
    const Cut cut = args.cut;
    u32 splits = splits_of(regions_a, regions_b, cut), block = (u32)GROUP_X, lane = (u32)LANE_X, row;
    u32 region = region_of(regions_a, regions_b, cut, block, &row);
    if (region >= cut.queries || row + lane >= count_of(regions_a, regions_b, region)) return;
    Best best = best_none();
    for (u32 split = 0; split < splits; split++) {
        u64 at = ((u64)block * splits + split) * BLOCK + lane;
        best = best_of(best, best_load(found + 3 * at));
    }
    const GLOBAL u32 *own = region < 2 ? order_a : order_b, *others = region < 2 ? order_b : order_a;
    if (best.index != NONE) best.index = others[region_start(regions_a, regions_b, region ^ 2) + best.index];
    u32 feature = own[region_start(regions_a, regions_b, region) + row + lane];
    best_store(nearest + 3 * (u64)(region >= 2 ? cut.a.capacity + feature : feature), best);
}
