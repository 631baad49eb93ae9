// Confidence is 0 where refinement left no disparity.

KERNEL(drop_confidence) {
    const Plane plane = args.plane;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= plane.row || y >= plane.height) return;
    const u64 at = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch + x;
    if (!(ABS(disparity[at]) < INVALID)) confidence[at] = 0.0f;
}
