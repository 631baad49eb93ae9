// Warping through a map: the arithmetic of mod.rs, places in f64, values in f32. A lane makes a pixel.

// Rounds down a place that lies inside the input.
FUNCTION i32 floor_of(f64 v) {
    i32 whole = (i32)v;
    return v < (f64)whole ? whole - 1 : whole;
}

// The weights of the TAPS pixels about a fraction. Rows of the table are of whole vectors: neighbouring lanes read
// different rows, which costs as much for four numbers as for one.
FUNCTION void weights_at(f32 w[WEIGHTS], f32 fraction, const GLOBAL f32x4 *RESTRICT table) {
#if TAPS == 1
    w[0] = 1.0f;
#elif TAPS == 2
    w[0] = 1.0f - fraction;
    w[1] = fraction;
#else
    const GLOBAL f32x4 *row = table + (i32)ROUND_EVEN(fraction * PHASES) * (WEIGHTS / 4);
    UNROLL
    for (i32 i = 0; i < WEIGHTS / 4; i++) {
        f32x4 four = row[i];
        w[4 * i] = four.x;
        w[4 * i + 1] = four.y;
        w[4 * i + 2] = four.z;
        w[4 * i + 3] = four.w;
    }
#endif
}

FUNCTION i32 clamped(i32 i, i32 n) { return i < 0 ? 0 : (i < n ? i : n - 1); }

KERNEL(warp) {
    const Plane source = args.from_plane, target = args.to_plane;
    const i32 width = source.row / CHANNELS, height = source.height;
    i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= target.row / CHANNELS || y >= target.height) return;
    from += source.step * (u64)GROUP_Z;
    GLOBAL PIXEL *out = to + target.step * (u64)GROUP_Z + (u64)y * target.pitch + (u64)x * CHANNELS;
    Place p = place(x, y, width, height, args.map);
    if (!p.inside) {
        for (i32 c = 0; c < CHANNELS; c++) out[c] = (PIXEL)args.fill;
        return;
    }
#if TAPS == 1
    i32 left = floor_of(p.u + 0.5), top = floor_of(p.v + 0.5);
#else
    i32 left = floor_of(p.u), top = floor_of(p.v);
#endif
    f32 wx[WEIGHTS], wy[WEIGHTS];
    weights_at(wx, (f32)(p.u - (f64)left), table);
    weights_at(wy, (f32)(p.v - (f64)top), table);
    left -= (TAPS - 1) / 2;
    top -= (TAPS - 1) / 2;
    i32 columns[TAPS];
    UNROLL
    for (i32 i = 0; i < TAPS; i++) columns[i] = clamped(left + i, width) * CHANNELS;
    for (i32 c = 0; c < CHANNELS; c++) {
        f32 sum = 0.0f;
        UNROLL
        for (i32 j = 0; j < TAPS; j++) {
            const GLOBAL PIXEL *row = from + (u64)clamped(top + j, height) * source.pitch + c;
            f32 along = wx[0] * (f32)row[columns[0]];
            UNROLL
            for (i32 i = 1; i < TAPS; i++) along = FMA(wx[i], (f32)row[columns[i]], along);
            sum = j == 0 ? wy[0] * along : FMA(wy[j], along, sum);
        }
        out[c] = pixel_from(sum);
    }
}

// 255 where `warp` finds input, 0 elsewhere.
KERNEL(coverage) {
    const Plane target = args.to_plane;
    i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= target.row || y >= target.height) return;
    to[(u64)y * target.pitch + x] = place(x, y, args.width, args.height, args.map).inside ? 255 : 0;
}
