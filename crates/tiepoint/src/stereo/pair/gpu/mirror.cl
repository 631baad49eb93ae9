// Images mirrored left to right.

KERNEL(mirror) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const i32 channel = x % args.channels, from_x = plane.row - args.channels - (x - channel) + channel;
    const u64 row = plane.step * (u64)GROUP_Z + (u64)y * plane.pitch;
    to[row + x] = from[row + from_x];
}
