// The stages of an alignment, with the arithmetic of mod.rs. Images have LANES values a pixel: BINS bins and, last,
// whether the pixel counts. Each picture of a patch is one image of a stack: those of A have even numbers.

#define PIXEL_X (GROUP_X * GROUP_WIDTH + LANE_X)
#define PIXEL_Y (GROUP_Y * GROUP_HEIGHT + LANE_Y)

// Divides blurred channels by their length plus WEAK.
KERNEL(even) {
    const Plane plane = args.plane;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x * LANES >= plane.row || y >= plane.height) return;
    const u64 at = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + (u64)x * LANES;
    f32 sum = 0.0f;
    UNROLL
    for (i32 i = 0; i < BINS; i++) sum = sum + blurred[at + i] * blurred[at + i];
    f32 length = SQRT(sum) + WEAK;
    UNROLL
    for (i32 i = 0; i < BINS; i++) smooth[at + i] = blurred[at + i] / length;
    UNROLL
    for (i32 i = BINS; i < COUNTS; i++) smooth[at + i] = 0.0f;
    smooth[at + COUNTS] = lanes[at + COUNTS] > WHOLE ? 1.0f : 0.0f;
}

// Warps B: its channels at the points to which a patch's map takes the pixels of A, interpolated along rows first; 0
// beyond the centres of B's outermost pixels.
KERNEL(lay) {
    const Plane plane = args.plane;
    const i32 width = plane.row / LANES;
    i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= width || y >= plane.height) return;
    const GLOBAL f32 *b = smooth + plane.step * (2 * (u64)GROUP_Z + 1);
    const GLOBAL f64 *m = maps + 9 * GROUP_Z;
    GLOBAL f32 *out = laid + plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + (u64)x * LANES;
    f64 w = m[6] * (f64)x + m[7] * (f64)y + m[8];
    f32 u = (f32)((m[0] * (f64)x + m[1] * (f64)y + m[2]) / w);
    f32 v = (f32)((m[3] * (f64)x + m[4] * (f64)y + m[5]) / w);
    if (!(u >= 0.0f && v >= 0.0f && u <= (f32)(width - 1) && v <= (f32)(plane.height - 1))) {
        UNROLL
        for (i32 i = 0; i < LANES; i++) out[i] = 0.0f;
        return;
    }
    i32 left = (i32)u, top = (i32)v;
    f32 fx = u - (f32)left, fy = v - (f32)top;
    i32 right = MIN_I(left + 1, width - 1);
    const GLOBAL f32 *upper = b + (u64)top * plane.pitch;
    const GLOBAL f32 *lower = b + (u64)MIN_I(top + 1, plane.height - 1) * plane.pitch;
    UNROLL
    for (i32 i = 0; i < LANES; i++) {
        f32 above = upper[left * LANES + i] * (1.0f - fx) + upper[right * LANES + i] * fx;
        f32 below = lower[left * LANES + i] * (1.0f - fx) + lower[right * LANES + i] * fx;
        f32 value = above * (1.0f - fy) + below * fy;
        out[i] = i == COUNTS ? (value > WHOLE ? 1.0f : 0.0f) : value;
    }
}

// LANES lanes sum a block: each adds the terms of one of a pixel's LANES values. Then each of the first SUMS lanes
// computes one of the block's sums.
KERNEL(sum_blocks) {
    LOCAL f32 parts[BLOCKS_A_GROUP * TERMS * LANES];
    const Plane plane = args.plane;
    const i32 columns = plane.row / LANES / BLOCK;
    const i32 block = GROUP_X * BLOCKS_A_GROUP + LANE_Y, lane = LANE_X;
    GLOBAL f64 *out = sums + ((u64)GROUP_Z * args.blocks + block) * SUMS;
    LOCAL_POINTER f32 *part = parts + LANE_Y * TERMS * LANES;
    i32 counted = 0;
    if (block < args.blocks) {
        const GLOBAL f32 *a = smooth + plane.step * 2 * (u64)GROUP_Z, *b = laid + plane.step * (u64)GROUP_Z;
        f32 xx = 0.0f, xy = 0.0f, yy = 0.0f, xe = 0.0f, ye = 0.0f, ee = 0.0f;
        const i32 left = block % columns * BLOCK, top = block / columns * BLOCK;
        for (i32 y = MAX_I(top, 1); y < MIN_I(top + BLOCK, plane.height - 1); y++) {
            for (i32 x = MAX_I(left, 1); x < MIN_I(left + BLOCK, plane.row / LANES - 1); x++) {
                const u64 pixel = (u64)y * plane.pitch + (u64)x * LANES, at = pixel + lane;
                if (a[pixel + COUNTS] * b[pixel + COUNTS] == 0.0f) continue;
                counted++;
                f32 gx = 0.25f * ((a[at + LANES] + b[at + LANES]) - (a[at - LANES] + b[at - LANES]));
                f32 gy = 0.25f * ((a[at + plane.pitch] + b[at + plane.pitch])
                    - (a[at - plane.pitch] + b[at - plane.pitch]));
                f32 e = a[at] - b[at];
                xx = xx + gx * gx;
                xy = xy + gx * gy;
                yy = yy + gy * gy;
                xe = xe + gx * e;
                ye = ye + gy * e;
                ee = ee + e * e;
            }
        }
        part[lane] = xx;
        part[LANES + lane] = xy;
        part[2 * LANES + lane] = yy;
        part[3 * LANES + lane] = xe;
        part[4 * LANES + lane] = ye;
        part[5 * LANES + lane] = ee;
    }
    BARRIER();
    if (block >= args.blocks || lane >= SUMS) return;
    f64 sum = 0.0;
    UNROLL
    for (i32 i = 0; i < BINS; i++) sum = lane < TERMS ? sum + (f64)part[lane * LANES + i] : (f64)counted;
    out[lane] = sum;
}
