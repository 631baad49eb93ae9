// The table of costs and the information of joint histograms: mod.rs. Numbers are f64 in the order that is stated
// there.

CONSTANT f64 taps[2 * REACH + 1] = TAPS;

// Numbers that a lane loads at a time.
#define TOGETHER 32

// Where each kind of counter begins in the tally, after the joint histogram at 0: those of the classes of v, of runs of
// 256 classes, of the parts of one class, and of all pixels.
#define FINE (VALUES * VALUES)
#define COARSE (2 * VALUES * VALUES)
#define WITHIN (COARSE + VALUES)
#define TOTAL (WITHIN + PARTS)
// The number of counters of a joint histogram with its classes.
#define TALLY (TOTAL + 1)

// The joint histogram: how often each pair of values corresponds, rows by the left value, and the number of pixels in
// all. A group counts TILE left values in some rows of the image.
KERNEL(joint) {
    LOCAL u32 counters[TILE * VALUES];
    LOCAL u32 in_all;
    const i32 width = args.left_plane.row, height = args.left_plane.height, tile = GROUP_Y;
    for (i32 i = LANE_X; i < TILE * VALUES; i += VALUES) counters[i] = 0u;
    if (LANE_X == 0) in_all = 0u;
    BARRIER();
    u32 own = 0u;
    for (i32 y = GROUP_X; y < height; y += GROUPS_X) {
        const GLOBAL u8 *left_row = left + (u64)y * args.left_plane.pitch, *right_row = right + (u64)y * args.right_plane.pitch;
        const GLOBAL u8 *mask_row = mask + (u64)y * args.mask_plane.pitch;
        const GLOBAL f32 *disparities = disparity + (u64)(y / args.step) * args.disparity_plane.pitch;
        for (i32 x = LANE_X; x < width; x += VALUES) {
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
    ATOMIC_ADD(&in_all, own);
    BARRIER();
    for (i32 i = LANE_X; i < TILE * VALUES; i += VALUES) {
        if (counters[i] > 0u) ATOMIC_ADD(&tally[tile * TILE * VALUES + i], counters[i]);
    }
    if (LANE_X == 0 && in_all > 0u) ATOMIC_ADD(&tally[TOTAL], in_all);
}

FUNCTION i32 value_near(i32 value) { return MIN_I(MAX_I(value, 0), VALUES - 1); }

// In the kernels of whole tables a group is a row and a lane a column. The smoothed value of a lane, from the 2 REACH +
// 1 rows around: along the rows, then along the columns.
FUNCTION f64 smoothed(LOCAL_POINTER f64 *rows, i32 k) {
    f64 sum = 0.0;
    for (i32 t = 0; t <= 2 * REACH; t++) {
        f64 along = 0.0;
        for (i32 s = 0; s <= 2 * REACH; s++) along += taps[s] * rows[t * VALUES + value_near(k + s - REACH)];
        sum += taps[t] * along;
    }
    return sum;
}

FUNCTION f64 counted(u32 total) { return (f64)(total > 1u ? total : 1u); }

FUNCTION f64 smoothed_margin(const LOCAL_POINTER f64 *margin, i32 value) {
    f64 sum = 0.0;
    for (i32 t = 0; t <= 2 * REACH; t++) sum += taps[t] * margin[value_near(value + t - REACH)];
    return sum;
}

// The contributions of the margins: of the left values (group 0) and of the right values (group 1), for a histogram for
// each group in the second dimension.
KERNEL(margins) {
    LOCAL f64 margin[VALUES];
    const i32 value = LANE_X;
    tally += (u64)GROUP_Y * TALLY;
    out += (u64)GROUP_Y * 2 * VALUES;
    if (args.skips_empty != 0 && tally[TOTAL] == 0u) return;
    const i32 first = GROUP_X == 0 ? value * VALUES : value, step = GROUP_X == 0 ? 1 : VALUES;
    u32 sum = 0u;
    for (i32 i = 0; i < VALUES; i += TOGETHER) {
        // Independent loads, which need not wait for each other.
        UNROLL
        for (i32 j = 0; j < TOGETHER; j++) sum += tally[first + (i + j) * step];
    }
    margin[value] = (f64)sum / counted(tally[TOTAL]);
    BARRIER();
    const f64 logarithm = -ln_f64(smoothed_margin(margin, value) + EPSILON);
    BARRIER();
    margin[value] = logarithm;
    BARRIER();
    out[GROUP_X * VALUES + value] = smoothed_margin(margin, value);
}

// The negative logarithms of the smoothed shares, of a histogram for each group in the second dimension.
KERNEL(logarithms) {
    LOCAL f64 rows[(2 * REACH + 1) * VALUES];
    tally += (u64)GROUP_Y * TALLY;
    out += (u64)GROUP_Y * VALUES * VALUES;
    if (args.skips_empty != 0 && tally[TOTAL] == 0u) return;
    const f64 all = counted(tally[TOTAL]);
    for (i32 t = 0; t <= 2 * REACH; t++) {
        rows[t * VALUES + LANE_X] = (f64)tally[value_near(GROUP_X + t - REACH) * VALUES + LANE_X] / all;
    }
    BARRIER();
    out[GROUP_X * VALUES + LANE_X] = -ln_f64(smoothed(rows, LANE_X) + EPSILON);
}

// v of the group's left value and the lane's right value.
FUNCTION f64 unlikeness_of(LOCAL_POINTER f64 *rows, const GLOBAL f64 *logarithms, const GLOBAL f64 *margins) {
    for (i32 t = 0; t <= 2 * REACH; t++) {
        rows[t * VALUES + LANE_X] = logarithms[value_near(GROUP_X + t - REACH) * VALUES + LANE_X];
    }
    BARRIER();
    return smoothed(rows, LANE_X) - margins[GROUP_X] - margins[VALUES + LANE_X];
}

// The sum of n v over a row of a histogram, added in halves; 0 if nothing is counted. Each group in the second
// dimension has a histogram.
KERNEL(information) {
    LOCAL f64 rows[(2 * REACH + 1) * VALUES];
    LOCAL f64 terms[VALUES];
    tally += (u64)GROUP_Y * TALLY;
    logarithms += (u64)GROUP_Y * VALUES * VALUES;
    margins += (u64)GROUP_Y * 2 * VALUES;
    if (tally[TOTAL] == 0u) {
        if (LANE_X == 0) out[GROUP_Y * VALUES + GROUP_X] = 0.0;
        return;
    }
    const f64 v = unlikeness_of(rows, logarithms, margins);
    terms[LANE_X] = (f64)tally[GROUP_X * VALUES + LANE_X] * v;
    for (i32 far = VALUES / 2; far > 0; far /= 2) {
        BARRIER();
        if (LANE_X < far) terms[LANE_X] += terms[LANE_X + far];
    }
    if (LANE_X == 0) out[GROUP_Y * VALUES + GROUP_X] = terms[0];
}

FUNCTION i32 part_of(f64 v) { return (i32)((v - LEAST) * STEPS); }

// v of every pair of values, and the number of pixels in each class of v.
KERNEL(unlikeness) {
    LOCAL f64 rows[(2 * REACH + 1) * VALUES];
    LOCAL u32 coarse[VALUES];
    const i32 at = GROUP_X * VALUES + LANE_X;
    coarse[LANE_X] = 0u;
    const f64 v = unlikeness_of(rows, logarithms, margins);
    out[at] = v;
    const u32 count = tally[at];
    if (count > 0u) {
        const i32 class_of_v = part_of(v) / PARTS;
        ATOMIC_ADD(&tally[FINE + class_of_v], count);
        ATOMIC_ADD(&coarse[class_of_v / VALUES], count);
    }
    BARRIER();
    if (coarse[LANE_X] > 0u) ATOMIC_ADD(&tally[COARSE + LANE_X], coarse[LANE_X]);
}

// Finds the first lane at which `below` plus the counts `own` of the lanes up to it reach `wanted`; adds the counts of
// the lanes before it to `below`.
#define FIND(place, below, own, wanted, sums, first) { \
        sums[LANE_X] = own; \
        if (LANE_X == 0) first[0] = VALUES - 1; \
        /* Prefix sums over the lanes. */ \
        for (i32 far = 1; far < VALUES; far *= 2) { \
            BARRIER(); \
            const u32 other = LANE_X >= far ? sums[LANE_X - far] : 0u; \
            BARRIER(); \
            sums[LANE_X] += other; \
        } \
        BARRIER(); \
        if (LANE_X < VALUES - 1 && (f64)(below + sums[LANE_X]) >= wanted) ATOMIC_MIN(&first[0], (u32)LANE_X); \
        BARRIER(); \
        place = (i32)first[0]; \
        below += place > 0 ? sums[place - 1] : 0u; \
        BARRIER(); \
    }

// The number of pixels in each part of the class that contains o.
KERNEL(within) {
    LOCAL u32 sums[VALUES];
    LOCAL u32 first[1];
    const f64 wanted = FREE * (f64)tally[TOTAL];
    u32 below = 0u;
    i32 coarse, fine;
    FIND(coarse, below, tally[COARSE + LANE_X], wanted, sums, first)
    FIND(fine, below, tally[FINE + coarse * VALUES + LANE_X], wanted, sums, first)
    const i32 at = GROUP_X * VALUES + LANE_X, part = part_of(values[at]);
    if (tally[at] > 0u && part / PARTS == coarse * VALUES + fine) {
        ATOMIC_ADD(&tally[WITHIN + part % PARTS], tally[at]);
    }
}

KERNEL(table) {
    LOCAL u32 sums[VALUES];
    LOCAL u32 first[1];
    const f64 wanted = FREE * (f64)tally[TOTAL];
    u32 below = 0u;
    i32 coarse, fine, part;
    FIND(coarse, below, tally[COARSE + LANE_X], wanted, sums, first)
    FIND(fine, below, tally[FINE + coarse * VALUES + LANE_X], wanted, sums, first)
    FIND(part, below, tally[WITHIN + LANE_X], wanted, sums, first)
    const f64 offset = (f64)((coarse * VALUES + fine) * PARTS + part) / STEPS + LEAST;
    const i32 at = GROUP_X * VALUES + LANE_X;
    const f64 cost = SCALE * (values[at] - offset);
    // Halves upwards.
    const f64 bounded = cost < 0.0 ? 0.0 : cost > (f64)LIMIT ? (f64)LIMIT : cost;
    const i32 whole = (i32)bounded;
    out[at] = (u8)(whole + (bounded - (f64)whole >= 0.5 ? 1 : 0));
}

// A group is a row of the result.
KERNEL(exchange) { out[GROUP_X * VALUES + LANE_X] = table[LANE_X * VALUES + GROUP_X]; }
