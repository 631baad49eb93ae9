// Grey by Rec. 709 luma: the arithmetic of mod.rs. A lane makes four pixels.

FUNCTION PIXEL luma(const PIXEL *p) {
#if CHANNELS < 3
    return p[0];
#elif PIXEL_IS_FLOAT
    return luma_float(p[0], p[1], p[2]);
#else
    return (PIXEL)luma_level(p[0], p[1], p[2]);
#endif
}

KERNEL(filter) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 x = (GROUP_X % args.across * LANES + LANE_X) * 4, y = GROUP_X / args.across;
    if (x >= target.row) return;
    const GLOBAL PIXEL *row = from + source.step * (u64)GROUP_Z + (u64)y * source.pitch;
    PIXEL p[4 * CHANNELS];
    if (x + 4 <= target.row) {
        UNROLL
        for (i32 i = 0; i < CHANNELS; i++) {
            VECTOR(PIXEL) four = *(const GLOBAL VECTOR(PIXEL) *)(row + x * CHANNELS + 4 * i);
            p[4 * i] = four.x;
            p[4 * i + 1] = four.y;
            p[4 * i + 2] = four.z;
            p[4 * i + 3] = four.w;
        }
    } else {
        UNROLL
        for (i32 i = 0; i < 4 * CHANNELS; i++) p[i] = row[MIN_I(x * CHANNELS + i, source.row - 1)];
    }
    VECTOR(PIXEL) four;
    four.x = luma(p);
    four.y = luma(p + CHANNELS);
    four.z = luma(p + 2 * CHANNELS);
    four.w = luma(p + 3 * CHANNELS);
    *(GLOBAL VECTOR(PIXEL) *)(to + target.step * (u64)GROUP_Z + (u64)y * target.pitch + x) = four;
}
