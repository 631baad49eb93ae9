// Pixels of images copied to where others lie, with left and right exchanged if `mirrored` says so.

KERNEL(arrange) {
    const Plane to_plane = args.to_plane, from_plane = args.from_plane;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= to_plane.row || y >= to_plane.height) return;
    const i32 channel = x % args.channels;
    const i32 source = args.mirrored != 0 ? to_plane.row - args.channels - (x - channel) + channel : x;
    to[to_plane.step * (u64)(args.first + GROUP_Z) + (u64)y * to_plane.pitch + x] =
        from[from_plane.step * (u64)GROUP_Z + (u64)y * from_plane.pitch + source];
}
