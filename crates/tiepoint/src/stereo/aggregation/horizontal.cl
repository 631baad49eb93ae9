// The paths along rows: a row is walked from either side by LANES lanes of a warp, one pixel in each step.
//
// A walk is a row in one direction; u counts its columns. Place p is disparity p from the left and PADDED - 1 - p from
// the right, so that from one pixel to the next the right pixels move up by one place in both.

// The data of a walk for PHASES columns, in words of local memory: P2, the left pixels, and the right pixels that enter
// at place 0.
#define STAGED_LEFT PHASES
#define STAGED_RIGHT (STAGED_LEFT + PHASES * PLANES)
#define STAGED (STAGED_RIGHT + PHASES * PLANES)

#if VOLUME
// The number of columns by which costs are loaded ahead of the computation; PHASES is a multiple of it.
#define AHEAD 4
#endif

// Copies the data of the PHASES columns from `from` on; each lane of the walk copies a part.
#define STAGE(to, from) { \
    UNROLL \
    for (i32 i = 0; i < (PHASES + LANES - 1) / LANES; i++) { \
        const i32 at = i * LANES + lane, c = (from) + at; \
        const i32 l = held(backward ? width - 1 - c : c, width), r = held(right_origin + step * c, width); \
        if (at < PHASES) { \
            COPY_ASYNC((to) + at, p2_row + (u32)l); \
            UNROLL \
            for (i32 w = 0; w < PLANES; w++) { \
                COPY_ASYNC((to) + (STAGED_LEFT + w * PHASES + at), left_row + w * area + (u32)l); \
                COPY_ASYNC((to) + (STAGED_RIGHT + w * PHASES + at), right_row + w * area + (u32)r); \
            } \
        } \
    } \
}

KERNEL(horizontal) {
    // For the PHASES columns of this turn and of the next.
    LOCAL u32x4 staged_memory[WARPS * PIXELS_OF_WARP][2][(STAGED + 3) / 4];
    const i32 lane = LANE_X % LANES, of_group = LANE_Y * PIXELS_OF_WARP + LANE_X / LANES;
    const i32 width = args.width, height = args.height;
    // All walks of a warp go in one direction. Lanes without a row follow the last row and store nothing.
    const i32 warp = GROUP_X * WARPS + LANE_Y, backward = warp % 2;
    const i32 number = warp / 2 * PIXELS_OF_WARP + LANE_X / LANES, stores = number < args.images * height;
    const i32 walk = MIN_I(number, args.images * height - 1), y = walk % height, image = walk / height;

    const u64 area = (u64)width * height, row_start = (u64)y * width;
    const GLOBAL u32 *left_row = left + (u64)image * PLANES * area + row_start;
    const GLOBAL u32 *right_row = right + (u64)image * PLANES * area + row_start;
    const GLOBAL u32 *p2_row = p2_penalties + (u64)(2 * image + backward) * area + row_start;
    GLOBAL u32 *sums_row = sums_out
        + (((u64)(args.parts * image + backward) * area + row_start) * PADDED + (backward ? LANES - 1 - lane : lane) * PER_LANE)
            * SUM_BYTES / 4;

    // The right pixel of place p at column u is right_origin + step (u - p).
    const i32 place = lane * PER_LANE, step = backward ? -1 : 1;
    const i32 right_origin = backward ? width - 1 - args.min_disparity - (PADDED - 1) : -args.min_disparity;
#if PARTIAL
    u32 beyond[PAIRS];
    places_beyond(beyond, lane, args.disparities, backward);
#endif
    const u32 edges[2] = {lane == 0 ? 0x5410u : 0x5432u, lane == LANES - 1 ? 0x7632u : 0x5432u};

#if VOLUME
    // Costs of the next columns, column u at u % AHEAD.
    u32 ahead[AHEAD][PAIRS];
    const GLOBAL u32 *costs_row = (const GLOBAL u32 *)table
        + ((u64)image * area + row_start) * COST_WORDS + (backward ? LANES - 1 - lane : lane) * PAIRS;
#define COSTS_AT(u) (costs_row + (u64)(u32)held(backward ? width - 1 - (u) : (u), width) * COST_WORDS)
    UNROLL
    for (i32 u = 0; u < AHEAD; u++) load_costs(ahead[u], COSTS_AT(u));
#else
    // The right pixels of a lane's places, behind room for those that enter at the first place in PHASES columns.
    u32 window[PHASES + PER_LANE][PLANES];
#endif
    u32 path[PAIRS], beside[2] = {0u, 0u}, least[1] = {0u};
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] = 0u;
#if !VOLUME
    UNROLL
    for (i32 i = 0; i < PER_LANE; i++) {
        UNROLL
        for (i32 w = 0; w < PLANES; w++) {
            window[i][w] = (right_row + w * area)[(u32)held(right_origin - step * (place + i + 1), width)];
        }
    }
#endif
    STAGE((LOCAL_POINTER u32 *)staged_memory[of_group][0], 0)
    for (i32 turn = 0; turn < width; turn += PHASES) {
        const i32 side = turn / PHASES % 2;
        const LOCAL_POINTER u32 *staged = (const LOCAL_POINTER u32 *)staged_memory[of_group][side];
#if !VOLUME
        UNROLL
        for (i32 i = PER_LANE - 1; i >= 0; i--) {
            UNROLL
            for (i32 w = 0; w < PLANES; w++) window[PHASES + i][w] = window[i][w];
        }
#endif
        COPY_WAIT_ALL();
        LANES_SYNC();
        STAGE((LOCAL_POINTER u32 *)staged_memory[of_group][1 - side], turn + PHASES)
        UNROLL
        for (i32 phase = 0; phase < PHASES; phase++) {
            const i32 u = turn + phase;
            u32 costs[PAIRS], sums[PAIRS];
#if VOLUME
            costs_of_words(costs, ahead[phase % AHEAD], backward);
            load_costs(ahead[phase % AHEAD], COSTS_AT(u + AHEAD));
#else
            u32 own[PLANES];
            UNROLL
            for (i32 w = 0; w < PLANES; w++) {
                u32 newest = staged[STAGED_RIGHT + w * PHASES + phase];
#if LANES > 1
                // The right pixel of a lane's last place moves on to the next lane.
                const u32 passed = SHUFFLE_UP(window[PHASES - phase + PER_LANE - 1][w], LANES);
                newest = lane == 0 ? newest : passed;
#endif
                window[PHASES - 1 - phase][w] = newest;
                own[w] = staged[STAGED_LEFT + w * PHASES + phase];
            }
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) {
                const i32 at = PHASES - 1 - phase + j;
                costs[j] = PAIR_OF(pixel_cost(own, window[at], args.greatest, table),
                    pixel_cost(own, window[at + PAIRS], args.greatest, table));
            }
#endif
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) {
#if PARTIAL
                costs[j] = (costs[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                sums[j] = 0u;
            }
            bound_whole(path, beside, least[0], staged[phase]);
            least[0] = extend(path, beside, costs, sums, args.p1);
            look_beside(beside, path, edges);
            spread_least(least);
#if PARTIAL
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) sums[j] &= ~beyond[j];
#endif
            if (stores && u < width) {
                const i32 x = backward ? width - 1 - u : u;
                store_sums(sums_row + (u64)(u32)x * (PADDED * SUM_BYTES / 4), sums, backward);
            }
        }
    }
}
