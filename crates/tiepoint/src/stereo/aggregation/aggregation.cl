// Cost aggregation: the recurrence of mod.rs along all paths of a pass, whose sum is stored.
//
// A pass walks over the image in rows, from the top left forwards and from the bottom right backwards; u and v count
// columns and rows in its order. A row is walked by LANES lanes of a warp, each with PER_LANE disparities, and a warp
// walks ROWS_OF_WARP rows. The ROWS rows of a group go side by side, each SKEW columns behind the one above, and hand
// their path costs over in local memory. Groups of rows are handed out in order, to whichever work group is free, so
// that the one waited for has begun.
//
// Place p (path.h) is disparity p forwards and PADDED - 1 - p backwards, so that from one pixel to the next the right
// pixels move up by one place in both passes.
//
// Between groups. The last rows of a group write their path costs into global memory, from which one warp of the next
// group, its halo warp, copies them into local memory as the rows above its first one. The groups of a walk write into
// two buffers by turns. The highest bit of a word changes from one use of a buffer to the next and so tells which group
// wrote the word: no fence and no count of columns is needed. A halo warp begins when the group above has begun to
// write, and reads AHEAD columns ahead. So what it reads is at most one use old, and it cannot mistake words of the
// group four before for those of the group above: the rows of that one lie too far behind.

#define ROWS_OF_WARP PIXELS_OF_WARP
#define WARPS (ROWS / ROWS_OF_WARP)
// In both words, as not every device writes two at once.
#define MARK 0x8000000080000000ul

// Writes a path for the next group.
FUNCTION void hand_over(volatile GLOBAL u64 *to, const u32 path[PAIRS], u64 mark, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j += 2) {
        to[(j / VECTOR * LANES + lane) * (VECTOR / 2) + j % VECTOR / 2] = (u64)path[j + 1] << 32 | path[j] | mark;
    }
}

// What a row needs for PHASES columns, in words of local memory: P2 of all paths, the left pixels, and the right pixels
// that enter at its first place.
#define STAGED_LEFT (PHASES * PATHS)
#define STAGED_RIGHT (STAGED_LEFT + PHASES * PLANES)
#define STAGED (STAGED_RIGHT + PHASES * PLANES)
// How many of `n` each lane of a row copies.
#define SHARE(n) (((n) + LANES - 1) / LANES)

// Copies these for the columns from `from` on; each lane of the row copies a share.
#define STAGE(to, from) { \
    UNROLL \
    for (i32 i = 0; i < SHARE(PHASES * PATHS); i++) { \
        const i32 at = i * LANES + lane, c = held((from) + at / PATHS, width); \
        if (at < PHASES * PATHS) { \
            COPY_ASYNC((to) + at, p2_row + (u32)((backward ? width - 1 - c : c) * PATHS + at % PATHS)); \
        } \
    } \
    UNROLL \
    for (i32 i = 0; i < SHARE(PHASES); i++) { \
        const i32 at = i * LANES + lane, c = (from) + at; \
        const i32 l = held(backward ? width - 1 - c : c, width), r = held(right_origin + step * c, width); \
        if (at < PHASES) { \
            UNROLL \
            for (i32 w = 0; w < PLANES; w++) { \
                COPY_ASYNC((to) + (STAGED_LEFT + w * PHASES + at), left_row + w * area + (u32)l); \
                COPY_ASYNC((to) + (STAGED_RIGHT + w * PHASES + at), right_row + w * area + (u32)r); \
            } \
        } \
    } \
}

// A row keeps the paths of direction k for the row dy below, which needs them dx + SKEW dy steps later.
#define SLOT(row_ring, offset, slots, t) ((row_ring) + (offset) + ((t) & ((slots) - 1)) * PATH)

#define TAKE(k, dx, dy, offset, slots, handed) \
    load(paths[k], SLOT(ring - (dy) * RING_ROW, offset, slots, phase - (dx) - SKEW * (dy)), lane);

#define EXTEND(k, dx, dy, offset, slots, handed) { \
        u32 beside[2]; \
        bound(paths[k], beside, staged[phase * PATHS + (k)], edges); \
        least[k] = extend(paths[k], beside, costs, sums, args.p1); \
    }

#define KEEP(k, dx, dy, offset, slots, handed) \
    if (row + (dy) < ROWS) store(SLOT(ring, offset, slots, phase), paths[k], lane);

#define HAND_OVER(k, dx, dy, offset, slots, handed) \
    if (row + (dy) >= ROWS) { \
        hand_over(below + ((u64)u * HANDED + (handed) + (ROWS - 1 - row)) * (PATH / 2), paths[k], below_mark, lane); \
    }

// Pairs of words of a path that a lane of the halo warp copies, and whether it copies pair `at`.
#define BROUGHT ((PATH / 2 + WARP - 1) / WARP)
#define BRINGS(at) (PATH / 2 % WARP == 0 || (at) < PATH / 2)

