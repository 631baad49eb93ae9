// The paths from row to row: all columns of a row at once, row after row, from the top and from the bottom.
//
// u and v count columns and rows in the order of a pass. A pixel has the slot u + SKEW v: slots lean to the left from
// row to row, so that every step comes from the same slot or from one further left. A group holds the paths of a strip
// of COLUMNS slots and goes through all rows in which these lie in the image; a pixel's disparities lie in LANES lanes
// of a warp. A group that becomes free takes the next strip to the right. So if a strip waits for the strip to its
// left, the latter has already started.
//
// Place p is disparity p.
//
// Between strips. The last slots of a strip write their path costs into global memory, from which one warp of the next
// group, its halo warp, copies them into local memory, the halo. The strips of a pass write into BUFFERS buffers in
// turn. Each 32 bits hold 16 bits of a path and a tag from the number of the strip that wrote them, so no fence and no
// count of rows is needed. A strip publishes how many rows its halo warp has read, and the next strip that writes into
// the same buffer waits for that.
//
// Between bands. With BANDED the image is a band of rows of a larger one: paths enter its first rows from `entering`,
// and those that go on to the next band are written to `leaving`. Both hold, for each pass and direction, the paths of
// the last dy rows before the border, at every column, normalised.

#define WARPS (COLUMNS / PIXELS_OF_WARP)
// Additional warps: the loader, which copies the data of the views for the next rows, and the halo warp. If no path
// crosses columns, a group is one warp, which is its own loader and waits for no other group.
#define HELPERS (HANDED > 0 ? 2 : 0)
// Rows that the loader has copied: the one that is computed, and AHEAD that are being copied.
#define STAGED_ROWS (AHEAD + 1)

// The data of a row, in words of local memory: the right pixels, the left pixels, and P2 of all paths. The right pixels
// of a lane's places lie side by side, and those that a warp reads at once are in different banks.
#define RIGHTS (LANES * STRIDE)
#define RIGHTS_OF_LANE (COLUMNS + PER_LANE - 1)
// How many right pixels a lane of the loader copies: of those of lane LANE_X % LANES, every PIXELS_OF_WARP-th from
// m = LANE_X / LANES on.
#define COPIED ((RIGHTS_OF_LANE + PIXELS_OF_WARP - 1) / PIXELS_OF_WARP)
#define STAGED_LEFT (PLANES * RIGHTS)
#define STAGED_P2 (STAGED_LEFT + PLANES * COLUMNS)
#define STAGED (STAGED_P2 + COLUMNS * PATHS)

// VERTICALS(DO) expands DO(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) for every path: its number, its
// step, by how many slots it moves, how many of its rows are kept, and where it begins in the rings, among the words of
// a hand-over, in the halo, and among the CROSSING rows of a checkpoint. A path that stays in its slot is kept in
// registers, whole, with its least value and the words beside it, which lanes exchange while they search for the least.
#define STAYS(dy, moves) ((dy) == 1 && (moves) == 0)

#define TAKE(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (!STAYS(dy, moves)) { \
        load(paths[k], slot >= (moves) \
            ? rings + (offset) + (((row - (dy)) & ((rows) - 1)) * COLUMNS + slot - (moves)) * PATH \
            : halo + ((in_halo) + ((row - (dy)) & ((rows) - 1)) * (moves) + (moves) - 1 - slot) * PATH, lane); \
    }

#define EXTEND(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (STAYS(dy, moves)) { \
        bound_whole(paths[k], beside[k], least[k], p2[k]); \
    } else { \
        bound(paths[k], beside[k], p2[k], edges); \
    } \
    least[k] = extend(paths[k], beside[k], costs, sums, args.p1);

#define LOOK_BESIDE(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (STAYS(dy, moves)) look_beside(beside[k], paths[k], edges);

#define LESS_LEAST(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (!STAYS(dy, moves)) { \
        UNROLL \
        for (i32 j = 0; j < PAIRS; j++) paths[k][j] -= least[k]; \
    }

#define KEEP(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (!STAYS(dy, moves)) store(rings + (offset) + ((row & ((rows) - 1)) * COLUMNS + slot) * PATH, paths[k], lane);

