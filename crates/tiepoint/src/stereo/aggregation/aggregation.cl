// Cost aggregation: the recurrence of mod.rs along all paths of a pass, whose sum is stored.
//
// A pass walks over the image in rows, from the top left forwards and from the bottom right backwards; u and v count
// columns and rows in its order. A row is walked by LANES lanes, each with EACH disparities, two in a word. The ROWS rows
// of a group go side by side, each SKEW columns behind the one above, and hand their path costs over in local memory.
// Groups take their numbers in the order in which they begin, so that the one waited for has begun.
//
// Places, not disparities, lie side by side: place p is disparity p forwards and PADDED - 1 - p backwards, so that from
// one pixel to the next the right pixels move up by one place in both passes.
//
// Path costs are handed over less their least value; 0 everywhere begins a path. Where there is no disparity the cost
// is args.far, the greatest path cost: it never lowers another, and sums of eight stay below 2^16.
//
// Between groups. The last rows of a group write their path costs into global memory, where DEPTH guests of the next
// group fetch them: rows without pixels of their own, ahead of the others. Two buffers serve all groups of a walk in
// turn. A word says in its highest bit whose it is, as that bit changes from one use of a buffer to the next: no fence
// and no count of columns is needed. A guest begins when the group above has begun to write, and fetches AHEAD columns
// ahead. Thus what it finds is at most one use old, and it cannot mistake the words of the group four before for those
// of the group above: that one's rows lie too far behind.

#define PAIRS (EACH / 2)
#define PADDED (EACH * LANES)
// Words of a path at a pixel.
#define PATH (PADDED / 2)
// More than any penalty.
#define FAR 0x3fffu
#define MARK 0x80000000u

FUNCTION i32 held(i32 x, i32 width) { return MIN_I(MAX_I(x, 0), width - 1); }

#if PAIRS % 4 == 0
FUNCTION void load(u32 path[PAIRS], const LOCAL_POINTER u32 *from, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 4; j++) {
        const u32x4 four = ((const LOCAL_POINTER u32x4 *)from)[j * LANES + lane];
        path[4 * j] = four.x;
        path[4 * j + 1] = four.y;
        path[4 * j + 2] = four.z;
        path[4 * j + 3] = four.w;
    }
}

FUNCTION void store(LOCAL_POINTER u32 *to, const u32 path[PAIRS], i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 4; j++) {
        ((LOCAL_POINTER u32x4 *)to)[j * LANES + lane] =
            U32X4(path[4 * j], path[4 * j + 1], path[4 * j + 2], path[4 * j + 3]);
    }
}
#else
FUNCTION void load(u32 path[PAIRS], const LOCAL_POINTER u32 *from, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 2; j++) {
        const u64 two = ((const LOCAL_POINTER u64 *)from)[j * LANES + lane];
        path[2 * j] = (u32)two;
        path[2 * j + 1] = (u32)(two >> 32);
    }
}

FUNCTION void store(LOCAL_POINTER u32 *to, const u32 path[PAIRS], i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS / 2; j++) {
        ((LOCAL_POINTER u64 *)to)[j * LANES + lane] = (u64)path[2 * j + 1] << 32 | path[2 * j];
    }
}
#endif

// The same at the boundary to another group.
FUNCTION void fetch(u32 path[PAIRS], const volatile GLOBAL u32 *from, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] = from[j * LANES + lane];
}

FUNCTION void hand_over(volatile GLOBAL u32 *to, const u32 path[PAIRS], u32 mark, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) to[j * LANES + lane] = path[j] | mark;
}

// Waits for words that are marked so.
FUNCTION void expect(u32 path[PAIRS], const volatile GLOBAL u32 *from, u32 mark, i32 lane) {
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        while ((path[j] & MARK) != mark) path[j] = from[j * LANES + lane];
        path[j] &= ~MARK;
    }
}

// L(p, .) from L(p - r, .), both less their least value; adds L to the sums. `edges` keep the disparities before the
// first and after the last out of the way.
FUNCTION void extend(u32 path[PAIRS], const u32 costs[PAIRS], u32 sums[PAIRS], u32 p1, u32 p2, const u32 edges[2]) {
#if LANES > 1
    const u32 before = SHUFFLE_UP(path[PAIRS - 1]) + edges[0], after = SHUFFLE_DOWN(path[0]) + edges[1];
#else
    const u32 before = FAR << 16, after = FAR;
#endif
    u32 below = PAIR_BETWEEN(before, path[0]), least = 0u;
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        const u32 next = j + 1 < PAIRS ? path[j + 1 < PAIRS ? j + 1 : j] : after;
        const u32 above = PAIR_BETWEEN(path[j], next);
        const u32 best = PAIR_MIN3(PAIR_MIN(below, above) + p1, path[j], p2) + costs[j];
        least = j == 0 ? best : PAIR_MIN(least, best);
        sums[j] += best;
        path[j] = best;
        below = above;
    }
    least = PAIR_MIN(least, PAIR_BETWEEN(least, least));
