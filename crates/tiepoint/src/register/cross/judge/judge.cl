// The comparison of cells, with the arithmetic of mod.rs. A group compares one cell of A with B at all places: rows of
// LANES lanes take one place after the other, and each lane sums one value of the pixels. Place 0 is the cell's own.

KERNEL(compare) {
    LOCAL f32 sums[PLACES * 5 * LANES];
    LOCAL f32 counts[PLACES], values[PLACES], strengths[PLACES];
    const Plane plane = args.plane;
    const i32 lane = LANE_X, width = plane.row / LANES, left = GROUP_X * CELL, top = GROUP_Y * CELL;
    for (i32 place = LANE_Y; place < PLACES; place += ROWS) {
        const i32 displaced = (place - 1) * args.every;
        const i32 is_tried = displaced < PLACES - 1;
        i32 dx = 0, dy = 0;
        if (place > 0 && is_tried) {
            dx = AROUND[2 * displaced];
            dy = AROUND[2 * displaced + 1];
        }
        f32 counted = 0.0f, sa = 0.0f, sb = 0.0f, aa = 0.0f, bb = 0.0f, ab = 0.0f;
        const i32 bottom = is_tried ? MIN_I(top + CELL, plane.height - dy) : 0;
        for (i32 y = MAX_I(top, -dy); y < bottom; y++) {
            for (i32 x = MAX_I(left, -dx); x < MIN_I(left + CELL, width - dx); x++) {
                const GLOBAL f32 *p = a + (u64)y * plane.pitch + (u64)x * LANES;
                const GLOBAL f32 *q = b + (u64)(y + dy) * plane.pitch + (u64)(x + dx) * LANES;
                f32 both = p[COUNTS] * q[COUNTS];
                counted = counted + both;
                f32 u = p[lane] * both, v = q[lane] * both;
                sa = sa + u;
                sb = sb + v;
                aa = aa + u * u;
                bb = bb + v * v;
                ab = ab + u * v;
            }
        }
        LOCAL_POINTER f32 *own = sums + place * 5 * LANES;
        own[lane] = sa;
        own[LANES + lane] = sb;
        own[2 * LANES + lane] = aa;
        own[3 * LANES + lane] = bb;
        own[4 * LANES + lane] = ab;
        if (lane == 0) counts[place] = counted;
    }
    BARRIER();
    // From here on each lane computes the result of a place.
    for (i32 place = LANE_Y * LANES + lane; place < PLACES; place += ROWS * LANES) {
        const LOCAL_POINTER f32 *own = sums + place * 5 * LANES;
        f32 counted = counts[place], product = 0.0f, first = 0.0f, second = 0.0f;
        UNROLL
        for (i32 i = 0; i < BINS; i++) {
            f32 p = own[i], q = own[LANES + i];
            product = product + (own[4 * LANES + i] - p * q / counted);
            first = first + own[2 * LANES + i] - p * p / counted;
            second = second + own[3 * LANES + i] - q * q / counted;
        }
        strengths[place] = MAX_F(first, 0.0f) * MAX_F(second, 0.0f);
        values[place] = product / SQRT(strengths[place] + 1e-9f);
    }
    BARRIER();
    if (LANE_Y > 0 || lane > 0) return;
    u32 less = 0, others = 0;
    const i32 is_compared = counts[0] > OWN_COUNTED;
    for (i32 i = 1; i < PLACES; i++) {
        if (!is_compared || !(counts[i] > COUNTED)) continue;
        less += values[i] < values[0] ? 2 : (values[i] == values[0] ? 1 : 0);
        others++;
    }
    GLOBAL u32 *out = cells + ((u64)GROUP_Y * (width / CELL) + GROUP_X) * WORDS;
    out[0] = less;
    out[1] = others;
    out[2] = BITS_OF(is_compared ? strengths[0] : -1.0f);
}
