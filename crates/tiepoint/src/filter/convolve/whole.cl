// A kernel that is not a product, weight by weight, rows from the top, in a row from the left. A lane computes V
// outputs, one below the other, so that a pixel is read once for all of them.

#define HEIGHT (UP + DOWN + 1)
#define WIDTH ((LEFT + RIGHT) / CHANNELS + 1)

#if WIDTH * HEIGHT <= SMALL
#define UNROLL_WEIGHTS UNROLL
#define WEIGHT(j, i) WEIGHTS[(j) * WIDTH + (i)]
#else
#define UNROLL_WEIGHTS
#define WEIGHT(j, i) weights[(j) * WIDTH + (i)]
#endif

// The sums at V rows from `top` on. `plain`, a constant when compiled: the windows lie inside the image.
FUNCTION void sums_at(f32 sums[V], const GLOBAL IN *from, i32 x, i32 top, i32 row, i32 height, i32 pitch,
                      const GLOBAL f32 *RESTRICT weights, const i32 plain) {
    UNROLL_WEIGHTS
    for (i32 j = 0; j < HEIGHT + V - 1; j++) {
        i32 y = top - UP + j;
        if (!plain) y = border_index(y, height);
        const GLOBAL IN *line = from + (i64)(y < 0 ? 0 : y) * pitch;
        UNROLL_WEIGHTS
        for (i32 i = 0; i < WIDTH; i++) {
            i32 at = x - LEFT + i * CHANNELS;
            if (!plain) at = border_element(at, row);
            f32 value = !plain && (y < 0 || at < 0) ? 0.0f : (f32)line[at];
            UNROLL
            for (i32 r = 0; r < V; r++) {
                if (j - r >= 0 && j - r < HEIGHT) {
                    f32 weight = WEIGHT(j - r, i);
                    sums[r] = i == 0 && j == r ? weight * value : FMA(weight, value, sums[r]);
                }
            }
        }
    }
}

KERNEL(weighted) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 left = GROUP_X % args.across * LANES, x = left + LANE_X, top = GROUP_X / args.across * V;
    if (x >= target.row) return;
    from += source.step * (u64)GROUP_Z;
    to += target.step * (u64)GROUP_Z;
    f32 sums[V];
    // Decided for the whole group, so that all lanes take the same branch.
    i32 across = left >= LEFT && left + LANES + RIGHT <= source.row;
    i32 down = top >= UP && top + V + DOWN <= source.height;
    if (across && down) sums_at(sums, from, x, top, source.row, source.height, source.pitch, weights, 1);
    else sums_at(sums, from, x, top, source.row, source.height, source.pitch, weights, 0);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        i32 y = top + r;
        if (y < target.height) {
            OUT out = FINISH(sums[r]);
#if BORDER_RULE == SKIP
            if (window_leaves(x, y, target.row, target.height)) out = SKIPPED(from[(i64)y * source.pitch + x]);
#endif
            to[(i64)y * target.pitch + x] = out;
        }
    }
}
