// Filling of invalid pixels from the valid ones around: mod.rs.

// What the pixels see along a ray upwards or downwards. A lane follows a line of pixels from where it enters the image:
// line l is in column l - height · lean at its first row.
KERNEL(look) {
    const Plane plane = args.plane;
    // The ray looks along (dx, dy); the line goes against it.
    const i32 ray = GROUP_Y, dx = ray % 3 - 1, downwards = ray < 3;
    const i32 line = GROUP_X * LANES + LANE_X;
    if (line >= plane.row + plane.height) return;
    const GLOBAL f32 *values = map + plane.step * (u64)GROUP_Z;
    GLOBAL f32 *out = seen + plane.step * (u64)(6 * GROUP_Z + ray);
    // A pixel sees what lies in the row before it in the walk, dx columns away: along the walk columns change by -dx.
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

// Every pixel from the values that it sees.
KERNEL(fill) {
    const Plane plane = args.plane;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    const f32 here = from[row + x];
    to[row + x] = here;
    if (ABS(here) < INVALID) return;
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

// The nearest valid pixels of its row to the left and to the right of every pixel. A lane follows a row.
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