#define HAND_OVER(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (slot + (moves) >= COLUMNS) { \
        hand_over(below + ((u64)(u32)row * HANDED + (handed) + COLUMNS - 1 - slot) * PATH, paths[k], tag, lane); \
    }

// The index at which `load` and `store` keep word j of a lane.
#define WORD_OF(j) (((j) / VECTOR * LANES + lane) * VECTOR + (j) % VECTOR)

// Writes a path for the next strip: each half of a word together with the tag.
FUNCTION void hand_over(volatile GLOBAL u64 *to, const u32 path[PAIRS], u32 tag, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        to[WORD_OF(j)] = (u64)PAIR_HIGHS(path[j], tag) << 32 | PAIR_LOWS(path[j], tag);
    }
}

#if BANDED
// The index of a path's first word in a checkpoint: at column u of row `row` of the rows that cross the border.
#define IN_CHECKPOINT(row, u) (((u64)(u32)(CROSSING * backward + (row)) * width + (u32)(u)) * PATH)

// Takes the paths that enter the first row of a band: into registers, or into the rings and the halo, by all lanes of
// the group. Columns outside the image keep what is there: P2 is 0 for the paths that come from them.
#define ENTER(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (STAYS(dy, moves)) { \
        const i32 u = first + slot + SKEW; \
        if ((u32)u < (u32)width) { \
            UNROLL \
            for (i32 j = 0; j < PAIRS; j++) paths[k][j] = entering[IN_CHECKPOINT(crossing, u) + WORD_OF(j)]; \
        } \
        look_beside(beside[k], paths[k], edges); \
    } else { \
        for (i32 row = -(dy); row < 0; row++) { \
            const i32 kept = row & ((rows) - 1); \
            for (i32 i = LANE_Y * WARP + LANE_X; i < (COLUMNS + (moves)) * PATH; i += WARP * (WARPS + HELPERS)) { \
                const i32 at = i / PATH - (moves), word = i % PATH, u = first + at - SKEW * row; \
                LOCAL_POINTER u32 *to = at >= 0 ? rings + (offset) + (kept * COLUMNS + at) * PATH \
                    : halo + ((in_halo) + kept * (moves) - 1 - at) * PATH; \
                if ((u32)u < (u32)width) to[word] = entering[IN_CHECKPOINT((crossing) + (dy) + row, u) + word]; \
            } \
        } \
    }

// Keeps the paths of a band's last rows, normalised.
#define LEAVE(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    if (row + (dy) >= height) { \
        UNROLL \
        for (i32 j = 0; j < PAIRS; j++) { \
            leaving[IN_CHECKPOINT((crossing) + (dy) + row - height, u) + WORD_OF(j)] = \
                paths[k][j] - (STAYS(dy, moves) ? least[k] : 0u); \
        } \
    }
#endif

// Words of a path that a lane of the halo warp copies.
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

