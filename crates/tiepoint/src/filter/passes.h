// The two passes of a filter whose reach exceeds a tile's, through an image of the sums between them.

// `down` over the whole image: a lane makes V rows of two elements.
KERNEL(LANES, 1) columns(GLOBAL MID *RESTRICT to, const GLOBAL IN *RESTRICT from, i32 to_row, i32 to_height,
                         i32 to_pitch, u64 to_step, i32 from_row, i32 from_height, i32 from_pitch, u64 from_step,
                         i32 groups) {
    i32 x = (GROUP_X % groups * LANES + LANE_X) * 2, y = GROUP_X / groups * V;
    if (x >= to_row) return;
    from += from_step * (u64)GROUP_Z;
    to += to_step * (u64)GROUP_Z;
    MID v[PLANES][V][2];
    down_by_rule(v, from, x, y, from_row, from_height, from_pitch);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        PAIR(MID) two;
        two.x = v[0][r][0];
        two.y = v[0][r][1];
        if (y + r < to_height) *(GLOBAL PAIR(MID) *)(to + (i64)(y + r) * to_pitch + x) = two;
    }
}

// The other pass from the sums; the pixels are for Border::Skip.
KERNEL(LANES, 1) rows(GLOBAL OUT *RESTRICT to, const GLOBAL MID *RESTRICT from, i32 to_row, i32 to_height,
                      i32 to_pitch, u64 to_step, i32 from_row, i32 from_height, i32 from_pitch, u64 from_step,
                      i32 groups, const GLOBAL IN *RESTRICT pixels, i32 pixels_pitch, u64 pixels_step) {
    i32 x = GROUP_X % groups * LANES + LANE_X, y = GROUP_X / groups;
    if (x >= to_row) return;
    from += from_step * (u64)GROUP_Z + (u64)y * from_pitch;
    OUT out = FINISH(far(from, x, from_row));
#if BORDER == SKIP
    if (window_leaves(x, y, to_row, to_height)) {
        out = SKIPPED(pixels[pixels_step * (u64)GROUP_Z + (u64)y * pixels_pitch + x]);
    }
#endif
    to[to_step * (u64)GROUP_Z + (u64)y * to_pitch + x] = out;
}
