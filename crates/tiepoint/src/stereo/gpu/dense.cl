// Copies a map without the padding of its rows; pixels without a disparity get the value `nothing`.

KERNEL(dense) {
    const Plane plane = args.plane;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= plane.row || y >= plane.height) return;
    const f32 v = map[(u64)y * plane.pitch + x];
    to[(u64)y * plane.row + x] = v == INVALID ? args.nothing : v;
}
