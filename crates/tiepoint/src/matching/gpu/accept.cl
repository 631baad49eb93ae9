// Appends the matches of a pair, in any order, with one lane for each feature of A.
KERNEL(accept_matches) {
    const Rule rule = args.rule;
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i >= at_most(*count_a, args.capacity_a)) return;
    Best best = best_load(nearest + 3 * (u64)i);
    if (!is_match(nearest, i, best, args.capacity_a, rule)) return;
    u32 slot = ATOMIC_ADD(found_count, 1u);
    if (slot >= args.capacity) return;
    f32 distance = euclidean(best.first);
    u64 at = 5 * (u64)slot;
    found[at] = args.pair;
    found[at + 1] = i;
    found[at + 2] = best.index;
    found[at + 3] = BITS_OF(distance);
    found[at + 4] = BITS_OF(ratio_of(distance, second_distance(best)));
}
