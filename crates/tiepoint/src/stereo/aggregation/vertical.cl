// The paths from row to row: all columns of a row at once, row after row, from the top and from the bottom.
//
// u and v count columns and rows of a pass in its order. A pixel has the slot u + SKEW v: from row to row slots move to the
// left, so that every step comes from a slot that is the same or lies further left. A group holds the paths of a strip of
// COLUMNS slots and goes through all rows where these lie in the image; a pixel's disparities lie in LANES lanes of a warp.
// Strips are handed out from the left to the right, to whichever group is free, so that the one waited for has begun.
//
// Place p is disparity p.
//
// TURN rows are compiled one after the other, so that places in the ring are known: a row is kept by its number modulo the rows
// kept, counted from the first of the strip. What a slot needs of a row, costs and P2, is fetched TURN - 1 rows ahead, into the
// registers of the row before (horizontal.cl).
//
// Between strips. The last slots of a strip write their path costs into global memory, from which a warp of the next group,
// the guest, brings them into the ring, less their least value, which is 0 there. BUFFERS buffers serve all strips of a pass in turn. A word holds
// 16 bits of a path and the number of the strip that wrote it: no fence and no count of rows is needed. A strip tells how
// many rows its guest has brought, so that the one that writes into the same buffer next waits if it comes too early.

#define WARPS (COLUMNS / PIXELS_OF_WARP)
// The warp of the guest, where paths come from the next strip.
#define HELPERS (HANDED > 0)
// Warps wait for each other after a row, where paths cross from one to another.
#if RING_SLOTS > 0
#define ROW_BARRIER() BARRIER()
#else
#define ROW_BARRIER()
#endif

// DO(number of the path, its step, by how many slots it moves, rows of it that are kept, where these begin in the ring, where
// it begins among what is handed over). A path that stays in its slot stays in registers.
#define STAYS(dy, moves) ((dy) == 1 && (moves) == 0)

// A row of a path in the ring: in front the slots of the next strip from which it comes, then those of this one. Counted from
// the slot that a path comes from.
#define KEPT(rows, moves, offset, phase) ((offset) + (((phase) + TURN) & ((rows) - 1)) * (COLUMNS + (moves)))

#define TAKE(k, dx, dy, moves, rows, offset, handed) \
    if (!STAYS(dy, moves)) { \
        load(paths[k], ring + KEPT(rows, moves, offset, phase - (dy)) * PATH, lane); \
        least[k] = ring_leasts[KEPT(rows, moves, offset, phase - (dy))]; \
    }

#define EXTEND(k, dx, dy, moves, rows, offset, handed) \
    least[k] = extend(paths[k], least[k], costs_here, sums, args.p1, p2_of(fetched_p2[phase], k), edges);

#define KEEP(k, dx, dy, moves, rows, offset, handed) \
    if (!STAYS(dy, moves)) store(ring + (KEPT(rows, moves, offset, phase) + (moves)) * PATH, paths[k], lane);

#define KEEP_LEAST(k, dx, dy, moves, rows, offset, handed) \
    if (!STAYS(dy, moves)) ring_leasts[KEPT(rows, moves, offset, phase) + (moves)] = least[k];

#define HAND_OVER(k, dx, dy, moves, rows, offset, handed) \
    if (slot + (moves) >= COLUMNS) hand_over(below + (handed) * PATH, paths[k], least[k], tag, lane);

