// P2 of every direction at a pixel, by the difference of grey to the pixel before, in both halves of a word: of the paths
// along rows and of those from row to row, for both passes.

#define PENALTY(to, dx, dy) { \
    const i32 bx = x - step * (dx), by = y - step * (dy); \
    u32 p2 = 0u; \
    if (bx >= 0 && bx < width && by >= 0 && by < height) { \
        const i32 difference = here - (i32)image[(u64)by * args.grey_plane.pitch + bx]; \
        p2 = table[difference < 0 ? -difference : difference]; \
    } \
    to = p2 << 16 | p2; \
}
#define VERTICAL_PENALTY(k, dx, dy, moves, rows, offset, handed, guests) PENALTY(out[k * area], dx, dy)

KERNEL(penalties) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const i32 here = image[(u64)y * args.grey_plane.pitch + x];
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        const u64 pass = (u64)(2 * GROUP_Z + backward) * area, at = (u64)y * width + x;
        GLOBAL u32 *out = vertical + pass * PATHS + at;
        PENALTY(horizontal[pass + at], 1, 0)
        VERTICALS(VERTICAL_PENALTY)
    }
}
