// The consistency check and the search for occlusions of mod.rs.

KERNEL(check) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    const f32 d = from[row + x];
    f32 result = INVALID;
    // Greater disparities exceed the width of any image and would overflow the integer.
    if (ABS(d) < 1073741824.0f) {
        const i32 place = x - (i32)ROUND_EVEN(args.sign * d);
        if (place >= 0 && place < plane.row && ABS(other[row + place] - d) <= args.limit) result = d;
    }
    to[row + x] = result;
}

// Marks every left pixel as occluded.
KERNEL(cover) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    hidden[plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x] = 1;
}

// Clears the mark of the left pixels that a surface of the right view covers.
KERNEL(uncover) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    const f32 d = right[row + x];
    if (!(ABS(d) < 1073741824.0f)) return;
    const i32 low = x - (i32)FLOOR(SURFACE - d), high = x + (i32)FLOOR(d + SURFACE);
    for (i32 place = MAX_I(low, 0); place <= MIN_I(high, plane.row - 1); place++) hidden[row + place] = 0;
}