// A path less its least value to the next strip, each half of a word with the tag.
FUNCTION void hand_over(volatile GLOBAL u64 *to, const u32 path[PAIRS], u32 least, u32 tag, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        const u32 pair = path[j] - least;
        to[(j / VECTOR * LANES + lane) * VECTOR + j % VECTOR] = (u64)PAIR_HIGHS(pair, tag) << 32 | PAIR_LOWS(pair, tag);
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

#define FETCH_GUESTS(row) \
    if ((row) >= left_start && (row) < left_end) { \
        EACH_BROUGHT(brought[n][i] = above[((u64)(u32)(row) * HANDED + n) * PATH + at]) \
    }

#define PASS_ON(k, dx, dy, moves, rows, offset, handed) \
    UNROLL \
    for (i32 n = 0; n < (moves); n++) { \
        UNROLL \
        for (i32 i = 0; i < BROUGHT; i++) { \
            const i32 at = i * WARP + LANE_X; \
            if (PATH % WARP == 0 || at < PATH) { \
                rings[(KEPT(rows, moves, offset, brought_row) + (moves) - 1 - n) * PATH + at] = \
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
            FETCH_GUESTS(row) \
            EACH_BROUGHT(differs |= ((u32)(brought[n][i] >> 32) ^ left_tag) | ((u32)brought[n][i] ^ left_tag)) \
        } \
        const i32 brought_row = (row) - start; \
        VERTICALS(PASS_ON) \
    }

// Waits until the strip that reads the words which row `row` will overwrite has brought them.
#define GUARD(row) \
    if (reader >= 0) { \
        while (rows_brought <= (row)) rows_brought = (i32)progress[walk * args.strips + reader]; \
    }

FUNCTION void load_p2(u32 p2[P2_WORDS], const GLOBAL u32 *from) {
#if P2_WORDS == 4
    const u32x4 four = *(const GLOBAL u32x4 *)from;
    p2[0] = four.x;
    p2[1] = four.y;
    p2[2] = four.z;
    p2[3] = four.w;
#elif P2_WORDS == 2
    const u64 two = *(const GLOBAL u64 *)from;
    p2[0] = (u32)two;
    p2[1] = (u32)(two >> 32);
#else
    p2[0] = from[0];
#endif
}

FUNCTION u32 p2_of(const u32 p2[P2_WORDS], i32 k) {
    return k % 2 == 0 ? PAIR_LOWS(p2[k / 2], p2[k / 2]) : PAIR_HIGHS(p2[k / 2], p2[k / 2]);
}

// Fetches what a slot needs of row `row`, the next to be fetched: outside the image that of the nearest pixel inside.
#define FETCH(i, row) { \
    const i32 past = MAX_I((row) - (height - 1), 0), from = fetched_u + SKEW * past; \
    const i32 inside = (held(from, width) - from) * (backward ? -1 : 1) - past * to_next_row; \
    load_costs(fetched[i], costs_at + (i64)inside * (PADDED / 4)); \
    load_p2(fetched_p2[i], p2_at + (i64)inside * P2_WORDS); \
    fetched_u -= SKEW; \
    costs_at += (i64)to_next_row * (PADDED / 4); \
    p2_at += (i64)to_next_row * P2_WORDS; \
}

KERNEL(vertical) {
    LOCAL u32x4 ring_memory[RING_SLOTS * PATH / 4 + 1];
    // The least values of the paths in the ring.
    LOCAL u32 leasts[RING_SLOTS + 1];
    LOCAL u32 ticket;
    LOCAL_POINTER u32 *rings = (LOCAL_POINTER u32 *)ring_memory;
    const i32 width = args.width, height = args.height, is_guest = HANDED > 0 && LANE_Y == 0;
    const i32 lane = LANE_X % LANES, slot = is_guest ? 0 : (LANE_Y - HELPERS) * PIXELS_OF_WARP + LANE_X / LANES;
    const i32 walks = args.images * args.passes;
    const u64 area = (u64)width * height;
    if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
    // Nothing but path costs is ever read as such.
    for (i32 i = LANE_Y * WARP + LANE_X; i < RING_SLOTS * PATH; i += WARP * (WARPS + HELPERS)) rings[i] = 0u;
    for (i32 i = LANE_Y * WARP + LANE_X; i < RING_SLOTS; i += WARP * (WARPS + HELPERS)) leasts[i] = 0u;
    LOCAL_POINTER u32 *ring = rings + slot * PATH, *ring_leasts = leasts + slot;
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
        // Pixels from a slot in a row to the same slot in the next one, and where the first one lies.
        const i32 to_next_row = backward ? SKEW - width : width - SKEW;
        const i32 first_u = first + slot - SKEW * start;
        const i64 first_pixel = backward ? (i64)(height - 1 - start) * width + width - 1 - first_u : (i64)start * width + first_u;
        const GLOBAL u32 *costs_at = costs + ((i64)(image * area) + first_pixel) * (PADDED / 4) + lane * COST_WORDS;
        const GLOBAL u32 *p2_at = penalties + ((i64)((2 * image + backward) * area) + first_pixel) * P2_WORDS;
        GLOBAL u32 *sums_at = sums_out
            + (((i64)((args.parts * image + 2 + backward) * area) + first_pixel) * PADDED + lane * EACH) * SUM_BYTES / 4;
        i32 u = first_u, fetched_u = first_u;
#if HANDED > 0
        volatile GLOBAL u64 *boundaries = (volatile GLOBAL u64 *)boundary + (u64)walk * BUFFERS * height * HANDED * PATH;
        const volatile GLOBAL u64 *above = boundaries + (u64)((strip + BUFFERS - 1) % BUFFERS) * height * HANDED * PATH;
        volatile GLOBAL u64 *below = boundaries + ((u64)(strip % BUFFERS) * height + start) * HANDED * PATH;
        // Where the last slots hand over.
        below += (COLUMNS - 1 - slot) * PATH;
        // The memory is zeroed, and no strip is that long ago.
        const u32 tag = ((u32)strip % 0xffffu + 1u) * 0x10001u, left_tag = ((u32)(strip - 1) % 0xffffu + 1u) * 0x10001u;
        u64 brought[HANDED][BROUGHT];
        // The strip that reads what the last user of this strip's buffer wrote, and how many rows of it.
        const i32 reader = strip - BUFFERS + 1;
        i32 rows_brought = 0;
#endif
#if PARTIAL
        u32 beyond[PAIRS];
        places_beyond(beyond, lane, args.disparities);
#endif
        const u32 edges[2] = {lane == 0 ? 0x5410u : 0x5432u, lane == LANES - 1 ? 0x7632u : 0x5432u};
        u32 paths[PATHS][PAIRS], least[PATHS], fetched[TURN][COST_WORDS], fetched_p2[TURN][P2_WORDS];
        UNROLL
        for (i32 k = 0; k < PATHS; k++) {
            least[k] = 0u;
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) paths[k][j] = 0u;
        }
        if (!is_guest) {
            UNROLL
            for (i32 i = 0; i + 1 < TURN; i++) FETCH(i, start + i)
        }
#if HANDED > 0
        else {
            for (i32 row = start - DEPTH; row < start; row++) {
                FETCH_GUESTS(row)
                BRING(row)
            }
            FETCH_GUESTS(start)
            GUARD(start)
        }
#endif
        BARRIER();
        for (i32 turn = start; turn < end; turn += TURN) {
            UNROLL
            for (i32 phase = 0; phase < TURN; phase++) {
                const i32 row = turn + phase;
                if (row >= end) {
                }
#if HANDED > 0
                else if (is_guest) {
                    BRING(row)
                    FETCH_GUESTS(row + 1)
                    LANES_SYNC();
                    if (LANE_X == 0) progress[walk * args.strips + strip] = (u32)(row + 1 < end ? row : height) + 1u;
                    GUARD(row + 1)
                }
#endif
                else {
                    u32 costs_here[PAIRS], sums[PAIRS];
                    FETCH((phase + TURN - 1) % TURN, row + TURN - 1)
                    spread_costs(costs_here, fetched[phase]);
                    UNROLL
                    for (i32 j = 0; j < PAIRS; j++) {
#if PARTIAL
                        costs_here[j] = (costs_here[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                        sums[j] = 0u;
                    }
                    VERTICALS(TAKE)
                    VERTICALS(EXTEND)
                    VERTICALS(KEEP)
                    spread_least(least);
                    if (lane == 0) { VERTICALS(KEEP_LEAST) }
#if HANDED > 0
                    VERTICALS(HAND_OVER)
                    below += HANDED * PATH;
#endif
                    if ((u32)u < (u32)width) {
#if PARTIAL
                        UNROLL
                        for (i32 j = 0; j < PAIRS; j++) sums[j] &= ~beyond[j];
#endif
                        store_sums(sums_at, sums);
                    }
                    u -= SKEW;
                    sums_at += (i64)to_next_row * (PADDED * SUM_BYTES / 4);
                }
                ROW_BARRIER();
            }
        }
        BARRIER();
        if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
        BARRIER();
    } while ((i32)ticket < args.strips * walks);
}
