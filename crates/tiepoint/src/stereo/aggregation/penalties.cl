// P2 of every direction at a pixel, for both passes: of the path along the row in both halves of a word, of those from row to
// row two in a word.

#define VERTICAL_PENALTY(k, dx, dy, moves, rows, offset, handed) \
    pairs[(k) / 2] |= penalty(image, args.grey_plane, table, x, y, x - step * (dx), y - step * (dy)) << (16 * ((k) % 2));

KERNEL(penalties) {
    const i32 width = args.grey_plane.row, height = args.grey_plane.height;
    const i32 x = GROUP_X % args.across * GROUP_WIDTH + LANE_X, y = GROUP_X / args.across * GROUP_HEIGHT + LANE_Y;
    if (x >= width || y >= height) return;
    const GLOBAL u8 *image = grey + args.grey_plane.step * (u64)GROUP_Z;
    const u64 area = (u64)width * height;
    for (i32 backward = 0; backward < 2; backward++) {
        const i32 step = backward ? -1 : 1;
        const u64 pass = (u64)(2 * GROUP_Z + backward) * area, at = (u64)y * width + x;
        horizontal[pass + at] = penalty(image, args.grey_plane, table, x, y, x - step, y) * 0x10001u;
        u32 pairs[P2_WORDS];
        UNROLL
        for (i32 i = 0; i < P2_WORDS; i++) pairs[i] = 0u;
        VERTICALS(VERTICAL_PENALTY)
        UNROLL
        for (i32 i = 0; i < P2_WORDS; i++) vertical[(pass + at) * P2_WORDS + i] = pairs[i];
    }
}