#if LANES > 1
    // Both halves are the same: the least word holds the least of each.
    least = WARP_MIN(least);
#endif
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) path[j] -= least;
}

#if SUM_BYTES == 1
#define SUM_WORDS (EACH / 4)
FUNCTION u32 sum_word(const u32 sums[PAIRS], i32 j) { return LOW_BYTES(sums[2 * j], sums[2 * j + 1]); }
#else
#define SUM_WORDS PAIRS
FUNCTION u32 sum_word(const u32 sums[PAIRS], i32 j) { return sums[j]; }
#endif

FUNCTION void store_sums(GLOBAL u32 *to, const u32 sums[PAIRS]) {
#if SUM_WORDS % 4 == 0
    UNROLL
    for (i32 j = 0; j < SUM_WORDS; j += 4) {
        *(GLOBAL u32x4 *)(to + j) =
            U32X4(sum_word(sums, j), sum_word(sums, j + 1), sum_word(sums, j + 2), sum_word(sums, j + 3));
    }
#elif SUM_WORDS % 2 == 0
    UNROLL
    for (i32 j = 0; j < SUM_WORDS; j += 2) *(GLOBAL u64 *)(to + j) = (u64)sum_word(sums, j + 1) << 32 | sum_word(sums, j);
#else
    UNROLL
    for (i32 j = 0; j < SUM_WORDS; j++) to[j] = sum_word(sums, j);
#endif
}

// The cost of a left pixel and a right one.
FUNCTION u32 pixel_cost(const u32 left[PLANES], const u32 right[PLANES], u32 greatest, const GLOBAL u8 *table) {
#if MASKED
    if (left[WORDS] == 0u) return 0u;
    if (right[WORDS] == 0u) return greatest;
#endif
    return cost(left, right, table);
}

// Loads what step t needs: the newest right pixel, the left one, P2.
#define LOAD_AHEAD(phase, t) { \
    const i32 ahead = (t) - SKEW * q, x = held(backward ? width - 1 - ahead : ahead, width); \
    UNROLL \
    for (i32 w = 0; w < PLANES; w++) { \
        ahead_right[phase][w] = (right_row + w * area)[(u32)held(first + step * ahead, width)]; \
        ahead_left[phase][w] = (left_row + w * area)[(u32)x]; \
    } \
    UNROLL \
    for (i32 k = 0; k < PATHS; k++) ahead_p2[phase][k] = p2_row[(u32)(x * PATHS + k)]; \
}

// Row q of a group keeps the paths of direction k for row q + dy, which needs them dx + SKEW dy steps later.
#define SLOT(q, offset, slots, t) (ring + (q) * RING_ROW + (offset) + ((t) & ((slots) - 1)) * PATH)

#define TAKE(k, dx, dy, offset, slots, handed) \
    load(paths[k], SLOT(q - (dy), offset, slots, phase - (dx) - SKEW * (dy)), lane);

#define EXTEND(k, dx, dy, offset, slots, handed) \
    extend(paths[k], costs, sums, args.p1, p2[k], edges);

#define BEGIN(k, dx, dy, offset, slots, handed) \
    UNROLL \
    for (i32 j = 0; j < PAIRS; j++) paths[k][j] = 0u;

#define KEEP(k, dx, dy, offset, slots, handed) \
    if (q + (dy) < ROWS + DEPTH) store(SLOT(q, offset, slots, phase), paths[k], lane);

#define HAND_OVER(k, dx, dy, offset, slots, handed) \
    if (q + (dy) >= ROWS + DEPTH) { \
        hand_over(below + ((u64)u * HANDED + (handed) + (ROWS + DEPTH - 1 - q)) * PATH, paths[k], below_mark, lane); \
    }

// Where a guest finds the paths of direction k at a column.
#define HANDED_AT(column, handed) (above + ((u64)(column) * HANDED + (handed) + (DEPTH - 1 - q)) * PATH)

#define FETCH(k, dx, dy, offset, slots, handed) \
    if ((dy) >= DEPTH - q) fetch(guests[phase % AHEAD][(k) - 1], HANDED_AT(next, handed), lane);

