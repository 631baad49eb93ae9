// P2 of every direction at a pixel, by the difference of grey to the pixel before, in both halves of a word: of the
// paths along rows and of those from row to row, for both passes.

#define VERTICAL_PENALTY(k, dx, dy, moves, rows, offset, handed, in_halo) \
    out[k * area] = penalty(image, args.grey_plane, table, x, y, x - step * (dx), y - step * (dy));

KERNEL(penalties) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = PIXEL_X, y = PIXEL_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        const u64 pass = (u64)(2 * GROUP_Z + backward) * area, at = (u64)y * width + x;
        GLOBAL u32 *out = vertical + pass * PATHS + at;
        horizontal[pass + at] = penalty(image, args.grey_plane, table, x, y, x - step, y);
        VERTICALS(VERTICAL_PENALTY)
    }
}
