// Which nearest neighbours are matches: `filtered` of matching/mod.rs.

#if FLOATS
FUNCTION f32 euclidean(Distance squared) { return SQRT(squared > 0.0f ? squared : 0.0f); }
#else
FUNCTION f32 euclidean(Distance squared) { return SQRT((f32)squared) * (1.0f / 512.0f); }
#endif

// Writes the matches of a pair behind those that are there, in any order, one lane a feature of A.
KERNEL(accept_matches) {
    u32 i = (u32)GROUP_X * LANES + (u32)LANE_X;
    if (i >= at_most(*count_a, args.capacity_a)) return;
    Best best = best_load(nearest + 3 * (u64)i);
    if (best.index == NONE) return;
    Best back = best_load(nearest + 3 * ((u64)args.capacity_a + best.index));
    if (args.mutual != 0 && back.index != i) return;
    f32 distance = euclidean(best.first);
    f32 second = best.second < FAR ? euclidean(best.second) : FLOAT_OF(0x7f800000u);
    // A bound of infinity accepts all, and so does no ratio.
    if (!(distance <= args.max_distance)) return;
    if (args.has_ratio != 0 && !(distance < args.ratio * second)) return;
    u32 slot = ATOMIC_ADD(found_count, 1u);
    if (slot >= args.capacity) return;
    u64 at = 5 * (u64)slot;
    found[at] = args.pair;
    found[at + 1] = i;
    found[at + 2] = best.index;
    found[at + 3] = BITS_OF(distance);
    found[at + 4] = BITS_OF(second > 0.0f ? distance / second : 1.0f);
}