#define PASS_ON(k, dx, dy, offset, slots, handed) \
    if ((dy) >= DEPTH - q) { \
        u32 path[PAIRS]; \
        UNROLL \
        for (i32 j = 0; j < PAIRS; j++) path[j] = inside ? guests[phase % AHEAD][(k) - 1][j] : 0u; \
        if (inside) expect(path, HANDED_AT(u, handed), above_mark, lane); \
        store(SLOT(q, offset, slots, phase), path, lane); \
    }

KERNEL(aggregate) {
    LOCAL u32x4 ring_memory[RING_ROW * (ROWS + DEPTH - 1) / 4 + 1];
    LOCAL u32 ticket;
    LOCAL_POINTER u32 *ring = (LOCAL_POINTER u32 *)ring_memory;
    // Row q of the group; the first are guests.
    const i32 lane = LANE_X, q = LANE_Y, width = args.width, height = args.height;
    if (lane == 0 && q == 0) ticket = ATOMIC_ADD(tickets, 1u);
    for (i32 i = q * LANES + lane; i < RING_ROW * (ROWS + DEPTH - 1); i += LANES * (ROWS + DEPTH)) ring[i] = 0u;
    BARRIER();
    // The groups of all walks take turns.
    const i32 walks = args.images * args.passes, groups = (height + ROWS - 1) / ROWS;
    const i32 walk = (i32)ticket % walks, group = (i32)ticket / walks;
    const i32 image = walk / args.passes, backward = args.first_pass + walk % args.passes;

    const u64 area = (u64)width * height;
    const i32 v = group * ROWS + q - DEPTH, y = backward ? height - 1 - v : v;
    const i32 is_guest = q < DEPTH, is_in_image = v >= 0 && v < height;
    const u64 row_start = (u64)(is_in_image ? y : 0) * width;
    const GLOBAL u32 *left_row = left + (u64)image * PLANES * area + row_start;
    const GLOBAL u32 *right_row = right + (u64)image * PLANES * area + row_start;
    const GLOBAL u32 *p2_row = penalties + ((u64)(2 * image + backward) * area + row_start) * PATHS;
    GLOBAL u32 *sums_row =
        sums_out + (((u64)(2 * image + backward) * area + row_start) * PADDED + lane * EACH) * SUM_BYTES / 4;
    volatile GLOBAL u32 *boundaries = boundary + (u64)walk * 2 * width * HANDED * PATH;
    const volatile GLOBAL u32 *above = boundaries + (u64)((group + 1) % 2) * width * HANDED * PATH;
    volatile GLOBAL u32 *below = boundaries + (u64)(group % 2) * width * HANDED * PATH;
    // The memory is zeroed: the first use is marked.
    const u32 above_mark = (group - 1) / 2 % 2 == 0 ? MARK : 0u, below_mark = group / 2 % 2 == 0 ? MARK : 0u;
    const i32 hands_over = HANDED > 0 && group + 1 < groups;

    // At column u the right pixel of place p is first + step (u - p).
    const i32 place = lane * EACH, step = backward ? -1 : 1;
    const i32 first =
        backward ? width - 1 - args.min_disparity - (PADDED - 1) + place : -args.min_disparity - place;
#if PARTIAL
    u32 beyond[PAIRS];
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) {
        beyond[j] = 0u;
        UNROLL
        for (i32 i = 0; i < 2; i++) {
            const i32 p = place + 2 * j + i, d = backward ? PADDED - 1 - p : p;
            beyond[j] |= d < args.disparities ? 0u : 0xffffu << (16 * i);
        }
    }
#endif

    const u32 edges[2] = {lane == 0 ? FAR << 16 : 0u, lane == LANES - 1 ? FAR : 0u};

    // What the next PHASES steps need, on its way. In front of `window` is room for the right pixels of a turn.
    u32 ahead_right[PHASES][PLANES], ahead_left[PHASES][PLANES], ahead_p2[PHASES][PATHS];
    u32 window[PHASES + EACH][PLANES];
    u32 paths[PATHS][PAIRS];
    UNROLL
    for (i32 j = 0; j < PAIRS; j++) paths[0][j] = 0u;