#define PASS_ON(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    UNROLL \
    for (i32 n = 0; n < (moves); n++) { \
        UNROLL \
        for (i32 i = 0; i < BROUGHT; i++) { \
            const i32 at = i * WARP + LANE_X; \
            if (PATH % WARP == 0 || at < PATH) { \
                halo[((in_halo) + (brought_row & ((rows) - 1)) * (moves) + n) * PATH + at] = \
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

// Waits until the words that row `row` is going to overwrite have been read by the strip that needs them.
#define GUARD(row) \
    if (reader >= 0) { \
        while (rows_brought <= (row)) rows_brought = (i32)progress[walk * args.strips + reader]; \
    }

#if HELPERS > 0
#define ROW_DONE() BARRIER()
#else
#define ROW_DONE() LANES_SYNC()
#endif

// The state of the loader: where it reads the data of the views that a strip needs, at the row that it copies next.
typedef struct {
    const GLOBAL u32 *left, *right, *p2_penalties;
    // Words from a row to the next of the pass, and from a plane to the next.
    i64 step;
    u64 area;
    i32 width, height, backward, first, row;
    // In row 0, the right pixel at index m of lane l is in column right_origin + m - PER_LANE l.
    i32 right_origin;
    // The columns of the right pixels that this lane copies.
    u32 copied[COPIED];
} Strip;

// Computes the columns of row `row` that a lane copies; without a skew they are the same in all rows.
FUNCTION void find_columns(Strip *strip, i32 row) {
    const i32 moved = strip->backward ? SKEW * row : -(SKEW * row);
    const i32 from = strip->right_origin + moved - LANE_X % LANES * PER_LANE + LANE_X / LANES;
    UNROLL
    for (i32 i = 0; i < COPIED; i++) strip->copied[i] = (u32)held(from + i * PIXELS_OF_WARP, strip->width);
}

// Starts copying the data of the next row and advances to the row after it; the last row is copied repeatedly.
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
                COPY_ASYNC(rights + (w * RIGHTS + i * PIXELS_OF_WARP),
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
                COPY_ASYNC(to + (STAGED_LEFT + w * COLUMNS + slot), strip->left + w * strip->area + x);
            }
            UNROLL
            for (i32 k = 0; k < PATHS; k++) {
                COPY_ASYNC(to + (STAGED_P2 + k * COLUMNS + slot), strip->p2_penalties + k * strip->area + x);
            }
        }
    }
    COPY_COMMIT();
    if (strip->row + 1 < strip->height) {
        strip->row++;
        strip->left += strip->step;
        strip->right += strip->step;
        strip->p2_penalties += strip->step;
    }
}

#if VOLUME
// Where the costs of the pixel of a slot in row v are.
#define COLUMN_AT(v) held(first + slot - SKEW * (v), width)
#define COSTS_AT(v) \
    (volume + ((u64)(u32)(backward ? height - 1 - (v) : (v)) * width + (u32)(backward ? width - 1 - COLUMN_AT(v) : COLUMN_AT(v))) \
        * COST_WORDS)
#endif

