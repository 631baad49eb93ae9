// Learning the table of costs: information.rs and learn.rs. Numbers are f64 in the order that is stated there.

#define VALUES 256
#define REACH 3
// Numbers that a lane loads at a time.
#define TOGETHER 32

// A pixel holds something only if all four that it was made of do.
KERNEL(halve_mask) {
    const Plane plane = args.plane, from_plane = args.from_plane;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= plane.row || y >= plane.height) return;
    const i32 right = MIN_I(2 * x + 1, from_plane.row - 1), below = MIN_I(2 * y + 1, from_plane.height - 1);
    const GLOBAL u8 *upper = from + (u64)(2 * y) * from_plane.pitch, *lower = from + (u64)below * from_plane.pitch;
    const i32 least = MIN_I(MIN_I(upper[2 * x], upper[right]), MIN_I(lower[2 * x], lower[right]));
    to[(u64)y * plane.pitch + x] = (u8)least;
}

// The joint histogram: how often each pair of values corresponds, rows by the left value, and how many do in all. A group
// counts those of TILE left values in some rows.
KERNEL(joint) {
    LOCAL u32 counters[TILE * VALUES];
    LOCAL u32 counted;
    const i32 width = args.left_plane.row, height = args.left_plane.height, tile = GROUP_Y;
    for (i32 i = LANE_X; i < TILE * VALUES; i += LANES) counters[i] = 0u;
    if (LANE_X == 0) counted = 0u;
    BARRIER();
    u32 own = 0u;
    for (i32 y = GROUP_X; y < height; y += GROUPS_X) {
        const GLOBAL u8 *left_row = left + (u64)y * args.left_plane.pitch, *right_row = right + (u64)y * args.right_plane.pitch;
        const GLOBAL u8 *mask_row = mask + (u64)y * args.mask_plane.pitch;
        const GLOBAL f32 *disparities = disparity + (u64)(y / args.step) * args.disparity_plane.pitch;
        for (i32 x = LANE_X; x < width; x += LANES) {
            const i32 value = left_row[x] - tile * TILE;
            if (value < 0 || value >= TILE) continue;
            const f32 found = disparities[x / args.step];
            if (!(ABS(found) < INVALID)) continue;
            // The nearest column, halves upwards.
            const f32 at = (f32)x - (f32)args.step * found + 0.5f;
            const i32 other = (i32)MIN_F(MAX_F(at, 0.0f), (f32)(width - 1));
            if (args.mask_plane.row > 0 && mask_row[other] == 0) continue;
            ATOMIC_ADD(&counters[value * VALUES + right_row[other]], 1u);
            own++;
        }
    }
    ATOMIC_ADD(&counted, own);
    BARRIER();
    for (i32 i = LANE_X; i < TILE * VALUES; i += LANES) {
        if (counters[i] > 0u) ATOMIC_ADD(&counts[tile * TILE * VALUES + i], counters[i]);
    }
    if (LANE_X == 0 && counted > 0u) ATOMIC_ADD(&total[0], counted);
}

FUNCTION f64 tap(i32 t) {
    const i32 far = t < REACH ? REACH - t : t - REACH;
    return far == 0 ? 0.383 : far == 1 ? 0.242 : far == 2 ? 0.061 : 0.006;
}

FUNCTION i32 value_near(i32 value) { return MIN_I(MAX_I(value, 0), VALUES - 1); }

// A place of `a` smoothed along the rows, then along the columns.
FUNCTION f64 smoothed(const GLOBAL f64 *a, i32 i, i32 k) {
    f64 sum = 0.0;
    for (i32 t = 0; t <= 2 * REACH; t++) {
        const GLOBAL f64 *row = a + value_near(i + t - REACH) * VALUES;
        f64 along = 0.0;
        for (i32 s = 0; s <= 2 * REACH; s++) along += tap(s) * row[value_near(k + s - REACH)];
        sum += tap(t) * along;
    }
    return sum;
}

// A group is a row in the kernels of whole tables, a lane a column.

KERNEL(shares) {
    const i32 at = GROUP_X * VALUES + LANE_X;
    out[at] = (f64)counts[at] / (f64)(total[0] > 1u ? total[0] : 1u);
}

FUNCTION f64 smoothed_margin(const LOCAL_POINTER f64 *margin, i32 value) {
    f64 sum = 0.0;
    for (i32 t = 0; t <= 2 * REACH; t++) sum += tap(t) * margin[value_near(value + t - REACH)];
    return sum;
}

// Of the left values (group 0) and of the right ones.
KERNEL(margins) {
    LOCAL f64 margin[VALUES];
    const i32 value = LANE_X;
    const i32 first = GROUP_X == 0 ? value * VALUES : value, step = GROUP_X == 0 ? 1 : VALUES;
    f64 sum = 0.0;
    for (i32 i = 0; i < VALUES; i += TOGETHER) {
        // Loads that need not wait for each other; the sum has its order.
        f64 next[TOGETHER];
        UNROLL
        for (i32 j = 0; j < TOGETHER; j++) next[j] = shares[first + (i + j) * step];
        UNROLL
        for (i32 j = 0; j < TOGETHER; j++) sum += next[j];
    }
    margin[value] = sum;
    BARRIER();
    const f64 logarithm = -ln_f64(smoothed_margin(margin, value) + EPSILON);
    BARRIER();
    margin[value] = logarithm;
    BARRIER();
    out[GROUP_X * VALUES + value] = smoothed_margin(margin, value);
}

