// Learning the table of costs: information.rs and learn.rs. Numbers are f64 in the order that is stated there.

#define VALUES 256
#define REACH 3
// Numbers that a lane of the search for the offset looks at together.
#define TOGETHER 16

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

// numeric::ln, of a positive, normal number.
FUNCTION f64 natural_logarithm(f64 x) {
    const u64 bits = BITS_OF_F64(x);
    i64 exponent = (i64)(bits >> 52) - 1023;
    f64 m = F64_OF((bits & 0xffffffffffffful) | 0x3ff0000000000000ul);
    if (m > 1.41421356237309514547) {
        m = 0.5 * m;
        exponent++;
    }
    const f64 s = (m - 1.0) / (m + 1.0), square = s * s;
    f64 sum = 0.0;
    for (i32 i = 11; i >= 0; i--) sum = 1.0 / (f64)(2 * i + 1) + square * sum;
    return (f64)exponent * 0.693147180559945286227 + 2.0 * s * sum;
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
    f64 sum = 0.0;
    for (i32 i = 0; i < VALUES; i++) sum += shares[GROUP_X == 0 ? value * VALUES + i : i * VALUES + value];
    margin[value] = sum;
    BARRIER();
    const f64 logarithm = -natural_logarithm(smoothed_margin(margin, value) + EPSILON);
    BARRIER();
    margin[value] = logarithm;
    BARRIER();
    out[GROUP_X * VALUES + value] = smoothed_margin(margin, value);
}

KERNEL(logarithms) { out[GROUP_X * VALUES + LANE_X] = -natural_logarithm(smoothed(shares, GROUP_X, LANE_X) + EPSILON); }

KERNEL(unlikeness) {
    out[GROUP_X * VALUES + LANE_X] = smoothed(logarithms, GROUP_X, LANE_X) - margins[GROUP_X] - margins[VALUES + LANE_X];
}

// The least value that is not exceeded on FREE of what is counted: its bits eight at a time, from the highest. One group.
KERNEL(offset) {
    LOCAL u32 classes[VALUES];
    LOCAL u32 reached[2];
    const f64 wanted = FREE * (f64)total[0];
    u64 found = 0ul;
    u32 seen = 0u;
    for (i32 shift = 56; shift >= 0; shift -= 8) {
        for (i32 i = LANE_X; i < VALUES; i += LANES) classes[i] = 0u;
        BARRIER();
        for (i32 i = LANE_X; i < VALUES * VALUES; i += LANES * TOGETHER) {
            // Loads that need not wait for each other.
            u32 numbers[TOGETHER];
            f64 here[TOGETHER];
            UNROLL
            for (i32 j = 0; j < TOGETHER; j++) {
                numbers[j] = counts[i + j * LANES];
                here[j] = values[i + j * LANES];
            }
            UNROLL
            for (i32 j = 0; j < TOGETHER; j++) {
                if (numbers[j] == 0u) continue;
                // Unsigned numbers in the order of the values.
                const u64 bits = BITS_OF_F64(here[j]), ordered = bits >> 63 != 0ul ? ~bits : bits | 0x8000000000000000ul;
                // In two steps, as a shift by 64 is none.
                if ((ordered >> shift >> 8) == found) ATOMIC_ADD(&classes[ordered >> shift & 0xfful], numbers[j]);
            }
        }
        BARRIER();
        if (LANE_X == 0) {
            i32 here = 0;
            while (here < VALUES - 1 && (f64)(seen + classes[here]) < wanted) seen += classes[here++];
            reached[0] = (u32)here;
            reached[1] = seen;
        }
        BARRIER();
        found = found << 8 | (u64)reached[0];
        seen = reached[1];
        BARRIER();
    }
    if (LANE_X == 0) {
        const u64 bits = found >> 63 != 0ul ? found & 0x7ffffffffffffffful : ~found;
        out[0] = total[0] == 0u ? 0.0 : F64_OF(bits);
    }
}

KERNEL(table) {
    const i32 at = GROUP_X * VALUES + LANE_X;
    const f64 cost = SCALE * (values[at] - offset[0]);
    // Halves upwards.
    const f64 bounded = cost < 0.0 ? 0.0 : cost > (f64)LIMIT ? (f64)LIMIT : cost;
    const i32 whole = (i32)bounded;
    out[at] = (u8)(whole + (bounded - (f64)whole >= 0.5 ? 1 : 0));
}
