// The paths from row to row: all columns of a row at once, row after row, from the top and from the bottom.
//
// u and v count columns and rows of a pass in its order. A pixel has the slot u + SKEW v: from row to row slots move to
// the left, so that every step comes from a slot that is the same or lies further left. A group holds the paths of a
// strip of COLUMNS slots and goes through all rows where these lie in the image; a pixel's disparities lie in LANES
// lanes of a warp. Strips are handed out from the left to the right, to whichever group is free, so that the one waited
// for has begun.
//
// Place p is disparity p.
//
// Between strips. The last slots of a strip write their path costs into global memory, from which a warp of the next
// group, the guest, brings them into its local memory, the halo. BUFFERS buffers serve all strips of a pass in turn. A
// word holds 16 bits of a path and the number of the strip that wrote it: no fence and no count of rows is needed. A
// strip tells how many rows its guest has brought, so that the one that writes into the same buffer next waits if it
// comes too early.

#define WARPS (COLUMNS / PIXELS_OF_WARP)
// Warps beside them: one that fetches what the next rows need of the views, and the guest. Where no path crosses
// columns a group is one warp, which fetches for itself and waits for nobody.
#define HELPERS (HANDED > 0 ? 2 : 0)
// Rows that are kept of what is fetched: one that is walked, and AHEAD on their way.
#define STAGED_ROWS (AHEAD + 1)

// What a row needs, in words of local memory: the right pixels, so that those of a lane's places are side by side and
// those that a warp reads at once lie in different banks, the left pixels, and P2 of all paths.
#define RIGHTS (LANES * STRIDE)
#define RIGHTS_OF_LANE (COLUMNS + EACH - 1)
// How many of them a lane copies; its first one is that of lane LANE_X % LANES at m = LANE_X / LANES.
#define COPIED ((RIGHTS_OF_LANE + PIXELS_OF_WARP - 1) / PIXELS_OF_WARP)
#define STAGED_LEFT (PLANES * RIGHTS)
#define STAGED_P2 (STAGED_LEFT + PLANES * COLUMNS)
#define STAGED (STAGED_P2 + COLUMNS * PATHS)

// DO(number of the path, its step, by how many slots it moves, rows of it that are kept, where these begin, where it
// begins among what is handed over, and in the halo). A path that stays in its slot stays in registers, with its least
// value and what lies beside, which lanes exchange while they look for it.
#define STAYS(dy, moves) ((dy) == 1 && (moves) == 0)

#define TAKE(k, dx, dy, moves, rows, offset, handed, guests) \
    if (!STAYS(dy, moves)) { \
        load(paths[k], slot >= (moves) \
            ? rings + (offset) + (((row - (dy)) & ((rows) - 1)) * COLUMNS + slot - (moves)) * PATH \
            : halo + ((guests) + ((row - (dy)) & ((rows) - 1)) * (moves) + (moves) - 1 - slot) * PATH, lane); \
    }

#define EXTEND(k, dx, dy, moves, rows, offset, handed, guests) \
    if (STAYS(dy, moves)) { \
        bound_whole(paths[k], beside[k], least[k], p2[k]); \
    } else { \
        bound(paths[k], beside[k], p2[k], edges); \
    } \
    least[k] = extend(paths[k], beside[k], costs, sums, args.p1);

#define LOOK_BESIDE(k, dx, dy, moves, rows, offset, handed, guests) \
    if (STAYS(dy, moves)) look_beside(beside[k], paths[k], edges);

#define LESS_LEAST(k, dx, dy, moves, rows, offset, handed, guests) \
    if (!STAYS(dy, moves)) { \
        UNROLL \
        for (i32 j = 0; j < PAIRS; j++) paths[k][j] -= least[k]; \
    }

#define KEEP(k, dx, dy, moves, rows, offset, handed, guests) \
    if (!STAYS(dy, moves)) store(rings + (offset) + ((row & ((rows) - 1)) * COLUMNS + slot) * PATH, paths[k], lane);

#define HAND_OVER(k, dx, dy, moves, rows, offset, handed, guests) \
    if (slot + (moves) >= COLUMNS) { \
        hand_over(below + ((u64)(u32)row * HANDED + (handed) + COLUMNS - 1 - slot) * PATH, paths[k], tag, lane); \
    }

// A path to the next strip, each half of a word with the tag.
FUNCTION void hand_over(volatile GLOBAL u64 *to, const u32 path[PAIRS], u32 tag, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        to[(j / VECTOR * LANES + lane) * VECTOR + j % VECTOR] = (u64)PAIR_HIGHS(path[j], tag) << 32 | PAIR_LOWS(path[j], tag);
    }
}

