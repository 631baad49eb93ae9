// The P2 penalty of every direction at a pixel, by the difference of grey from the previous pixel of the path, in both
// halves of a word: for the paths along rows and from row to row, in both passes.

// The penalty of a step from pixel (bx, by) to (x, y); 0 where a path begins.
FUNCTION u32 p2_penalty(const GLOBAL u8 *image, const Plane plane, const GLOBAL u32 *table, i32 x, i32 y, i32 bx, i32 by) {
    if (bx < 0 || bx >= plane.row || by < 0 || by >= plane.height) return 0u;
    const i32 difference = (i32)image[(u64)y * plane.pitch + x] - (i32)image[(u64)by * plane.pitch + bx];
    const u32 p2 = table[difference < 0 ? -difference : difference];
    return p2 << 16 | p2;
}

#define VERTICAL_P2(k, dx, dy, moves, rows, offset, handed, in_halo, crossing) \
    out[k * area] = p2_penalty(image, args.grey_plane, table, x, y, x - step * (dx), y - step * (dy));

KERNEL(p2_penalty_map) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        const u64 pass = (u64)(2 * GROUP_Z + backward) * area, at = (u64)y * width + x;
        GLOBAL u32 *out = vertical + pass * PATHS + at;
        horizontal[pass + at] = p2_penalty(image, args.grey_plane, table, x, y, x - step, y);
        VERTICALS(VERTICAL_P2)
    }
}
