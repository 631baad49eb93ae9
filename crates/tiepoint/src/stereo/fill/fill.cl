// Filling of invalid pixels from the valid ones around: mod.rs.

// For every pixel the nearest valid value along a ray to the rows above or below. A lane follows one line of pixels,
// row by row, against the direction of the ray, and carries the last valid value. Slanted lines may begin outside the
// image, so that every pixel lies on one.
KERNEL(look) {
    const Plane plane = args.plane;
    // Rays 0 to 2 look up, 3 to 5 down, each to the columns dx = -1, 0, 1.
    const i32 ray = GROUP_Y, dx = ray % 3 - 1, downwards = ray < 3;
    const i32 line = GROUP_X * LANES + LANE_X;
    if (line >= plane.row + plane.height) return;
    const GLOBAL f32 *values = map + plane.step * (u64)GROUP_Z;
    GLOBAL f32 *out = seen + plane.step * (u64)(6 * GROUP_Z + ray);
    // The next pixel on a ray is in the row before, dx columns away: so the line's column changes by -dx each row.
    i32 x = dx == 0 ? line : dx < 0 ? line - plane.height : line;
    f32 last = INVALID;
    for (i32 i = 0; i < plane.height; i++, x -= dx) {
        const i32 y = downwards ? i : plane.height - 1 - i;
        if (x < 0 || x >= plane.row) {
            last = INVALID;
            continue;
        }
        const u64 at = (u64)y * plane.pitch + x;
        out[at] = last;
        const f32 v = values[at];
        if (ABS(v) < INVALID) last = v;
    }
}

FUNCTION f32 lower(f32 a, f32 b) { return a < b ? a : b; }
FUNCTION f32 higher(f32 a, f32 b) { return a < b ? b : a; }

// Fills every invalid pixel that holds data from the values that were found along its rays.
KERNEL(fill) {
    const Plane plane = args.plane, mask_plane = args.mask_plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    const f32 here = from[row + x];
    to[row + x] = here;
    if (ABS(here) < INVALID) return;
    const u64 at_mask = mask_plane.step * (u64)GROUP_Z + (u64)y * mask_plane.pitch + x;
    if (mask_plane.row > 0 && mask[at_mask] == 0) return;
    const f32 left = beside[row + x], right = beside[plane.step * (u64)args.images + row + x];
    f32 result;
    const bool from_left = ABS(left) < INVALID, from_right = ABS(right) < INVALID;
    if (from_left != from_right) {
        result = lower(left, right);
    } else {
        f32 first = lower(left, right), second = higher(left, right), third = INVALID;
        for (i32 ray = 0; ray < 6; ray++) {
            const f32 v = seen[plane.step * (u64)(6 * GROUP_Z + ray) + (u64)y * plane.pitch + x];
            third = lower(third, higher(second, v));
            second = lower(second, higher(first, v));
            first = lower(first, v);
        }
        second = second < INVALID ? second : first;
        const bool is_background = args.hidden_plane.row == 0 || hidden[row + x] != 0;
        result = third < INVALID && !is_background ? third : second;
    }
    to[row + x] = result;
}

// For every pixel the nearest valid values in its row, to the left and to the right. A lane follows a row.
KERNEL(look_along) {
    const Plane plane = args.plane;
    const i32 y = GROUP_X * LANES + LANE_X, rightwards = GROUP_Y;
    if (y >= plane.height) return;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    GLOBAL f32 *out = beside + (rightwards ? plane.step * (u64)args.images : 0);
    f32 last = INVALID;
    for (i32 i = 0; i < plane.row; i++) {
        const i32 x = rightwards ? plane.row - 1 - i : i;
        out[row + x] = last;
        const f32 v = map[row + x];
        if (ABS(v) < INVALID) last = v;
    }
}