KERNEL(logarithms) { out[GROUP_X * VALUES + LANE_X] = -ln_f64(smoothed(shares, GROUP_X, LANE_X) + EPSILON); }

KERNEL(unlikeness) {
    out[GROUP_X * VALUES + LANE_X] = smoothed(logarithms, GROUP_X, LANE_X) - margins[GROUP_X] - margins[VALUES + LANE_X];
}

// The least value that is not exceeded on FREE of what is counted, its bits eight at a time, from the highest: a launch
// counts the next digit of the values whose digits before are those found.

// Unsigned numbers in the order of the values.
FUNCTION u64 in_order(f64 value) {
    const u64 bits = BITS_OF_F64(value);
    return bits >> 63 != 0ul ? ~bits : bits | 0x8000000000000000ul;
}

// What is known of the value, of which `places` gives three words after each digit: the digits so far, and how much is
// counted below them.
typedef struct {
    u64 digits;
    u32 below;
} Known;

FUNCTION Known known_before(const GLOBAL u32 *places, i32 digit) {
    Known known;
    known.digits = digit > 0 ? (u64)places[3 * digit - 2] << 32 | places[3 * digit - 3] : 0ul;
    known.below = digit > 0 ? places[3 * digit - 1] : 0u;
    return known;
}

// Finds a digit by a group, whose lane i knows how many have digit i. A launch finds one digit: a loop over all of them, which
// for the first is not entered, PoCL 3.1 compiles wrongly for the sake of its barriers (2026-11-23).
#define FIND_DIGIT(known, own, wanted, sums, first) { \
        sums[LANE_X] = own; \
        if (LANE_X == 0) first[0] = LANES - 1; \
        /* Sums up to each lane. */ \
        for (i32 far = 1; far < LANES; far *= 2) { \
            BARRIER(); \
            const u32 other = LANE_X >= far ? sums[LANE_X - far] : 0u; \
            BARRIER(); \
            sums[LANE_X] += other; \
        } \
        BARRIER(); \
        if (LANE_X < LANES - 1 && (f64)(known.below + sums[LANE_X]) >= wanted) ATOMIC_MIN(&first[0], (u32)LANE_X); \
        BARRIER(); \
        known.digits = known.digits << 8 | (u64)first[0]; \
        known.below += first[0] > 0u ? sums[MAX_I((i32)first[0] - 1, 0)] : 0u; \
        BARRIER(); \
    }

KERNEL(digits) {
    LOCAL u32 sums[LANES];
    LOCAL u32 first[1];
    const i32 digit = args.digit, shift = 56 - 8 * digit;
    Known known = known_before(places, digit - 1);
    if (digit > 0) {
        const u32 own = classes[(digit - 1) * LANES + LANE_X];
        FIND_DIGIT(known, own, FREE * (f64)total[0], sums, first)
        if (GROUP_X == 0 && LANE_X == 0) {
            places[3 * digit - 3] = (u32)known.digits;
            places[3 * digit - 2] = (u32)(known.digits >> 32);
            places[3 * digit - 1] = known.below;
        }
    }
    sums[LANE_X] = 0u;
    BARRIER();
    const i32 at = GROUP_X * VALUES + LANE_X;
    const u64 ordered = in_order(values[at]);
    // In two steps, as a shift by 64 is none.
    if (counts[at] > 0u && (ordered >> shift >> 8) == known.digits) {
        ATOMIC_ADD(&sums[(i32)(ordered >> shift & 0xfful)], counts[at]);
    }
    BARRIER();
    if (sums[LANE_X] > 0u) ATOMIC_ADD(&classes[digit * LANES + LANE_X], sums[LANE_X]);
}

KERNEL(table) {
    LOCAL u32 sums[LANES];
    LOCAL u32 first[1];
    Known known = known_before(places, 7);
    const u32 own = classes[7 * LANES + LANE_X];
    FIND_DIGIT(known, own, FREE * (f64)total[0], sums, first)
    const u64 bits = known.digits >> 63 != 0ul ? known.digits & 0x7ffffffffffffffful : ~known.digits;
    const f64 offset = total[0] == 0u ? 0.0 : F64_OF(bits);
    const i32 at = GROUP_X * VALUES + LANE_X;
    const f64 cost = SCALE * (values[at] - offset);
    // Halves upwards.
    const f64 bounded = cost < 0.0 ? 0.0 : cost > (f64)LIMIT ? (f64)LIMIT : cost;
    const i32 whole = (i32)bounded;
    out[at] = (u8)(whole + (bounded - (f64)whole >= 0.5 ? 1 : 0));
}

// A group is a row of the result.
KERNEL(exchange) { out[GROUP_X * VALUES + LANE_X] = table[LANE_X * VALUES + GROUP_X]; }
