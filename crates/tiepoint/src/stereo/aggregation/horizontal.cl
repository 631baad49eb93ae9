// The paths along rows: a row is walked from either side by LANES lanes of a warp, a pixel a step.
//
// A walk is a row in one direction; u counts its columns. Place p is disparity p. What a walk needs of a column is fetched
// PHASES - 1 columns ahead, into the registers of the column before: a compiler that loads into those that are still in use
// loads into others and moves what comes, for which it waits.

#define FETCH(phase, u) { \
    const i32 next = MIN_I(u, width - 1); \
    const u32 x = (u32)(backward ? width - 1 - next : next); \
    load_costs(fetched[phase], costs_row + (u64)x * (PADDED / 4)); \
    fetched_p2[phase] = p2_row[x]; \
}

KERNEL(horizontal) {
    const i32 lane = LANE_X % LANES, of_group = LANE_Y * PIXELS_OF_WARP + LANE_X / LANES;
    const i32 width = args.width, height = args.height, walks = 2 * args.images * height;
    const i32 asked = GROUP_X * (WARPS * PIXELS_OF_WARP) + of_group, is_asked = asked < walks;
    const i32 walk = MIN_I(asked, walks - 1), y = walk / 2 % height, image = walk / 2 / height, backward = walk % 2;

    const u64 area = (u64)width * height, row_start = (u64)y * width;
    const GLOBAL u32 *costs_row = costs + ((u64)image * area + row_start) * (PADDED / 4) + lane * COST_WORDS;
    const GLOBAL u32 *p2_row = penalties + (u64)(2 * image + backward) * area + row_start;
    GLOBAL u32 *sums_row =
        sums_out + (((u64)(args.parts * image + backward) * area + row_start) * PADDED + lane * EACH) * SUM_BYTES / 4;
#if PARTIAL
    u32 beyond[PAIRS];
    places_beyond(beyond, lane, args.disparities);
#endif
    const u32 edges[2] = {lane == 0 ? 0x5410u : 0x5432u, lane == LANES - 1 ? 0x7632u : 0x5432u};

    u32 fetched[PHASES][COST_WORDS], fetched_p2[PHASES];
    UNROLL
    for (i32 phase = 0; phase + 1 < PHASES; phase++) FETCH(phase, phase)
    u32 path[PAIRS], least[1] = {0u};
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] = 0u;
    for (i32 turn = 0; turn < width; turn += PHASES) {
        UNROLL
        for (i32 phase = 0; phase < PHASES; phase++) {
            const i32 u = turn + phase;
            FETCH((phase + PHASES - 1) % PHASES, u + PHASES - 1)
            u32 costs_here[PAIRS], sums[PAIRS];
            spread_costs(costs_here, fetched[phase]);
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) {
#if PARTIAL
                costs_here[j] = (costs_here[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                sums[j] = 0u;
            }
            least[0] = extend(path, least[0], costs_here, sums, args.p1, fetched_p2[phase], edges);
            spread_least(least);
            if (is_asked && u < width) {
#if PARTIAL
                UNROLL
                for (i32 j = 0; j < PAIRS; j++) sums[j] &= ~beyond[j];
#endif
                const i32 x = backward ? width - 1 - u : u;
                store_sums(sums_row + (u64)(u32)x * (PADDED * SUM_BYTES / 4), sums);
            }
        }
    }
}
