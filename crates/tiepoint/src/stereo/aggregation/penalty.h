// P2 of a step to pixel (x, y) from (bx, by), by the difference of grey, in both halves of a word. Where a path begins
// it is 0.
FUNCTION u32 penalty(const GLOBAL u8 *image, const Plane plane, const GLOBAL u32 *table, i32 x, i32 y, i32 bx, i32 by) {
    if (bx < 0 || bx >= plane.row || by < 0 || by >= plane.height) return 0u;
    const i32 difference = (i32)image[(u64)y * plane.pitch + x] - (i32)image[(u64)by * plane.pitch + bx];
    const u32 p2 = table[difference < 0 ? -difference : difference];
    return p2 << 16 | p2;
}
