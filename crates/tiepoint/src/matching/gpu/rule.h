// Which nearest neighbours are matches: ratio.rs, and mutual choice as in matching/mod.rs.

#if FLOATS
FUNCTION f32 euclidean(Distance squared) { return SQRT(squared > 0.0f ? squared : 0.0f); }
#else
FUNCTION f32 euclidean(Distance squared) { return SQRT((f32)squared) * (1.0f / 512.0f); }
#endif

// The distance of the second nearest, infinite where there is none.
FUNCTION f32 second_distance(Best best) {
    return best.second < FAR ? euclidean(best.second) : FLOAT_OF(0x7f800000u);
}

FUNCTION f32 ratio_of(f32 distance, f32 second) { return second > 0.0f ? distance / second : 1.0f; }

// Whether the nearest neighbour of feature `i` of A, `best`, is its match.
FUNCTION i32 is_match(const GLOBAL u32 *nearest, u32 i, Best best, u32 capacity_a, Rule rule) {
    if (best.index == NONE) return 0;
    Best back = best_load(nearest + 3 * ((u64)capacity_a + best.index));
    if (rule.mutual != 0 && back.index != i) return 0;
    f32 distance = euclidean(best.first);
    // An infinite bound accepts everything, as does a missing ratio.
    if (!(distance <= rule.max_distance)) return 0;
    return rule.has_ratio == 0 || distance < rule.ratio * second_distance(best);
}
