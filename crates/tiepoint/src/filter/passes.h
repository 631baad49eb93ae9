// The two passes of a filter that reaches farther than a tile's margin; the sums between them are stored as an image.

// The vertical pass, `down`, over the whole image: a lane computes V rows of two elements.
KERNEL(columns) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 x = (GROUP_X % args.across * LANES + LANE_X) * 2, y = GROUP_X / args.across * V;
    if (x >= target.row) return;
    from += source.step * (u64)GROUP_Z;
    to += target.step * (u64)GROUP_Z;
    MID v[PLANES][V][2];
    down_by_rule(v, from, x, y, source.row, source.height, source.pitch);
    UNROLL
    for (i32 r = 0; r < V; r++) {
        PAIR(MID) two;
        two.x = v[0][r][0];
        two.y = v[0][r][1];
        if (y + r < target.height) *(GLOBAL PAIR(MID) *)(to + (i64)(y + r) * target.pitch + x) = two;
    }
}

// The horizontal pass over these sums; the pixels are for Border::Skip.
KERNEL(rows) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 x = GROUP_X % args.across * LANES + LANE_X, y = GROUP_X / args.across;
    if (x >= target.row) return;
    from += source.step * (u64)GROUP_Z + (u64)y * source.pitch;
    OUT out = FINISH(far(from, x, source.row));
#if BORDER_RULE == SKIP
    if (window_leaves(x, y, target.row, target.height)) {
        out = SKIPPED(pixels[args.pixels_plane.step * (u64)GROUP_Z + (u64)y * args.pixels_plane.pitch + x]);
    }
#endif
    to[target.step * (u64)GROUP_Z + (u64)y * target.pitch + x] = out;
}
