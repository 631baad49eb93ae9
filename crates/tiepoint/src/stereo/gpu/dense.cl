// A map without gaps between its rows, and with another value for pixels that have none.

KERNEL(dense) {
    const Plane plane = args.plane;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= plane.row || y >= plane.height) return;
    const f32 v = map[(u64)y * plane.pitch + x];
    to[(u64)y * plane.row + x] = v == INVALID ? args.nothing : v;
}