#if HANDED > 0
    u32 guests[AHEAD][PATHS - 1][PAIRS];
    UNROLL
    for (i32 i = 0; i < AHEAD; i++) {
        UNROLL
        for (i32 k = 0; k < PATHS - 1; k++) {
            UNROLL
            for (i32 j = 0; j < PAIRS; j++) guests[i][k][j] = 0u;
        }
    }
    if (is_guest && group > 0) {
        while (progress[(u64)walk * groups + group - 1] == 0u) {
        }
        UNROLL
        for (i32 phase = 0; phase < AHEAD; phase++) {
            const i32 next = phase - SKEW * q;
            if (next >= 0 && next < width) { VERTICALS(FETCH) }
        }
    }
#endif
    if (!is_guest) {
        UNROLL
        for (i32 i = 0; i < EACH; i++) {
            UNROLL
            for (i32 w = 0; w < PLANES; w++) {
                window[i][w] = right_row[w * area + held(first - step * (SKEW * q + i + 1), width)];
            }
        }
        UNROLL
        for (i32 phase = 0; phase < PHASES; phase++) LOAD_AHEAD(phase, phase)
    }

    // A guest fetches what the rows of the group above have handed over, which lie in the image.
    const u32 columns = is_guest || is_in_image ? (u32)width : 0u;
    const i32 steps = width + SKEW * (ROWS + DEPTH - 1);
    for (i32 turn = 0; turn < steps; turn += PHASES) {
        if (!is_guest) {
            UNROLL
            for (i32 i = EACH - 1; i >= 0; i--) {
                UNROLL
                for (i32 w = 0; w < PLANES; w++) window[PHASES + i][w] = window[i][w];
            }
        }
        UNROLL
        for (i32 phase = 0; phase < PHASES; phase++) {
            const i32 u = turn + phase - SKEW * q;
            const i32 inside = (u32)u < columns;
            if (!is_guest) {
                u32 own[PLANES], p2[PATHS];
                UNROLL
                for (i32 w = 0; w < PLANES; w++) {
                    window[PHASES - 1 - phase][w] = ahead_right[phase][w];
                    own[w] = ahead_left[phase][w];
                }
                UNROLL
                for (i32 k = 0; k < PATHS; k++) p2[k] = ahead_p2[phase][k];
                LOAD_AHEAD(phase, turn + phase + PHASES)
                if (inside) {
                    const i32 x = backward ? width - 1 - u : u;
                    u32 costs[PAIRS], sums[PAIRS];
                    UNROLL
                    for (i32 j = 0; j < PAIRS; j++) {
                        const i32 at = PHASES - 1 - phase + 2 * j;
                        costs[j] = pixel_cost(own, window[at], args.greatest, table)
                            + pixel_cost(own, window[at + 1], args.greatest, table) * 0x10000u;
#if PARTIAL
                        costs[j] = (costs[j] & ~beyond[j]) | (args.far & beyond[j]);
#endif
                        sums[j] = 0u;
                    }
                    VERTICALS(TAKE)
                    EXTEND(0, 1, 0, 0, 0, 0)
                    VERTICALS(EXTEND)
                    store_sums(sums_row + (u64)(u32)x * (PADDED * SUM_BYTES / 4), sums);
                } else {
                    VERTICALS(BEGIN)
                }
                if (q < ROWS + DEPTH - 1) { VERTICALS(KEEP) }
                if (hands_over && q >= ROWS && inside) {
                    VERTICALS(HAND_OVER)
                    if (q == ROWS + DEPTH - 1 && u == 0 && lane == 0) progress[(u64)walk * groups + group] = 1u;
                }
            }
#if HANDED > 0
            else if (group > 0) {
                VERTICALS(PASS_ON)
                const i32 next = u + AHEAD;
                if (next >= 0 && next < width) { VERTICALS(FETCH) }
            }
#endif
            BARRIER();
        }
    }
}

// P2 of every direction at a pixel, by the difference of grey to the pixel before, in both halves of a word; both passes.
#define PENALTY(k, dx, dy, offset, slots, handed) { \
    const i32 bx = x - step * (dx), by = y - step * (dy); \
    u32 p2 = 0u; \
    if (bx >= 0 && bx < width && by >= 0 && by < height) { \
        const i32 difference = here - (i32)image[(u64)by * args.grey_plane.pitch + bx]; \
        p2 = table[difference < 0 ? -difference : difference]; \
    } \
    out[k] = p2 << 16 | p2; \
}

KERNEL(penalties) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const i32 here = image[(u64)y * args.grey_plane.pitch + x];
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        GLOBAL u32 *out = to + ((u64)(2 * GROUP_Z + backward) * area + (u64)y * width + x) * PATHS;
        PENALTY(0, 1, 0, 0, 0, 0)
        VERTICALS(PENALTY)
    }
}