KERNEL(vertical) {
    LOCAL u32x4 ring_memory[RING_WORDS / 4 + 1];
    LOCAL u32x4 halo_memory[HALO_WORDS / 4 + 1];
    LOCAL u32 staged_memory[STAGED_ROWS][STAGED];
    LOCAL u32 ticket;
    LOCAL_POINTER u32 *rings = (LOCAL_POINTER u32 *)ring_memory;
    LOCAL_POINTER u32 *halo = (LOCAL_POINTER u32 *)halo_memory;
    const i32 width = args.width, height = args.height;
    const i32 is_loader = HELPERS == 0 || LANE_Y == 0, is_halo_warp = HELPERS > 0 && LANE_Y == 1;
    const i32 has_slots = HELPERS == 0 || LANE_Y >= HELPERS;
    const i32 lane = LANE_X % LANES, slot = LANE_Y < HELPERS ? 0 : (LANE_Y - HELPERS) * PIXELS_OF_WARP + LANE_X / LANES;
    const i32 walks = args.images * args.passes;
    const u64 area = (u64)width * height;
    if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
    // Where a path begins, any values that path costs can have may be read: see path.h.
    for (i32 i = LANE_Y * WARP + LANE_X; i < RING_WORDS; i += WARP * (WARPS + HELPERS)) rings[i] = 0u;
    for (i32 i = LANE_Y * WARP + LANE_X; i < HALO_WORDS; i += WARP * (WARPS + HELPERS)) halo[i] = 0u;
    BARRIER();
    if ((i32)ticket >= args.strips * walks) return;
    do {
        // Tickets go round all walks: strip 0 of each, then strip 1 of each, and so on.
        const i32 walk = (i32)ticket % walks, strip = (i32)ticket / walks;
        const i32 image = walk / args.passes, backward = walk % args.passes;
        const i32 first = strip * COLUMNS;
        // The rows in which the strip, and the one left of it, have a slot in the image.
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
        needed.p2_penalties = p2_penalties + (u64)(2 * image + backward) * area * PATHS + start_at;
        needed.step = backward ? -width : width;
        needed.area = area;
        needed.width = width;
        needed.height = height;
        needed.backward = backward;
        needed.first = first;
        needed.row = start;
        needed.right_origin = backward ? width - 1 - first - args.min_disparity - (COLUMNS + PER_LANE - 2)
            : first - args.min_disparity - (PER_LANE - 1);
        find_columns(&needed, start);
        GLOBAL u32 *sums_part =
            sums_out + ((u64)(args.parts * image + 2 + backward) * area * PADDED + lane * PER_LANE) * SUM_BYTES / 4;
#if HANDED > 0
        volatile GLOBAL u64 *boundaries = (volatile GLOBAL u64 *)boundary + (u64)walk * BUFFERS * height * HANDED * PATH;
        const volatile GLOBAL u64 *above = boundaries + (u64)((strip + BUFFERS - 1) % BUFFERS) * height * HANDED * PATH;
        volatile GLOBAL u64 *below = boundaries + (u64)(strip % BUFFERS) * height * HANDED * PATH;
        // Zero, the initial content of the memory, is no tag. Tags repeat after 65 535 strips, buffers long before.
        const u32 tag = ((u32)strip % 0xffffu + 1u) * 0x10001u, left_tag = ((u32)(strip - 1) % 0xffffu + 1u) * 0x10001u;
        u64 brought[HANDED][BROUGHT];
        // The strip that reads what the last strip with this buffer wrote, and how many rows it has read.
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
#if BANDED
        if (start == 0) {
            VERTICALS(ENTER)
        }
#endif
        if (is_loader) {
            for (i32 ahead = 0; ahead < AHEAD; ahead++) {
                stage(staged_memory[(u32)(start + ahead) % STAGED_ROWS], &needed);
            }
            COPY_WAIT(AHEAD - 1);
        }
#if HANDED > 0
        if (is_halo_warp) {
            for (i32 row = start - DEPTH; row < start; row++) {
                FETCH(row)
                BRING(row)
            }
            FETCH(start)
            GUARD(start)
        }
#endif
#if VOLUME
        const GLOBAL u32 *volume = (const GLOBAL u32 *)table + (u64)image * area * COST_WORDS + lane * PAIRS;
        u32 ahead[PAIRS];
        load_costs(ahead, COSTS_AT(start));
#endif
        ROW_DONE();
        i32 row = start;
        do {
            if (is_loader) {
                stage(staged_memory[(u32)(row + AHEAD) % STAGED_ROWS], &needed);
                // All but the last AHEAD - 1 rows have arrived, the next row among them.
                COPY_WAIT(AHEAD - 1);
            }
#if HANDED > 0
            if (is_halo_warp) {
                BRING(row)
                FETCH(row + 1)
                LANES_SYNC();
                if (LANE_X == 0) progress[walk * args.strips + strip] = (u32)(row + 1 < end ? row : height) + 1u;
                GUARD(row + 1)
            }
#endif
            if (has_slots) {
                const LOCAL_POINTER u32 *staged = staged_memory[(u32)row % STAGED_ROWS];
                u32 p2[PATHS], costs[PAIRS], sums[PAIRS];
                UNROLL
                for (i32 k = 0; k < PATHS; k++) p2[k] = staged[STAGED_P2 + k * COLUMNS + slot];
#if VOLUME
                costs_of_words(costs, ahead, 0);
                load_costs(ahead, COSTS_AT(MIN_I(row + 1, height - 1)));
#else
                const LOCAL_POINTER u32 *rights =
                    staged + lane * STRIDE + (backward ? COLUMNS - 1 - slot : slot) + PER_LANE - 1;
                u32 own[PLANES];
                UNROLL
                for (i32 w = 0; w < PLANES; w++) own[w] = staged[STAGED_LEFT + w * COLUMNS + slot];
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
                }
#endif
                UNROLL
                for (i32 j = 0; j < PAIRS; j++) {
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
#if BANDED
                    VERTICALS(LEAVE)
#endif
                }
            }
            ROW_DONE();
            row++;
        } while (row < end);
        // Pending copies are not needed, but must not arrive in the rows of the next strip.
        COPY_WAIT(0);
        if (LANE_X == 0 && LANE_Y == 0) ticket = ATOMIC_ADD(tickets, 1u);
        BARRIER();
    } while ((i32)ticket < args.strips * walks);
}
