// A mask at half the size.

// A pixel has data only if all four pixels that it combines have data.
KERNEL(halve_mask) {
    const Plane plane = args.plane, from_plane = args.from_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const i32 right = MIN_I(2 * x + 1, from_plane.row - 1), below = MIN_I(2 * y + 1, from_plane.height - 1);
    const GLOBAL u8 *upper = from + (u64)(2 * y) * from_plane.pitch, *lower = from + (u64)below * from_plane.pitch;
    const i32 least = MIN_I(MIN_I(upper[2 * x], upper[right]), MIN_I(lower[2 * x], lower[right]));
    to[(u64)y * plane.pitch + x] = (u8)least;
}
