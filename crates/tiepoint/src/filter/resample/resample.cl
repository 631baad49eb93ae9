// Resampling to twice or half the size by the rules of mod.rs. A lane computes four neighbouring elements of a row.

// The mean of two rows, which is computed before the mean of two pixels in the row.
FUNCTION f32 column(const GLOBAL PIXEL *upper, const GLOBAL PIXEL *lower, i32 i) {
    return 0.5f * ((f32)upper[i] + (f32)lower[i]);
}

FUNCTION PIXEL value(const GLOBAL PIXEL *from, i32 i, i32 y, i32 row, i32 height, i32 pitch) {
    i32 pixel = i / CHANNELS, channel = i % CHANNELS, last = row / CHANNELS - 1;
#if FORM == DOUBLE
    const GLOBAL PIXEL *upper = from + (u64)(y / 2) * pitch;
    const GLOBAL PIXEL *lower = from + (u64)MIN_I(y / 2 + y % 2, height - 1) * pitch;
    i32 x = pixel / 2;
    f32 first = column(upper, lower, x * CHANNELS + channel);
    if (pixel % 2 == 0) return pixel_from(first);
    f32 second = column(upper, lower, MIN_I(x + 1, last) * CHANNELS + channel);
    return pixel_from(0.5f * (first + second));
#elif FORM == HALVE
    return from[(u64)(2 * y) * pitch + 2 * pixel * CHANNELS + channel];
#else
    const GLOBAL PIXEL *upper = from + (u64)(2 * y) * pitch;
    const GLOBAL PIXEL *lower = from + (u64)MIN_I(2 * y + 1, height - 1) * pitch;
    f32 first = column(upper, lower, 2 * pixel * CHANNELS + channel);
    f32 second = column(upper, lower, MIN_I(2 * pixel + 1, last) * CHANNELS + channel);
    return pixel_from(0.5f * (first + second));
#endif
}

KERNEL(filter) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 x = (GROUP_X % args.across * LANES + LANE_X) * 4, y = GROUP_X / args.across;
    if (x >= target.row) return;
    from += source.step * (u64)GROUP_Z;
    PIXEL out[4];
    UNROLL
    for (i32 i = 0; i < 4; i++) {
        out[i] = value(from, MIN_I(x + i, target.row - 1), y, source.row, source.height, source.pitch);
    }
    VECTOR(PIXEL) four;
    four.x = out[0];
    four.y = out[1];
    four.z = out[2];
    four.w = out[3];
    *(GLOBAL VECTOR(PIXEL) *)(to + target.step * (u64)GROUP_Z + (u64)y * target.pitch + x) = four;
}