// Does `do` for each of these pairs of direction k, DEPTH - g rows above the group, at the nearest column of the image.
#define EACH_BROUGHT(k, dy, handed, do) \
    UNROLL \
    for (i32 g = DEPTH - (dy); g < DEPTH; g++) { \
        UNROLL \
        for (i32 i = 0; i < BROUGHT; i++) { \
            const i32 at = i * WARP + LANE_X, number = (handed) + DEPTH - 1 - g; \
            if (BRINGS(at)) { do; } \
        } \
    }

#define FETCH(k, dx, dy, offset, slots, handed) \
    EACH_BROUGHT(k, dy, handed, brought[slot][number][i] = \
        above[((u64)(u32)held(column - SKEW * g, width) * HANDED + number) * (PATH / 2) + at])

#define CHECK(k, dx, dy, offset, slots, handed) \
    EACH_BROUGHT(k, dy, handed, \
        lacks |= ((u32)(brought[slot][number][i] >> 32) ^ above_mark) | ((u32)brought[slot][number][i] ^ above_mark))

#define PASS_ON(k, dx, dy, offset, slots, handed) \
    EACH_BROUGHT(k, dy, handed, ((LOCAL_POINTER u64 *)SLOT(rings + g * RING_ROW, offset, slots, phase))[at] = \
        brought[slot][number][i] & ~MARK)

