// Shrinking by any factor, with the arithmetic of mod.rs. A lane computes a pixel.

// The share of output pixel i that input pixel x covers, of `from` pixels that become `to`.
FUNCTION f32 share(i64 i, i64 x, i64 from, i64 to) {
    i64 start = i * from, end = start + from, left = x * to, right = left + to;
    i64 covered = (end < right ? end : right) - (start > left ? start : left);
    return (f32)((f64)covered / (f64)from);
}

FUNCTION i32 first_of(i64 i, i64 from, i64 to) { return (i32)(i * from / to); }
FUNCTION i32 last_of(i64 i, i64 from, i64 to) { return (i32)(((i + 1) * from - 1) / to); }

KERNEL(filter) {
    const Plane source = args.from_plane, target = args.to_plane;
    i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= target.row || y >= target.height) return;
    from += source.step * (u64)GROUP_Z;
    const i32 left = first_of(x, source.row, target.row), right = last_of(x, source.row, target.row);
    const i32 top = first_of(y, source.height, target.height), bottom = last_of(y, source.height, target.height);
    f32 mean = 0.0f;
    for (i32 u = left; u <= right; u++) {
        f32 sum = 0.0f;
        for (i32 v = top; v <= bottom; v++) {
            sum = sum + from[(u64)v * source.pitch + u] * share(y, v, source.height, target.height);
        }
        mean = mean + sum * share(x, u, source.row, target.row);
    }
    to[target.step * (u64)GROUP_Z + (u64)y * target.pitch + x] = mean;
}