// Words of a path that a lane of the guest brings, if it brings any.
#define BROUGHT ((PATH + WARP - 1) / WARP)
#define EACH_BROUGHT(do) \
    UNROLL \
    for (i32 n = 0; n < HANDED; n++) { \
        UNROLL \
        for (i32 i = 0; i < BROUGHT; i++) { \
            const i32 at = i * WARP + LANE_X; \
            if (PATH % WARP == 0 || at < PATH) { do; } \
        } \
    }

#define FETCH(row) \
    if ((row) >= left_start && (row) < left_end) { \
        EACH_BROUGHT(brought[n][i] = above[((u64)(u32)(row) * HANDED + n) * PATH + at]) \
    }

#define PASS_ON(k, dx, dy, moves, rows, offset, handed, guests) \
    UNROLL \
    for (i32 n = 0; n < (moves); n++) { \
        UNROLL \
        for (i32 i = 0; i < BROUGHT; i++) { \
            const i32 at = i * WARP + LANE_X; \
            if (PATH % WARP == 0 || at < PATH) { \
                halo[((guests) + (brought_row & ((rows) - 1)) * (moves) + n) * PATH + at] = \
                    PAIR_LOWS((u32)brought[(handed) + n][i], (u32)(brought[(handed) + n][i] >> 32)); \
            } \
        } \
    }

#define BRING(row) \
    if ((row) >= left_start && (row) < left_end) { \
        u32 differs = 0u; \
        EACH_BROUGHT(differs |= ((u32)(brought[n][i] >> 32) ^ left_tag) | ((u32)brought[n][i] ^ left_tag)) \
        while (differs >> 16 != 0u) { \
            differs = 0u; \
            FETCH(row) \
            EACH_BROUGHT(differs |= ((u32)(brought[n][i] >> 32) ^ left_tag) | ((u32)brought[n][i] ^ left_tag)) \
        } \
        const i32 brought_row = row; \
        VERTICALS(PASS_ON) \
    }

// Waits until the strip that reads the words which row `row` will overwrite has brought them.
#define GUARD(row) \
    if (reader >= 0) { \
        while (rows_brought <= (row)) rows_brought = (i32)progress[walk * args.strips + reader]; \
    }

#if HELPERS > 0
#define ROW_DONE() BARRIER()
#else
#define ROW_DONE() LANES_SYNC()
#endif

// What a strip needs of the views, from the row on that is copied next.
typedef struct {
    const GLOBAL u32 *left, *right, *penalties;
    // Between rows, and between planes.
    i64 step;
    u64 area;
    i32 width, height, backward, first, row;
    // The right pixel at m of lane l is that in column right_origin + m - EACH l, of those for row 0.
    i32 right_origin;
    // Columns of the right pixels that a lane copies.
    u32 copied[COPIED];
} Strip;

// Finds the columns of what a lane copies of row `row`; without a skew they are those of all rows.
FUNCTION void find_columns(Strip *strip, i32 row) {
    const i32 moved = strip->backward ? SKEW * row : -(SKEW * row);
    const i32 from = strip->right_origin + moved - LANE_X % LANES * EACH + LANE_X / LANES;
    UNROLL
    for (i32 i = 0; i < COPIED; i++) strip->copied[i] = (u32)held(from + i * PIXELS_OF_WARP, strip->width);
}

// Copies what a row needs, meanwhile. After the last row that one again.
FUNCTION void stage(LOCAL_POINTER u32 *to, Strip *strip) {
    const i32 moved = SKEW * strip->row, width = strip->width, backward = strip->backward;
    LOCAL_POINTER u32 *rights = to + LANE_X % LANES * STRIDE + LANE_X / LANES;
#if SKEW > 0
    find_columns(strip, strip->row);
#endif
    UNROLL
    for (i32 i = 0; i < COPIED; i++) {
        if (RIGHTS_OF_LANE % PIXELS_OF_WARP == 0 || i * PIXELS_OF_WARP + LANE_X / LANES < RIGHTS_OF_LANE) {
            UNROLL
            for (i32 w = 0; w < PLANES; w++) {
                COPY_MEANWHILE(rights + (w * RIGHTS + i * PIXELS_OF_WARP),
                    strip->right + w * strip->area + strip->copied[i]);
            }
        }
    }
    UNROLL
    for (i32 i = 0; i < (COLUMNS + WARP - 1) / WARP; i++) {
        const i32 slot = i * WARP + LANE_X, u = held(strip->first - moved + slot, width);
        const u32 x = (u32)(backward ? width - 1 - u : u);
        if (slot < COLUMNS) {
            UNROLL
            for (i32 w = 0; w < PLANES; w++) {
                COPY_MEANWHILE(to + (STAGED_LEFT + w * COLUMNS + slot), strip->left + w * strip->area + x);
            }
            UNROLL
            for (i32 k = 0; k < PATHS; k++) {
                COPY_MEANWHILE(to + (STAGED_P2 + k * COLUMNS + slot), strip->penalties + k * strip->area + x);
            }
        }
    }
    COPIES_END();
    if (strip->row + 1 < strip->height) {
        strip->row++;
        strip->left += strip->step;
        strip->right += strip->step;
        strip->penalties += strip->step;
    }
}