KERNEL(aggregate) {
    LOCAL u32x4 ring_memory[RING_ROW * (ROWS + DEPTH - 1) / 4 + 1];
    // For the PHASES columns of this turn and of the next.
    LOCAL u32x4 staged_memory[ROWS][2][(STAGED + 3) / 4];
    LOCAL u32 ticket;
    LOCAL_POINTER u32 *rings = (LOCAL_POINTER u32 *)ring_memory;
    const i32 width = args.width, height = args.height, is_halo_warp = DEPTH > 0 && LANE_Y == 0;
    // The halo warp has no row of its own.
    const i32 lane = LANE_X % LANES, row = is_halo_warp ? 0 : (LANE_Y - (DEPTH > 0)) * ROWS_OF_WARP + LANE_X / LANES;
    const i32 walks = args.images * args.passes, groups = (height + ROWS - 1) / ROWS;
    if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
    BARRIER();
    if ((i32)ticket >= args.rows_groups) return;
    do {
        for (i32 i = LANE_Y * WARP + LANE_X; i < RING_ROW * (ROWS + DEPTH - 1); i += WARP * (WARPS + (DEPTH > 0))) rings[i] = 0u;
        BARRIER();
        LOCAL_POINTER u32 *ring = rings + (row + DEPTH) * RING_ROW;
        // Tickets go round all walks: group 0 of each, then group 1 of each, and so on.
        const i32 walk = (i32)ticket % walks, group = (i32)ticket / walks;
        const i32 image = walk / args.passes, backward = args.first_pass + walk % args.passes;

        const u64 area = (u64)width * height;
        const i32 v = group * ROWS + row, y = backward ? height - 1 - v : v, is_in_image = v < height;
        const u64 row_start = (u64)(is_in_image ? y : 0) * width;
        const GLOBAL u32 *left_row = left + (u64)image * PLANES * area + row_start;
        const GLOBAL u32 *right_row = right + (u64)image * PLANES * area + row_start;
        const GLOBAL u32 *p2_row = penalties + ((u64)(2 * image + backward) * area + row_start) * PATHS;
        GLOBAL u32 *sums_row =
            sums_out + (((u64)(2 * image + backward) * area + row_start) * PADDED + (backward ? LANES - 1 - lane : lane) * PER_LANE)
            * SUM_BYTES / 4;
        volatile GLOBAL u64 *boundaries = (volatile GLOBAL u64 *)boundary + (u64)walk * width * HANDED * PATH;
        const volatile GLOBAL u64 *above = boundaries + (u64)((group + 1) % 2) * width * HANDED * (PATH / 2);
        volatile GLOBAL u64 *below = boundaries + (u64)(group % 2) * width * HANDED * (PATH / 2);
        // The memory begins as zeroes, so the first use of a buffer is the one with the bit set.
        const u32 above_mark = (group - 1) / 2 % 2 == 0 ? 0x80000000u : 0u;
        const u64 below_mark = group / 2 % 2 == 0 ? MARK : 0ul;
        const i32 hands_over = HANDED > 0 && group + 1 < groups && is_in_image && !is_halo_warp && row + DEPTH >= ROWS;

        // At step t a row is at column t - lag, whose right pixel of place p is right_origin + step (t - lag - p).
        const i32 lag = SKEW * (row + DEPTH), place = lane * PER_LANE, step = backward ? -1 : 1;
        const i32 right_origin = backward ? width - 1 - args.min_disparity - (PADDED - 1) : -args.min_disparity;
#if PARTIAL
        u32 beyond[PAIRS];
        places_beyond(beyond, lane, args.disparities, backward);
#endif
        const u32 edges[2] = {lane == 0 ? 0x5410u : 0x5432u, lane == LANES - 1 ? 0x7632u : 0x5432u};

        // The right pixels of a lane's places, behind room for those that enter at the first place in PHASES columns.
        u32 window[PHASES + PER_LANE][PLANES];
        u32 paths[PATHS][PAIRS];
        UNROLL
        for (i32 j = 0; j < PAIRS; j++) paths[0][j] = 0u;
#if HANDED > 0
        u64 brought[AHEAD][HANDED][BROUGHT];
        if (is_halo_warp && group > 0) {
            while (progress[(u64)walk * groups + group - 1] == 0u) {
            }
            UNROLL
            for (i32 slot = 0; slot < AHEAD; slot++) {
                const i32 column = slot;
                VERTICALS(FETCH)
            }
        }
#endif
        if (!is_halo_warp) {
            UNROLL
            for (i32 i = 0; i < PER_LANE; i++) {
                UNROLL
                for (i32 w = 0; w < PLANES; w++) {
                    window[i][w] = (right_row + w * area)[(u32)held(right_origin - step * (lag + place + i + 1), width)];
                }
            }
            STAGE((LOCAL_POINTER u32 *)staged_memory[row][0], -lag)
        }

        const i32 steps = width + SKEW * (ROWS + DEPTH - 1);
        for (i32 turn = 0; turn < steps; turn += PHASES) {
            const i32 side = turn / PHASES % 2;
            const LOCAL_POINTER u32 *staged = (const LOCAL_POINTER u32 *)staged_memory[row][side];
            if (!is_halo_warp) {
                UNROLL
                for (i32 i = PER_LANE - 1; i >= 0; i--) {
                    UNROLL
                    for (i32 w = 0; w < PLANES; w++) window[PHASES + i][w] = window[i][w];
                }
                COPY_WAIT_ALL();
                LANES_SYNC();
                STAGE((LOCAL_POINTER u32 *)staged_memory[row][1 - side], turn + PHASES - lag)
            }
            UNROLL
            for (i32 phase = 0; phase < PHASES; phase++) {
                if (!is_halo_warp) {
                    const i32 u = turn + phase - lag;
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
                    u32 costs[PAIRS], sums[PAIRS], least[PATHS];
                    UNROLL
                    for (i32 j = 0; j < PAIRS; j++) {
                        const i32 at = PHASES - 1 - phase + j;
                        costs[j] = PAIR_OF(pixel_cost(own, window[at], args.greatest, table),
                            pixel_cost(own, window[at + PAIRS], args.greatest, table));
#if PARTIAL
                        costs[j] = (costs[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                        sums[j] = 0u;
                    }
                    VERTICALS(TAKE)
                    EXTEND(0, 1, 0, 0, 0, 0)
                    VERTICALS(EXTEND)
                    spread_least(least);
#if PARTIAL
                    UNROLL
                    for (i32 j = 0; j < PAIRS; j++) sums[j] &= ~beyond[j];
#endif
                    UNROLL
                    for (i32 k = 0; k < PATHS; k++) {
                        UNROLL
                        for (i32 j = 0; j < PAIRS; j++) paths[k][j] -= least[k];
                    }
                    VERTICALS(KEEP)
                    if ((u32)u < (u32)width) {
                        const i32 x = backward ? width - 1 - u : u;
                        if (is_in_image) store_sums(sums_row + (u64)(u32)x * (PADDED * SUM_BYTES / 4), sums, backward);
                        if (hands_over) {
                            VERTICALS(HAND_OVER)
                            if (row == ROWS - 1 && u == 0 && lane == 0) progress[(u64)walk * groups + group] = 1u;
                        }
                    }
                }
#if HANDED > 0
                else if (group > 0) {
                    const i32 slot = phase % AHEAD, column = turn + phase + AHEAD;
                    u32 lacks = 0u;
                    VERTICALS(CHECK)
                    while ((lacks & 0x80000000u) != 0u) {
                        // Reads all columns ahead again: they were too early too, most likely.
                        lacks = 0u;
                        UNROLL
                        for (i32 ahead = 0; ahead < AHEAD; ahead++) {
                            const i32 slot = (phase + ahead) % AHEAD, column = turn + phase + ahead;
                            VERTICALS(FETCH)
                        }
                        UNROLL
                        for (i32 slot = 0; slot < AHEAD; slot++) { VERTICALS(CHECK) }
                    }
                    VERTICALS(PASS_ON)
                    VERTICALS(FETCH)
                }
#endif
                BARRIER();
            }
        }
        if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
        BARRIER();
    } while ((i32)ticket < args.rows_groups);
}

#define PENALTY(k, dx, dy, offset, slots, handed) \
    out[k] = penalty(image, args.grey_plane, table, x, y, x - step * (dx), y - step * (dy));

// P2 of every direction at a pixel; both passes.
KERNEL(penalties) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        GLOBAL u32 *out = to + ((u64)(2 * GROUP_Z + backward) * area + (u64)y * width + x) * PATHS;
        PENALTY(0, 1, 0, 0, 0, 0)
        VERTICALS(PENALTY)
    }
}