KERNEL(vertical) {
    LOCAL u32x4 ring_memory[RING_WORDS / 4 + 1];
    LOCAL u32x4 halo_memory[HALO_WORDS / 4 + 1];
    LOCAL u32 staged_memory[STAGED_ROWS][STAGED];
    LOCAL u32 ticket;
    LOCAL_POINTER u32 *rings = (LOCAL_POINTER u32 *)ring_memory;
    LOCAL_POINTER u32 *halo = (LOCAL_POINTER u32 *)halo_memory;
    const i32 width = args.width, height = args.height;
    const i32 fetches = HELPERS == 0 || LANE_Y == 0, is_guest = HELPERS > 0 && LANE_Y == 1;
    const i32 has_slots = HELPERS == 0 || LANE_Y >= HELPERS;
    const i32 lane = LANE_X % LANES, slot = LANE_Y < HELPERS ? 0 : (LANE_Y - HELPERS) * PIXELS_OF_WARP + LANE_X / LANES;
    const i32 walks = args.images * args.passes;
    const u64 area = (u64)width * height;
    if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
    // Nothing but path costs is ever read as such.
    for (i32 i = LANE_Y * WARP + LANE_X; i < RING_WORDS; i += WARP * (WARPS + HELPERS)) rings[i] = 0u;
    for (i32 i = LANE_Y * WARP + LANE_X; i < HALO_WORDS; i += WARP * (WARPS + HELPERS)) halo[i] = 0u;
    BARRIER();
    if ((i32)ticket >= args.strips * walks) return;
    do {
        // The strips of all walks take turns.
        const i32 walk = (i32)ticket % walks, strip = (i32)ticket / walks;
        const i32 image = walk / args.passes, backward = walk % args.passes;
        const i32 first = strip * COLUMNS;
        // The rows where a strip lies in the image.
#if SKEW > 0
        const i32 start = MAX_I(first - width + SKEW, 0) / SKEW, end = MIN_I((first + COLUMNS - 1) / SKEW + 1, height);
        const i32 left_start = strip == 0 ? height : MAX_I(first - COLUMNS - width + SKEW, 0) / SKEW;
        const i32 left_end = MIN_I((first - 1) / SKEW + 1, height);
#else
        const i32 start = 0, end = height;
#endif
        const u64 start_at = (u64)(u32)(backward ? height - 1 - start : start) * width;
        Strip needed;
        needed.left = left + (u64)image * PLANES * area + start_at;
        needed.right = right + (u64)image * PLANES * area + start_at;
        needed.penalties = penalties + (u64)(2 * image + backward) * area * PATHS + start_at;
        needed.step = backward ? -width : width;
        needed.area = area;
        needed.width = width;
        needed.height = height;
        needed.backward = backward;
        needed.first = first;
        needed.row = start;
        needed.right_origin = backward ? width - 1 - first - args.min_disparity - (COLUMNS + EACH - 2)
            : first - args.min_disparity - (EACH - 1);
        find_columns(&needed, start);
        GLOBAL u32 *sums_part =
            sums_out + ((u64)(args.parts * image + 2 + backward) * area * PADDED + lane * EACH) * SUM_BYTES / 4;
#if HANDED > 0
        volatile GLOBAL u64 *boundaries = (volatile GLOBAL u64 *)boundary + (u64)walk * BUFFERS * height * HANDED * PATH;
        const volatile GLOBAL u64 *above = boundaries + (u64)((strip + BUFFERS - 1) % BUFFERS) * height * HANDED * PATH;
        volatile GLOBAL u64 *below = boundaries + (u64)(strip % BUFFERS) * height * HANDED * PATH;
        // The memory is zeroed, and no strip is that long ago.
        const u32 tag = ((u32)strip % 0xffffu + 1u) * 0x10001u, left_tag = ((u32)(strip - 1) % 0xffffu + 1u) * 0x10001u;
        u64 brought[HANDED][BROUGHT];
        // The strip that reads what the last user of this strip's buffer wrote, and how many rows of it.
        const i32 reader = strip - BUFFERS + 1;
        i32 rows_brought = 0;
#endif
#if PARTIAL
        u32 beyond[PAIRS];
        places_beyond(beyond, lane, args.disparities, 0);
#endif
        const u32 edges[2] = {lane == 0 ? 0x5410u : 0x5432u, lane == LANES - 1 ? 0x7632u : 0x5432u};
        u32 paths[PATHS][PAIRS], beside[PATHS][2], least[PATHS];
        UNROLL
        for (i32 k = 0; k < PATHS; k++) {
            beside[k][0] = beside[k][1] = least[k] = 0u;
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) paths[k][j] = 0u;
        }
        if (fetches) {
            for (i32 ahead = 0; ahead < AHEAD; ahead++) {
                stage(staged_memory[(u32)(start + ahead) % STAGED_ROWS], &needed);
            }
            COPIES_BUT(AHEAD - 1);
        }
#if HANDED > 0
        if (is_guest) {
            for (i32 row = start - DEPTH; row < start; row++) {
                FETCH(row)
                BRING(row)
            }
            FETCH(start)
            GUARD(start)
        }
#endif
        ROW_DONE();
        i32 row = start;
        do {
            if (fetches) {
                stage(staged_memory[(u32)(row + AHEAD) % STAGED_ROWS], &needed);
                // The next row's have come.
                COPIES_BUT(AHEAD - 1);
            }
#if HANDED > 0
            if (is_guest) {
                BRING(row)
                FETCH(row + 1)
                LANES_SYNC();
                if (LANE_X == 0) progress[walk * args.strips + strip] = (u32)(row + 1 < end ? row : height) + 1u;
                GUARD(row + 1)
            }
#endif
            if (has_slots) {
                const LOCAL_POINTER u32 *staged = staged_memory[(u32)row % STAGED_ROWS];
                const LOCAL_POINTER u32 *rights =
                    staged + lane * STRIDE + (backward ? COLUMNS - 1 - slot : slot) + EACH - 1;
                u32 own[PLANES], p2[PATHS], costs[PAIRS], sums[PAIRS];
                UNROLL
                for (i32 w = 0; w < PLANES; w++) own[w] = staged[STAGED_LEFT + w * COLUMNS + slot];
                UNROLL
                for (i32 k = 0; k < PATHS; k++) p2[k] = staged[STAGED_P2 + k * COLUMNS + slot];
                UNROLL
                for (i32 j = 0; j < PAIRS; j++) {
                    u32 lower[PLANES], upper[PLANES];
                    UNROLL
                    for (i32 w = 0; w < PLANES; w++) {
                        lower[w] = rights[w * RIGHTS - j];
                        upper[w] = rights[w * RIGHTS - j - PAIRS];
                    }
                    costs[j] = PAIR_OF(pixel_cost(own, lower, args.greatest, table),
                        pixel_cost(own, upper, args.greatest, table));
#if PARTIAL
                    costs[j] = (costs[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                    sums[j] = 0u;
                }
                VERTICALS(TAKE)
                VERTICALS(EXTEND)
                VERTICALS(LOOK_BESIDE)
                spread_least(least);
                VERTICALS(LESS_LEAST)
                VERTICALS(KEEP)
#if HANDED > 0
                VERTICALS(HAND_OVER)
#endif
                const i32 u = first + slot - SKEW * row;
                if ((u32)u < (u32)width) {
                    const i32 x = backward ? width - 1 - u : u, y = backward ? height - 1 - row : row;
#if PARTIAL
                    UNROLL
                    for (i32 j = 0; j < PAIRS; j++) sums[j] &= ~beyond[j];
#endif
                    store_sums(sums_part + ((u64)(u32)y * width + (u32)x) * (PADDED * SUM_BYTES / 4), sums, 0);
                }
            }
            ROW_DONE();
            row++;
        } while (row < end);
        // What is on its way is for nobody, but must not come later.
        COPIES_BUT(0);
        if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
        BARRIER();
    } while ((i32)ticket < args.strips * walks);
}
